//! Declares and binds over AMQP: for requests that must follow each other without a pause, and for values that HTTP
//! cannot carry.
//!
//! topo decides over HTTP, and so verifies first that AMQP and HTTP reach the same broker. They can differ even with
//! correct URLs. For example, a tunnel forwards the management port of a remote broker to a host that has its own
//! broker.

use super::amqp::AmqpTransport;
use super::argument_types::table;
use super::connection::{Connection, short};
use super::endpoints::{Counted, counted};
use crate::broker::connection::Broker;
use crate::broker::error::BrokerError;
use crate::model::naming::identity_queue;
use crate::model::{Binding, Destination, ObjectId, Queue, QueueName};
use futures_util::future::join;
use lapin::Channel;
use lapin::options::{ExchangeBindOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

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
    channel: Channel,
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
async fn close(channel: &Channel) {
    let _ = channel.close(200, "done".into()).await;
}

/// The time in which all nodes of a cluster list a declared queue.
const LISTING_TIME: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);
/// The maximum number of attempts on a busy broker.
const TRIES: u32 = 5;

impl AmqpTransport {
    /// Declares a queue with a unique name, and looks for it over HTTP. Returns [`BrokerError::AnotherBroker`] if HTTP
    /// does not show it. The queue is exclusive and is deleted immediately, at the latest with the connection. Its name
    /// is derived from the queue to migrate, so a user who may migrate that queue may declare it.
    pub async fn expect_same_broker(&self, http: &Broker, queue: &QueueName) -> Result<(), BrokerError> {
        let mut tries = 1;
        loop {
            match self.check_witness(http, queue).await {
                // The broker is busy.
                Err(error) if error.is_transient() && tries < TRIES => tries += 1,
                checked => return checked,
            }
        }
    }

    async fn check_witness(&self, http: &Broker, queue: &QueueName) -> Result<(), BrokerError> {
        // The hasher's keys are random; std has no other source of randomness.
        let token = RandomState::new().build_hasher().finish() as u32;
        let name = identity_queue(queue, token);
        let channel = self.0.channel().await?;
        let options = QueueDeclareOptions { exclusive: true, ..Default::default() };
        let mut arguments = FieldTable::default();
        // If another type is the default, the broker refuses an exclusive queue.
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("classic".into()));
        let declared = channel.queue_declare(short(name.as_str()), options, arguments);
        self.0.answer(&format!("queue.declare of {name}"), declared).await?;
        let is_same_broker = is_listed(&self.0, http, &name).await;
        let deleted = channel.queue_delete(short(name.as_str()), QueueDeleteOptions::default());
        // The queue is deleted with the connection in any case.
        let _ = self.0.answer(&format!("queue.delete of {name}"), deleted).await;
        let _ = channel.close(200, "done".into()).await;
        if is_same_broker? { Ok(()) } else { Err(another_broker(&self.0, http, &name)) }
    }
}

async fn is_listed(connection: &Connection, http: &Broker, name: &QueueName) -> Result<bool, BrokerError> {
    let deadline = Instant::now() + LISTING_TIME;
    let id = ObjectId::Queue(name.clone());
    loop {
        if http.exists(&connection.options.vhost, &id).await? {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn another_broker(connection: &Connection, http: &Broker, queue: &QueueName) -> BrokerError {
    BrokerError::AnotherBroker {
        amqp: connection.options.address.to_string(),
        url: http.base_url().to_string(),
        reason: format!("queue {queue}, declared at the AMQP address, does not exist at the management URL"),
    }
}

/// Checks the same again on the channel that will delete the queue: `known`, which HTTP shows, must exist there. The
/// connection may have been restored since, to another broker.
pub(super) async fn expect_known_queue(
    connection: &Connection,
    channel: &Channel,
    http: &Broker,
    known: &QueueName,
) -> Result<(), BrokerError> {
    let passive = QueueDeclareOptions { passive: true, ..Default::default() };
    let checked = channel.queue_declare(short(known.as_str()), passive, FieldTable::default());
    match connection.answer(&format!("queue.declare of {known}"), checked).await {
        Ok(_) => Ok(()),
        Err(BrokerError::NotFound { .. }) => Err(BrokerError::AnotherBroker {
            amqp: connection.options.address.to_string(),
            url: http.base_url().to_string(),
            reason: format!("queue {known}, which exists at the management URL, does not exist at the AMQP address"),
        }),
        Err(error) => Err(error),
    }
}
