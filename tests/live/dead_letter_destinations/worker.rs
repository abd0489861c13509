//! Runs workers that fail every message as their contract specifies, lets messages die without a worker, and records
//! the queues where dead-lettered messages arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, BasicQosOptions,
    BasicRejectOptions, ConfirmSelectOptions,
};
use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Consumer};
use serde_json::Value;

use super::generate::{Case, MOST, Publication};
use crate::support::worker::{as_text, header};
use crate::support::{Amqp, Outcome, Vhost, block_on};

/// The time without events after which no message is expected. It exceeds the delay of a tier.
const QUIET: Duration = Duration::from_millis(400);
/// The time after which an expected message is treated as missing.
const LATE: Duration = Duration::from_secs(10);
/// The time limit of a step.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The body of messages that only fill a queue.
const FILLER: &str = "filler";

/// The dead-lettered messages of a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The number of messages that died in the queue.
    pub(super) poisoned: usize,
    /// The number of arrivals by destination.
    pub(super) arrivals: BTreeMap<String, usize>,
}

/// A message that died in a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Dead {
    /// The routing keys of the message when it died; copies of a message can have several keys.
    pub(super) keys: BTreeSet<String>,
    pub(super) poisoned: usize,
    /// The queues where the message arrived.
    pub(super) arrivals: BTreeSet<String>,
}

/// The events of a vhost.
#[derive(Default)]
pub(super) struct Played {
    pub(super) queues: BTreeMap<String, Seen>,
    /// The dead messages, by queue and body.
    pub(super) dead: BTreeMap<(String, String), Dead>,
    /// The number of deaths by reason.
    pub(super) deaths: BTreeMap<&'static str, usize>,
    /// The messages that arrived unexpectedly.
    pub(super) wrong: Vec<String>,
    /// The messages that a worker publishes as its contract specifies and that the broker drops, by queue.
    pub(super) dropped: Vec<(String, String)>,
}

impl Played {
    fn died(&mut self, queue: &str, body: &str, key: &str, reason: &'static str) {
        self.queues.entry(queue.to_owned()).or_default().poisoned += 1;
        let dead = self.dead.entry((queue.to_owned(), body.to_owned())).or_default();
        dead.keys.insert(key.to_owned());
        dead.poisoned += 1;
        *self.deaths.entry(reason).or_default() += 1;
    }

    fn did_not_die(&mut self, queue: &str, body: &str, reason: &'static str) {
        self.queues.entry(queue.to_owned()).or_default().poisoned -= 1;
        self.dead.remove(&(queue.to_owned(), body.to_owned()));
        *self.deaths.entry(reason).or_default() -= 1;
        *self.deaths.entry("not expired in time").or_default() += 1;
    }

    fn arrived(&mut self, source: &str, body: &str, queue: &str) {
        let seen = self.queues.entry(source.to_owned()).or_default();
        *seen.arrivals.entry(queue.to_owned()).or_default() += 1;
        let dead = self.dead.entry((source.to_owned(), body.to_owned())).or_default();
        dead.arrivals.insert(queue.to_owned());
    }
}

/// Returns the queue in which a message died last, if any.
fn died_in(properties: &AMQPProperties) -> Option<String> {
    let deaths = header(properties, "x-death")?.as_array()?;
    let last = deaths.as_slice().first()?.as_field_table()?;
    last.inner().get("queue").and_then(as_text)
}

fn properties(publication: &Publication) -> AMQPProperties {
    let mut table = FieldTable::default();
    for (name, value) in &publication.headers {
        table.insert(name.as_str().into(), AMQPValue::LongString(value.as_str().into()));
    }
    AMQPProperties::default().with_delivery_mode(2).with_headers(table)
}

