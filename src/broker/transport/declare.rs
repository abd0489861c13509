//! Declarations and bindings over AMQP: for what must follow each other without a pause, and for values that HTTP cannot
//! carry.

use super::amqp::AmqpTransport;
use super::broker_identity::expect_beside;
use super::connection::short;
use super::table::table;
use crate::broker::connection::Broker;
use crate::broker::error::BrokerError;
use crate::model::{Binding, Destination, Queue, QueueName};
use futures_util::future::join;
use lapin::options::{ExchangeBindOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use std::time::{Duration, Instant};

impl AmqpTransport {
    /// Deletes a queue and declares the new one of that name, in one write: nobody else's declare comes between them but
    /// one that was on its way already. Then the error is [`BrokerError::Inequivalent`], and the old definition is there
    /// again, empty. `if_empty` is for classic queues alone, and counts ready messages only; what does not hold is
    /// [`BrokerError::NotEmpty`], and nothing is done. `beside` is a queue that `http` shows: if it is not there for this
    /// connection, that leads to another broker, and nothing is done either.
    pub async fn swap(
        &self,
        name: &QueueName,
        queue: &Queue,
        if_empty: bool,
        (http, beside): (&Broker, &QueueName),
    ) -> Result<(), BrokerError> {
        let channel = self.0.channel().await?;
        expect_beside(&self.0, &channel, http, beside).await?;
        let request = format!("queue.delete and queue.declare of {name}");
        let delete = QueueDeleteOptions { if_unused: false, if_empty, nowait: true };
        // Both are polled in this order before either is waited for, so they are written together.
        let both = join(
            channel.queue_delete(short(name.as_str()), delete),
            channel.queue_declare(short(name.as_str()), options(queue), table(&queue.arguments)),
        );
        match self.0.answer(&request, async { both.await.1 }).await {
            Ok(_) => {}
            // `queue 'q' in vhost 'v' not empty`: then nothing was deleted.
            Err(BrokerError::Refused { reason, .. }) if reason.ends_with("not empty") => {
                return Err(BrokerError::NotEmpty { queue: name.clone(), messages: None });
            }
            Err(error) => return Err(error),
        }
        close(&channel).await;
        Ok(())
    }

    /// What is in a queue in this moment, and how many consume from it. `None` where nobody knows, see [`counted`].
    pub async fn counted(&self, name: &QueueName) -> Result<Option<Counted>, BrokerError> {
        let channel = self.0.channel().await?;
        let counted = self.0.answer(&format!("queue.declare of {name}"), counted(&channel, name)).await?;
        close(&channel).await;
        Ok(counted)
    }

    /// A channel that waits for the moment to bind.
    pub async fn binder(&self) -> Result<Binder, BrokerError> {
        Ok(Binder { transport: self.clone(), channel: self.0.channel().await? })
    }
}

/// A channel that waits for the moment to bind, so that nothing but the bind itself takes time then.
pub struct Binder {
    transport: AmqpTransport,
    channel: lapin::Channel,
}

impl Binder {
    /// What is in a queue, as [`AmqpTransport::counted`] says it.
    pub async fn counted(&self, name: &QueueName) -> Result<Option<Counted>, BrokerError> {
        self.transport.0.answer(&format!("queue.declare of {name}"), counted(&self.channel, name)).await
    }

    /// Binds, with the types of [`crate::model::ArgumentValue`] and so with a void, too. A timestamp, a byte or a decimal
    /// cannot be captured: the management API shows none of their types.
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

/// What a queue says of itself: no statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Messages that no consumer has.
    pub ready: u32,
    /// Consumers; a quorum queue counts one that was canceled as long as it has messages (`rabbit_fifo:query_stat`).
    pub consumers: u32,
}

/// For so long a quorum queue is asked; if it has not answered by then, it is said to have nothing
/// (`rabbit_quorum_queue:stat`).
const ASKED: Duration = Duration::from_millis(250);

/// Asks a queue. `None` where "nothing" may be no answer: it came so late that it may be the broker's instead of the queue's.
pub(super) async fn counted(channel: &lapin::Channel, name: &QueueName) -> lapin::Result<Option<Counted>> {
    let began = Instant::now();
    let passive = QueueDeclareOptions { passive: true, ..Default::default() };
    let queue = channel.queue_declare(short(name.as_str()), passive, FieldTable::default()).await?;
    let counted = Counted { ready: queue.message_count(), consumers: queue.consumer_count() };
    let is_nothing = counted == Counted { ready: 0, consumers: 0 };
    Ok(Some(counted).filter(|_| !is_nothing || began.elapsed() < ASKED))
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

/// A channel that is done. What can go wrong with that changes nothing.
async fn close(channel: &lapin::Channel) {
    let _ = channel.close(200, "done".into()).await;
}
