//! Declarations and bindings over AMQP: for what must follow each other without a pause, and for values that HTTP cannot
//! carry.

use super::amqp::AmqpMover;
use super::connection::short;
use super::table::table;
use crate::broker::error::BrokerError;
use crate::model::{Binding, Destination, Queue, QueueName};
use futures_util::future::join;
use lapin::options::{ExchangeBindOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;

impl AmqpMover {
    /// Deletes a queue and declares the new one of that name, in one write: nobody else's declare comes between them but
    /// one that was on its way already. Then the error is [`BrokerError::Inequivalent`], and the old definition is there
    /// again, empty. `if_empty` is for classic queues alone, and counts ready messages only; what does not hold is
    /// [`BrokerError::NotEmpty`], and nothing is done.
    pub async fn swap(&self, name: &QueueName, queue: &Queue, if_empty: bool) -> Result<(), BrokerError> {
        let channel = self.0.channel().await?;
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

    /// How many consume from a queue in this moment: its own answer, not a statistic. A quorum queue that answers too late
    /// says 0 (`rabbit_quorum_queue:stat`).
    pub async fn consumers(&self, name: &QueueName) -> Result<u32, BrokerError> {
        Ok(self.passive(name).await?.consumer_count())
    }

    /// How many messages are ready in a queue in this moment: its own answer, not a statistic.
    pub async fn ready(&self, name: &QueueName) -> Result<u32, BrokerError> {
        Ok(self.passive(name).await?.message_count())
    }

    async fn passive(&self, name: &QueueName) -> Result<lapin::Queue, BrokerError> {
        let channel = self.0.channel().await?;
        let passive = QueueDeclareOptions { passive: true, ..Default::default() };
        let declare = channel.queue_declare(short(name.as_str()), passive, FieldTable::default());
        let queue = self.0.answer(&format!("queue.declare of {name}"), declare).await?;
        close(&channel).await;
        Ok(queue)
    }

    /// Binds, with the types of [`crate::model::ArgumentValue`] and so with a void, too. A timestamp, a byte or a decimal
    /// cannot be captured: the management API shows none of their types.
    pub async fn bind(&self, binding: &Binding) -> Result<(), BrokerError> {
        let binder = self.binder().await?;
        binder.bind(binding).await?;
        close(&binder.channel).await;
        Ok(())
    }

    /// A channel that waits for the moment to bind.
    pub async fn binder(&self) -> Result<Binder, BrokerError> {
        Ok(Binder { mover: self.clone(), channel: self.0.channel().await? })
    }
}

/// A channel that waits for the moment to bind, so that nothing but the bind itself takes time then.
pub struct Binder {
    mover: AmqpMover,
    channel: lapin::Channel,
}

impl Binder {
    /// Binds, as [`AmqpMover::bind`] does.
    pub async fn bind(&self, binding: &Binding) -> Result<(), BrokerError> {
        let (source, key) = (short(binding.source.as_str()), short(&binding.routing_key));
        let arguments = table(&binding.arguments);
        let request = format!("bind of {binding}");
        match &binding.destination {
            Destination::Queue(queue) => {
                let bind =
                    self.channel.queue_bind(short(queue.as_str()), source, key, QueueBindOptions::default(), arguments);
                self.mover.0.answer(&request, bind).await?;
            }
            Destination::Exchange(exchange) => {
                let options = ExchangeBindOptions::default();
                let bind = self.channel.exchange_bind(short(exchange.as_str()), source, key, options, arguments);
                self.mover.0.answer(&request, bind).await?;
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

/// A channel that is done. What can go wrong with that changes nothing.
async fn close(channel: &lapin::Channel) {
    let _ = channel.close(200, "done".into()).await;
}
