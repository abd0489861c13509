//! Verifies that AMQP and HTTP reach the same broker. They can differ even with correct URLs. For example, a tunnel
//! forwards the management port of a remote broker to a host that has its own broker.

use super::amqp::AmqpTransport;
use super::connection::{Connection, short};
use crate::broker::connection::Broker;
use crate::broker::error::BrokerError;
use crate::model::naming::identity_queue;
use crate::model::{ObjectId, QueueName};
use lapin::Channel;
use lapin::options::{QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

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
