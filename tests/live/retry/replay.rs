//! Tests manual replays of dead-lettered messages, and workers that give up early.

use lapin::Channel;
use lapin::protocol::basic::AMQPProperties;
use lapin::types::FieldTable;

use super::dead_lettered_message::{BODY, death, deaths, properties, unchanged};
use super::fixture::{
    Fixture, QUIET, TIMEOUT, deaths_in, fail_all, fail_times, fail_until_dead, in_parallel, keys, since, until_ready,
};
use super::worker::{Verb, ack, consume, next, publish, publish_plain, take, take_next};
use crate::support::{Message, block_on};

fn ladder(kind: &str) -> String {
    format!(
        "exchanges: {{orders: {{type: topic}}}}\n\
         queues: {{work: {{type: {kind}, deadLetter: dead, retry: {{delays: [200ms, 300ms]}}, bindings: [{{exchange: orders, routingKey: '#'}}]}}}}\n\
         deadLetterQueues: {{dead: {{type: {kind}}}}}\n"
    )
}

/// Replays a message to each of these routes, unchanged and without its headers. Fails all messages until they are
/// dead-lettered again, and compares the keys of their deliveries.
async fn replays(channel: &Channel, dead_message: &Message, to: &[(&str, &str, &[&str])]) -> Vec<Message> {
    for (exchange, key, _) in to {
        for keeps_headers in [true, false] {
            let mut properties = dead_message.properties.clone();
            if !keeps_headers {
                properties = properties.with_headers(FieldTable::default());
            }
            let body = format!("{exchange:?} {key:?} {keeps_headers}");
            publish(channel, exchange, key, body.as_bytes(), properties).await;
        }
    }
    let [seen, dead_messages] = fail_all(channel, "work", &Verb::NackAway, "dead", 2 * to.len()).await;
    for (exchange, key, expected) in to {
        for keeps_headers in [true, false] {
            let body = format!("{exchange:?} {key:?} {keeps_headers}");
            assert_eq!(keys(&seen[&body]), *expected, "{body}");
            assert_eq!(dead_messages[&body].len(), 1, "{body}");
        }
    }
    dead_messages.into_values().flatten().collect()
}

fn replays_of(kind: &str) {
    let fixture = Fixture::new("replay", &ladder(kind));
    block_on(async {
        let channel = fixture.channel().await;
        publish_plain(&channel, "orders", "order.created", "poison").await;
        let (_, dead_messages) = fail_until_dead(&channel, "work", &Verb::NackAway, "dead").await;
        let dead_message = &dead_messages[0];
        assert_eq!(dead_message.routing_key, "work.retry.2");
        let expected_keys: [(&str, &str, &[&str]); 5] = [
            ("orders", "work.retry.2", &["work.retry.2"]),
            ("work.return", "work.retry.2", &["work.retry.2"]),
            ("", "work", &["work", "work.retry.1", "work.retry.2"]),
            ("orders", "order.created", &["order.created", "work.retry.1", "work.retry.2"]),
            // Any key that is not a key of the ladder.
            ("work.return", "", &["", "work.retry.1", "work.retry.2"]),
        ];
        replays(&channel, dead_message, &expected_keys).await;
    });
    fixture.is_left_empty();
}

#[test]
fn replay_on_a_ladder_is_retried_unless_it_has_its_old_key() {
    in_parallel(["classic", "quorum"], replays_of);
}

/// The message has the header `x-last-death-reason: delivery_limit`, which marks a final death.
#[test]
fn last_death_of_a_replayed_message_is_ignored() {
    if !since(3, 13) {
        return;
    }
    let fixture =
        Fixture::new("last-death", &ladder("quorum").replace("quorum, deadL", "quorum, deliveryLimit: 1, deadL"));
    block_on(async {
        let channel = fixture.channel().await;
        publish_plain(&channel, "orders", "order.created", "poison").await;
        fail_times(&channel, "work", &Verb::RejectBack, 2).await;
        let dead_message = take_next(&channel, "dead", TIMEOUT).await;
        assert_eq!(deaths_in(&dead_message, "work"), ["delivery_limit 1"]);
        let dead_messages =
            replays(&channel, &dead_message, &[("", "work", &["work", "work.retry.1", "work.retry.2"])]).await;
        for dead_message in dead_messages {
            assert!(deaths_in(&dead_message, "work").contains(&"rejected 3".to_owned()), "{dead_message:?}");
        }
    });
    fixture.is_left_empty();
}

