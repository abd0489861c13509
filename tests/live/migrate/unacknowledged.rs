//! Tests migrations with unacknowledged, expiring and dead-lettered messages.

use std::time::{Duration, Instant};

use lapin::protocol::basic::AMQPProperties;
use serde_json::Value;
use topo::model::intervals::in_words;

use super::fixture::{
    Conversion, DEAD_LETTERS, Fixture, Q, QUORUM, TRANSPORTS, TTL, expect_each_once, supports_quorum_queues,
};
use super::traffic::{EXCHANGE, Publisher, emptied};
use crate::support::{Amqp, Fault, NONE, Node, Outcome, Topo, Worker, block_on, posts, run_concurrently, text, until};

#[test]
fn unacknowledged_messages_are_awaited_and_never_deleted() {
    let conversions = [TTL, QUORUM].into_iter().filter(|one| !one.is_slow() || supports_quorum_queues());
    let cases = conversions.flat_map(|conversion| TRANSPORTS.map(|transport| (conversion, transport)));
    run_concurrently(4, cases, |(conversion, transport)| {
        let fixture = Fixture::new("held", conversion);
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(20);
        let held = fixture.amqp.hold(Q, 5);
        assert_eq!(held.bodies.len(), 5);
        let peer = until("the consumer's address", || fixture.addresses().into_iter().flatten().next());
        // The counts of a quorum queue are up to a tick old. If the queue has a consumer, the transport starts after a
        // third of the timeout.
        let tick = in_words(crate::live::transport::fixture::intervals_of(fixture.vhost.node()).tick());
        let counted =
            if conversion.is_slow() { format!(" (the count may be up to {tick} old)") } else { String::new() };
        let timeout = if conversion.is_slow() { "20s" } else { "15s" };
        let output = fixture.migrate(transport, &[&format!("--drain-timeout={timeout}")]);
        let context = format!("{} by {transport}\n{output}", conversion.name);
        assert_eq!(output.code, Some(1), "{context}");
        let why = format!(
            ": 5 messages are unacknowledged{counted}; consumers: {peer}; no progress for {timeout} \
             (--drain-timeout)"
        );
        assert!(output.says(&why), "{context}");
        // The progress line shows the consumer during the wait.
        let stalled = format!(" left, stalled: 5 messages are unacknowledged{counted}; consumers: {peer}: move");
        assert!(output.stderr.contains(&stalled), "{context}");
        fixture.expect_as_before(&context);
        drop(held);
        expect_each_once(emptied(&fixture.vhost, Q), 20, &context);
    });
}

#[test]
fn failed_rollback_is_reported_and_the_next_run_resumes() {
    let (fixture, proxy) = Fixture::new("no-way-back", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(20);
    let held = fixture.amqp.hold(Q, 5);
    // During the drain, the queue has no binding.
    proxy.add(posts().path("/e/in/q/q"), Fault::Status(400));
    let output = fixture.migrate("amqp", &["--drain-timeout=15s"]).expect_code(4);
    let output =
        output.expect_text("5 messages are unacknowledged").expect_text("Interrupted: the migration of queue q");
    output.expect_text("the rollback failed: ").expect_text("the next run will resume the migration");
    let plan = fixture.topo.run(["plan", "--recreate", "queues/{vhost}/q=migrate"]);
    plan.expect_text("a migration of queue q was interrupted");
    drop(held);
    proxy.reset();
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    expect_each_once(emptied(&fixture.vhost, Q), 20, &output);
}

/// The messages were fetched with `basic.get`, so topo cannot report a consumer.
#[test]
fn fetched_messages_are_awaited() {
    let fixture = Fixture::new("fetched", TTL);
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(3);
    let kept = fixture.amqp.keep_one(Q);
    let output = fixture.migrate("amqp", &["--drain-timeout=10s"]).expect_code(1);
    let context = output.expect_text("1 message is unacknowledged");
    fixture.expect_as_before(&context);
    drop(block_on(kept.close(200, "done".into())));
    expect_each_once(emptied(&fixture.vhost, Q), 3, &context);
}

/// Shortens the interval after which the broker publishes unroutable dead-lettered messages again, which is three
/// minutes. Applies to queues that start dead-lettering later. The setting is not restored, because tests run
/// concurrently.
fn shorten_the_dead_letter_republish_interval() {
    let set = "application:set_env(rabbit, dead_letter_worker_publisher_confirm_timeout, 10_000).";
    Node::shared().ctl(["eval", set]);
}

/// Returns a queue with at-least-once dead-lettering to an exchange without bindings.
fn at_least_once(name: &str) -> Fixture<'static> {
    let more = [
        ("x-dead-letter-exchange", text("not.there")),
        ("x-dead-letter-strategy", text("at-least-once")),
        ("x-overflow", text("reject-publish")),
    ];
    let desired = "type: quorum, maxLength: 2000000, overflow: reject-publish, deadLetterStrategy: at-least-once, \
                  deadLetter: {exchange: not.there}";
    let conversion = Conversion { new: desired, ..QUORUM };
    let fixture = Fixture::with(name, conversion, &more);
    fixture.topo.rewrite(&conversion.spec().replace("queues:\n", "  not.there: {external: true}\nqueues:\n"));
    fixture.amqp.declare_exchange("not.there", "fanout", NONE).unwrap();
    fixture.remembered()
}

