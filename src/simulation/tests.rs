//! Tests the simulation: each strategy, full queues, expiry, versions and endless chains.

use super::{Behavior, End, Outcome, Publication, PublisherResult, Simulation, Worker};
use crate::contract::contracts;
use crate::expand::expand;
use crate::model::{BrokerVersion, ExchangeName, QueueName};
use crate::rabbitmq::BrokerProfile;
use crate::rabbitmq::routing::{Reason, Routing};
use crate::spec::{SourceFile, Variables, parse};
use std::collections::BTreeMap;

const NEWEST: BrokerVersion = BrokerVersion::NEWEST_KNOWN;

/// Publishes messages to a queue in a spec through the default exchange.
fn to_queue(spec: &str, queue: &str, count: u64, workers: &[(&str, Worker)], version: BrokerVersion) -> Outcome {
    publish(spec, ("", queue), count, workers, version)
}

fn publish(
    spec: &str,
    (exchange, key): (&str, &str),
    count: u64,
    workers: &[(&str, Worker)],
    version: BrokerVersion,
) -> Outcome {
    let text = format!("version: 1\nvhost: test\n{spec}");
    let file = SourceFile { name: "topology.yaml".to_owned(), text };
    let specs = parse(&[file], &Variables::default()).unwrap();
    let (spec, profile) = (&specs.vhosts[0], BrokerProfile::of(version));
    let expansion = expand(spec, &profile).unwrap();
    let routing = Routing::new(&expansion.topology, [], &expansion.scope.external, &profile);
    let contracts = contracts(spec, &expansion, &profile).queues;
    let workers = workers.iter().map(|(queue, worker)| (QueueName::new(*queue), worker.clone())).collect();
    let publication = Publication {
        exchange: ExchangeName::new(exchange),
        routing_key: key.to_owned(),
        headers: BTreeMap::new(),
        expiration: None,
        count,
    };
    Simulation::new(&routing, &contracts, &profile).run(&publication, &workers)
}

/// Returns the ends, sorted.
fn ends(outcome: &Outcome) -> Vec<(&str, End)> {
    let mut ends: Vec<(&str, End)> = outcome.ends.iter().map(|copy| (copy.queue.as_str(), copy.end)).collect();
    ends.sort_unstable();
    ends
}

fn attempts<'a>(outcome: &'a Outcome, queue: &str) -> &'a [i64] {
    outcome.attempts.get(&QueueName::new(queue)).map_or(&[], Vec::as_slice)
}

const FAIL: Worker = Worker::Always(Behavior::Fail);
const REJECTED: End = End::Dead(Reason::Rejected);
const LIMIT: End = End::Dead(Reason::DeliveryLimit);

#[test]
fn each_strategy_has_its_attempts() {
    let dead = "deadLetterQueues: {dead: {type: quorum}}\n";
    let delays = [0, 5_000, 35_000];
    for (queue, expected, end) in [
        ("{type: quorum, deadLetter: dead, retry: {delays: [5s, 30s]}}", &delays[..], REJECTED),
        ("{type: quorum, deadLetter: dead, retry: {strategy: republish, delays: [5s, 30s]}}", &delays, REJECTED),
        ("{type: classic, deadLetter: dead, maxRetries: 2, retry: {strategy: republish}}", &[0, 0, 0], REJECTED),
        ("{type: quorum, deadLetter: dead, maxRetries: 2, retry: {strategy: redeliver}}", &[0, 0, 0], LIMIT),
        (
            "{type: quorum, deadLetter: dead, maxRetries: 3, retry: {strategy: delayed, delays: [10s, 20s, 30s]}}",
            &[0, 10_000, 30_000, 60_000],
            LIMIT,
        ),
        ("{type: classic, deadLetter: dead}", &[0], REJECTED),
    ] {
        let spec = format!("queues: {{work: {queue}}}\n{dead}");
        let outcome = to_queue(&spec, "work", 1, &[("work", FAIL)], NEWEST);
        assert_eq!(attempts(&outcome, "work"), expected, "{queue}");
        assert_eq!(ends(&outcome), [("dead", end)], "{queue}: {outcome:#?}");
        assert!(outcome.unknown.is_empty(), "{queue}");
    }
}

#[test]
fn second_attempt_can_succeed() {
    let spec = "queues: {work: {type: quorum, deadLetter: dead, retry: {delays: [5s]}}}\n\
                deadLetterQueues: {dead: {type: quorum}}\n";
    let worker = Worker::Each(vec![Behavior::Fail, Behavior::Ack]);
    let outcome = to_queue(spec, "work", 1, &[("work", worker)], NEWEST);
    assert_eq!((attempts(&outcome, "work"), ends(&outcome)), (&[0, 5_000][..], vec![("work", End::Acked)]));
    let worker = Worker::Each(vec![Behavior::Fail]);
    let outcome = to_queue(spec, "work", 1, &[("work", worker)], NEWEST);
    assert_eq!(outcome.unexpected_deliveries.len(), 1);
}

#[test]
fn messages_expire_at_the_head_of_a_queue() {
    let spec = "queues: {work: {type: classic, messageTtl: 30s, deadLetter: dead}}\n\
                deadLetterQueues: {dead: {type: classic}}\n";
    let outcome = to_queue(spec, "work", 2, &[], NEWEST);
    let expired = End::Dead(Reason::Expired);
    assert_eq!((ends(&outcome), outcome.ended_at), (vec![("dead", expired), ("dead", expired)], 30_000));
    // The message does not expire if a worker receives it immediately.
    let outcome = to_queue(spec, "work", 1, &[("work", Worker::Always(Behavior::Ack))], NEWEST);
    assert_eq!(ends(&outcome), [("work", End::Acked)]);
    let outcome =
        to_queue("queues: {work: {type: classic, messageTtl: 1s, deadLetter: none}}\n", "work", 1, &[], NEWEST);
    assert_eq!(ends(&outcome), [("work", End::Dropped)]);
}

