//! Subscribes a consumer with the highest priority, and limits its prefetch while messages are redelivered.

use super::connection::short;
use super::raw_properties::RawProperties;
use crate::model::QueueName;
use crate::model::naming::TRANSPORT_TAG;
use lapin::message::Delivery;
use lapin::options::{BasicConsumeOptions, BasicQosOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Consumer};

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
