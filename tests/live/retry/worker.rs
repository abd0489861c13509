//! Provides workers that fail as their contract specifies, each with its own channel. The functions are async, so that
//! one test can run many workers.

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

/// The header with the number of attempts of a worker that republishes.
pub(super) const COUNT: &str = "x-retry-count";

/// The action of a worker on a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// `basic.nack` with `requeue=false`.
    NackAway,
    /// `basic.nack` with `requeue=true`.
    NackBack,
    /// `basic.reject` with `requeue=true`.
    RejectBack,
    /// Republishes and acknowledges until the retries are exhausted; then `basic.nack` with `requeue=false`.
    Republish {
        /// The number of retries.
        retries: u32,
        /// The TTL of each tier; empty if the worker publishes to the back of the queue.
        tiers: Vec<u64>,
        /// The time in milliseconds by which the worker shortens each delay.
        jitter: u64,
    },
}

/// A delivery.
#[derive(Debug)]
pub(super) struct Seen {
    /// The time of arrival.
    pub(super) at: Instant,
    /// The time immediately before the worker's action. The delay of the next attempt does not start earlier.
    pub(super) failed: Instant,
    pub(super) message: Message,
}

/// Opens a channel with publisher confirms.
pub(super) async fn channel(amqp: &Amqp) -> Channel {
    let channel = amqp.new_channel().await.expect("the connection is open");
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("the channel is open");
    channel
}

/// Publishes a message that must be routed.
pub(super) async fn publish(channel: &Channel, exchange: &str, key: &str, body: &[u8], properties: AMQPProperties) {
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    let confirm = channel.basic_publish(exchange.into(), key.into(), options, body, properties).await;
    let confirmation = confirm.expect("the channel is open").await.expect("the channel is open");
    assert!(matches!(confirmation, Confirmation::Ack(None)), "{exchange:?} with {key:?}: {confirmation:?}");
}

/// Publishes a persistent message with only a body.
pub(super) async fn publish_plain(channel: &Channel, exchange: &str, key: &str, body: &str) {
    publish(channel, exchange, key, body.as_bytes(), AMQPProperties::default().with_delivery_mode(2)).await;
}

/// Returns the number of ready messages from the queue itself, not from the statistics.
pub(super) async fn ready(channel: &Channel, queue: &str) -> u32 {
    let counted = crate::support::amqp::counted(channel, queue).await;
    counted.unwrap_or_else(|error| panic!("{queue}: {error}")).ready
}

/// Takes a message, if there is one.
pub(super) async fn take(channel: &Channel, queue: &str) -> Option<Message> {
    // Uses no acknowledgement, because the last frame before a connection closes may be lost (observed on a busy
    // 3.10.8).
    let got = channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await;
    let message = got.unwrap_or_else(|error| panic!("{queue}: {error}"))?;
    Some(message.delivery.into())
}

/// Waits for a message and takes it.
pub(super) async fn take_next(channel: &Channel, queue: &str, timeout: Duration) -> Message {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(message) = take(channel, queue).await {
            return message;
        }
        assert!(Instant::now() < deadline, "within {timeout:?} nothing came to {queue}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(super) async fn consume(channel: &Channel, queue: &str, prefetch: u16) -> Consumer {
    channel.basic_qos(prefetch, BasicQosOptions::default()).await.expect("the channel is open");
    let consumer =
        channel.basic_consume(queue.into(), "".into(), BasicConsumeOptions::default(), FieldTable::default()).await;
    consumer.unwrap_or_else(|error| panic!("{queue}: {error}"))
}

/// Returns the next delivery, if it arrives in time.
pub(super) async fn next(consumer: &mut Consumer, timeout: Duration) -> Option<Delivery> {
    let next = tokio::time::timeout(timeout, consumer.next()).await.ok()?;
    Some(next.expect("the consumer is not cancelled").expect("the channel is open"))
}

pub(super) async fn ack(delivery: Delivery) -> Seen {
    let at = Instant::now();
    delivery.ack(BasicAckOptions::default()).await.expect("the channel is open");
    Seen { at, failed: at, message: delivery.into() }
}

/// Fails a delivery that has just arrived.
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
    assert!(done.expect("the channel is open"), "{queue}: a second action for one delivery");
    Seen { at, failed: at, message: delivery.into() }
}

/// Returns the number of times that a message was republished.
pub(super) fn count(properties: &AMQPProperties) -> u32 {
    let count = properties.headers().as_ref().and_then(|headers| headers.inner().get(COUNT));
    count.map_or(0, |count| {
        let count = count.as_long_int().unwrap_or_else(|| panic!("{COUNT} is {count:?}"));
        u32::try_from(count).expect("never negative")
    })
}

/// Returns the properties with a different count, and without the first publisher's `expiration`, which would shorten
/// the delay of a tier.
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