/// Waits until published messages are held.
fn until_held(fixture: &Fixture<'_>) {
    until("a tap that is switched", || {
        let bound = fixture.vhost.list("bindings");
        let leads = |from: &str, to: &str| bound.iter().any(|it| it["source"] == from && it["destination"] == to);
        (leads(EXCHANGE, "q.topo.tap") && !leads("q.topo.tap", Q) && !leads(EXCHANGE, Q)).then_some(())
    });
}

fn publish_that_expires(fixture: &Fixture<'_>) {
    let properties = AMQPProperties::default().with_delivery_mode(2).with_expiration("500".into());
    let outcome = fixture.amqp.publish_with(EXCHANGE, "work.k", "1", properties);
    assert_eq!(outcome, Outcome::Routed);
}

/// The queue reports 0 ready and 0 unacknowledged messages, but a total of 4.
#[test]
fn pending_dead_lettered_messages_are_not_lost() {
    if !supports_quorum_queues() {
        return;
    }
    shorten_the_dead_letter_republish_interval();
    run_concurrently(2, TRANSPORTS, |transport| {
        let fixture = at_least_once("backlog");
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(4);
        until("messages", || (fixture.amqp.ready(Q) == 4).then_some(()));
        assert_eq!(fixture.amqp.reject(Q, 4), 4);
        // The statistics of the queue are from its last tick.
        until("a tick that counts them", || {
            let counts = ["messages", "messages_ready", "messages_unacknowledged"];
            let queue = fixture.vhost.queue(Q);
            (counts.map(|count| queue[count].as_u64()) == [Some(4), Some(0), Some(0)]).then_some(())
        });
        let output = fixture.migrate(transport, &["--drain-timeout=14s"]);
        let context = format!("by {transport}\n{output}");
        assert_eq!(output.code, Some(1), "{context}");
        assert!(output.says("4 messages are neither ready nor unacknowledged"), "{context}");
        fixture.expect_as_before(&context);
        // All messages still exist, and arrive after the exchange is bound.
        fixture.amqp.declare_queue("dead", NONE).unwrap();
        fixture.amqp.bind_queue("not.there", "dead", "", NONE);
        until("the dead-lettered messages", || (fixture.amqp.ready("dead") == 4).then_some(()));
        expect_each_once(emptied(&fixture.vhost, "dead"), 4, &context);
    });
}

/// An unacknowledged message of the old queue delays the migration beyond the TTL.
#[test]
fn message_that_expires_while_held_is_dead_lettered() {
    run_concurrently(2, TRANSPORTS, |transport| {
        let conversion = Conversion { old: Some(("x-max-length", 1_000_000)), ..DEAD_LETTERS };
        let more = [("x-dead-letter-exchange", text("dead.exchange"))];
        let fixture = Fixture::with(
            "expires",
            Conversion {
                new: "type: classic, maxLength: 2000000, deadLetter: {exchange: \
                      dead.exchange}",
                becomes: ("x-max-length", "2000000"),
                ..conversion
            },
            &more,
        );
        fixture
            .topo
            .rewrite(&fixture.conversion.spec().replace("queues:\n", "  dead.exchange: {external: true}\nqueues:\n"));
        fixture.amqp.declare_exchange("dead.exchange", "fanout", NONE).unwrap();
        fixture.amqp.declare_queue("dead", NONE).unwrap();
        fixture.amqp.bind_queue("dead.exchange", "dead", "", NONE);
        let fixture = fixture.remembered();
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(1);
        let held = fixture.amqp.hold(Q, 1);
        let output = std::thread::scope(|scope| {
            let running = scope.spawn(|| fixture.migrate(transport, &["--drain-timeout=60s"]));
            until_held(&fixture);
            publish_that_expires(&fixture);
            until("a dead-lettered message", || (fixture.amqp.ready("dead") == 1).then_some(()));
            drop(held);
            running.join().unwrap()
        });
        let context = format!("by {transport}\n{output}");
        assert_eq!(output.code, Some(0), "{context}");
        let dead_message = fixture.amqp.get("dead").expect("the dead-lettered message");
        assert_eq!(
            (dead_message.body.as_slice(), dead_message.routing_key.as_str()),
            (&b"1"[..], "work.k"),
            "{context}"
        );
        fixture.expect_migrated(&context);
        expect_each_once(emptied(&fixture.vhost, Q), 1, &context);
    });
}

