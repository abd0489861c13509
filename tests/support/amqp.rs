//! An application's view of the broker over AMQP: its declarations, messages and errors.

use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicPublishOptions, BasicQosOptions, BasicRejectOptions,
    ConfirmSelectOptions, ExchangeBindOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Confirmation, Connection, ConnectionProperties, Consumer, ErrorKind, ExchangeKind};

use super::vhost::segment;
use super::wait::{block_on, try_block_on, until};

/// An argument with its AMQP type: `LongInt` has 32 bits, `LongLongInt` has 64, `ShortInt` has 16.
pub(crate) type Argument = AMQPValue;

/// The arguments of a declaration: `[("x-message-ttl", Argument::LongInt(60_000))]`, or `NONE`.
pub(crate) type Arguments<'a> = &'a [(&'a str, Argument)];

/// The time that RabbitMQ waits for the counts of a quorum queue. Without a response, it reports 0 messages and 0
/// consumers.
const ASKED: Duration = Duration::from_millis(250);

/// The time limit for closing a channel or connection. Sometimes the response never arrives (observed on 3.10 and 4.0).
const GOODBYE: Duration = Duration::from_secs(5);

/// No arguments.
pub(crate) const NONE: Arguments<'static> = &[];

/// Returns a string argument.
pub(crate) fn text(value: &str) -> Argument {
    Argument::LongString(value.into())
}

/// The outcome of a publish.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Routed,
    Unroutable,
    Refused,
}

/// A message that was received from a queue.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) body: Vec<u8>,
    pub(crate) exchange: String,
    pub(crate) routing_key: String,
    pub(crate) redelivered: bool,
    pub(crate) properties: AMQPProperties,
}

impl From<Delivery> for Message {
    fn from(delivery: Delivery) -> Self {
        Self {
            body: delivery.data,
            exchange: delivery.exchange.to_string(),
            routing_key: delivery.routing_key.to_string(),
            redelivered: delivery.redelivered,
            properties: delivery.properties,
        }
    }
}

/// A connection to a vhost. Every call that the broker may refuse uses a separate channel, because a refusal closes the
/// channel. The error of a call is the broker's text.
pub(crate) struct Amqp {
    uri: String,
    connection: Connection,
}

/// A subscribed consumer with unacknowledged messages. Dropping the value ends the consumer.
pub(crate) struct Held {
    channel: Channel,
    consumer: Consumer,
    pub(crate) bodies: Vec<Vec<u8>>,
    /// A separate connection, whose end also ends the consumer if the broker does not respond to the close of the
    /// channel.
    _amqp: Amqp,
}

/// The counts that a queue reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) ready: u32,
    /// On a quorum queue, includes canceled consumers that still have messages.
    pub(crate) consumers: u32,
}

pub(super) fn reported(error: &lapin::Error) -> String {
    if let ErrorKind::ProtocolError(error) = error.kind() { error.get_message().to_string() } else { error.to_string() }
}

fn table(arguments: Arguments<'_>) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in arguments {
        table.insert((*name).into(), value.clone());
    }
    table
}

/// Queries a queue with passive declarations until the response certainly comes from the queue itself.
pub(crate) async fn counted(channel: &Channel, queue: &str) -> lapin::Result<Counted> {
    loop {
        let began = Instant::now();
        let options = QueueDeclareOptions { passive: true, ..Default::default() };
        let declared = channel.queue_declare(queue.into(), options, FieldTable::default()).await?;
        let counted = Counted { ready: declared.message_count(), consumers: declared.consumer_count() };
        if counted != (Counted { ready: 0, consumers: 0 }) || began.elapsed() < ASKED {
            return Ok(counted);
        }
    }
}

/// Waits until the broker has executed all earlier commands that have no response, such as acknowledgements. Sends a
/// command that has a response.
pub(crate) async fn caught_up(channel: &Channel) -> lapin::Result<()> {
    channel.basic_qos(1, BasicQosOptions::default()).await
}

/// Closes a channel after its commands have been executed.
async fn finish(channel: &Channel) -> lapin::Result<()> {
    caught_up(channel).await?;
    let close = channel.close(200, "done".into());
    tokio::time::timeout(GOODBYE, close).await.unwrap_or(Ok(()))
}

impl Amqp {
    pub(crate) fn connect(port: u16, vhost: &str, user: &str, password: &str) -> Self {
        Self::to(format!("amqp://{}:{}@127.0.0.1:{port}/{}", segment(user), segment(password), segment(vhost)))
    }

    fn to(uri: String) -> Self {
        // RabbitMQ closes connections without a handshake within 10 s, whereas a refusal has an error.
        let connection = until("an AMQP connection", || {
            let connected = block_on(Connection::connect(&uri, ConnectionProperties::default()));
            // On a busy node, a new vhost can be down for a moment.
            let is_starting = |error: &lapin::Error| error.to_string().contains("' is down");
            let refused = connected.as_ref().err().filter(|error| error.is_amqp_error() && !is_starting(error));
            assert!(refused.is_none(), "{uri}: {refused:?}");
            connected.ok()
        });
        Self { uri, connection }
    }

