//! Publishes and consumes like an application. Messages are mandatory and use publisher confirms. Consumers of queues
//! have a prefetch of 1 and no priority. `topo test --live` uses this module.

use super::amqp::AmqpTransport;
use super::connection::{Connection, short};
use super::decode;
use super::endpoints::{QueueCounts, queue_counts};
use super::raw_properties::as_library_properties;
use crate::broker::error::BrokerError;
use crate::broker::message::ReceivedMessage;
use crate::model::{ExchangeName, QueueName};
use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, BasicQosOptions,
    BasicRejectOptions, ConfirmSelectOptions, QueuePurgeOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Confirmation, Consumer};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a stream must deliver no messages before topo treats it as completely read.
const STREAM_QUIET: Duration = Duration::from_millis(500);
/// The maximum time to wait for the broker to close a channel.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// The prefetch for reading a stream.
const STREAM_PREFETCH: u16 = 100;

/// A channel of an application.
pub struct ApplicationChannel {
    connection: Arc<Connection>,
    channel: Channel,
}

/// The reply to a published message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// `basic.ack`: the message was routed.
    Confirmed,
    /// `basic.return`: no queue received the message.
    Returned,
    /// `basic.nack`: a queue rejected the message.
    Rejected,
}

/// A consumer with a prefetch of 1.
pub struct Subscription {
    connection: Arc<Connection>,
    consumer: Consumer,
    queue: QueueName,
}

/// A delivered message, which stays unacknowledged until [`Self::reply`].
pub struct Delivered {
    /// The message.
    pub message: ReceivedMessage,
    connection: Arc<Connection>,
    delivery: Delivery,
}

/// The method that a worker uses to reply to a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerReply {
    /// `basic.ack`.
    Ack,
    /// `basic.nack`, with the value of the `requeue` flag.
    Nack(bool),
    /// `basic.reject`, with the value of the `requeue` flag.
    Reject(bool),
}

impl AmqpTransport {
    /// Opens a channel with publisher confirms.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn application_channel(&self) -> Result<ApplicationChannel, BrokerError> {
        let channel = self.0.channel().await?;
        self.0.answer("confirm.select", channel.confirm_select(ConfirmSelectOptions::default())).await?;
        Ok(ApplicationChannel { connection: self.0.clone(), channel })
    }
}

impl ApplicationChannel {
    /// Publishes a mandatory message, and waits for the reply. [`encoded`](super::encoded) returns the properties of a
    /// new message.
    ///
    /// # Errors
    /// The exchange does not exist, or the user is not allowed to publish to it. The broker then closes the channel.
    pub async fn publish(
        &self,
        exchange: &ExchangeName,
        routing_key: &str,
        encoded_properties: Vec<u8>,
        body: &[u8],
    ) -> Result<Published, BrokerError> {
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        let properties = as_library_properties(encoded_properties);
        let confirm = async {
            let (exchange, key) = (short(exchange.as_str()), short(routing_key));
            self.channel.basic_publish(exchange, key, options, body, properties).await?.await
        };
        let confirmed = self.connection.answer(&format!("basic.publish to {exchange}"), confirm).await?;
        Ok(match confirmed {
            Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => Published::Returned,
            Confirmation::Ack(None) | Confirmation::NotRequested => Published::Confirmed,
            Confirmation::Nack(None) => Published::Rejected,
        })
    }

    /// Subscribes to a queue with a prefetch of 1. A consumer of a stream receives only messages that are published
    /// after it subscribes.
    ///
    /// # Errors
    /// The queue does not exist, or the user is not allowed to read from it.
    pub async fn subscribe(&self, queue: &QueueName) -> Result<Subscription, BrokerError> {
        let consuming = async {
            self.channel.basic_qos(1, BasicQosOptions::default()).await?;
            let options = BasicConsumeOptions::default();
            self.channel.basic_consume(short(queue.as_str()), short(""), options, FieldTable::default()).await
        };
        let consumer = self.connection.answer(&format!("basic.consume of {queue}"), consuming).await?;
        Ok(Subscription { connection: self.connection.clone(), consumer, queue: queue.clone() })
    }