/// The holding queue also keeps messages with at-least-once dead-lettering.
#[test]
fn message_that_expires_while_held_waits_for_its_exchange() {
    if !supports_quorum_queues() {
        return;
    }
    shorten_the_dead_letter_republish_interval();
    let fixture = at_least_once("waits");
    Publisher::new(&fixture.vhost).fill(1);
    let held = fixture.amqp.hold(Q, 1);
    let output = std::thread::scope(|scope| {
        let running = scope.spawn(|| fixture.migrate("amqp", &["--drain-timeout=90s"]));
        until_held(&fixture);
        publish_that_expires(&fixture);
        until("its end", || (fixture.amqp.ready("q.topo.hold") == 0).then_some(()));
        fixture.amqp.declare_queue("dead", NONE).unwrap();
        fixture.amqp.bind_queue("not.there", "dead", "", NONE);
        until("the dead-lettered message", || (fixture.amqp.ready("dead") == 1).then_some(()));
        drop(held);
        running.join().unwrap()
    });
    assert_eq!(output.code, Some(0), "{output}");
    fixture.expect_migrated(&output.to_string());
    expect_each_once(emptied(&fixture.vhost, Q), 1, &output.to_string());
}

/// Messages in tiers return to the migrated queue and keep their remaining retries.
#[test]
fn migrated_queue_keeps_its_retries() {
    run_concurrently(2, [("ladder", "amqp"), ("republish", "shovel")], |(strategy, transport)| {
        let spec = |more: &str| {
            format!(
                "exchanges: {{in: {{type: topic}}}}\nqueues:\n  q: {{type: classic, {more}retry: {{strategy: {strategy}, delays: \
                 [3s, 200ms]}}, deadLetter: dead, bindings: [{{exchange: in, routingKey: \"work.#\"}}]}}\n\
                 deadLetterQueues: {{dead: {{type: classic}}}}\n"
            )
        };
        // Repeats the setup if it was so slow that the messages returned from the tier early.
        let (fixture, contract) = until("five that wait and five that do not", || {
            let vhost = Node::shared().vhost("tiers");
            let topo = Topo::new(&vhost).spec(&spec("")).timeout(Duration::from_secs(300));
            topo.run(["apply", "-y"]).expect_code(0);
            let fixture = Fixture::of(vhost, topo, Conversion { becomes: ("x-max-priority", "3"), ..TTL }).remembered();
            fixture.topo.rewrite(&spec("maxPriority: 3, "));
            let contract = fixture.topo.run(["contract", "--format", "json"]).expect_code(0).json();
            let contract = contract_of(&contract);
            let mut publisher = Publisher::new(&fixture.vhost);
            publisher.fill(5);
            let began = Instant::now();
            fail(&fixture.amqp, &contract, 5, 0);
            publisher.fill(5);
            let ready = fixture.amqp.ready(Q);
            if began.elapsed() >= Duration::from_secs(3) {
                return None;
            }
            assert_eq!(ready, 5, "the others wait in a tier");
            Some((fixture, contract))
        });
        let output = fixture.migrate(transport, &[]);
        let context = format!("{strategy} by {transport}\n{output}");
        assert_eq!(output.code, Some(0), "{context}");
        fixture.expect_migrated(&context);
        // Five messages failed once and five never failed, with two retries each.
        fail(&fixture.amqp, &contract, 5 * 2 + 5 * 3, 2);
        until("all dead letters", || (fixture.amqp.ready("dead") == 10).then_some(()));
        expect_each_once(emptied(&fixture.vhost, "dead"), 10, &context);
        assert_eq!(fixture.amqp.ready(Q), 0);
    });
}

fn contract_of(contracts: &Value) -> Value {
    let vhosts = contracts["vhosts"].as_object().expect("vhosts");
    vhosts.values().next().expect("one vhost")["queues"][Q].clone()
}

/// Fails this number of deliveries, all within the retry count.
fn fail(amqp: &Amqp, contract: &Value, times: usize, most: u64) {
    let mut worker = Worker::of(amqp, Q, contract);
    for number in 0..times {
        let work = worker.next(Duration::from_secs(60)).unwrap_or_else(|| panic!("only {number} of {times} came"));
        assert!(work.retry <= most, "retry {} of at most {most}", work.retry);
        worker.fail(work);
    }
}
