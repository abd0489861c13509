//! Declares the temporary objects of a run: its exclusive queue, which is also the lock, and fanout exchanges.

use super::amqp::AmqpTransport;
use super::argument_types::table;
use super::connection::{Connection, short};
use super::endpoints::check_publish_permission;
use crate::broker::error::BrokerError;
use crate::model::naming::{DEAD_LETTER_TAG, replay_exchange, run_queue};
use crate::model::{Binding, ExchangeName, QueueName};
use lapin::options::{
    BasicConsumeOptions, ExchangeDeclareOptions, ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions,
    QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Consumer, ExchangeKind};
use std::sync::Arc;

/// The maximum number of messages in a run's queue. The run reads them immediately.
const MAX_TAPPED: i64 = 10_000;
/// The argument that marks topo's own objects.
const MARK: &str = "x-topo-run";

/// The exclusive queue of a run. The queue exists only as long as its connection does, so the broker deletes the queue
/// immediately if topo is killed. While the queue exists, no other run can declare it.
pub struct RunLock {
    connection: Arc<Connection>,
    channel: Channel,
    queue: QueueName,
}

/// A consumer of the exclusive queue of a run. The consumer must exist until the lock is released, because the broker
/// deletes the queue together with its last consumer.
pub struct Observer(pub(super) Consumer);

impl AmqpTransport {
    /// Acquires the lock for a dead-letter queue.
    ///
    /// # Errors
    /// [`BrokerError::Refused`] with status 405 if another run holds the lock.
    pub async fn lock_run(&self, dead_letter_queue: &QueueName) -> Result<RunLock, BrokerError> {
        let queue = run_queue(dead_letter_queue);
        let channel = self.0.channel().await?;
        let options = QueueDeclareOptions { exclusive: true, auto_delete: true, ..Default::default() };
        let mut arguments = FieldTable::default();
        // The broker refuses exclusive quorum queues, and quorum could be the default type.
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("classic".into()));
        arguments.insert("x-max-length".into(), AMQPValue::LongLongInt(MAX_TAPPED));
        arguments.insert(MARK.into(), AMQPValue::Boolean(true));
        let declared = channel.queue_declare(short(queue.as_str()), options, arguments);
        self.0.answer(&format!("queue.declare of {queue}"), declared).await?;
        Ok(RunLock { connection: self.0.clone(), channel, queue })
    }

    /// Declares the temporary exchange that routes messages to one queue, regardless of the routing key. A killed run
    /// leaves the exchange behind. The next run deletes the exchange before it declares a new one.
    ///
    /// # Errors
    /// The user is not allowed to configure the exchange, to read from it, or to write to the queue. No exchange is
    /// left behind.
    pub async fn declare_replay_exchange(&self, queue: &QueueName) -> Result<ExchangeName, BrokerError> {
        let exchange = replay_exchange(queue);
        // An exchange that a killed run left behind might have other bindings.
        self.delete_replay_exchange(queue).await;
        let channel = self.0.channel().await?;
        let options = ExchangeDeclareOptions { auto_delete: true, ..Default::default() };
        let mut arguments = FieldTable::default();
        arguments.insert(MARK.into(), AMQPValue::Boolean(true));
        let declared = channel.exchange_declare(short(exchange.as_str()), ExchangeKind::Fanout, options, arguments);
        self.0.answer(&format!("exchange.declare of {exchange}"), declared).await?;
        let (options, none) = (QueueBindOptions::default(), FieldTable::default());
        let bound = channel.queue_bind(short(queue.as_str()), short(exchange.as_str()), short(""), options, none);
        if let Err(error) = self.0.answer(&format!("queue.bind of {queue} to {exchange}"), bound).await {
            self.delete_replay_exchange(queue).await;
            return Err(error);
        }
        let _ = channel.close(200, "done".into()).await;
        Ok(exchange)
    }

    /// Deletes the temporary exchange of a queue. Ignores errors, because the next run deletes the exchange.
    pub async fn delete_replay_exchange(&self, queue: &QueueName) {
        let exchange = replay_exchange(queue);
        let Ok(channel) = self.0.channel().await else { return };
        let deleted = channel.exchange_delete(short(exchange.as_str()), ExchangeDeleteOptions::default());
        let _ = self.0.answer(&format!("exchange.delete of {exchange}"), deleted).await;
        let _ = channel.close(200, "done".into()).await;
    }

    /// Checks that the connected user is allowed to publish to an exchange, without publishing a message.
    ///
    /// # Errors
    /// The user is not allowed to publish, or the exchange does not exist.
    pub async fn check_publish(&self, exchange: &ExchangeName) -> Result<(), BrokerError> {
        check_publish_permission(&self.0, exchange).await
    }
}

impl RunLock {
    /// Adds one of the dead-letter queue's bindings to the run's queue. The run's queue then receives copies of newly
    /// dead-lettered messages.
    ///
    /// # Errors
    /// The user is not allowed to bind the queue.
    pub async fn bind(&self, binding: &Binding) -> Result<(), BrokerError> {
        let arguments = table(&binding.arguments);
        let request = format!("queue.bind of {} to {}", self.queue, binding.source);
        let channel = self.connection.channel().await?;
        let bound = channel.queue_bind(
            short(self.queue.as_str()),
            short(binding.source.as_str()),
            short(&binding.routing_key),
            QueueBindOptions::default(),
            arguments,
        );
        self.connection.answer(&request, bound).await?;
        let _ = channel.close(200, "done".into()).await;
        Ok(())
    }

    /// Consumes from the run's queue.
    ///
    /// # Errors
    /// The user is not allowed to read from the queue.
    pub async fn observer(&self) -> Result<Observer, BrokerError> {
        let options = BasicConsumeOptions { no_ack: true, ..Default::default() };
        let (queue, tag) = (short(self.queue.as_str()), short(DEAD_LETTER_TAG));
        let observing = self.channel.basic_consume(queue, tag, options, FieldTable::default());
        Ok(Observer(self.connection.answer(&format!("basic.consume of {}", self.queue), observing).await?))
    }

    /// Releases the lock.
    pub async fn release(self) {
        let deleted = self.channel.queue_delete(short(self.queue.as_str()), QueueDeleteOptions::default());
        let _ = self.connection.answer(&format!("queue.delete of {}", self.queue), deleted).await;
        let _ = self.channel.close(200, "done".into()).await;
    }
}
