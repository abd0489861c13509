//! Declares and binds over AMQP: for requests that must follow each other without a pause, and for values that HTTP
//! cannot carry.

use super::amqp::AmqpTransport;
use super::argument_types::table;
use super::broker_identity::expect_known_queue;
use super::connection::short;
use super::queue_counts::{Counted, counted};
use crate::broker::connection::Broker;
use crate::broker::error::BrokerError;
use crate::model::{Binding, Destination, Queue, QueueName};
use futures_util::future::join;
use lapin::options::{ExchangeBindOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions};

impl AmqpTransport {
    /// Deletes a queue and declares the new one with the same name, in one write. Only a declaration of another client
    /// that was already in transit can come between them. Then the error is [`BrokerError::Inequivalent`], and an empty
    /// queue with the old definition exists.
    ///
    /// `if_empty` is for classic queues only, and counts only ready messages. If the queue is not empty, the error is
    /// [`BrokerError::NotEmpty`], and nothing was changed. `known` is a queue that `http` shows. If it does not exist
    /// for this connection, the connection leads to another broker, and nothing was changed either.
    pub async fn swap(
        &self,
        name: &QueueName,
        queue: &Queue,
        if_empty: bool,
        (http, known): (&Broker, &QueueName),
    ) -> Result<(), BrokerError> {
        let channel = self.0.channel().await?;
        expect_known_queue(&self.0, &channel, http, known).await?;
        let request = format!("queue.delete and queue.declare of {name}");
        let delete = QueueDeleteOptions { if_unused: false, if_empty, nowait: true };
        // Both futures are polled in this order before the result of either is awaited, so they are written together.
        let both = join(
            channel.queue_delete(short(name.as_str()), delete),
            channel.queue_declare(short(name.as_str()), options(queue), table(&queue.arguments)),
        );
        match self.0.answer(&request, async { both.await.1 }).await {
            Ok(_) => {}
            // `queue 'q' in vhost 'v' not empty`: nothing was deleted.
            Err(BrokerError::Refused { reason, .. }) if reason.ends_with("not empty") => {
                return Err(BrokerError::NotEmpty { queue: name.clone(), messages: None });
            }
            Err(error) => return Err(error),
        }
        close(&channel).await;
        Ok(())
    }

    /// Returns the current counts of a queue; `None` if they are unknown, see [`counted`].
    pub async fn counted(&self, name: &QueueName) -> Result<Option<Counted>, BrokerError> {
        let channel = self.0.channel().await?;
        let counted = self.0.answer(&format!("queue.declare of {name}"), counted(&channel, name)).await?;
        close(&channel).await;
        Ok(counted)
    }

    /// Opens a channel for a bind at a certain moment.
    pub async fn binder(&self) -> Result<Binder, BrokerError> {
        Ok(Binder { transport: self.clone(), channel: self.0.channel().await? })
    }
}

/// An open channel for a bind at a certain moment, so that only the bind itself takes time then.
pub struct Binder {
    transport: AmqpTransport,
    channel: lapin::Channel,
}

impl Binder {
    /// Returns the current counts of a queue, like [`AmqpTransport::counted`].
    pub async fn counted(&self, name: &QueueName) -> Result<Option<Counted>, BrokerError> {
        self.transport.0.answer(&format!("queue.declare of {name}"), counted(&self.channel, name)).await
    }

    /// Binds with the types of [`crate::model::ArgumentValue`], including void. A timestamp, a byte or a decimal cannot
    /// be restored, because the management API does not show these types.
    pub async fn bind(&self, binding: &Binding) -> Result<(), BrokerError> {
        let (source, key) = (short(binding.source.as_str()), short(&binding.routing_key));
        let arguments = table(&binding.arguments);
        let request = format!("bind of {binding}");
        match &binding.destination {
            Destination::Queue(queue) => {
                let bind =
                    self.channel.queue_bind(short(queue.as_str()), source, key, QueueBindOptions::default(), arguments);
                self.transport.0.answer(&request, bind).await?;
            }
            Destination::Exchange(exchange) => {
                let options = ExchangeBindOptions::default();
                let bind = self.channel.exchange_bind(short(exchange.as_str()), source, key, options, arguments);
                self.transport.0.answer(&request, bind).await?;
            }
        }
        Ok(())
    }
}

fn options(queue: &Queue) -> QueueDeclareOptions {
    let Queue { durable, auto_delete, exclusive, arguments: _ } = queue;
    QueueDeclareOptions {
        passive: false,
        durable: *durable,
        exclusive: *exclusive,
        auto_delete: *auto_delete,
        nowait: false,
    }
}

/// Closes a channel. A failure has no effect.
async fn close(channel: &lapin::Channel) {
    let _ = channel.close(200, "done".into()).await;
}
