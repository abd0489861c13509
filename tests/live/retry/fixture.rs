//! A vhost with a spec applied and a channel of a worker: for stories that are not one message's alone.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lapin::options::BasicCancelOptions;
use lapin::protocol::basic::AMQPProperties;
use lapin::{Channel, Consumer};

use super::case::{applied, nothing_left};
use super::dead_lettered_message::{Death, deaths};
use super::worker::{Verb, channel, consume, fail, next, publish, ready, take};
use crate::support::{Amqp, Message, Node, Topo, Vhost};

/// Longer than anything here takes.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// So long after the end nothing more may come.
pub(super) const QUIET: Duration = Duration::from_millis(700);

pub(super) struct Fixture {
    // Closed before its vhost goes: a close that meets the broker's own may wait for ever.
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

    /// Everything that was put in was taken out.
    pub(super) fn is_left_empty(&self) {
        nothing_left(&self.vhost);
    }
}

/// True from that version on.
pub(super) fn since(major: u32, minor: u32) -> bool {
    Node::shared().at_least(major, minor)
}

async fn cancel(channel: &Channel, consumer: &Consumer) {
    let options = BasicCancelOptions::default();
    channel.basic_cancel(consumer.tag(), options).await.expect("the channel is open");
}

/// Fails at so many deliveries, each by that verb, and leaves it to others then.
pub(super) async fn fail_times(channel: &Channel, queue: &str, verb: &Verb, times: usize) -> Vec<Message> {
    let mut consumer = consume(channel, queue, 1).await;
    let mut seen = Vec::new();
    while seen.len() < times {
        let delivery = next(&mut consumer, TIMEOUT).await;
        let delivery = delivery.unwrap_or_else(|| panic!("{queue}: only {} of {times} deliveries came", seen.len()));
        if seen.len() + 1 == times {
            // Before the last word, so that the next message is not taken away by this worker.
            cancel(channel, &consumer).await;
        }
        seen.push(fail(channel, queue, delivery, verb).await.message);
    }
    seen
}

/// Publishes a message to a worker that waits for it already, who fails at it and leaves it to others then.
pub(super) async fn fail_at_once(
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

/// Fails at everything until a dead letter is there and nothing more comes: what came, and the letters.
pub(super) async fn fail_until_dead(
    channel: &Channel,
    queue: &str,
    verb: &Verb,
    dead: &str,
) -> (Vec<Message>, Vec<Message>) {
    let mut consumer = consume(channel, queue, 1).await;
    let (mut seen, mut letters) = (Vec::new(), Vec::new());
    let (began, mut last) = (Instant::now(), Instant::now());
    while began.elapsed() < TIMEOUT {
        if let Some(delivery) = next(&mut consumer, Duration::from_millis(50)).await {
            seen.push(fail(channel, queue, delivery, verb).await.message);
        } else if let Some(letter) = take(channel, dead).await {
            letters.push(letter);
        } else if letters.is_empty() || last.elapsed() < QUIET {
            continue;
        } else {
            cancel(channel, &consumer).await;
            return (seen, letters);
        }
        last = Instant::now();
    }
    panic!("{queue}: no dead letter after {} deliveries", seen.len());
}

/// Waits until so many messages are ready.
pub(super) async fn until_ready(channel: &Channel, queue: &str, count: u32) {
    let began = Instant::now();
    loop {
        let now = ready(channel, queue).await;
        if now == count {
            return;
        }
        assert!(began.elapsed() < TIMEOUT, "{queue} has {now} messages and not {count}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The reasons and counts of a message's deaths in that queue: `rejected 3`.
pub(super) fn deaths_in(message: &Message, queue: &str) -> Vec<String> {
    let of_queue = |death: &Death| death.queue == queue;
    deaths(message).into_iter().filter(of_queue).map(|it| format!("{} {}", it.reason, it.count)).collect()
}

/// Messages by their bodies, each in the order in which it came.
pub(super) type ByBody = BTreeMap<String, Vec<Message>>;

fn add(to: &mut ByBody, message: Message) {
    let body = String::from_utf8(message.body.clone()).expect("bodies are text here");
    to.entry(body).or_default().push(message);
}

/// Fails at everything that comes until there are so many dead letters and nothing more comes: all deliveries, and all
/// letters.
pub(super) async fn fail_all(channel: &Channel, queue: &str, verb: &Verb, dead: &str, letters: usize) -> [ByBody; 2] {
    let mut consumer = consume(channel, queue, 100).await;
    let (mut seen, mut found, mut count) = (ByBody::new(), ByBody::new(), 0);
    let (began, mut last) = (Instant::now(), Instant::now());
    while count < letters || last.elapsed() < QUIET {
        if let Some(delivery) = next(&mut consumer, Duration::from_millis(30)).await {
            add(&mut seen, fail(channel, queue, delivery, verb).await.message);
        } else if let Some(letter) = take(channel, dead).await {
            add(&mut found, letter);
            count += 1;
        } else {
            assert!(began.elapsed() < TIMEOUT, "{queue}: {count} of {letters} letters: {:?}", seen.keys());
            continue;
        }
        last = Instant::now();
    }
    cancel(channel, &consumer).await;
    [seen, found]
}

/// The keys with which the deliveries of a message came.
pub(super) fn keys(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|it| it.routing_key.as_str()).collect()
}

/// Does something for each at once, each on a thread of its own.
pub(super) fn at_once<T: Send>(items: impl IntoIterator<Item = T>, each: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for item in items {
            scope.spawn(|| each(item));
        }
    });
}
