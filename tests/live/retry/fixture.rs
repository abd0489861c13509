//! Provides a vhost with an applied spec and a worker's channel, for tests with several messages.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lapin::options::BasicCancelOptions;
use lapin::protocol::basic::AMQPProperties;
use lapin::{Channel, Consumer};

use super::case::{applied, nothing_left};
use super::dead_lettered_message::{Death, deaths};
use super::worker::{Verb, channel, consume, fail, next, publish, ready, take};
use crate::support::{Amqp, Message, Node, Topo, Vhost};

/// The time limit of a step in these tests.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// The time without messages after the last expected message.
pub(super) const QUIET: Duration = Duration::from_millis(700);

pub(super) struct Fixture {
    // Closed before the vhost is deleted, because a close may block if the broker closes the connection at the same
    // time.
    pub(super) amqp: Amqp,
    pub(super) vhost: Vhost<'static>,
    pub(super) topo: Topo,
}

impl Fixture {
    pub(super) fn new(hint: &str, spec: &str) -> Self {
        let vhost = Node::shared().vhost(hint);
        let topo = applied(&vhost, spec);
        let amqp = vhost.amqp();
        Self { amqp, vhost, topo }
    }

    pub(super) async fn channel(&self) -> Channel {
        channel(&self.amqp).await
    }

    /// Expects that every message was consumed.
    pub(super) fn is_left_empty(&self) {
        nothing_left(&self.vhost);
    }
}

/// Returns true from this version on.
pub(super) fn since(major: u32, minor: u32) -> bool {
    Node::shared().at_least(major, minor)
}

async fn cancel(channel: &Channel, consumer: &Consumer) {
    let options = BasicCancelOptions::default();
    channel.basic_cancel(consumer.tag(), options).await.expect("the channel is open");
}

/// Fails this number of deliveries with this method, and stops.
pub(super) async fn fail_times(channel: &Channel, queue: &str, verb: &Verb, times: usize) -> Vec<Message> {
    let mut consumer = consume(channel, queue, 1).await;
    let mut seen = Vec::new();
    while seen.len() < times {
        let delivery = next(&mut consumer, TIMEOUT).await;
        let delivery = delivery.unwrap_or_else(|| panic!("{queue}: only {} of {times} deliveries came", seen.len()));
        if seen.len() + 1 == times {
            // Cancels before the last failure, so that this worker does not receive the next message.
            cancel(channel, &consumer).await;
        }
        seen.push(fail(channel, queue, delivery, verb).await.message);
    }
    seen
}

/// Publishes a message to a waiting worker, which fails once and stops.
pub(super) async fn fail_on_arrival(
    channel: &Channel,
    (exchange, queue): (&str, &str),
    verb: &Verb,
    (body, properties): (&[u8], AMQPProperties),
) {
    let mut consumer = consume(channel, queue, 1).await;
    publish(channel, exchange, queue, body, properties).await;
    let delivery = next(&mut consumer, TIMEOUT).await.unwrap_or_else(|| panic!("{queue}: no delivery came"));
    cancel(channel, &consumer).await;
    fail(channel, queue, delivery, verb).await;
}

/// Fails every delivery until a message is dead-lettered and no further message arrives. Returns the deliveries and the
/// dead-lettered messages.
pub(super) async fn fail_until_dead(
    channel: &Channel,
    queue: &str,
    verb: &Verb,
    dead: &str,
) -> (Vec<Message>, Vec<Message>) {
    let mut consumer = consume(channel, queue, 1).await;
    let (mut seen, mut dead_messages) = (Vec::new(), Vec::new());
    let (began, mut last) = (Instant::now(), Instant::now());
    while began.elapsed() < TIMEOUT {
        if let Some(delivery) = next(&mut consumer, Duration::from_millis(50)).await {
            seen.push(fail(channel, queue, delivery, verb).await.message);
        } else if let Some(dead_message) = take(channel, dead).await {
            dead_messages.push(dead_message);
        } else if dead_messages.is_empty() || last.elapsed() < QUIET {
            continue;
        } else {
            cancel(channel, &consumer).await;
            return (seen, dead_messages);
        }
        last = Instant::now();
    }
    panic!("{queue}: not dead-lettered after {} deliveries", seen.len());
}

/// Waits until this number of messages is ready.
pub(super) async fn until_ready(channel: &Channel, queue: &str, count: u32) {
    let began = Instant::now();
    loop {
        let now = ready(channel, queue).await;
        if now == count {
            return;
        }
        assert!(began.elapsed() < TIMEOUT, "{queue} has {now} messages, expected {count}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the reasons and counts of a message's deaths in this queue, such as `rejected 3`.
pub(super) fn deaths_in(message: &Message, queue: &str) -> Vec<String> {
    let of_queue = |death: &Death| death.queue == queue;
    deaths(message).into_iter().filter(of_queue).map(|it| format!("{} {}", it.reason, it.count)).collect()
}

/// Messages by body, each in order of arrival.
pub(super) type ByBody = BTreeMap<String, Vec<Message>>;

fn add(to: &mut ByBody, message: Message) {
    let body = String::from_utf8(message.body.clone()).expect("bodies are text here");
    to.entry(body).or_default().push(message);
}

/// Fails every delivery until this number of messages is dead-lettered and no further message arrives. Returns all
/// deliveries and all dead-lettered messages.
pub(super) async fn fail_all(
    channel: &Channel,
    queue: &str,
    verb: &Verb,
    dead: &str,
    dead_messages: usize,
) -> [ByBody; 2] {
    let mut consumer = consume(channel, queue, 100).await;
    let (mut seen, mut found, mut count) = (ByBody::new(), ByBody::new(), 0);
    let (began, mut last) = (Instant::now(), Instant::now());
    while count < dead_messages || last.elapsed() < QUIET {
        if let Some(delivery) = next(&mut consumer, Duration::from_millis(30)).await {
            add(&mut seen, fail(channel, queue, delivery, verb).await.message);
        } else if let Some(dead_message) = take(channel, dead).await {
            add(&mut found, dead_message);
            count += 1;
        } else {
            assert!(began.elapsed() < TIMEOUT, "{queue}: {count} of {dead_messages} dead-lettered: {:?}", seen.keys());
            continue;
        }
        last = Instant::now();
    }
    cancel(channel, &consumer).await;
    [seen, found]
}

/// Returns the routing keys of a message's deliveries.
pub(super) fn keys(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|it| it.routing_key.as_str()).collect()
}

/// Calls a function for each item concurrently, each on a separate thread.
pub(super) fn in_parallel<T: Send>(items: impl IntoIterator<Item = T>, each: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for item in items {
            scope.spawn(|| each(item));
        }
    });
}
