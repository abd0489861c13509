//! Workers that always fail, on what a spec's retries became: as many deliveries as were promised, as late as was
//! promised, and then the dead letter.

use std::time::{Duration, Instant};

use lapin::protocol::basic::AMQPProperties;
use lapin::types::AMQPValue;

use crate::support::amqp::{Message, Verb};
use crate::support::{Amqp, Node, Outcome, Topo, Vhost, until};

/// Later than this is too late.
const LATE: Duration = Duration::from_secs(1);

/// Applies a queue `work` with these keys behind a topic exchange, and its dead-letter queue.
fn applied(vhost: &Vhost<'_>, kind: &str, keys: &str) {
    let spec = format!(
        "exchanges: {{orders: {{type: topic}}}}\n\
         queues:\n  work: {{type: {kind}, {keys}, deadLetter: dead, bindings: [{{exchange: orders, routingKey: \"order.#\"}}]}}\n\
         deadLetterQueues: {{dead: {{type: {kind}}}}}\n"
    );
    let topo = Topo::new(vhost).spec(&spec);
    topo.run(["apply", "-y"]).expect_code(0);
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes.");
}

/// Publishes a message, fails at it until it is a dead letter, and returns what came with the waits between.
fn poisoned(amqp: &Amqp, verb: Verb) -> (Vec<Message>, Vec<Duration>) {
    assert_eq!(amqp.publish("orders", "order.created", "poison"), Outcome::Routed);
    let failed = amqp.fail("work", verb, || amqp.ready("dead") == 1);
    let waits = failed.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    (failed.into_iter().map(|(_, message)| message).collect(), waits)
}

#[track_caller]
fn waited(waits: &[Duration], expected: &[u64]) {
    let expected: Vec<Duration> = expected.iter().map(|wait| Duration::from_millis(*wait)).collect();
    assert_eq!(waits.len(), expected.len(), "{waits:?}");
    for (wait, expected) in waits.iter().zip(&expected) {
        // The clock of a tier starts when the message is in it: right after it was rejected.
        assert!(*wait >= *expected && *wait < *expected + LATE, "{waits:?} instead of {expected:?}");
    }
}

/// Takes the dead letter out: there is one, and nothing is left in any queue.
fn dead_letter(vhost: &Vhost<'_>, amqp: &Amqp) -> Message {
    let letter = amqp.get("dead").expect("a dead letter");
    assert_eq!(letter.body, b"poison");
    for queue in vhost.names("queues") {
        until(&format!("{queue} to be empty"), || (amqp.ready(&queue) == 0).then_some(()));
    }
    letter
}

fn kinds() -> [&'static str; 2] {
    ["classic", "quorum"]
}

#[test]
fn a_ladder_gives_every_retry_its_wait_and_then_the_dead_letter() {
    for kind in kinds() {
        let vhost = Node::shared().vhost("ladder");
        applied(&vhost, kind, "retry: {delays: [300ms, 600ms]}");
        let amqp = vhost.amqp();
        let (messages, waits) = poisoned(&amqp, Verb::NackAway);
        waited(&waits, &[300, 600]);
        let seen: Vec<_> = messages.iter().map(|it| (it.exchange.as_str(), it.routing_key.as_str())).collect();
        let expected = [("orders", "order.created"), ("work.return", "work.retry.1"), ("work.return", "work.retry.2")];
        assert_eq!(seen, expected, "{kind}");
        let letter = dead_letter(&vhost, &amqp);
        assert_eq!(deaths(&letter, "work"), Some(("rejected".to_owned(), 3)), "{kind}");
        assert_eq!(deaths(&letter, "work.retry.2.600ms"), Some(("expired".to_owned(), 1)), "{kind}");
    }
}

/// The reason and the count of a message's deaths in a queue.
fn deaths(message: &Message, queue: &str) -> Option<(String, i64)> {
    let headers = message.properties.headers().as_ref()?;
    let Some(AMQPValue::FieldArray(deaths)) = headers.inner().get("x-death") else { return None };
    deaths.as_slice().iter().find_map(|death| {
        let AMQPValue::FieldTable(death) = death else { return None };
        let text = |key: &str| death.inner().get(key).and_then(AMQPValue::as_long_string).map(ToString::to_string);
        let AMQPValue::LongLongInt(count) = death.inner().get("count")? else { return None };
        (text("queue")? == queue).then_some((text("reason")?, *count))
    })
}

