//! Tests that `--abort` restores the old queue with its messages while the queue exists.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::ownership::objects;
use super::fixture::{
    Conversion, Fixture, Q, QUORUM, TTL, duplicates, expect_each_once, reported_duplicates, supports_quorum_queues,
};
use super::killed::{has_moved, killed_before, points, request_count};
use super::traffic::{Publisher, emptied};
use crate::support::random::is_long;
use crate::support::{Fault, Matching, Output, deletes, puts, run_concurrently, writes};

const MESSAGES: usize = 200;
const HOLD: &str = "q.topo.hold";

/// The numbers of runs that were rolled back, came too late, or had not started.
#[derive(Default)]
struct Tally {
    is_rolled_back: AtomicUsize,
    too_late: AtomicUsize,
    not_started: AtomicUsize,
}

fn aborted_at(conversion: Conversion, transport: &str, (n, request): (usize, Matching), tally: &Tally) {
    let (mut fixture, proxy) = Fixture::new("abort", conversion).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES);
    let spec = exported(&fixture);
    proxy.add(request, Fault::HangBefore);
    if !killed_before(n, &proxy, fixture.start(transport)) {
        return;
    }
    let has_moved = has_moved(&proxy);
    fixture.unlock();
    fixture.directly();
    // Messages arrive between the kill and the rollback.
    publisher.fill(50);
    let has_begun = !fixture.vhost.queue(HOLD).is_null();
    let is_old = !fixture.vhost.queue(Q).is_null() && !fixture.is_new();
    if has_begun {
        let plan = fixture.topo.run(["plan", "--format", "json"]);
        let text = plan.json()["vhosts"][0]["interrupted"][0]["text"].to_string();
        assert!(text.contains("was interrupted"), "{plan}");
        assert_eq!(text.contains("--abort"), is_old, "{text}");
    }
    assert_eq!(exported(&fixture), spec, "killed before request {n} by {transport}");
    let output = fixture.topo.run(["apply", "-y", "--transport", transport, "--abort", "queues/{vhost}/q"]);
    let context = format!("{} by {transport}, killed before request {n}\n{output}", conversion.name);
    if has_begun && is_old {
        assert_eq!(output.code, Some(0), "{context}");
        fixture.expect_as_before(&context);
        tally.is_rolled_back.fetch_add(1, Ordering::Relaxed);
        expect_each_once_or_killed(&fixture, &publisher, (has_moved, &output));
        return;
    }
    assert_eq!(output.code, Some(3), "{context}");
    if !has_begun {
        assert!(!fixture.vhost.queue(Q).is_null(), "{context}");
        tally.not_started.fetch_add(1, Ordering::Relaxed);
        return;
    }
    assert!(output.says("cannot be rolled back"), "{context}");
    let output = fixture.migrate(transport, &[]).expect_code(0);
    fixture.expect_migrated(&context);
    expect_each_once_or_killed(&fixture, &publisher, (has_moved, &output));
    tally.too_late.fetch_add(1, Ordering::Relaxed);
}

/// Returns the exported topology without the migrated queue. Bindings of the tap are exported as bindings of the queue.
fn exported(fixture: &Fixture) -> Vec<String> {
    let output = fixture.topo.run(["export", "--vhost", fixture.vhost.name()]).expect_code(0);
    let changes = |line: &&str| ["messageTtl:", "maxLength:"].iter().any(|key| line.contains(key));
    output.stdout.lines().filter(|line| !changes(line)).map(str::to_owned).collect()
}

/// Messages in flight at the kill may be duplicated, and the next run reports these possible duplicates.
fn expect_each_once_or_killed(fixture: &Fixture, publisher: &Publisher, (has_moved, output): (bool, &Output)) {
    publisher.expect_all_taken();
    let duplicated = duplicates(emptied(&fixture.vhost, Q), publisher.published(), output);
    let may_be = reported_duplicates(output) + if has_moved { MESSAGES } else { 0 };
    assert!(duplicated <= may_be, "{duplicated} duplicates, at most {may_be} expected: {output}");
}

