//! Tests changes during a migration: a broker restart, a deleted new queue, a different spec.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::alarm::{EXCHANGED, PREPARED, of_the_migration};
use super::fixture::{Conversion, Fixture, Q, TTL, declare_old, duplicates};
use super::killed::killed_before;
use super::traffic::{EXCHANGE, Publisher, emptied};
use crate::support::node::Options;
use crate::support::{Fault, Node, Topo, deletes, puts, until};

const MESSAGES: usize = 20_000;
/// The in-flight limit of a transport.
const PREFETCH: usize = 1_000;

/// Restarts the broker, which closes every connection and does not respond for several seconds.
fn restart(node: &Node) {
    node.ctl(["stop_app"]);
    node.ctl(["start_app"]);
}

#[test]
fn broker_restart_loses_no_message() {
    let node = Node::start(Options::default());
    for (transport, begins) in [("amqp", PREPARED), ("amqp", EXCHANGED), ("shovel", PREPARED), ("shovel", EXCHANGED)] {
        let vhost = node.vhost("restarted");
        declare_old(&vhost.amqp(), TTL, &[]);
        let topo = Topo::new(&vhost).spec(&TTL.spec()).timeout(Duration::from_secs(200));
        let mut fixture = Fixture::of(vhost, topo, TTL);
        let proxy = fixture.through_node(&node);
        Publisher::new(&fixture.vhost).fill(MESSAGES);
        let running = fixture.start(transport);
        until("messages under way", || (proxy.count(&of_the_migration()) >= begins).then_some(()));
        restart(&node);
        let cut = running.wait();
        println!("by {transport}, after {begins} requests: {:?}", cut.code);
        // The run usually waits for the broker. Otherwise, it rolls back or reports an interrupted migration.
        assert!(matches!(cut.code, Some(0 | 1 | 4)), "{cut}");
        let is_reported = ["Interrupted: the migration of queue q", "Rolled back: the migration of queue q"]
            .iter()
            .any(|it| cut.says(it));
        assert!(cut.code == Some(0) || is_reported, "{cut}");
        let again = fixture.migrate(transport, &["--lock-timeout=2m"]).expect_code(0);
        fixture.expect_migrated(&again);
        let duplicated = duplicates(emptied(&fixture.vhost, Q), MESSAGES, &again);
        println!("{duplicated} duplicates");
        // Each interruption may duplicate the messages in flight: the restart, the failed transfer, and the failed
        // return.
        assert!(duplicated <= 3 * PREFETCH, "{duplicated} duplicates: {again}");
    }
}

/// Messages that had returned are deleted with the queue. The remaining messages are held until the queue exists again.
#[test]
fn deletion_of_the_new_queue_keeps_held_messages() {
    // If this process pauses, all messages return before the deletion, so that none are held.
    assert!((0..5).any(|_| deleted_late() < MESSAGES), "all messages had returned in each attempt");
}

/// Returns the number of messages that were deleted with the new queue.
fn deleted_late() -> usize {
    let fixture = Fixture::new("deleted-late", TTL);
    Publisher::new(&fixture.vhost).fill(MESSAGES);
    let (http, queue, amqp) = (fixture.vhost.http(), fixture.vhost.path("queues", &[Q]), fixture.vhost.amqp());
    let running = fixture.start("amqp");
    until("a returned message", || (fixture.is_new() && amqp.ready(Q) > 0).then_some(()));
    assert!(http.delete(&queue).is_success());
    let output = running.wait();
    assert!(matches!(output.code, Some(0 | 4)), "{output}");
    let again = fixture.migrate("amqp", &["--lock-timeout=2m"]).expect_code(0);
    let context = format!("{output}\n{again}");
    fixture.expect_migrated(&context);
    let left: BTreeSet<usize> = emptied(&fixture.vhost, Q).into_iter().collect();
    let deleted = MESSAGES - left.len();
    println!("{deleted} of {MESSAGES} were deleted");
    assert!(deleted > 0 && left == (deleted..MESSAGES).collect(), "{deleted}: {context}");
    deleted
}

/// Returns a queue whose migration was killed after the deletion of the old queue and before the declaration of the new
/// queue.
fn without_a_queue(hint: &str) -> Fixture<'static> {
    let (mut fixture, proxy) = Fixture::new(hint, TTL).through();
    Publisher::new(&fixture.vhost).fill(200);
    // The names of holding queues and of a probe begin with the name of the queue. AMQP swaps the queue without such a
    // request.
    proxy.add(puts().path(&format!("/api/queues/{}/{Q}", fixture.vhost.name())).nth(4), Fault::HangBefore);
    assert!(killed_before(4, &proxy, fixture.start("shovel")));
    assert!(fixture.vhost.queue(Q).is_null());
    fixture.unlock();
    fixture.directly();
    fixture
}

