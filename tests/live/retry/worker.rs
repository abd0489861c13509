//! Workers that fail as their contract tells them to, on one channel each; async, so that one test can have many at once.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, BasicQosOptions,
    BasicRejectOptions, ConfirmSelectOptions,
};
use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Confirmation, Consumer};

use crate::support::{Amqp, Message};

/// The header in which workers count that republish.
pub(super) const COUNT: &str = "x-retry-count";

/// What a worker does with a message that it fails at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// `basic.nack` with `requeue=false`.
    NackAway,
    /// `basic.nack` with `requeue=true`.
    NackBack,
    /// `basic.reject` with `requeue=true`.
    RejectBack,
    /// Publishes it again and acknowledges it, as often as there are retries; then `requeue=false`.
    Republish {
        /// How often.
        retries: u32,
        /// The TTL of each tier; empty: to the back of the queue.
        tiers: Vec<u64>,
        /// By how many milliseconds the worker shortens each wait.
        jitter: u64,
    },
}

/// One delivery.
#[derive(Debug)]
pub(super) struct Seen {
    /// When it came.
    pub(super) at: Instant,
    /// The moment before the worker said what is to become of it: no wait for the next attempt begins earlier.
    pub(super) failed: Instant,
    pub(super) message: Message,
}

/// A channel on which publishes are confirmed.
pub(super) async fn channel(amqp: &Amqp) -> Channel {
    let channel = amqp.new_channel().await.expect("the connection is open");
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("the channel is open");
    channel
}

/// Publishes a message that must reach a queue.
pub(super) async fn publish(channel: &Channel, exchange: &str, key: &str, body: &[u8], properties: AMQPProperties) {
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    let confirm = channel.basic_publish(exchange.into(), key.into(), options, body, properties).await;
    let confirmation = confirm.expect("the channel is open").await.expect("the channel is open");
    assert!(matches!(confirmation, Confirmation::Ack(None)), "{exchange:?} with {key:?}: {confirmation:?}");
}

/// A persistent message with nothing but a body.
pub(super) async fn publish_plain(channel: &Channel, exchange: &str, key: &str, body: &str) {
    publish(channel, exchange, key, body.as_bytes(), AMQPProperties::default().with_delivery_mode(2)).await;
}

/// How many messages are ready: the queue's own answer, not a statistic.
pub(super) async fn ready(channel: &Channel, queue: &str) -> u32 {
    let counted = crate::support::amqp::counted(channel, queue).await;
    counted.unwrap_or_else(|error| panic!("{queue}: {error}")).ready
}

/// Takes one message out, if there is one.
pub(super) async fn take(channel: &Channel, queue: &str) -> Option<Message> {
    // Nothing to acknowledge: what was sent last before a connection is closed may get lost (seen on a busy 3.10.8).
    let got = channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await;
    let message = got.unwrap_or_else(|error| panic!("{queue}: {error}"))?;
    Some(message.delivery.into())
}

/// Waits for a message and takes it out.
pub(super) async fn take_next(channel: &Channel, queue: &str, patience: Duration) -> Message {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(message) = take(channel, queue).await {
            return message;
        }
        assert!(Instant::now() < deadline, "within {patience:?} nothing came to {queue}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(super) async fn consume(channel: &Channel, queue: &str, prefetch: u16) -> Consumer {
    channel.basic_qos(prefetch, BasicQosOptions::default()).await.expect("the channel is open");
    let consumer =
        channel.basic_consume(queue.into(), "".into(), BasicConsumeOptions::default(), FieldTable::default()).await;
    consumer.unwrap_or_else(|error| panic!("{queue}: {error}"))
}

/// The next delivery, if one comes in time.
pub(super) async fn next(consumer: &mut Consumer, patience: Duration) -> Option<Delivery> {
    let next = tokio::time::timeout(patience, consumer.next()).await.ok()?;
    Some(next.expect("the consumer is not cancelled").expect("the channel is open"))
}

pub(super) async fn ack(delivery: Delivery) -> Seen {
    let at = Instant::now();
    delivery.ack(BasicAckOptions::default()).await.expect("the channel is open");
    Seen { at, failed: at, message: delivery.into() }
}

/// Fails at a delivery that came now.
pub(super) async fn fail(channel: &Channel, queue: &str, delivery: Delivery, verb: &Verb) -> Seen {
    let at = Instant::now();
    let done = match verb {
        Verb::NackAway => delivery.nack(BasicNackOptions { requeue: false, ..Default::default() }).await,
        Verb::NackBack => delivery.nack(BasicNackOptions { requeue: true, ..Default::default() }).await,
        Verb::RejectBack => delivery.reject(BasicRejectOptions { requeue: true }).await,
        Verb::Republish { retries, tiers, jitter } => match count(&delivery.properties) + 1 {
            retry if retry > *retries => delivery.nack(BasicNackOptions { requeue: false, ..Default::default() }).await,
            retry => {
                let tier = tiers.get(retry as usize - 1).copied();
                let expiration = tier.filter(|_| *jitter > 0).map(|ttl| ttl - jitter);
                let properties = counted(&delivery.properties, retry, expiration);
                let (exchange, key) = match tier {
                    Some(_) => (format!("{queue}.retry"), retry.to_string()),
                    None => (String::new(), queue.to_owned()),
                };
                publish(channel, &exchange, &key, &delivery.data, properties).await;
                delivery.ack(BasicAckOptions::default()).await
            }
        },
    };
    assert!(done.expect("the channel is open"), "{queue}: said twice of one delivery");
    Seen { at, failed: at, message: delivery.into() }
}

/// How often a message was published again.
pub(super) fn count(properties: &AMQPProperties) -> u32 {
    let count = properties.headers().as_ref().and_then(|headers| headers.inner().get(COUNT));
    count.map_or(0, |count| {
        let count = count.as_long_int().unwrap_or_else(|| panic!("{COUNT} is {count:?}"));
        u32::try_from(count).expect("never negative")
    })
}

/// The same properties with another count. An `expiration` of the first publisher would shorten a tier.
fn counted(properties: &AMQPProperties, count: u32, expiration: Option<u64>) -> AMQPProperties {
    let mut headers = properties.headers().clone().unwrap_or_default();
    headers.insert(COUNT.into(), AMQPValue::LongInt(i32::try_from(count).expect("few retries")));
    let properties = without_expiration(properties).with_headers(headers);
    match expiration {
        Some(expiration) => properties.with_expiration(expiration.to_string().into()),
        None => properties,
    }
}

pub(super) fn without_expiration(properties: &AMQPProperties) -> AMQPProperties {
    let mut json = serde_json::to_value(properties).expect("properties are plain");
    json["expiration"] = serde_json::Value::Null;
    serde_json::from_value(json).expect("it was one")
}