/// Fails a delivery. The number of earlier failures determines the routing key, and whether the worker gives up.
fn fail(channel: &Channel, contract: &Value, delivery: Delivery, before: u64) {
    let is_over =
        contract["counter"]["countedBy"] == "worker" && before >= contract["maxRetries"].as_u64().unwrap_or(0);
    let answer = &contract[if is_over { "onGiveUp" } else { "onFailure" }];
    block_on(async {
        if let Some(keys) = answer["publish"]["routingKeys"].as_array() {
            let place = usize::try_from(before).expect("few retries").min(keys.len() - 1);
            let (exchange, key) = (answer["publish"]["exchange"].as_str(), keys[place].as_str());
            let (exchange, key) = (exchange.expect("an exchange"), key.expect("a key"));
            let properties = delivery.properties.clone();
            let options = BasicPublishOptions::default();
            channel.basic_publish(exchange.into(), key.into(), options, &delivery.data, properties).await?.await?;
        }
        match (answer["method"].as_str(), answer["requeue"].as_bool()) {
            (Some("basic.ack"), _) => delivery.ack(BasicAckOptions::default()).await,
            (Some("basic.reject"), Some(requeue)) => delivery.reject(BasicRejectOptions { requeue }).await,
            // A queue without a contract neither retries nor dead-letters.
            (_, requeue) => {
                let requeue = requeue.unwrap_or(false);
                delivery.nack(BasicNackOptions { requeue, ..Default::default() }).await
            }
        }
    })
    .expect("the channel is open");
}

fn ack(delivery: &Delivery) {
    block_on(delivery.ack(BasicAckOptions::default())).expect("the channel is open");
}

/// Publishes all messages of a case, lets them die for every reason, and records their destinations.
pub(super) fn play<'c>(vhost: &Vhost<'_>, case: &Case, contract: &dyn Fn(&str) -> &'c Value) -> Played {
    let amqp = vhost.amqp();
    let mut player = Player::new(&amqp, case, contract);
    player.rejected();
    player.expired(vhost);
    player.removed(vhost);
    for queue in case.queues() {
        dead_lettered(&amqp, queue, contract(queue), &mut player.played.dropped);
    }
    player.played
}

struct Player<'a, 'c> {
    case: &'a Case,
    contract: &'a dyn Fn(&str) -> &'c Value,
    channel: Channel,
    stream: Option<Consumer>,
    played: Played,
    /// The queues in which each publish arrived.
    came: BTreeMap<usize, BTreeSet<String>>,
    /// The number of failures of each message, by queue.
    failures: BTreeMap<(String, String), u64>,
    /// The number of messages whose next delivery a worker expects.
    open: usize,
    /// Queues and bodies of messages that the broker drops after their death, despite a dead-letter exchange.
    lost: BTreeSet<(String, String)>,
}

impl<'a, 'c> Player<'a, 'c> {
    fn new(amqp: &Amqp, case: &'a Case, contract: &'a dyn Fn(&str) -> &'c Value) -> Self {
        let channel = block_on(amqp.new_channel()).expect("the connection is open");
        block_on(channel.confirm_select(ConfirmSelectOptions::default())).expect("the channel is open");
        let stream = case.stream_name().map(|name| {
            let reader = block_on(amqp.new_channel()).expect("the connection is open");
            let mut arguments = FieldTable::default();
            arguments.insert("x-stream-offset".into(), AMQPValue::LongString("first".into()));
            block_on(async {
                reader.basic_qos(1000, BasicQosOptions::default()).await?;
                reader.basic_consume(name.into(), "".into(), BasicConsumeOptions::default(), arguments).await
            })
            .expect("a stream")
        });
        let (played, came, failures, lost) = Default::default();
        Self { case, contract, channel, stream, played, came, failures, open: 0, lost }
    }

    /// Publishes messages with confirms.
    fn publish(&self, messages: impl IntoIterator<Item = (String, String, String, AMQPProperties)>) {
        block_on(async {
            let mut confirms = Vec::new();
            for (exchange, key, body, properties) in messages {
                let options = BasicPublishOptions::default();
                let (exchange, key) = (exchange.as_str().into(), key.as_str().into());
                confirms.push(self.channel.basic_publish(exchange, key, options, body.as_bytes(), properties).await?);
            }
            for confirm in confirms {
                confirm.await?;
            }
            Ok::<_, lapin::Error>(())
        })
        .expect("the channel is open");
    }