/// The broker starts a new count. A worker starts a new count if the count header is removed.
#[test]
fn other_replays_have_all_attempts_again() {
    let fixture = Fixture::new(
        "again",
        "queues:\n  counted: {type: quorum, deadLetter: dead, maxRetries: 2}\n  \
           tiers: {type: classic, deadLetter: dead, retry: {strategy: republish, delays: [200ms, 200ms]}}\n\
         deadLetterQueues: {dead: {type: classic}}\n",
    );
    block_on(async {
        let channel = fixture.channel().await;
        let republish = Verb::Republish { retries: 2, tiers: vec![200, 200], jitter: 0 };
        for (queue, verb, kept) in [("counted", Verb::RejectBack, 3), ("tiers", republish, 1)] {
            publish_plain(&channel, "", queue, "poison").await;
            let (seen, dead_messages) = fail_until_dead(&channel, queue, &verb, "dead").await;
            assert_eq!(seen.len(), 3, "{queue}");
            let published = dead_messages[0].properties.clone();
            for (properties, expected) in
                [(published.clone(), kept), (published.with_headers(FieldTable::default()), 3)]
            {
                publish(&channel, "", queue, b"poison", properties).await;
                let (seen, dead_messages) = fail_until_dead(&channel, queue, &verb, "dead").await;
                assert_eq!((seen.len(), dead_messages.len()), (expected, 1), "{queue}");
            }
        }
    });
    fixture.is_left_empty();
}

/// The worker gives up on the first attempt, and on a later one.
#[test]
fn worker_can_give_up_early() {
    in_parallel(["classic", "quorum"], |kind| {
        let spec = ladder(kind).replace(
            "deadLetterQueues",
            &format!("  republish: {{type: {kind}, deadLetter: dead, retry: {{strategy: republish, delays: [200ms, 300ms]}}}}\ndeadLetterQueues"),
        );
        // The spec of the ladder has the queues on one line.
        let spec = spec.replace("queues: {work: ", "queues:\n  work: ").replace("}]}}\n", "}]}\n");
        let fixture = Fixture::new("gives-up", &spec);
        block_on(async {
            let channel = fixture.channel().await;
            for tries in [0, 1] {
                publish(&channel, "", "work", BODY, properties(2)).await;
                if tries > 0 {
                    fail_times(&channel, "work", &Verb::NackAway, tries).await;
                }
                let given_up = gives_up(&channel, "work").await;
                let dead_message = only_message(&channel).await;
                assert_eq!(
                    (dead_message.exchange.as_str(), dead_message.routing_key.as_str()),
                    ("work.retry", "work.retry.2")
                );
                unchanged(&dead_message, &given_up, kind);
                // The message did not die, so its headers describe earlier deaths.
                let before = [
                    death("work", "rejected", 1, "", "work"),
                    death("work.retry.1.200ms", "expired", 1, "work.dlx", "work"),
                ];
                assert_eq!(deaths(&dead_message), before.into_iter().take(2 * tries).collect(), "{kind} {tries}");

                publish(&channel, "", "republish", BODY, properties(2)).await;
                if tries > 0 {
                    let verb = Verb::Republish { retries: 2, tiers: vec![200, 300], jitter: 0 };
                    fail_times(&channel, "republish", &verb, tries).await;
                    until_ready(&channel, "republish", 1).await;
                }
                fail_times(&channel, "republish", &Verb::NackAway, 1).await;
                let dead_message = only_message(&channel).await;
                assert_eq!(deaths_in(&dead_message, "republish"), ["rejected 1"], "{kind} {tries}");
                unchanged(&dead_message, &properties(2), kind);
            }
        });
        fixture.is_left_empty();
    });
}

/// Publishes the next message to the end of the ladder with its properties, and acknowledges it. Returns the
/// properties.
async fn gives_up(channel: &Channel, queue: &str) -> AMQPProperties {
    let mut consumer = consume(channel, queue, 1).await;
    let delivery = next(&mut consumer, TIMEOUT).await.expect("a message");
    let options = lapin::options::BasicCancelOptions::default();
    channel.basic_cancel(consumer.tag(), options).await.expect("the channel is open");
    let properties = super::worker::without_expiration(&delivery.properties);
    publish(channel, &format!("{queue}.retry"), &format!("{queue}.retry.2"), &delivery.data, properties.clone()).await;
    ack(delivery).await;
    properties
}

/// Returns the only message in the queue.
async fn only_message(channel: &Channel) -> Message {
    let dead_message = take_next(channel, "dead", TIMEOUT).await;
    tokio::time::sleep(QUIET).await;
    assert!(take(channel, "dead").await.is_none(), "a duplicate");
    dead_message
}