/// The interrupted migration explains the other differences.
#[test]
fn interrupted_migration_is_listed_first() {
    let fixture = without_a_queue("first");
    fixture.topo.rewrite(&TTL.spec().replace("queues:\n", "queues:\n  a-new-one: {type: classic}\n"));
    for (format, interrupted, new) in [
        ("text", "! interrupted          queues/", "+ queue a-new-one"),
        ("markdown", "- **interrupted** `queues/", "| + | queue a-new-one | create |"),
    ] {
        let plan = fixture
            .topo
            .run(["plan", "--format", format])
            .expect_text("a migration of queue q was interrupted; 200 messages");
        let at = |text: &str| plan.stdout.find(text).unwrap_or_else(|| panic!("no {text}: {plan}"));
        assert!(at(interrupted) < at(new), "{plan}");
    }
    let output = fixture.topo.run(["apply", "-y", "--allow", "routing-gap,duplicates"]).expect_code(0);
    assert_eq!(duplicates(emptied(&fixture.vhost, Q), 200, &output), 0, "{output}");
}

/// The broker routes messages to the holding queue, and topo later moves them back.
#[test]
fn interrupted_migration_does_not_change_test_results() {
    let fixture = without_a_queue("cases");
    let tests =
        format!("version: 1\ntests: {{it: {{publish: {{exchange: {EXCHANGE}, routingKey: work.a}}, to: [{Q}]}}}}\n");
    fixture.topo.write("topology.test.yaml", &tests);
    for against in ["live", "planned"] {
        fixture.topo.run(["test", "--against", against]).expect_code(0).expect_text("1 case: 1 passed");
    }
    fixture.migrate("amqp", &[]).expect_code(0);
}

