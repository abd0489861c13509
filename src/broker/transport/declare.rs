//! Deletes, declares and queries queues, and creates bindings, over AMQP. This module is for requests that must follow
//! each other without a pause, and for argument types that HTTP cannot represent.
//!
//! topo plans from data that it reads over HTTP, so it first verifies that AMQP and HTTP reach the same broker. The
//! brokers can differ even if both URLs work. For example, a tunnel may forward the management port of a remote broker
//! to a host that runs its own broker.

use super::amqp::AmqpTransport;
use super::argument_types::table;
use super::connection::{Connection, short};
use super::endpoints::{QueueCounts, queue_counts};
use crate::broker::connection::Broker;
use crate::broker::error::BrokerError;
use crate::model::naming::identity_queue;
use crate::model::{Binding, Destination, Queue, QueueName};
use futures_util::future::join;
use lapin::Channel;
use lapin::options::{ExchangeBindOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

impl AmqpTransport {
    /// Deletes a queue and declares a new queue with the same name, in one write.
    ///
    /// `if_empty` is for classic queues only, and considers only ready messages. `known` is a queue that exists
    /// according to `http`, and must also exist on this connection.
    ///
    /// # Errors
    /// [`BrokerError::NotEmpty`] if `if_empty` is set and the queue contains ready messages, and
    /// [`BrokerError::DifferentBroker`] if `known` does not exist. In both cases, nothing was changed.
    ///
    /// [`BrokerError::Inequivalent`] if the broker processed a declaration from another client between the delete and
    /// the declaration. The other client's declaration must already have been in transit. The queue then exists with
    /// the old definition and without the old messages.
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
        // Both futures are polled in this order before either result is awaited, so the requests are written together.
        let both = join(
            channel.queue_delete(short(name.as_str()), delete),
            channel.queue_declare(short(name.as_str()), options(queue), table(&queue.arguments)),
        );
        match self.0.answer(&request, async { both.await.1 }).await {
            Ok(_) => {}
            // The reason is `queue 'q' in vhost 'v' not empty`, and nothing was deleted.
            Err(BrokerError::Refused { reason, .. }) if reason.ends_with("not empty") => {
                return Err(BrokerError::NotEmpty { queue: name.clone(), messages: None });
            }
            Err(error) => return Err(error),
        }
        close(&channel).await;
        Ok(())
    }

    /// Returns the current counts of a queue; `None` if the queue might not have responded to the broker in time.
    pub async fn queue_counts(&self, name: &QueueName) -> Result<Option<QueueCounts>, BrokerError> {
        let channel = self.0.channel().await?;
        let counts = self.0.answer(&format!("queue.declare of {name}"), queue_counts(&channel, name)).await?;
        close(&channel).await;
        Ok(counts)
    }

    /// Opens a channel in advance for time-critical binds.
    pub async fn binder(&self) -> Result<Binder, BrokerError> {
        Ok(Binder { transport: self.clone(), channel: self.0.channel().await? })
    }
}

/// A channel that is opened in advance, so that time-critical binds do not wait for a channel.
pub struct Binder {
    transport: AmqpTransport,
    channel: Channel,
}

impl Binder {
    /// Returns the current counts of a queue, as [`AmqpTransport::queue_counts`] does, over this channel.
    pub async fn queue_counts(&self, name: &QueueName) -> Result<Option<QueueCounts>, BrokerError> {
        self.transport.0.answer(&format!("queue.declare of {name}"), queue_counts(&self.channel, name)).await
    }

    /// Creates a binding. The arguments have the default types of [`crate::model::ArgumentValue`], including void. A
    /// timestamp, a byte or a decimal cannot be restored, because the management API does not show these types.
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

/// Closes a channel, and ignores errors.
async fn close(channel: &Channel) {
    let _ = channel.close(200, "done".into()).await;
}

/// The maximum time until all nodes in a cluster list a declared queue.
const LISTING_TIME: Duration = Duration::from_secs(5);
/// The pause between two checks of the list.
const PAUSE: Duration = Duration::from_millis(50);
/// The maximum number of attempts on a busy broker.
const TRIES: u32 = 5;

impl AmqpTransport {
    /// Verifies that AMQP and HTTP reach the same broker. Declares a queue with a unique name over AMQP, and reads the
    /// queue over HTTP. topo then deletes the queue. If the delete fails, the broker deletes the queue when the
    /// connection is closed, because the queue is exclusive.
    ///
    /// The unique name is derived from `queue`, the queue to migrate. A user who may migrate `queue` may therefore also
    /// declare a queue with the unique name.
    ///
    /// # Errors
    /// [`BrokerError::DifferentBroker`] if the management API does not show the declared queue within 5 s.
    pub async fn expect_same_broker(&self, http: &Broker, queue: &QueueName) -> Result<(), BrokerError> {
        let mut tries = 1;
        loop {
            match self.check_identity(http, queue).await {
                // The broker is busy.
                Err(error) if error.is_transient() && tries < TRIES => tries += 1,
                checked => return checked,
            }
        }
    }

    async fn check_identity(&self, http: &Broker, queue: &QueueName) -> Result<(), BrokerError> {
        // The keys of this hasher are the standard library's only source of randomness.
        let token = RandomState::new().build_hasher().finish() as u32;
        let name = identity_queue(queue, token);
        let channel = self.0.channel().await?;
        let options = QueueDeclareOptions { exclusive: true, ..Default::default() };
        let mut arguments = FieldTable::default();
        // Without this argument, the queue could be a quorum queue by default. The broker refuses exclusive quorum
        // queues.
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("classic".into()));
        let declared = channel.queue_declare(short(name.as_str()), options, arguments);
        self.0.answer(&format!("queue.declare of {name}"), declared).await?;
        let is_same_broker = is_listed(&self.0, http, &name).await;
        let deleted = channel.queue_delete(short(name.as_str()), QueueDeleteOptions::default());
        // If the delete fails, the broker deletes the exclusive queue when the connection is closed.
        let _ = self.0.answer(&format!("queue.delete of {name}"), deleted).await;
        let _ = channel.close(200, "done".into()).await;
        if is_same_broker? { Ok(()) } else { Err(another_broker(&self.0, http, &name)) }
    }
}

/// Returns true if the queue exists according to the management API. Waits up to [`LISTING_TIME`] for the queue.
async fn is_listed(connection: &Connection, http: &Broker, name: &QueueName) -> Result<bool, BrokerError> {
    let deadline = Instant::now() + LISTING_TIME;
    loop {
        if http.queue_exists(&connection.options.vhost, name).await? {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn another_broker(connection: &Connection, http: &Broker, queue: &QueueName) -> BrokerError {
    BrokerError::DifferentBroker {
        amqp: connection.options.address.to_string(),
        url: http.base_url().to_string(),
        reason: format!("queue {queue}, declared at the AMQP address, does not exist at the management URL"),
    }
}

/// Verifies again that AMQP and HTTP reach the same broker, on the channel that will delete the queue. `known`, a queue
/// that exists according to the management API, must also exist on this channel. Since the first check, the connection
/// may have been lost and restored to another broker.
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
        Err(BrokerError::NotFound { .. }) => Err(BrokerError::DifferentBroker {
            amqp: connection.options.address.to_string(),
            url: http.base_url().to_string(),
            reason: format!("queue {known}, which exists at the management URL, does not exist at the AMQP address"),
        }),
        Err(error) => Err(error),
    }
}
