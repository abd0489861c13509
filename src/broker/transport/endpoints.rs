//! The two ends of a move. Checks that the user may publish to the target, before the first message is consumed.
//! Subscribes to the source with the highest priority, queries its counts, and waits until it has processed all
//! acknowledgements.

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

/// Higher than the priorities of applications, which mostly use none, so that no consumer receives messages before they
/// are moved.
const PRIORITY: i64 = 1000;
/// The prefetch while redelivered messages arrive. Such a message may be at its delivery limit, and a requeue would
/// drop or dead-letter it. A quorum queue delivers redelivered messages before all others.
pub(super) const CAREFUL: u16 = 1;

/// Subscribes with the highest priority.
pub(super) async fn subscribe(channel: &Channel, source: &QueueName, prefetch: u16) -> lapin::Result<Consumer> {
    channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-priority".into(), AMQPValue::LongLongInt(PRIORITY));
    let options = BasicConsumeOptions::default();
    channel.basic_consume(short(source.as_str()), short(TRANSPORT_TAG), options, arguments).await
}

/// Returns true if a quorum queue has delivered the message before, and it was requeued. Headers of other clients do
/// not count.
pub(super) fn was_delivered_before(delivery: &Delivery) -> bool {
    delivery.redelivered && RawProperties::hidden_in(&delivery.properties).is_some_and(RawProperties::has_count)
}

/// Publishes a message that every broker refuses, because its expiration is not a number. `rabbit_channel` checks the
/// permission (403) and the exchange (404) before the properties (406), so the status of the refusal is the result.
pub(super) async fn check_publish_permission(
    connection: &Connection,
    target: &ExchangeName,
) -> Result<(), BrokerError> {
    let request = format!("basic.publish to {target}");
    let channel = connection.channel().await?;
    let refused = connection.answer(&request, async {
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let properties = BasicProperties::default().with_expiration("probe".into());
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        channel.basic_publish(short(target.as_str()), short(""), options, b"", properties).await?.await
    });
    match refused.await {
        Err(BrokerError::Refused { status: 406, .. }) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(BrokerError::Malformed {
            request,
            detail: "an invalid expiration was accepted; is the server RabbitMQ?".to_owned(),
        }),
    }
}

/// The counts that a queue reports itself, without statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The number of ready messages.
    pub ready: u32,
    /// The number of consumers. A quorum queue counts a canceled consumer as long as it holds messages
    /// (`rabbit_fifo:query_stat`).
    pub consumers: u32,
}

/// The time for which the broker queries a quorum queue. After it, the broker reports that the queue has no messages
/// and no consumers (`rabbit_quorum_queue:stat`).
const STAT_TIMEOUT: Duration = Duration::from_millis(250);

/// Queries the counts of a queue. Returns `None` for an empty result that came so late that the queue may not have
/// answered.
pub(super) async fn counted(channel: &Channel, name: &QueueName) -> lapin::Result<Option<Counted>> {
    let started = Instant::now();
    let passive = QueueDeclareOptions { passive: true, ..Default::default() };
    let queue = channel.queue_declare(short(name.as_str()), passive, FieldTable::default()).await?;
    let counted = Counted { ready: queue.message_count(), consumers: queue.consumer_count() };
    let is_empty = counted == Counted { ready: 0, consumers: 0 };
    Ok(Some(counted).filter(|_| !is_empty || started.elapsed() < STAT_TIMEOUT))
}

/// The time in which an idle quorum queue processes acknowledgements.
pub(super) const SETTLE_TIME: Duration = Duration::from_millis(300);

/// Waits until a quorum queue has processed all acknowledgements. The queue counts a canceled consumer as long as the
/// consumer holds messages. `before` is the number of consumers before the cancel.
///
/// A queue without a leader reports no messages and no consumers, so a count is only trusted if two answers agree.
pub(super) async fn ack_settled(channel: &Channel, source: &QueueName, before: Option<u32>) {
    let mut answers = 0;
    while let Ok(answer) = counted(channel, source).await {
        let is_without = |count: u32| count == 0 || before.is_some_and(|before| count < before);
        answers = if answer.is_some_and(|answer| is_without(answer.consumers)) { answers + 1 } else { 0 };
        if answers == 2 {
            return;
        }
        tokio::time::sleep(SETTLE_TIME / 10).await;
    }
}
