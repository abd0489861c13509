//! Runs a case on a broker: publishes its messages, receives and answers the deliveries, and reads what stays.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use lapin::options::{BasicNackOptions, BasicRejectOptions};
use lapin::types::AMQPValue;
use serde_json::Value;
use topo::simulation::{Behavior, PublisherResult};

use super::case::{Case, MAX_DELIVERIES, Result};
use crate::live::routing::case::properties;
use crate::support::worker::{Work, as_number, as_text, header};
use crate::support::{Message, Outcome, Vhost, Worker, block_on};

/// The time without a delivery after which a case is considered complete. The delays of the cases are shorter.
const QUIET: Duration = Duration::from_millis(2_500);

/// The maximum time to publish all messages of a case, so that none expires before the last one is published. It is shorter
/// than 300 ms, the shortest TTL of a case with several messages.
const PUBLISH_TIMEOUT: Duration = Duration::from_millis(250);

/// The maximum number of attempts to publish the messages of a case within [`PUBLISH_TIMEOUT`].
const ATTEMPTS: usize = 20;

/// Runs a case. `contract` is the contract of its queue `work.N`.
pub(super) fn run(case: &Case, number: usize, vhost: &Vhost<'_>, contract: &Value) -> Result {
    let queue = format!("work.{number}");
    let names = ["work.N", "dead.N", "other.N"].map(|name| Case::numbered(name, number));
    let publisher = vhost.amqp();
    let mut replies = BTreeMap::new();
    let publish = || {
        let mut replies = BTreeMap::new();
        for message in 0..case.count {
            let mut properties = properties(&case.headers(number));
            if let Some(expiration) = case.expiration {
                properties = properties.with_expiration(expiration.to_string().into());
            }
            let (exchange, key) = (Case::numbered(case.exchange, number), Case::numbered(case.key, number));
            let reply = match publisher.publish_with(&exchange, &key, message.to_string(), properties) {
                Outcome::Routed => PublisherResult::Confirmed,
                Outcome::Unroutable => PublisherResult::Returned,
                Outcome::Refused => PublisherResult::Refused,
            };
            *replies.entry(reply).or_default() += 1;
        }
        replies
    };
    let deliveries = match &case.behaviors {
        None => {
            for attempt in 1.. {
                let start = Instant::now();
                replies = publish();
                let is_in_time = case.count == 1 || start.elapsed() < PUBLISH_TIMEOUT;
                thread::sleep(QUIET);
                if is_in_time {
                    break;
                }
                assert!(attempt < ATTEMPTS, "publishing takes longer than {PUBLISH_TIMEOUT:?}: {case:?}");
                for name in &names {
                    while publisher.get(name).is_some() {}
                }
            }
            0
        }
        Some(behaviors) => work(vhost, &queue, contract, behaviors, || replies = publish()),
    };
    let mut ends = BTreeMap::new();
    for name in vhost.names("queues").iter().filter(|name| names.iter().any(|it| belongs(name, it))) {
        while let Some(message) = publisher.get(name) {
            let (reason, entries, count) = deaths(&message);
            *ends.entry((name.clone(), reason, entries, count)).or_default() += 1;
        }
    }
    Result { publisher: replies, deliveries, ends }
}

/// Returns true for a queue of a case, and for the queues that topo generated for it.
fn belongs(name: &str, queue: &str) -> bool {
    name.strip_prefix(queue).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Subscribes, publishes, and answers the deliveries of a queue. Returns the number of deliveries.
fn work(vhost: &Vhost<'_>, queue: &str, contract: &Value, behaviors: &[Behavior], publish: impl FnOnce()) -> usize {
    let (mut deliveries, mut publish) = (0, Some(publish));
    loop {
        let amqp = vhost.amqp();
        let mut worker = Worker::of(&amqp, queue, contract);
        if let Some(publish) = publish.take() {
            publish();
        }
        let mut last = Instant::now();
        loop {
            if last.elapsed() > QUIET {
                return deliveries;
            }
            let Some(work) = worker.next(Duration::from_millis(100)) else { continue };
            let repeated = behaviors.get(deliveries).or(behaviors.last()).copied().unwrap();
            let behavior = if deliveries < MAX_DELIVERIES { repeated } else { Behavior::Ack };
            deliveries += 1;
            last = Instant::now();
            if behavior == Behavior::Crash {
                // The connection closes, and the worker subscribes again.
                break;
            }
            react(&worker, work, behavior);
        }
    }
}

fn react(worker: &Worker<'_>, work: Work, behavior: Behavior) {
    let nack = |requeue| block_on(work.delivery.nack(BasicNackOptions { requeue, ..Default::default() }));
    let reject = |requeue| block_on(work.delivery.reject(BasicRejectOptions { requeue }));
    let answered = match behavior {
        Behavior::Ack => return worker.acknowledge(&work),
        Behavior::Fail => return worker.fail(work),
        Behavior::GiveUp => return worker.give_up(work),
        Behavior::Nack => nack(false),
        Behavior::NackRequeue => nack(true),
        Behavior::Reject => reject(false),
        Behavior::Requeue => reject(true),
        Behavior::Crash | Behavior::Hold => panic!("{behavior:?}"),
    };
    answered.expect("the channel is open");
}

/// Returns the reason of the last death, the number of entries of `x-death`, and the sum of their counts.
fn deaths(message: &Message) -> (String, usize, u64) {
    let deaths = header(&message.properties, "x-death").and_then(|it| it.as_array().cloned());
    let deaths = deaths.map(|it| it.as_slice().to_vec()).unwrap_or_default();
    let tables: Vec<_> = deaths.iter().filter_map(AMQPValue::as_field_table).collect();
    let reason = tables.first().and_then(|death| death.inner().get("reason").and_then(as_text));
    let count = tables.iter().filter_map(|death| death.inner().get("count").and_then(as_number)).sum::<i64>();
    (reason.unwrap_or_default(), tables.len(), u64::try_from(count).unwrap())
}