#[test]
fn full_queues_drop_or_refuse_messages() {
    let spec = |kind: &str, overflow: &str| {
        format!(
            "queues: {{work: {{type: {kind}, maxLength: 3, overflow: {overflow}, deadLetter: dead}}}}\n\
             deadLetterQueues: {{dead: {{type: classic}}}}\n"
        )
    };
    let (maxlen, waiting) = (("dead", End::Dead(Reason::Maxlen)), ("work", End::Waiting));
    let outcome = to_queue(&spec("classic", "drop-head"), "work", 5, &[], NEWEST);
    assert_eq!(ends(&outcome), [maxlen, maxlen, waiting, waiting, waiting]);
    let outcome = to_queue(&spec("classic", "reject-publish"), "work", 5, &[], NEWEST);
    assert_eq!(outcome.publisher, [(PublisherResult::Confirmed, 3), (PublisherResult::Refused, 2)].into());
    let outcome = to_queue(&spec("quorum", "reject-publish"), "work", 5, &[], NEWEST);
    assert_eq!(outcome.publisher, [(PublisherResult::Confirmed, 4), (PublisherResult::Refused, 1)].into());
    let outcome = to_queue(&spec("classic", "reject-publish-dlx"), "work", 4, &[], NEWEST);
    assert_eq!(ends(&outcome), [maxlen, waiting, waiting, waiting]);
}

#[test]
fn endless_redeliveries_loop_and_missing_replies_are_held() {
    let spec = "queues: {work: {type: classic, deadLetter: none}}\n";
    let outcome = to_queue(spec, "work", 1, &[("work", Worker::Always(Behavior::Requeue))], NEWEST);
    assert_eq!(ends(&outcome), [("work", End::Loops)]);
    let outcome = to_queue(spec, "work", 3, &[("work", Worker::Always(Behavior::Hold))], NEWEST);
    assert_eq!(ends(&outcome), [("work", End::Waiting), ("work", End::Waiting), ("work", End::Held)]);
}

#[test]
fn nack_with_requeue_counts_before_4_3() {
    let spec = "queues: {work: {type: quorum, deliveryLimit: 2, deadLetter: dead}}\n\
                deadLetterQueues: {dead: {type: classic}}\n";
    let run = |behavior, version| to_queue(spec, "work", 1, &[("work", Worker::Always(behavior))], version);
    for behavior in [Behavior::Requeue, Behavior::Crash] {
        assert_eq!(attempts(&run(behavior, NEWEST), "work").len(), 3, "{behavior:?}");
    }
    assert_eq!(ends(&run(Behavior::NackRequeue, NEWEST)), [("work", End::Loops)]);
    assert_eq!(ends(&run(Behavior::NackRequeue, BrokerVersion::new(4, 0, 5))), [("dead", LIMIT)]);
}

#[test]
fn unroutable_messages_return_and_cycles_are_dropped() {
    let spec = "exchanges: {x: {type: direct}}\n\
                queues: {a: {type: classic, messageTtl: 1s, deadLetter: {exchange: '', routingKey: a}}}\n";
    let outcome = publish(spec, ("x", "k"), 1, &[], NEWEST);
    assert_eq!((outcome.publisher, outcome.ends.len()), ([(PublisherResult::Returned, 1)].into(), 0));
    let outcome = to_queue(spec, "a", 1, &[], NEWEST);
    assert_eq!(ends(&outcome), [("a", End::Dropped)]);
}

#[test]
fn published_deaths_are_replaced_since_4_0() {
    let spec = "queues: {work: {type: classic, deadLetter: dead, retry: {strategy: republish, delays: [5s, 30s]}}}\n\
                deadLetterQueues: {dead: {type: classic}}\n";
    for (version, expected) in [(NEWEST, 2), (BrokerVersion::new(3, 10, 8), 3)] {
        let outcome = to_queue(spec, "work", 1, &[("work", FAIL)], version);
        assert_eq!(outcome.ends[0].deaths.len(), expected, "{version}: {outcome:#?}");
    }
}

#[test]
fn delivery_count_survives_dead_lettering_since_4_3() {
    let spec = "queues:\n  a: {type: quorum, deliveryLimit: 5, deadLetter: {exchange: '', routingKey: b}}\n  b: {type: \
                quorum, deliveryLimit: 1, deadLetter: none}\n";
    let workers = [("a", Worker::Always(Behavior::Reject)), ("b", Worker::Always(Behavior::Requeue))];
    for (version, expected) in [(NEWEST, 1), (BrokerVersion::new(4, 0, 5), 2)] {
        let outcome = to_queue(spec, "a", 1, &workers, version);
        assert_eq!(attempts(&outcome, "b").len(), expected, "{version}");
    }
}

/// Long chains of changes do not overflow the stack, and every simulation ends.
#[test]
fn simulation_of_endless_dead_lettering_terminates() {
    let spec = "queues:\n  a: {type: classic, maxLength: 100, deadLetter: {exchange: '', routingKey: b}}\n  b: {type: classic, \
                deadLetter: {exchange: '', routingKey: a}}\n";
    let outcome = to_queue(spec, "a", 101, &[("b", Worker::Always(Behavior::Nack))], NEWEST);
    let is_loop = |copy: &super::EndedCopy| copy.end == End::Loops;
    assert!(outcome.ends.iter().any(is_loop) || !outcome.unknown.is_empty());
    assert!(outcome.events.len() <= 10_000);
}