fn abort_everywhere(conversion: Conversion, transport: &str, stride: usize) {
    let requests = request_count(conversion, transport);
    let tally = Tally::default();
    // In every case, includes one request while the old queue exists, and one after its deletion.
    let certain = [deletes().path("/e/q.topo.tap/q/"), puts().path("/q.topo.back")].map(|request| (1, request));
    let points = points(requests, stride).into_iter().map(|n| (n, writes().nth(n))).chain(certain);
    run_concurrently(4, points, |point| aborted_at(conversion, transport, point, &tally));
    let [is_rolled_back, too_late, not_started] =
        [tally.is_rolled_back, tally.too_late, tally.not_started].map(AtomicUsize::into_inner);
    println!(
        "{} by {transport}: {is_rolled_back} rolled back, {too_late} too late, {not_started} not started",
        conversion.name
    );
    assert!(is_rolled_back > 0 && too_late > 0, "{is_rolled_back} {too_late}");
}

#[test]
fn migration_is_rolled_back_while_the_old_queue_exists() {
    abort_everywhere(TTL, "amqp", 7);
}

#[test]
fn shovel_and_quorum_migrations_are_rolled_back() {
    abort_everywhere(TTL, "shovel", 13);
    if is_long() && supports_quorum_queues() {
        for transport in super::fixture::TRANSPORTS {
            abort_everywhere(QUORUM, transport, 7);
        }
    }
}

#[test]
fn abort_without_a_migration_is_refused() {
    let fixture = Fixture::new("no-migration", TTL);
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(3);
    let refused = fixture.topo.run(["apply", "-y", "--abort", "queues/{vhost}/q"]).expect_code(3);
    let context = refused.expect_text("no migration of the queue is in progress");
    fixture.expect_as_before(&context);
    expect_each_once(emptied(&fixture.vhost, Q), 3, &context);
}

/// The migration is killed while messages return, and then the spec declares the old queue again. The queue matches
/// neither the old nor the new declaration, so a rollback is impossible.
#[test]
fn impossible_rollback_is_not_suggested() {
    let (mut fixture, proxy) = Fixture::new("changed-back", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(300);
    // The second migration returns the messages of the first one.
    proxy.add(puts().path("/api/parameters/shovel/").nth(2), Fault::HangBefore);
    assert!(killed_before(2, &proxy, fixture.start("shovel")));
    assert!(fixture.is_new());
    fixture.unlock();
    fixture.directly();
    publisher.fill(3);
    let desired = fixture.conversion.spec();
    fixture.topo.rewrite(&desired.replace("messageTtl: 2h", "messageTtl: 1h"));
    fixture.conversion.becomes = ("x-message-ttl", "3600000");
    let plan = fixture.topo.run(["plan", "--recreate", "queues/{vhost}/q=migrate"]);
    let plan = plan.expect_text("is neither the old one nor the one in this spec").expect_no_text("--abort");
    fixture
        .topo
        .run(["apply", "-y", "--abort", "queues/{vhost}/q"])
        .expect_code(3)
        .expect_text("cannot be rolled back");
    let output =
        fixture.migrate("amqp", &["--allow", "message-drop"]).expect_code(0).expect_text("303 messages returned");
    let context = format!("{plan}\n{output}");
    fixture.expect_migrated(&context);
    expect_each_once(emptied(&fixture.vhost, Q), 303, &context);
}

/// Without the queue, no run would return the messages in the holding queues.
#[test]
fn queue_with_an_interrupted_migration_is_not_deleted() {
    let (mut fixture, proxy) = Fixture::new("cut-short", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES);
    proxy.add(deletes().path("/e/q.topo.tap/q/"), Fault::HangBefore);
    assert!(killed_before(1, &proxy, fixture.start("amqp")), "before it is drained");
    fixture.unlock();
    fixture.directly();
    let before = objects(&fixture.vhost);
    let exchange = "exchanges: {in: {type: topic}}\n";
    let words = ["apply", "-y", "--prune", "--allow", "mass-delete,message-loss,routing-gap"];
    for spec in [format!("{exchange}removed: {{queues: [{Q}]}}\n"), format!("owns: [\"**\"]\n{exchange}")] {
        fixture.topo.rewrite(&spec);
        let refused = fixture.topo.run(words).expect_code(3);
        let context = refused.expect_text("was interrupted").expect_text("and this plan deletes the queue");
        assert_eq!(objects(&fixture.vhost), before, "{context}");
    }
    fixture.topo.rewrite(&fixture.conversion.spec());
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    expect_each_once_or_killed(&fixture, &publisher, (false, &output));
}
