//! A consumer with the highest priority, which limits its prefetch while messages are redelivered.

use super::connection::short;
use super::raw_properties::RawProperties;
use crate::model::QueueName;
use crate::model::naming::TRANSPORT_TAG;
use lapin::message::Delivery;
use lapin::options::{BasicConsumeOptions, BasicQosOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Consumer};

/// Above every application's, which mostly have none: what is moved is not tried by a consumer first.
const PRIORITY: i64 = 1000;
/// What is under way while messages come that were delivered before: one of them may be at its delivery limit, and would be
/// dropped or dead-lettered if it went back. A quorum queue hands these out before all others.
pub(super) const CAREFUL: u16 = 1;

/// Subscribes with the highest priority.
pub(super) async fn subscribe(channel: &Channel, source: &QueueName, prefetch: u16) -> lapin::Result<Consumer> {
    channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-priority".into(), AMQPValue::LongLongInt(PRIORITY));
    let options = BasicConsumeOptions::default();
    channel.basic_consume(short(source.as_str()), short(TRANSPORT_TAG), options, arguments).await
}

/// Whether a quorum queue handed it out before, and got it back. What others wrote into its headers does not count.
pub(super) fn was_delivered_before(delivery: &Delivery) -> bool {
    delivery.redelivered && RawProperties::hidden_in(&delivery.properties).is_some_and(RawProperties::has_count)
}
