//! Workers that fail at every message as their contract says, and the queues where the dead-lettered messages arrive.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lapin::Channel;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, BasicRejectOptions};
use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, FieldTable};
use serde_json::Value;

use super::draw::{Case, Publication};
use crate::support::worker::{as_text, header};
use crate::support::{Amqp, Outcome, Vhost, block_on};

/// After the last event, nothing more may come for this time. It is longer than a delay of a tier.
const QUIET: Duration = Duration::from_millis(400);
/// A message that should arrive, and does not by then, is missing.
const LATE: Duration = Duration::from_secs(10);
/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// What was seen of one queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Messages that a worker gave up there.
    pub(super) poisoned: usize,
    /// Where they arrived, and how many.
    pub(super) arrivals: BTreeMap<String, usize>,
}

/// What was seen of one vhost.
#[derive(Default)]
pub(super) struct Played {
    pub(super) queues: BTreeMap<String, Seen>,
    /// Violations of a contract.
    pub(super) wrong: Vec<String>,
}

/// The queue where a message died last, if it did.
fn died_in(properties: &AMQPProperties) -> Option<String> {
    let deaths = header(properties, "x-death")?.as_array()?;
    let last = deaths.as_slice().first()?.as_field_table()?;
    last.inner().get("queue").and_then(as_text)
}

fn headers(publication: &Publication) -> AMQPProperties {
    let mut table = FieldTable::default();
    for (name, value) in &publication.headers {
        table.insert(name.as_str().into(), AMQPValue::LongString(value.as_str().into()));
    }
    AMQPProperties::default().with_delivery_mode(2).with_headers(table)
}

/// Fails at a delivery: the number of earlier failures decides the key, and whether to give up.
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

/// Publishes all messages of a case, fails at them until they are given up, and looks where they arrive.
pub(super) fn play<'c>(vhost: &Vhost<'_>, case: &Case, contract: &dyn Fn(&str) -> &'c Value) -> Played {
    let amqp = vhost.amqp();
    let mut played = Played::default();
    for (number, publication) in case.publications.iter().enumerate() {
        amqp.publish_with(&publication.exchange, &publication.key, &number.to_string(), headers(publication));
    }
    rounds(&amqp, case, contract, &mut played);
    for queue in case.queues() {
        letters(&amqp, queue, contract(queue), &mut played.wrong);
    }
    played
}

/// Works until nothing happens any more.
fn rounds<'c>(amqp: &Amqp, case: &Case, contract: &dyn Fn(&str) -> &'c Value, played: &mut Played) {
    let channel = block_on(amqp.new_channel()).expect("the connection is open");
    // How often a worker of a queue failed at a message.
    let mut failures: BTreeMap<(String, String), u64> = BTreeMap::new();
    let (began, mut last) = (Instant::now(), Instant::now());
    let mut open = 0_usize;
    let is_late = |played: &Played, last: Instant| {
        let is_missing = case.queues().iter().any(|queue| is_missing(queue, contract(queue), played));
        is_missing && last.elapsed() < LATE
    };
    while last.elapsed() < QUIET || open > 0 || is_late(played, last) {
        assert!(
            began.elapsed() < PATIENCE,
            "{open} messages do not come back to be given up: {failures:?}, {:?}\n{}",
            played.queues,
            case.spec(""),
        );
        let before = last;
        for queue in case.queues() {
            while let Some(delivery) = get(&channel, queue) {
                last = Instant::now();
                let source = died_in(&delivery.properties).filter(|source| case.queues().contains(source));
                if let Some(source) = &source {
                    let seen = played.queues.entry(source.clone()).or_default();
                    *seen.arrivals.entry(queue.clone()).or_default() += 1;
                    // It goes on only where nothing else poisons the queue.
                    if !case.closed.contains(queue) || source == queue {
                        block_on(delivery.ack(BasicAckOptions::default())).expect("the channel is open");
                        continue;
                    }
                }
                let terms = contract(queue);
                let body = String::from_utf8_lossy(&delivery.data).into_owned();
                let times = failures.entry((body, queue.clone())).or_default();
                let (earlier, deliveries) = (*times, terms["deliveries"].as_u64().unwrap_or(1));
                *times += 1;
                open += usize::from(earlier == 0 && deliveries > 1);
                if deliveries == 1 || *times == deliveries {
                    open -= usize::from(deliveries > 1);
                    played.queues.entry(queue.clone()).or_default().poisoned += 1;
                }
                fail(&channel, terms, delivery, earlier);
            }
        }
        if before == last {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Whether a message of a queue has not arrived yet that is said to arrive.
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

/// Where a contract tells a worker to publish and acknowledge, the message arrives.
fn letters(amqp: &Amqp, queue: &str, contract: &Value, wrong: &mut Vec<String>) {
    let publishes =
        [("letter", &contract["deadLetteredMessage"]["publish"]), ("onGiveUp", &contract["onGiveUp"]["publish"])];
    for (what, publish) in publishes {
        // Others may have bound an exchange of the broker.
        let Some(exchange) = publish["exchange"].as_str().filter(|it| !it.starts_with("amq.")) else { continue };
        for key in publish["routingKeys"].as_array().expect("keys") {
            let key = key.as_str().expect("a key");
            if amqp.publish(exchange, key, "letter") != Outcome::Routed {
                wrong.push(format!("contract {queue}: {what} is published to {exchange:?} with {key:?} and dropped"));
            }
        }
    }
}
