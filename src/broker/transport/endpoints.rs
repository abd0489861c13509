//! Prepares a session: checks that the user may publish to the target, before the first message is consumed. Then
//! subscribes with the highest priority, and limits the prefetch while messages are redelivered.

use super::connection::{Connection, short};
use super::raw_properties::RawProperties;
use crate::broker::error::BrokerError;
use crate::model::naming::TRANSPORT_TAG;
use crate::model::{ExchangeName, QueueName};
use lapin::message::Delivery;
use lapin::options::{BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Consumer};

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