    /// Makes workers fail every message until the queue gives it up.
    fn rejected(&mut self) {
        let all = self.case.publications.iter().zip(0..);
        self.publish(
            all.map(|(it, number): (_, usize)| {
                (it.exchange.clone(), it.key.clone(), number.to_string(), properties(it))
            }),
        );
        self.settle(|player, queue, delivery| player.work(queue, delivery));
    }

    /// Makes every message expire in every queue of its route.
    fn expired(&mut self, vhost: &Vhost<'_>) {
        const REASON: &str = "expired";
        let mut messages = Vec::new();
        for (number, queues) in self.came.clone() {
            let (it, body) = (&self.case.publications[number], format!("expires {number}"));
            for queue in queues.iter().filter(|queue| self.case.expires(queue, vhost.node())) {
                self.dies(vhost, queue, &body, &it.key, REASON);
            }
            messages.push((it.exchange.clone(), it.key.clone(), body, properties(it).with_expiration("1".into())));
        }
        self.publish(messages);
        std::thread::sleep(Duration::from_millis(20));
        self.settle(|player, queue, delivery| player.watch(queue, delivery, REASON));
    }

    /// Makes a length limit remove every message, queue by queue.
    fn removed(&mut self, vhost: &Vhost<'_>) {
        const REASON: &str = "maxlen";
        for queue in self.case.queues() {
            let Some(is_new_rejected) = self.case.limit(queue) else { continue };
            let mut messages = Vec::new();
            for (number, _) in self.came.clone().into_iter().filter(|(_, queues)| queues.contains(queue)) {
                let (it, body) = (&self.case.publications[number], format!("removed from {queue} {number}"));
                self.dies(vhost, queue, &body, &it.key, REASON);
                messages.push((it.exchange.clone(), it.key.clone(), body, properties(it)));
            }
            let filler = (String::new(), queue.clone(), FILLER.to_owned(), AMQPProperties::default());
            let mut fillers = vec![filler; MOST];
            if is_new_rejected {
                std::mem::swap(&mut messages, &mut fillers);
            }
            self.publish(messages);
            self.publish(fillers);
            self.settle(|player, queue, delivery| player.watch(queue, delivery, REASON));
        }
    }

    /// Expects a death. Before 3.13, a message of a ladder that dies for another reason than a rejection enters a tier,
    /// and the broker drops the message when it returns.
    fn dies(&mut self, vhost: &Vhost<'_>, queue: &str, body: &str, key: &str, reason: &'static str) {
        if (self.contract)(queue)["strategy"] == "ladder" && !vhost.node().at_least(3, 13) {
            self.lost.insert((queue.to_owned(), body.to_owned()));
        } else {
            self.played.died(queue, body, key, reason);
        }
    }