/// Messages published after the deletion of the tap, and unmanaged bindings, are lost. Earlier messages are kept.
#[test]
fn deletion_of_the_tap_loses_no_held_message() {
    let with_the_old_queue = || {
        let (mut fixture, proxy) = Fixture::new("tap", TTL).through();
        Publisher::new(&fixture.vhost).fill(200);
        proxy.add(deletes().path("/e/q.topo.tap/q/"), Fault::HangBefore);
        assert!(killed_before(1, &proxy, fixture.start("amqp")));
        fixture.unlock();
        fixture.directly();
        fixture
    };
    let bindings = |fixture: &Fixture<'_>| {
        let bindings =
            fixture.vhost.list("bindings").into_iter().filter(|it| it["destination"] == Q && it["source"] != "");
        bindings.map(|it| format!("{} {}", it["source"], it["routing_key"])).collect::<Vec<_>>()
    };
    let is_reported = "No messages are routed to the queue now: if exchange q.topo.tap was deleted, its bindings were \
                       deleted with it";
    for fixture in [with_the_old_queue(), without_a_queue("tap")] {
        fixture.topo.run(["plan"]).expect_text("was interrupted").expect_no_text("No messages are routed to the queue");
        assert!(fixture.vhost.http().delete(&fixture.vhost.path("exchanges", &["q.topo.tap"])).is_success());
        fixture.topo.run(["plan"]).expect_text(is_reported);
        let output = fixture.migrate("amqp", &[]).expect_code(0).expect_text(is_reported);
        assert!(fixture.is_new(), "{output}");
        assert_eq!(bindings(&fixture), ["\"in\" \"work.#\""], "{output}");
        let plan = fixture.topo.run(["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, Some(0), "{plan}\n{output}");
        assert_eq!(duplicates(emptied(&fixture.vhost, Q), 200, &output), 0, "{output}");
    }
    // The migration is rolled back after all messages have moved out.
    let (mut fixture, proxy) = Fixture::new("tap", TTL).through();
    Publisher::new(&fixture.vhost).fill(200);
    proxy.add(deletes().path(&format!("/api/queues/{}/{Q}", fixture.vhost.name())).nth(2), Fault::HangBefore);
    assert!(killed_before(2, &proxy, fixture.start("shovel")));
    fixture.unlock();
    fixture.directly();
    assert!(fixture.vhost.http().delete(&fixture.vhost.path("exchanges", &["q.topo.tap"])).is_success());
    let output =
        fixture.topo.run(["apply", "-y", "--abort", "queues/{vhost}/q"]).expect_code(0).expect_text(is_reported);
    assert!(!fixture.is_new() && fixture.vhost.queue("q.topo.hold").is_null(), "{output}");
    assert!(bindings(&fixture).is_empty(), "{output}");
    assert_eq!(duplicates(emptied(&fixture.vhost, Q), 200, &output), 0, "{output}");
}

/// The limit is added after the messages have moved out. The plan reports the number of messages that exceed it.
#[test]
fn new_limit_is_compared_with_held_messages() {
    let mut fixture = without_a_queue("limited-since");
    let tight = Conversion { new: "type: classic, maxLength: 10", becomes: ("x-max-length", "10"), ..TTL };
    fixture.topo.rewrite(&tight.spec());
    fixture.conversion = tight;
    let drops = "max-length will become 10, and 200 messages will return: the oldest will be removed immediately";
    let output =
        fixture.topo.run(["apply", "-y", "--allow", "routing-gap,duplicates"]).expect_code(3).expect_text(drops);
    assert!(output.says("message-drop") && fixture.vhost.queue(Q).is_null(), "{output}");

    // The limit is in a policy that also matches the new queue.
    let policy = format!("{}policies: {{small: {{pattern: \"^q$\", definition: {{max-length: 20}}}}}}\n", TTL.spec());
    fixture.topo.rewrite(&policy);
    let drops = "max-length will become 20, and 200 messages will return: the oldest will be removed immediately";
    fixture.topo.run(["apply", "-y", "--allow", "routing-gap,duplicates"]).expect_code(3).expect_text(drops);
    fixture.topo.rewrite(&TTL.spec());
    fixture.conversion = TTL;
    let output = fixture.topo.run(["apply", "-y", "--allow", "routing-gap,duplicates"]).expect_code(0);
    fixture.expect_migrated(&output);
    assert_eq!(duplicates(emptied(&fixture.vhost, Q), 200, &output), 0, "{output}");

    // The rollback restores the queue with its bindings, and leaves no object of the migration.
    let saved = output.stderr.split("import --file ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(saved.trim_matches('\'')).unwrap()).unwrap();
    assert!(!saved.to_string().contains(".topo."), "{saved}");
    assert_eq!(saved["queues"][0]["arguments"]["x-message-ttl"], 3_600_000, "{saved}");
    assert_eq!(saved["bindings"].as_array().map(Vec::len), Some(4), "{saved}");
}

/// The messages are in the holding queues, so an empty queue does not prove that there are no messages.
#[test]
fn interrupted_migration_is_not_recreated() {
    let (mut fixture, proxy) = Fixture::new("not-recreated", TTL).through();
    Publisher::new(&fixture.vhost).fill(200);
    let path = format!("/api/queues/{}/{Q}", fixture.vhost.name());
    proxy.add(deletes().path(&path).nth(2), Fault::HangBefore);
    assert!(killed_before(2, &proxy, fixture.start("shovel")));
    fixture.unlock();
    fixture.directly();
    let address = format!("queues/{}/q", fixture.vhost.name());
    for how in ["ifEmpty", "discard"] {
        let flag = format!("--recreate={address}={how}");
        let output = fixture.topo.run(["apply", "-y", "--allow", "message-loss,routing-gap", &flag]).expect_code(3);
        let output =
            output.expect_text("a migration of the queue was interrupted: resume the migration or roll it back first");
        output
            .expect_text(&format!("--recreate {address}=migrate"))
            .expect_no_text("=ifEmpty`")
            .expect_no_text("the queue is empty");
    }
    // The plan reports the migration even if `--target` excludes it, and `ifEmpty` cannot resume it.
    let output = fixture.topo.run(["plan", "--target", &format!("exchanges/{}/in", fixture.vhost.name())]);
    output.expect_text("a migration of queue q was interrupted").expect_text("`--target` excludes it from this plan");
    // topo does not add the bindings of the tap to the queue, because messages would be duplicated.
    let output =
        fixture.topo.run(["plan", "--target", &format!("bindings/{}/*", fixture.vhost.name()), "--format", "json"]);
    assert_eq!(output.json()["vhosts"][0]["changes"].as_array().map(Vec::len), Some(0), "{output}");
    let migrate = format!("--recreate={address}=migrate");
    let nowhere = ["plan", "--transport=amqp", "--amqp-url=amqp://127.0.0.1:1", &migrate, "--detailed-exitcode"];
    fixture.topo.run(nowhere).expect_code(3).expect_text("topo cannot move its messages");
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    assert_eq!(duplicates(emptied(&fixture.vhost, Q), 200, &output), 0, "{output}");
}

#[test]
fn changed_spec_after_the_swap_starts_another_migration() {
    let (mut fixture, proxy) = Fixture::new("another-spec", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(1_000);
    proxy.add(puts().path("/q.topo.back"), Fault::HangBefore);
    assert!(killed_before(1, &proxy, fixture.start("amqp")));
    assert!(fixture.is_new());
    fixture.unlock();
    fixture.directly();
    let third = Conversion { new: "type: classic, messageTtl: 3h", becomes: ("x-message-ttl", "10800000"), ..TTL };
    fixture.topo.rewrite(&third.spec());
    fixture.conversion = third;
    let words = Fixture::apply("amqp");
    let plan = words[1..].iter().map(String::as_str).filter(|word| *word != "-y");
    fixture.topo.run(["plan"].into_iter().chain(plan)).expect_code(0).expect_text("1 migration to finish");
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    let duplicated = duplicates(emptied(&fixture.vhost, Q), publisher.published(), &output);
    assert!(duplicated <= PREFETCH, "{duplicated} duplicates: {output}");
}