    pub(crate) fn channel(&self) -> Channel {
        // The error of a closed channel may reach the next channel with the same number (lapin 4).
        until("a channel", || {
            assert!(self.connection.status().connected(), "the connection is open");
            block_on(self.new_channel()).ok()
        })
    }

    /// Opens a channel for a test with many concurrent operations.
    pub(crate) async fn new_channel(&self) -> lapin::Result<Channel> {
        self.connection.create_channel().await
    }

    /// Declares a durable queue.
    pub(crate) fn declare_queue(&self, name: &str, arguments: Arguments<'_>) -> Result<(), String> {
        self.declare_queue_as(name, QueueDeclareOptions { durable: true, ..Default::default() }, arguments)
    }

    /// Declares a transient, exclusive or auto-delete queue.
    pub(crate) fn declare_queue_as(
        &self,
        name: &str,
        options: QueueDeclareOptions,
        arguments: Arguments<'_>,
    ) -> Result<(), String> {
        let declared = block_on(self.channel().queue_declare(name.into(), options, table(arguments)));
        declared.map(drop).map_err(|error| reported(&error))
    }

    /// Returns the number of ready messages from the queue itself, not from the statistics.
    pub(crate) fn ready(&self, queue: &str) -> u32 {
        self.counted(queue).ready
    }

    /// Returns the number of ready messages and the number of consumers.
    pub(crate) fn counted(&self, queue: &str) -> Counted {
        let channel = self.channel();
        block_on(counted(&channel, queue)).unwrap_or_else(|error| panic!("{}", reported(&error)))
    }

    /// Declares a durable exchange: `topic`, `fanout`, `direct`, `headers`, or a plugin's type.
    pub(crate) fn declare_exchange(&self, name: &str, kind: &str, arguments: Arguments<'_>) -> Result<(), String> {
        self.declare_exchange_as(name, kind, ExchangeDeclareOptions { durable: true, ..Default::default() }, arguments)
    }

    /// Declares a transient, auto-delete or internal exchange.
    pub(crate) fn declare_exchange_as(
        &self,
        name: &str,
        kind: &str,
        options: ExchangeDeclareOptions,
        arguments: Arguments<'_>,
    ) -> Result<(), String> {
        let kind = ExchangeKind::Custom(kind.to_owned());
        let declared = block_on(self.channel().exchange_declare(name.into(), kind, options, table(arguments)));
        declared.map_err(|error| reported(&error))
    }

    pub(crate) fn bind_queue(&self, exchange: &str, queue: &str, key: &str, arguments: Arguments<'_>) {
        let (exchange, queue, key) = (exchange.into(), queue.into(), key.into());
        block_on(self.channel().queue_bind(queue, exchange, key, QueueBindOptions::default(), table(arguments)))
            .unwrap_or_else(|error| panic!("{}", reported(&error)));
    }

    pub(crate) fn bind_exchange(&self, source: &str, destination: &str, key: &str, arguments: Arguments<'_>) {
        let (source, destination, key) = (source.into(), destination.into(), key.into());
        let options = ExchangeBindOptions::default();
        block_on(self.channel().exchange_bind(destination, source, key, options, table(arguments)))
            .unwrap_or_else(|error| panic!("{}", reported(&error)));
    }

    /// Publishes a persistent message and waits for the confirm.
    pub(crate) fn publish(&self, exchange: &str, key: &str, body: &str) -> Outcome {
        let properties = AMQPProperties::default().with_delivery_mode(2);
        self.publish_with(exchange, key, body, properties)
    }

