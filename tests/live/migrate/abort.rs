//! `--abort`: the old queue is back with everything in it, as long as there is an old one.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::ownership::objects;
use super::fixture::{
    Conversion, Fixture, Q, QUORUM, TTL, at_once, expect_each_once, is_long, said_twice, there_are_quorums, twice,
};
use super::killed::{has_moved, killed_before, points, request_count};
use super::traffic::{Publisher, emptied};
use crate::support::{Fault, Matching, Output, deletes, puts, writes};

const MESSAGES: usize = 200;
const HOLD: &str = "q.topo.hold";

/// How often it was undone, how often it was too late, and how often nothing had begun.
#[derive(Default)]
struct Tally {
    is_rolled_back: AtomicUsize,
    too_late: AtomicUsize,
    not_begun: AtomicUsize,
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
    // What comes between is part of it.
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
        tally.not_begun.fetch_add(1, Ordering::Relaxed);
        return;
    }
    assert!(output.says("cannot be rolled back"), "{context}");
    let output = fixture.migrate(transport, &[]).expect_code(0);
    fixture.expect_migrated(&context);
    expect_each_once_or_killed(&fixture, &publisher, (has_moved, &output));
    tally.too_late.fetch_add(1, Ordering::Relaxed);
}

/// What an export says of everything but what the migration changes of the queue: what leads to its tap leads to it.
fn exported(fixture: &Fixture) -> Vec<String> {
    let output = fixture.topo.run(["export", "--vhost", fixture.vhost.name()]).expect_code(0);
    let changes = |line: &&str| ["messageTtl:", "maxLength:"].iter().any(|key| line.contains(key));
    output.stdout.lines().filter(|line| !changes(line)).map(str::to_owned).collect()
}

/// What a transport that was killed had under way may be there twice, and what the next run says.
fn expect_each_once_or_killed(fixture: &Fixture, publisher: &Publisher, (has_moved, output): (bool, &Output)) {
    publisher.expect_all_taken();
    let doubled = twice(emptied(&fixture.vhost, Q), publisher.published(), output);
    let may_be = said_twice(output) + if has_moved { MESSAGES } else { 0 };
    assert!(doubled <= may_be, "{doubled} came twice, at most {may_be} may: {output}");
}

fn aborted_everywhere(conversion: Conversion, transport: &str, stride: usize) {
    let requests = request_count(conversion, transport);
    let tally = Tally::default();
    // Wherever the others are: one while the old queue is there, and one when it is gone.
    let certain = [deletes().path("/e/q.topo.tap/q/"), puts().path("/q.topo.back")].map(|request| (1, request));
    let points = points(requests, stride).into_iter().map(|n| (n, writes().nth(n))).chain(certain);
    at_once(4, points, |point| aborted_at(conversion, transport, point, &tally));
    let [is_rolled_back, too_late, not_begun] =
        [tally.is_rolled_back, tally.too_late, tally.not_begun].map(AtomicUsize::into_inner);
    println!("{} by {transport}: {is_rolled_back} undone, {too_late} too late, {not_begun} not begun", conversion.name);
    assert!(is_rolled_back > 0 && too_late > 0, "{is_rolled_back} {too_late}");
}

#[test]
fn a_migration_is_undone_as_long_as_the_old_queue_is_there() {
    aborted_everywhere(TTL, "amqp", 7);
}

#[test]
fn with_a_shovel_and_with_quorum_queues_too() {
    aborted_everywhere(TTL, "shovel", 13);
    if is_long() && there_are_quorums() {
        for transport in super::fixture::TRANSPORTS {
            aborted_everywhere(QUORUM, transport, 7);
        }
    }
}

#[test]
fn what_is_not_under_way_cannot_be_undone() {
    let fixture = Fixture::new("no-migration", TTL);
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(3);
    let refused = fixture.topo.run(["apply", "-y", "--abort", "queues/{vhost}/q"]).expect_code(3);
    let context = refused.expect_text("no migration of it is in progress");
    fixture.expect_as_before(&context);
    expect_each_once(emptied(&fixture.vhost, Q), 3, &context);
}

/// Killed on the way back, and then the spec says the old one again: that is neither, and cannot be rolled back.
#[test]
fn what_cannot_be_undone_is_not_offered_to_be() {
    let (mut fixture, proxy) = Fixture::new("changed-back", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(300);
    // The second brings back what the first moved out.
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
        fixture.migrate("amqp", &["--allow", "message-drop"]).expect_code(0).expect_text("303 messages came back");
    let context = format!("{plan}\n{output}");
    fixture.expect_migrated(&context);
    expect_each_once(emptied(&fixture.vhost, Q), 303, &context);
}

/// What is held beside the queue would have nobody left to bring it back.
#[test]
fn a_queue_whose_migration_was_cut_short_is_not_deleted() {
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
        let context = refused.expect_text("was interrupted").expect_text("and this plan deletes it");
        assert_eq!(objects(&fixture.vhost), before, "{context}");
    }
    fixture.topo.rewrite(&fixture.conversion.spec());
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    expect_each_once_or_killed(&fixture, &publisher, (false, &output));
}
