//! Tests policies and limits that would affect holding queues or prevent their declaration.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::fixture::{Conversion, Fixture, Q, QUORUM, TO_QUORUM, TRANSPORTS, TTL, expect_each_once, since};
use super::traffic::{Publisher, emptied};
use crate::support::{NONE, deletes, puts, run_concurrently, text};

fn put(fixture: &Fixture, kind: &str, name: &str, body: &Value) {
    let answer = fixture.vhost.http().put(&fixture.vhost.path(kind, &[name]), body);
    assert!(answer.is_success(), "{answer:?}");
}

#[test]
fn policy_does_not_drop_held_messages() {
    let conflicting_policies = [json!({"max-length": 3}), json!({"message-ttl": 1}), json!({"expires": 300})];
    let cases = conflicting_policies
        .into_iter()
        .flat_map(|conflicting_policy| TRANSPORTS.map(|transport| (conflicting_policy.clone(), transport)));
    run_concurrently(4, cases, |(conflicting_policy, transport)| {
        let fixture = Fixture::new("eater", TTL);
        put(
            &fixture,
            "policies",
            "own",
            &json!({"pattern": "^(q|topo.lock)$", "definition": {"max-length": 100_000}, "priority": 9}),
        );
        put(
            &fixture,
            "policies",
            "eater",
            &json!({"pattern": ".*", "definition": conflicting_policy, "priority": 3, "apply-to": "queues"}),
        );
        let fixture = fixture.remembered();
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(100);
        let output = fixture.migrate(transport, &[]);
        let context = format!("{conflicting_policy} by {transport}\n{output}");
        assert_eq!(output.code, Some(0), "{context}");
        fixture.expect_migrated(&context);
        expect_each_once(emptied(&fixture.vhost, Q), 100, &context);
    });
}

/// topo adds the shield policy only if it is necessary, because the policy is visible to other users.
#[test]
fn shield_policy_is_added_only_if_necessary() {
    let of_the_queue = json!({"pattern": "^q$", "definition": {"max-length": 100_000}});
    let harmless = json!({"pattern": ".*", "definition": {"alternate-exchange": "x"}});
    let conflicting_policy = json!({"pattern": "^q", "definition": {"max-length": 100_000}});
    let cases = [(None, false), (Some(of_the_queue), false), (Some(harmless), false), (Some(conflicting_policy), true)];
    run_concurrently(4, cases, |(policy, is_shielded)| {
        let fixture = Fixture::new("shield", TTL);
        if let Some(body) = &policy {
            put(&fixture, "policies", "theirs", body);
        }
        let (fixture, proxy) = fixture.remembered().through();
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(20);
        let output = fixture.migrate("amqp", &[]);
        let context = format!("{policy:?}\n{output}");
        assert_eq!(output.code, Some(0), "{context}");
        for method in [puts(), deletes()] {
            assert_eq!(proxy.count(&method.path("/q.topo.shield")) > 0, is_shielded, "{context}");
        }
        fixture.expect_migrated(&context);
        expect_each_once(emptied(&fixture.vhost, Q), 20, &context);
    });
}

/// Expects that topo refuses the plan and that the broker is unchanged.
fn refused(fixture: Fixture, why: &str) {
    let fixture = fixture.remembered();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(5);
    let plan = fixture.topo.run(["plan", "--recreate", "queues/{vhost}/q=migrate"]);
    assert!(plan.code == Some(3) || plan.says("BLOCKED"), "{plan}");
    let output = fixture.migrate("auto", &[]).expect_code(3).expect_text(why);
    fixture.expect_as_before(&output);
    expect_each_once(emptied(&fixture.vhost, Q), 5, &output);
}

#[test]
fn operator_policy_on_holding_queues_is_refused() {
    let fixture = Fixture::new("operator", TTL);
    let policy = json!({"pattern": "topo", "definition": {"max-length": 1000}, "apply-to": "queues"});
    put(&fixture, "operator-policies", "theirs", &policy);
    refused(fixture, "operator policy theirs sets max-length on q.topo.hold");
}

/// A harmless operator policy does not block the migration.
#[test]
fn operator_policy_of_other_queues_does_not_block() {
    let fixture = Fixture::new("operator", TTL);
    let policy = json!({"pattern": "^q$", "definition": {"max-length": 100_000}, "apply-to": "queues"});
    put(&fixture, "operator-policies", "theirs", &policy);
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(5);
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    expect_each_once(emptied(&fixture.vhost, Q), 5, &output);
}