    /// Gets the next message with `basic.get` and automatic acknowledgement; `None` if no message is ready.
    ///
    /// # Errors
    /// The queue does not exist, or it refuses `basic.get`.
    pub async fn get(&self, queue: &QueueName) -> Result<Option<ReceivedMessage>, BrokerError> {
        let getting = self.channel.basic_get(short(queue.as_str()), BasicGetOptions { no_ack: true });
        let taken = self.connection.answer(&format!("basic.get of {queue}"), getting).await?;
        Ok(taken.map(|taken| decode::message(&taken.delivery)))
    }

    /// Reads all messages in a stream without removing them.
    ///
    /// # Errors
    /// The queue does not exist, or the user is not allowed to read from it.
    pub async fn read_stream(&self, stream: &QueueName) -> Result<Vec<ReceivedMessage>, BrokerError> {
        let mut arguments = FieldTable::default();
        arguments.insert(short("x-stream-offset"), AMQPValue::LongString("first".into()));
        let request = format!("basic.consume of {stream}");
        let consuming = async {
            self.channel.basic_qos(STREAM_PREFETCH, BasicQosOptions::default()).await?;
            let options = BasicConsumeOptions::default();
            self.channel.basic_consume(short(stream.as_str()), short(""), options, arguments).await
        };
        let mut consumer = self.connection.answer(&request, consuming).await?;
        let mut read = Vec::new();
        while let Ok(Some(next)) = timeout(STREAM_QUIET, consumer.next()).await {
            let delivery = next.map_err(|error| self.connection.request_error(&request, &error))?;
            read.push(decode::message(&delivery));
            self.connection.answer("basic.ack", delivery.ack(BasicAckOptions::default())).await?;
        }
        Ok(read)
    }

    /// Removes the ready messages from a queue.
    ///
    /// # Errors
    /// The queue does not exist, or it is a stream.
    pub async fn purge(&self, queue: &QueueName) -> Result<(), BrokerError> {
        let purging = self.channel.queue_purge(short(queue.as_str()), QueuePurgeOptions::default());
        self.connection.answer(&format!("queue.purge of {queue}"), purging).await.map(|_| ())
    }

    /// Queries the counts of a queue, as [`AmqpTransport::queue_counts`] does.
    ///
    /// # Errors
    /// The queue does not exist. The broker then closes the channel.
    pub async fn counts(&self, queue: &QueueName) -> Result<Option<QueueCounts>, BrokerError> {
        self.connection.answer(&format!("queue.declare of {queue}"), queue_counts(&self.channel, queue)).await
    }

    /// Closes the channel. Unacknowledged messages are requeued.
    pub async fn close(self) {
        let _ = timeout(CLOSE_TIMEOUT, self.channel.close(200, "done".into())).await;
    }
}

impl Subscription {
    /// Waits for the next message.
    ///
    /// # Errors
    /// The broker canceled the consumer, or the connection failed.
    pub async fn next(&mut self) -> Result<Delivered, BrokerError> {
        let request = format!("basic.consume of {}", self.queue);
        match self.consumer.next().await {
            Some(Ok(delivery)) => {
                Ok(Delivered { message: decode::message(&delivery), connection: self.connection.clone(), delivery })
            }
            Some(Err(error)) => Err(self.connection.request_error(&request, &error)),
            None => Err(BrokerError::NotFound { request, reason: "the broker canceled the consumer".to_owned() }),
        }
    }
}

impl Delivered {
    /// Replies to the delivery.
    ///
    /// # Errors
    /// The channel or the connection is closed.
    pub async fn reply(&self, reply: WorkerReply) -> Result<(), BrokerError> {
        let multiple = false;
        let replied = async {
            match reply {
                WorkerReply::Ack => self.delivery.ack(BasicAckOptions::default()).await,
                WorkerReply::Nack(requeue) => self.delivery.nack(BasicNackOptions { multiple, requeue }).await,
                WorkerReply::Reject(requeue) => self.delivery.reject(BasicRejectOptions { requeue }).await,
            }
        };
        self.connection.answer("the reply to a delivery", replied).await.map(|_| ())
    }
}