    pub(crate) fn publish_with(
        &self,
        exchange: &str,
        key: &str,
        body: impl AsRef<[u8]>,
        properties: AMQPProperties,
    ) -> Outcome {
        self.published(exchange, key, body.as_ref(), properties).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Publishes a message that the broker may refuse. Returns the outcome, or the error of the broker.
    pub(crate) fn try_publish(&self, exchange: &str, key: &str) -> Result<Outcome, String> {
        self.published(exchange, key, b"", AMQPProperties::default())
    }

    fn published(&self, exchange: &str, key: &str, body: &[u8], properties: AMQPProperties) -> Result<Outcome, String> {
        let channel = self.channel();
        let options = BasicPublishOptions { mandatory: true, ..Default::default() };
        let confirmation = block_on(async {
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            channel.basic_publish(exchange.into(), key.into(), options, body, properties).await?.await
        });
        match confirmation.map_err(|error| reported(&error))? {
            Confirmation::Ack(None) => Ok(Outcome::Routed),
            Confirmation::Ack(Some(_)) => Ok(Outcome::Unroutable),
            Confirmation::Nack(_) | Confirmation::NotRequested => Ok(Outcome::Refused),
        }
    }

    /// Publishes messages to a queue through `amq.direct`. A plan would report publishes through the default exchange, as
    /// soon as they are in the broker's statistics.
    pub(crate) fn fill(&self, queue: &str, messages: usize) {
        self.bind_queue("amq.direct", queue, queue, &[]);
        for number in 0..messages {
            assert_eq!(self.publish("amq.direct", queue, &format!("message {number}")), Outcome::Routed);
        }
        let unbound = self.channel();
        block_on(unbound.queue_unbind(queue.into(), "amq.direct".into(), queue.into(), table(NONE)))
            .unwrap_or_else(|error| panic!("{}", reported(&error)));
    }

    /// Receives a message, if there is one.
    pub(crate) fn get(&self, queue: &str) -> Option<Message> {
        self.received(queue).unwrap_or_else(|error| panic!("{}", reported(&error)))
    }

    /// Receives a message of a queue that may not exist, if there is one.
    pub(crate) fn try_get(&self, queue: &str) -> Option<Message> {
        self.received(queue).ok().flatten()
    }

    fn received(&self, queue: &str) -> lapin::Result<Option<Message>> {
        let channel = self.channel();
        block_on(async {
            let got = channel.basic_get(queue.into(), BasicGetOptions::default()).await?;
            if let Some(message) = &got {
                message.delivery.ack(BasicAckOptions::default()).await?;
                finish(&channel).await?;
            }
            Ok(got.map(|message| message.delivery.into()))
        })
    }

    /// Receives all ready messages in order.
    pub(crate) fn get_all(&self, queue: &str) -> Vec<Message> {
        let channel = self.channel();
        let all = block_on(async {
            let mut all = Vec::new();
            while let Some(message) = channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await? {
                all.push(message.delivery.into());
            }
            Ok(all)
        });
        all.unwrap_or_else(|error: lapin::Error| panic!("{}", reported(&error)))
    }

    /// Receives up to this number of messages without a consumer and rejects each. Returns the number of rejected
    /// messages. (`get` of the management API of 3.8.9 with `reject_requeue_false` sometimes responds with 500.)
    pub(crate) fn reject(&self, queue: &str, most: usize) -> usize {
        let channel = self.channel();
        let rejected = block_on(async {
            let mut taken = Vec::new();
            while taken.len() < most
                && let Some(message) = channel.basic_get(queue.into(), BasicGetOptions::default()).await?
            {
                taken.push(message.delivery);
            }
            for delivery in &taken {
                delivery.reject(BasicRejectOptions { requeue: false }).await?;
            }
            finish(&channel).await?;
            Ok(taken.len())
        });
        rejected.unwrap_or_else(|error: lapin::Error| panic!("{}", reported(&error)))
    }

    /// Receives a message without a consumer and without acknowledging it. Dropping the returned value requeues the
    /// message.
    pub(crate) fn keep_one(&self, queue: &str) -> Channel {
        let channel = self.channel();
        let got = block_on(channel.basic_get(queue.into(), BasicGetOptions::default()));
        got.unwrap_or_else(|error| panic!("{}", reported(&error))).expect("a message in the queue");
        channel
    }

    /// Subscribes and receives this number of messages without acknowledging them. With 0, the consumer waits and also
    /// keeps later messages unacknowledged.
    pub(crate) fn hold(&self, queue: &str, messages: u16) -> Held {
        self.try_hold(queue, messages).unwrap_or_else(|error| panic!("{}", reported(&error)))
    }

    /// Like [`hold`](Self::hold), but returns the error if the broker refuses the consumer.
    pub(crate) fn try_hold(&self, queue: &str, messages: u16) -> Result<Held, lapin::Error> {
        self.another().into_held(queue, messages)
    }

    /// Opens another connection.
    pub(crate) fn another(&self) -> Self {
        Self::to(self.uri.clone())
    }

    /// Like [`try_hold`](Self::try_hold), but uses this connection, so that the consumer exists sooner.
    pub(crate) fn into_held(self, queue: &str, messages: u16) -> Result<Held, lapin::Error> {
        let channel = self.channel();
        let mut bodies = Vec::new();
        let consumer = block_on(async {
            channel.basic_qos(messages.max(1), BasicQosOptions::default()).await?;
            let mut consumer = channel
                .basic_consume(queue.into(), "".into(), BasicConsumeOptions::default(), FieldTable::default())
                .await?;
            while bodies.len() < messages.into() {
                bodies.push(consumer.next().await.expect("not cancelled while it waits")?.data);
            }
            Ok::<_, lapin::Error>(consumer)
        });
        Ok(Held { channel, consumer: consumer?, bodies, _amqp: self })
    }
}

impl Drop for Amqp {
    fn drop(&mut self) {
        // Does not wait for the response to the close, because the connection ends with the runtime.
        let goodbye = self.connection.close(200, "done".into());
        let _ = try_block_on(async { tokio::time::timeout(2 * GOODBYE, goodbye).await });
    }
}

impl Held {
    /// Returns true until the broker cancels the consumer, for example because the queue is deleted.
    pub(crate) fn is_subscribed(&mut self) -> bool {
        loop {
            match self.consumer.next().now_or_never() {
                None => return true,
                Some(Some(Ok(delivery))) => self.bodies.push(delivery.data),
                Some(None | Some(Err(_))) => return false,
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Closing the channel requeues the messages, and so does closing the connection.
        let close = self.channel.close(200, "done".into());
        let _ = try_block_on(async { tokio::time::timeout(GOODBYE, close).await });
    }
}