#[test]
fn full_vhost_is_refused() {
    for room in [1, 2] {
        let fixture = Fixture::new("room", TTL);
        put(&fixture, "vhost-limits", "max-queues", &json!({"value": 1 + room}));
        let why = format!("the vhost is limited to {} queues", 1 + room);
        refused(fixture, &why);
    }
    let fixture = Fixture::new("room", TTL);
    put(&fixture, "vhost-limits", "max-queues", &json!({"value": 4}));
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
}

#[test]
fn taken_name_is_refused() {
    let fixture = Fixture::new("taken", TTL);
    fixture.amqp.declare_queue("q.topo.hold", NONE).unwrap();
    refused(fixture, "queue q.topo.hold exists, and no migration created it");
    let fixture = Fixture::new("taken", TTL);
    fixture.amqp.declare_exchange("q.topo.tap", "fanout", NONE).unwrap();
    refused(fixture, "exchange q.topo.tap exists, and no migration created it");
    // The existing object has a marker for a migration of a different queue.
    let fixture = Fixture::new("taken", TTL);
    fixture.amqp.declare_queue("q.topo.drained", &[("x-topo-migrates", text("other"))]).unwrap();
    refused(fixture, "queue q.topo.drained exists, and no migration created it");
}

#[test]
fn migration_of_a_stream_suggests_an_alternative() {
    if !since(3, 10) {
        return;
    }
    let stream = Conversion { name: "stream", from: "stream", old: None, ..TTL };
    let fixture = Fixture::new("stream", stream);
    fixture.amqp.fill(Q, 3);
    let output =
        fixture.migrate("auto", &[]).expect_code(3).expect_text("`migrate` does not support the queue type stream");
    let output = output.expect_text("give the new queue a different name");
    fixture.expect_as_before(&output);
    let fixture = Fixture::new("to-stream", Conversion { new: "type: stream", ..TTL });
    refused(fixture, "`migrate` does not support the queue type stream");
}

/// Fills the queue and migrates it with the allowances of [`Fixture::migrate`] except `duplicates`.
///
/// Expects success from 3.10 on, and a refusal before. Returns true for a refusal.
fn is_refused_before_3_10(fixture: &Fixture) -> bool {
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(100);
    let most = "routing-gap,consumer-disruption,contract-change,reorder";
    let output = fixture.topo.run(["apply", "-y", "--recreate", "queues/{vhost}/q=migrate", "--allow", most]);
    let reservation = "before RabbitMQ 3.10, a busy quorum queue can keep a copy";
    if since(3, 10) {
        let output = output.expect_code(0).expect_no_text(reservation);
        fixture.expect_migrated(&output);
        expect_each_once(emptied(&fixture.vhost, Q), 100, &output);
        return false;
    }
    let refused = output.expect_code(3).expect_error("BLOCKED by 1 hazard").expect_text(reservation);
    fixture.expect_as_before(&refused);
    true
}

/// Migrations under load are less reliable on these versions.
#[test]
fn quorum_queue_before_3_10_requires_duplicates_allowance() {
    let conversions = [QUORUM, TO_QUORUM];
    run_concurrently(2, conversions, |conversion| {
        let fixture = Fixture::new("reservation", conversion);
        if !is_refused_before_3_10(&fixture) {
            return;
        }
        // The run may stop halfway and report this. The next run resumes.
        let mut output = fixture.migrate("auto", &[]);
        for _ in 0..3 {
            if output.code == Some(4) {
                output = fixture.migrate("auto", &[]);
            }
        }
        fixture.expect_migrated(&output.expect_code(0));
        let came: BTreeSet<usize> = emptied(&fixture.vhost, Q).into_iter().collect();
        assert_eq!(came.len(), 100);
    });
}

/// Quorum queues hold the messages of a mirrored queue.
#[test]
fn mirrored_queue_requires_duplicates_allowance() {
    // From 4.0 on, RabbitMQ does not support mirrored queues.
    if since(4, 0) {
        return;
    }
    let fixture = Fixture::new("mirrored", TTL);
    put(&fixture, "policies", "ha", &json!({"pattern": "^q$", "definition": {"ha-mode": "all"}}));
    let fixture = fixture.remembered();
    if !is_refused_before_3_10(&fixture) {
        return;
    }
    // One of the two hazards must be allowed.
    let comment = fixture.topo.run(["plan", "--recreate", "queues/{vhost}/q=migrate", "--format", "markdown"]).stdout;
    let duplicates: Vec<&str> = comment.lines().filter(|line| line.starts_with("- **duplicates**")).collect();
    let only_shown = duplicates.iter().filter(|line| line.ends_with(" (not blocking)")).count();
    assert_eq!((duplicates.len(), only_shown), (2, 1), "{comment}");
    fixture.expect_as_before(&comment);
}
