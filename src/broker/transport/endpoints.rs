//! Accesses the source and the target of a move. Checks the permission to publish to the target before the first
//! message is consumed. Subscribes to the source with a high priority, queries the source's counts, and waits until the
//! source has processed all acknowledgements.

use super::connection::{Connection, short};
use super::raw_properties::RawProperties;
use crate::broker::error::BrokerError;
use crate::model::naming::TRANSPORT_TAG;
use crate::model::{ExchangeName, QueueName};
use lapin::message::Delivery;
use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Consumer};
use std::time::{Duration, Instant};

/// The consumer priority of a move. It is higher than the usual priorities of applications, so that topo receives the
/// messages before all other consumers.
const PRIORITY: i64 = 1000;
/// The prefetch while redelivered messages arrive. A redelivered message may be at its delivery limit, so a requeue
/// could drop or dead-letter the message. A quorum queue delivers redelivered messages before all other messages.
pub(super) const CAREFUL_PREFETCH: u16 = 1;

/// Subscribes to the source of a move with [`PRIORITY`].
pub(super) async fn subscribe(channel: &Channel, source: &QueueName, prefetch: u16) -> lapin::Result<Consumer> {
    subscribe_as(channel, source, TRANSPORT_TAG, prefetch, &[]).await
}

/// Subscribes to a queue with a consumer tag and the arguments in `further`. Without further arguments, subscribes with
/// [`PRIORITY`].
pub(super) async fn subscribe_as(
    channel: &Channel,
    source: &QueueName,
    tag: &str,
    prefetch: u16,
    further: &[(&str, AMQPValue)],
) -> lapin::Result<Consumer> {
    channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
    let mut arguments = FieldTable::default();
    // Only subscriptions to streams have further arguments, and streams refuse a priority.
    if further.is_empty() {
        arguments.insert("x-priority".into(), AMQPValue::LongLongInt(PRIORITY));
    }
    for (name, value) in further {
        arguments.insert(short(name), value.clone());
    }
    let options = BasicConsumeOptions::default();
    channel.basic_consume(short(source.as_str()), short(tag), options, arguments).await
}

/// Returns true if a quorum queue has already delivered and requeued the message. Ignores delivery counts that a
/// publisher set in the headers, because a newly published message is not marked as redelivered.
pub(super) fn was_delivered_before(delivery: &Delivery) -> bool {
    delivery.redelivered && RawProperties::extract(&delivery.properties).is_some_and(RawProperties::has_count)
}

/// Checks that the connected user may publish to the target, by sending a message that every broker refuses because its
/// expiration is not a number. `rabbit_channel` checks the permission (403) and the exchange (404) before the
/// properties (406), so only the reply code 406 proves the permission.
pub(super) async fn check_publish_permission(
    connection: &Connection,
    target: &ExchangeName,
) -> Result<(), BrokerError> {
    let request = format!("basic.publish to {target}");
    let channel = connection.channel().await?;
    let reply = connection.answer(&request, async {
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let properties = BasicProperties::default().with_expiration("probe".into());
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        channel.basic_publish(short(target.as_str()), short(""), options, b"", properties).await?.await
    });
    match reply.await {
        Err(BrokerError::Refused { status: 406, .. }) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(BrokerError::Malformed {
            request,
            detail: "the server accepted an invalid expiration; it may not be RabbitMQ".to_owned(),
        }),
    }
}

/// The counts that a queue itself reports, independent of statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCounts {
    /// The number of ready messages.
    pub ready: u32,
    /// The number of consumers. A quorum queue also counts a canceled consumer that still has unacknowledged messages
    /// (`rabbit_fifo:query_stat`).
    pub consumers: u32,
}

impl QueueCounts {
    /// Returns the number of ready messages in a queue that has a consumer; `None` if the queue reports no consumers.
    /// The broker reports neither messages nor consumers for a queue without a leader, even if a consumer exists.
    pub fn ready_with_consumer(self) -> Option<u32> {
        (self.consumers > 0).then_some(self.ready)
    }
}

/// How long the broker waits for the counts from a quorum queue. After this time, the broker reports no messages and no
/// consumers (`rabbit_quorum_queue:stat`).
const STAT_TIMEOUT: Duration = Duration::from_millis(250);

/// Queries the counts of a queue. Returns `None` if all counts are 0 and the response was so late that the broker might
/// not have received the counts from the queue.
pub(super) async fn queue_counts(channel: &Channel, name: &QueueName) -> lapin::Result<Option<QueueCounts>> {
    let started = Instant::now();
    let passive = QueueDeclareOptions { passive: true, ..Default::default() };
    let queue = channel.queue_declare(short(name.as_str()), passive, FieldTable::default()).await?;
    let counts = QueueCounts { ready: queue.message_count(), consumers: queue.consumer_count() };
    let is_empty = counts == QueueCounts { ready: 0, consumers: 0 };
    Ok(Some(counts).filter(|_| !is_empty || started.elapsed() < STAT_TIMEOUT))
}

/// The time within which an idle quorum queue processes acknowledgements.
pub(super) const SETTLE_TIME: Duration = Duration::from_millis(300);

/// Waits until a quorum queue has processed all acknowledgements. The queue includes a canceled consumer in its
/// consumer count while the consumer has unacknowledged messages. `before` is the number of consumers before the
/// cancel; `None` if unknown. Also stops waiting if the counts cannot be queried.
///
/// The broker reports no messages and no consumers for a queue without a leader, so two consecutive responses must
/// agree.
pub(super) async fn wait_until_settled(channel: &Channel, source: &QueueName, before: Option<u32>) {
    let mut answers = 0;
    while let Ok(answer) = queue_counts(channel, source).await {
        let is_without = |count: u32| count == 0 || before.is_some_and(|before| count < before);
        answers = if answer.is_some_and(|answer| is_without(answer.consumers)) { answers + 1 } else { 0 };
        if answers == 2 {
            return;
        }
        tokio::time::sleep(SETTLE_TIME / 10).await;
    }
}