    /// Consumes all queues until no message arrives.
    fn settle(&mut self, mut handle: impl FnMut(&mut Self, &str, Delivery)) {
        let (began, mut last) = (Instant::now(), Instant::now());
        while last.elapsed() < QUIET || self.open > 0 || self.is_late(last) {
            assert!(
                began.elapsed() < TIMEOUT,
                "{} messages do not come back to be given up: {:?}, {:?}\n{}",
                self.open,
                self.failures,
                self.played.queues,
                self.case.spec(""),
            );
            let before = last;
            for queue in self.case.read() {
                while let Some(delivery) = get(&self.channel, queue) {
                    last = Instant::now();
                    handle(self, queue, delivery);
                }
            }
            while let Some(delivery) = self.stream.as_mut().and_then(|stream| stream.next().now_or_never()) {
                last = Instant::now();
                let delivery = delivery.expect("a subscription").expect("the channel is open");
                ack(&delivery);
                let queue = self.case.stream_name().expect("a stream");
                self.arrival(queue, &delivery);
            }
            if before == last {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    /// Records a delivery that was dead-lettered from a queue of the case, and returns this queue.
    fn arrival(&mut self, queue: &str, delivery: &Delivery) -> Option<String> {
        let source = died_in(&delivery.properties).filter(|source| self.case.queues().contains(source))?;
        let body = String::from_utf8_lossy(&delivery.data).into_owned();
        if self.lost.contains(&(source.clone(), body.clone())) {
            self.played
                .wrong
                .push(format!("explain {source}: {body:?} arrives in {queue}, but is predicted to be lost"));
        } else if body != FILLER {
            self.played.arrived(&source, &body, queue);
        }
        Some(source)
    }

    /// Fails a message, or acknowledges it in a dead-letter queue.
    fn work(&mut self, queue: &str, delivery: Delivery) {
        let is_worked = self.case.queues().iter().any(|name| name == queue);
        let source = self.arrival(queue, &delivery);
        // The cycle continues only if no other message poisons the queue.
        let goes_on = self.case.closed.iter().any(|name| name == queue) && source.as_deref() != Some(queue);
        if !is_worked || source.is_some() && !goes_on {
            return ack(&delivery);
        }
        let terms = (self.contract)(queue);
        let body = String::from_utf8_lossy(&delivery.data).into_owned();
        if source.is_none() {
            self.came.entry(body.parse().expect("a number")).or_default().insert(queue.to_owned());
        }
        let times = self.failures.entry((body.clone(), queue.to_owned())).or_default();
        let (earlier, deliveries) = (*times, terms["deliveries"].as_u64().unwrap_or(1));
        *times += 1;
        self.open += usize::from(earlier == 0 && deliveries > 1);
        if deliveries == 1 || *times == deliveries {
            self.open -= usize::from(deliveries > 1);
            self.played.died(queue, &body, delivery.routing_key.as_str(), "rejected or delivery_limit");
        }
        fail(&self.channel, terms, delivery, earlier);
    }

    /// Acknowledges a message. Records a failure if the message should have died but did not.
    fn watch(&mut self, queue: &str, delivery: Delivery, reason: &'static str) {
        let body = String::from_utf8_lossy(&delivery.data).into_owned();
        if self.arrival(queue, &delivery).is_none() && self.played.dead.contains_key(&(queue.to_owned(), body.clone()))
        {
            self.played.did_not_die(queue, &body, reason);
        }
        ack(&delivery);
    }

    /// Returns true if an expected message has not arrived yet.
    fn is_late(&self, last: Instant) -> bool {
        let is_missing = |queue: &String| is_missing(queue, (self.contract)(queue), &self.played);
        last.elapsed() < LATE && self.case.queues().iter().any(is_missing)
    }
}

/// Returns true if an expected message of a queue has not arrived yet.
fn is_missing(queue: &str, contract: &Value, played: &Played) -> bool {
    let (Some(seen), dead_letters) = (played.queues.get(queue), &contract["deadLetters"]) else { return false };
    let count = |to: &Value| seen.arrivals.get(to.as_str().expect("a name")).copied().unwrap_or(0);
    let is_always = dead_letters["reach"] == "always" && seen.arrivals.values().sum::<usize>() < seen.poisoned;
    is_always || dead_letters["queues"].as_array().is_some_and(|all| all.iter().any(|to| count(to) < seen.poisoned))
}

fn get(channel: &Channel, queue: &str) -> Option<Delivery> {
    let got = block_on(channel.basic_get(queue.into(), BasicGetOptions::default()));
    got.unwrap_or_else(|error| panic!("{queue}: {error}")).map(|message| message.delivery)
}

/// Checks that messages arrive if a worker publishes and acknowledges them as its contract specifies.
fn dead_lettered(amqp: &Amqp, queue: &str, contract: &Value, dropped: &mut Vec<(String, String)>) {
    let publishes = [
        ("deadLetteredMessage", &contract["deadLetteredMessage"]["publish"]),
        ("onGiveUp", &contract["onGiveUp"]["publish"]),
    ];
    for (what, publish) in publishes {
        // An unmanaged binding may exist.
        let Some(exchange) = publish["exchange"].as_str().filter(|it| !Case::is_open(it)) else { continue };
        for key in publish["routingKeys"].as_array().expect("keys") {
            let key = key.as_str().expect("a key");
            if amqp.publish(exchange, key, "message") != Outcome::Routed {
                let what = format!("contract {queue}: {what} is published to {exchange:?} with {key:?} and dropped");
                dropped.push((queue.to_owned(), what));
            }
        }
    }
}
