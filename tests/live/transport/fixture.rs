//! Provides a source queue, and a fanout exchange that is bound to a target queue.

use std::time::Duration;

use futures_util::StreamExt;
use lapin::options::{BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions};
use lapin::protocol::basic::AMQPProperties;
use lapin::types::FieldTable;
use secrecy::SecretString;
use serde_json::Value;
use topo::broker::transport::{
    AmqpAddress, AmqpOptions, AmqpTransport, Fault, Move, Order, Progress, ShovelTransport, Transport,
};
use topo::broker::{BaseUrl, Broker, ConnectionOptions};
use topo::model::{BrokerVersion, Intervals};

use crate::support::{Amqp, Argument, Message, NONE, Node, Vhost, block_on, text, until};

/// The transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Amqp,
    Shovel,
}

impl By {
    pub(crate) const BOTH: [Self; 2] = [Self::Amqp, Self::Shovel];
}

/// The pairs of queue types. The last pair is that of messages that return from a holding queue.
pub(crate) const TYPES: [(&str, &str); 4] =
    [("classic", "classic"), ("classic", "quorum"), ("quorum", "quorum"), ("quorum", "classic")];

pub(crate) struct Fixture<'a> {
    pub(crate) vhost: &'a Vhost<'a>,
    pub(crate) amqp: Amqp,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) tap: String,
}

