//! How late a message comes on this machine anyway: plain queues with a TTL, watched while the cases run. What comes late
//! when these do, too, is late because the machine stood still.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use lapin::Channel;
use lapin::options::{BasicAckOptions, BasicPublishOptions};
use lapin::protocol::basic::AMQPProperties;

use super::worker::{channel, consume};
use crate::support::{Amqp, Argument, Node, text};

/// The names of its queues begin so.
pub(super) const NAME: &str = "control.";

/// What a message waits here.
const WAIT: Duration = Duration::from_millis(200);

/// A message is sent through each queue so often.
const EVERY: Duration = Duration::from_millis(100);

struct Sample {
    sent: Instant,
    due: Instant,
    came: Option<Instant>,
}

/// What was seen so far, of all its queues.
pub(super) struct Control {
    samples: Mutex<Vec<Sample>>,
}

impl Control {
    pub(super) fn new(amqp: &Amqp) -> Self {
        for kind in ["classic", "quorum"] {
            let mut arguments = vec![
                ("x-queue-type", text(kind)),
                ("x-dead-letter-exchange", text("")),
                ("x-dead-letter-routing-key", text(&out(kind))),
            ];
            if has_ttl(kind) {
                let wait = i64::try_from(WAIT.as_millis()).expect("short");
                arguments.push(("x-message-ttl", Argument::LongLongInt(wait)));
            }
            amqp.declare_queue(&way(kind), &arguments).unwrap();
            amqp.declare_queue(&out(kind), &[("x-queue-type", text(kind))]).unwrap();
        }
        Self { samples: Mutex::new(Vec::new()) }
    }

    /// Sends and receives for as long as it is polled.
    pub(super) async fn watch(&self, amqp: &Amqp) {
        join_all(["classic", "quorum"].map(|kind| self.watch_kind(amqp, kind))).await;
    }

    async fn watch_kind(&self, amqp: &Amqp, kind: &str) {
        let channel = channel(amqp).await;
        let end = if has_ttl(kind) { out(kind) } else { way(kind) };
        let mut consumer = consume(&channel, &end, 100).await;
        let mut clock = tokio::time::interval(EVERY);
        loop {
            tokio::select! {
                _ = clock.tick() => self.send(&channel, kind).await,
                delivery = consumer.next() => {
                    let delivery = delivery.expect("the consumer is not cancelled").expect("the channel is open");
                    let number: usize = std::str::from_utf8(&delivery.data).unwrap().parse().unwrap();
                    delivery.ack(BasicAckOptions::default()).await.expect("the channel is open");
                    self.samples.lock().unwrap()[number].came = Some(Instant::now());
                }
            }
        }
    }

    async fn send(&self, channel: &Channel, kind: &str) {
        let sent = Instant::now();
        let due = if has_ttl(kind) { sent + WAIT } else { sent };
        let number = {
            let mut samples = self.samples.lock().unwrap();
            samples.push(Sample { sent, due, came: None });
            samples.len() - 1
        };
        let (body, options) = (number.to_string(), BasicPublishOptions::default());
        let properties = AMQPProperties::default().with_delivery_mode(2);
        // Nobody waits for the confirm: one that is late must not keep the next message back.
        drop(channel.basic_publish("".into(), way(kind).into(), options, body.as_bytes(), properties).await);
    }

    /// How late the latest message was that was under way in that time.
    pub(super) fn lateness(&self, from: Instant, to: Instant) -> Duration {
        let now = Instant::now();
        let samples = self.samples.lock().unwrap();
        let under_way = samples.iter().filter(|it| it.sent <= to && it.came.is_none_or(|came| came >= from));
        let late = under_way.map(|it| it.came.unwrap_or(now).saturating_duration_since(it.due));
        late.max().unwrap_or_default()
    }

    /// How many messages came: none would mean that nothing was watched.
    pub(super) fn watched(&self) -> usize {
        self.samples.lock().unwrap().iter().filter(|it| it.came.is_some()).count()
    }
}

/// Quorum queues have no TTL before 3.10; there the control is how long a message takes that waits for nothing.
fn has_ttl(kind: &str) -> bool {
    kind == "classic" || Node::shared().at_least(3, 10)
}

fn way(kind: &str) -> String {
    format!("{NAME}{kind}")
}

fn out(kind: &str) -> String {
    format!("{NAME}{kind}.out")
}