#[test]
fn the_last_delay_repeats_and_the_worker_may_give_up_early() {
    let vhost = Node::shared().vhost("repeats");
    applied(&vhost, "classic", "maxRetries: 3, retry: {delays: [200ms, 300ms]}");
    let amqp = vhost.amqp();
    let (_, waits) = poisoned(&amqp, Verb::NackAway);
    waited(&waits, &[200, 300, 300]);
    dead_letter(&vhost, &amqp);
    assert_eq!(amqp.publish("work.retry", "work.retry.3", "hopeless"), Outcome::Routed);
    until("the hopeless one to be a dead letter", || (amqp.ready("dead") == 1).then_some(()));
}

#[test]
fn no_retry_makes_the_first_failure_final() {
    for kind in kinds() {
        let vhost = Node::shared().vhost("final");
        applied(&vhost, kind, "maxRetries: 0");
        let amqp = vhost.amqp();
        assert_eq!(poisoned(&amqp, Verb::NackAway).0.len(), 1, "{kind}");
        dead_letter(&vhost, &amqp);
    }
}

#[test]
fn redelivery_counts_rejections() {
    let vhost = Node::shared().vhost("redeliver");
    applied(&vhost, "quorum", "maxRetries: 3");
    let amqp = vhost.amqp();
    let (messages, _) = poisoned(&amqp, Verb::RejectBack);
    assert_eq!(messages.iter().map(|it| it.redelivered).collect::<Vec<_>>(), [false, true, true, true]);
    let letter = dead_letter(&vhost, &amqp);
    assert_eq!(deaths(&letter, "work"), Some(("delivery_limit".to_owned(), 1)));
}

#[test]
fn delayed_redelivery_waits_longer_each_time() {
    if !Node::shared().at_least(4, 3) {
        let vhost = Node::shared().vhost("delayed");
        let spec = "queues: {work: {type: quorum, retry: {strategy: delayed, delays: [1s]}}}\n";
        let refused = Topo::new(&vhost).spec(spec).run(["plan"]).expect_code(65);
        assert!(refused.stderr.contains("needs RabbitMQ 4.3, and this is"), "{refused}");
        assert!(refused.stderr.contains("`strategy: republish` would work here"), "{refused}");
        return;
    }
    let vhost = Node::shared().vhost("delayed");
    applied(&vhost, "quorum", "retry: {strategy: delayed, delays: [300ms, 600ms, 900ms]}");
    let amqp = vhost.amqp();
    let (_, waits) = poisoned(&amqp, Verb::RejectBack);
    waited(&waits, &[300, 600, 900]);
    dead_letter(&vhost, &amqp);
}

/// A worker that counts in a header, as the contract tells it.
#[test]
fn a_worker_may_choose_its_tier() {
    for kind in kinds() {
        let vhost = Node::shared().vhost("republish");
        applied(&vhost, kind, "retry: {strategy: republish, delays: [300ms, 600ms]}");
        let amqp = vhost.amqp();
        assert_eq!(amqp.publish("orders", "order.created", "poison"), Outcome::Routed);
        let mut waits = Vec::new();
        let mut last = None;
        for attempt in 1..=3 {
            let message = until("the next attempt", || amqp.get("work"));
            waits.extend(last.map(|last: Instant| last.elapsed()));
            last = Some(Instant::now());
            let body = std::str::from_utf8(&message.body).unwrap();
            // A number past the last is a dead letter, too.
            let properties = AMQPProperties::default().with_delivery_mode(2);
            let key = attempt.to_string();
            assert_eq!(amqp.publish_with("work.retry", &key, body, properties), Outcome::Routed, "{kind} {attempt}");
        }
        waited(&waits, &[300, 600]);
        until("the dead letter", || (amqp.ready("dead") == 1).then_some(()));
        dead_letter(&vhost, &amqp);
    }
}

/// On the broker's own limits of 4.x: what does not die by a rejection must not enter a tier.
#[test]
fn other_deaths_go_past_the_ladder() {
    if !Node::shared().at_least(3, 13) {
        return;
    }
    let vhost = Node::shared().vhost("guarded");
    applied(&vhost, "quorum", "deliveryLimit: 2, messageTtl: 5s, retry: {delays: [300ms, 300ms, 300ms]}");
    let amqp = vhost.amqp();
    let (messages, _) = poisoned(&amqp, Verb::RejectBack);
    assert_eq!(messages.len(), 3, "two redeliveries");
    let letter = dead_letter(&vhost, &amqp);
    assert_eq!(deaths(&letter, "work"), Some(("delivery_limit".to_owned(), 1)));
    // Without a worker it expires.
    assert_eq!(amqp.publish("orders", "order.created", "poison"), Outcome::Routed);
    until("the expired one to be a dead letter", || (amqp.ready("dead") == 1).then_some(()));
    let letter = dead_letter(&vhost, &amqp);
    assert_eq!(deaths(&letter, "work"), Some(("expired".to_owned(), 1)));
}