pub(crate) fn of_type(name: &str) -> [(&'static str, Argument); 1] {
    [("x-queue-type", text(name))]
}

/// Returns the intervals of a node, for the library.
pub(crate) fn intervals_of(node: &Node) -> Intervals {
    let [statistics, tick] = node.broker_intervals();
    Intervals::new(Some(statistics), Some(tick))
}

pub(crate) fn http_options(node: &Node, user: &str, password: &str) -> ConnectionOptions {
    let url = BaseUrl::parse(&node.url()).unwrap().url;
    let intervals = intervals_of(node);
    ConnectionOptions { intervals, ..ConnectionOptions::new(url, user, SecretString::from(password)) }
}

pub(crate) fn options_of(vhost: &Vhost<'_>, user: &str, password: &str) -> AmqpOptions {
    let address = AmqpAddress { host: "127.0.0.1".to_owned(), port: vhost.node().amqp_port(), tls: false };
    AmqpOptions::new(address, &vhost.name().into(), &http_options(vhost.node(), user, password))
}

pub(crate) fn amqp_transport(vhost: &Vhost<'_>) -> AmqpTransport {
    block_on(AmqpTransport::connect(options_of(vhost, "guest", "guest"))).unwrap()
}

pub(crate) fn shovel_transport_as(vhost: &Vhost<'_>, user: &str, password: &str) -> ShovelTransport {
    let version: BrokerVersion = vhost.node().version().parse().unwrap();
    let broker = Broker::connect(http_options(vhost.node(), user, password)).unwrap();
    ShovelTransport::new(broker, &vhost.name().into(), version)
}

pub(crate) fn shovel_transport(vhost: &Vhost<'_>) -> ShovelTransport {
    shovel_transport_as(vhost, "guest", "guest")
}

pub(crate) fn transport(by: By, vhost: &Vhost<'_>) -> Transport {
    match by {
        By::Amqp => Transport::Amqp(amqp_transport(vhost)),
        By::Shovel => Transport::Shovel(shovel_transport(vhost)),
    }
}

impl<'a> Fixture<'a> {
    /// Declares `PREFIXold`, and `PREFIXtap` bound to `PREFIXnew`.
    pub(crate) fn create(vhost: &'a Vhost<'a>, prefix: &str, types: (&str, &str)) -> Self {
        let fixture = Self {
            vhost,
            amqp: vhost.amqp(),
            old: format!("{prefix}old"),
            new: format!("{prefix}new"),
            tap: format!("{prefix}tap"),
        };
        fixture.amqp.declare_queue(&fixture.old, &of_type(types.0)).unwrap();
        fixture.amqp.declare_queue(&fixture.new, &of_type(types.1)).unwrap();
        fixture.amqp.declare_exchange(&fixture.tap, "fanout", NONE).unwrap();
        fixture.amqp.bind_queue(&fixture.tap, &fixture.new, "", NONE);
        fixture
    }

    pub(crate) fn order(&self) -> Order {
        Order::new(&self.old.as_str().into(), &self.tap.as_str().into())
    }

    /// Starts a transfer, which must be possible.
    pub(crate) fn start(&self, by: By) -> Move {
        block_on(transport(by, self.vhost).start(self.order())).unwrap()
    }

    /// Returns the reason why a transfer cannot start.
    pub(crate) fn refusal(&self, by: By) -> Fault {
        match block_on(transport(by, self.vhost).start(self.order())) {
            Ok(_) => panic!("a move by {by:?} from {} was started", self.old),
            Err(fault) => fault,
        }
    }

    /// Moves messages until the target contains this number of messages, and stops.
    pub(crate) fn move_all(&self, by: By, messages: u32) -> Progress {
        let moving = self.start(by);
        until(&format!("{messages} in {}", self.new), || (self.amqp.ready(&self.new) >= messages).then_some(()));
        block_on(moving.stop()).unwrap()
    }
}

/// Publishes this number of messages of this size through the default exchange, without waiting.
pub(crate) fn fill(amqp: &Amqp, queue: &str, numbers: std::ops::Range<usize>, size: usize) {
    block_on(async {
        let channel = amqp.new_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        let mut confirms = Vec::new();
        for number in numbers {
            let mut body = format!("{number} ").into_bytes();
            body.resize(body.len().max(size), b'.');
            let properties = AMQPProperties::default().with_delivery_mode(2);
            let options = BasicPublishOptions { mandatory: true, immediate: false };
            confirms.push(channel.basic_publish("".into(), queue.into(), options, &body, properties).await.unwrap());
        }
        for confirm in confirms {
            assert!(matches!(confirm.await.unwrap(), lapin::Confirmation::Ack(None)));
        }
        channel.close(200, "done".into()).await.unwrap();
    });
}

/// Receives this number of messages, and expects no further message.
pub(crate) fn take(amqp: &Amqp, queue: &str, messages: usize) -> Vec<Message> {
    let taken = block_on(async {
        let channel = amqp.new_channel().await.unwrap();
        let options = BasicConsumeOptions { no_ack: true, ..Default::default() };
        let consumer = channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await.unwrap();
        let mut taken = Vec::new();
        let mut consumer = std::pin::pin!(consumer);
        // Ends after two seconds without a message; the caller compares the number.
        while let Ok(Some(next)) = tokio::time::timeout(
            if taken.len() < messages { Duration::from_secs(30) } else { Duration::from_millis(500) },
            consumer.next(),
        )
        .await
        {
            taken.push(Message::from(next.unwrap()));
        }
        channel.close(200, "done".into()).await.unwrap();
        taken
    });
    assert_eq!(taken.len(), messages, "in {queue}");
    taken
}

/// Returns the number at the start of each body.
pub(crate) fn numbers(messages: &[Message]) -> Vec<usize> {
    let number = |message: &Message| String::from_utf8_lossy(&message.body).split(' ').next().unwrap().parse().unwrap();
    messages.iter().map(number).collect()
}

/// Returns the total of a queue in the broker's list.
pub(crate) fn total(vhost: &Vhost<'_>, queue: &str) -> u64 {
    let path = format!("{}?disable_stats=true&enable_queue_totals=true", vhost.path("queues", &[]));
    // A node that has just started responds with 500 while it has no statistics of a new queue.
    let answer = until("the totals", || Some(vhost.http().get(&path)).filter(|answer| answer.status != 500));
    let listed = answer.expect_status(200);
    let mut queues = listed.as_array().unwrap().iter();
    queues.find(|entry| entry["name"] == queue).map_or(0, |entry| entry["messages"].as_u64().unwrap_or(u64::MAX))
}

/// Returns the names of all defined shovels.
pub(crate) fn shovels(vhost: &Vhost<'_>) -> Vec<String> {
    let listed = vhost.http().get(&format!("/api/parameters/shovel/{}", encoded(vhost.name()))).expect_status(200);
    listed.as_array().unwrap().iter().map(|entry: &Value| entry["name"].as_str().unwrap().to_owned()).collect()
}

fn encoded(name: &str) -> String {
    crate::support::vhost::segment(name)
}
