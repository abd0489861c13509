//! Verifies that AMQP and HTTP reach the same broker. They can differ even with correct URLs: the
//! management port of one broker may be brought here by a tunnel, to a host that has a broker of its own.

use super::amqp::AmqpTransport;
use super::connection::{Connection, short};
use crate::broker::connection::Broker;
use crate::broker::error::BrokerError;
use crate::model::naming::witness;
use crate::model::{ObjectId, QueueName};
use lapin::Channel;
use lapin::options::{QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

/// Within which all nodes of a cluster list what one has declared.
const LISTED: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);
/// The number of attempts on a busy broker.
const TRIES: u32 = 5;

impl AmqpTransport {
    /// Declares a queue with a name that no other has, and looks for it over HTTP; [`BrokerError::AnotherBroker`] if it is
    /// not there. It is exclusive, so whatever happens it goes with the connection, and it is deleted at once. Its name is one
    /// beside the queue that is to be migrated, so a user who may migrate that may declare it.
    pub async fn expect_same_broker(&self, http: &Broker, queue: &QueueName) -> Result<(), BrokerError> {
        let mut tries = 1;
        loop {
            match self.look_for_witness(http, queue).await {
                // The broker is busy.
                Err(error) if error.is_transient() && tries < TRIES => tries += 1,
                looked => return looked,
            }
        }
    }

    async fn look_for_witness(&self, http: &Broker, queue: &QueueName) -> Result<(), BrokerError> {
        // The hasher's keys are random; std has no other source of randomness.
        let token = RandomState::new().build_hasher().finish() as u32;
        let name = witness(queue, token);
        let channel = self.0.channel().await?;
        let options = QueueDeclareOptions { exclusive: true, ..Default::default() };
        let mut arguments = FieldTable::default();
        // Where others are the default, an exclusive one is refused.
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("classic".into()));
        let declared = channel.queue_declare(short(name.as_str()), options, arguments);
        self.0.answer(&format!("queue.declare of {name}"), declared).await?;
        let is_there = is_listed(&self.0, http, &name).await;
        let deleted = channel.queue_delete(short(name.as_str()), QueueDeleteOptions::default());
        // It goes in any case, with the connection.
        let _ = self.0.answer(&format!("queue.delete of {name}"), deleted).await;
        let _ = channel.close(200, "done".into()).await;
        if is_there? { Ok(()) } else { Err(another(&self.0, http, &name)) }
    }
}

async fn is_listed(connection: &Connection, http: &Broker, name: &QueueName) -> Result<bool, BrokerError> {
    let deadline = Instant::now() + LISTED;
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

fn another(connection: &Connection, http: &Broker, queue: &QueueName) -> BrokerError {
    BrokerError::AnotherBroker {
        amqp: connection.options.address.to_string(),
        url: http.base_url().to_string(),
        reason: format!("queue {queue}, declared at the AMQP address, does not exist at the management URL"),
    }
}

/// The same once more, on the very channel that is about to delete: what is beside the queue is there. The connection may
/// have been made again since, and not to where it was.
pub(super) async fn expect_beside(
    connection: &Connection,
    channel: &Channel,
    http: &Broker,
    beside: &QueueName,
) -> Result<(), BrokerError> {
    let passive = QueueDeclareOptions { passive: true, ..Default::default() };
    let looked = channel.queue_declare(short(beside.as_str()), passive, FieldTable::default());
    match connection.answer(&format!("queue.declare of {beside}"), looked).await {
        Ok(_) => Ok(()),
        Err(BrokerError::NotFound { .. }) => Err(BrokerError::AnotherBroker {
            amqp: connection.options.address.to_string(),
            url: http.base_url().to_string(),
            reason: format!("queue {beside}, which exists at the management URL, does not exist at the AMQP address"),
        }),
        Err(error) => Err(error),
    }
}
