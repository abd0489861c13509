//! Subscribes to a queue, and receives a consumer's deliveries.

use super::super::connection::Connection;
use super::super::endpoints::subscribe_as;
use super::order::ProcessOrder;
use crate::broker::error::BrokerError;
use crate::model::QueueType;
use crate::model::naming::dead_letter_tag;
use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::types::AMQPValue;
use lapin::{Channel, Consumer};

/// Subscribes to the queue as consumer `number`. The consumer can hold at most `room` messages, and at most the order's
/// prefetch. Returns the consumer, and the number of messages that it can hold.
pub(super) async fn subscribe(
    connection: &Connection,
    channel: &Channel,
    order: &ProcessOrder,
    (number, room): (usize, u64),
) -> Result<(Consumer, u64), BrokerError> {
    let offset = [("x-stream-offset", AMQPValue::LongString("first".into()))];
    let arguments = if order.kind == Some(QueueType::Stream) { &offset[..] } else { &[] };
    let tag = dead_letter_tag(number);
    let prefetch = order.prefetch.min(u16::try_from(room).unwrap_or(u16::MAX));
    let subscribing = subscribe_as(channel, &order.queue, &tag, prefetch, arguments);
    let consumer = connection.answer(&format!("basic.consume of {}", order.queue), subscribing).await?;
    Ok((consumer, prefetch.into()))
}

/// Returns the next delivery to a consumer; `None` if there is no consumer, or if the consumer was canceled.
pub(super) async fn next_of(consumer: Option<&mut Consumer>) -> Option<lapin::Result<Delivery>> {
    match consumer {
        Some(consumer) => consumer.next().await,
        None => None,
    }
}
