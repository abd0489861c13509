//! Compares the expected and simulated results of a case.

use super::case::{Attempts, Case, DeadLettered, EndCount};
use super::subject::Subject;
use crate::model::count::{count, number};
use crate::model::units::duration;
use crate::model::{ObjectId, QueueName};
use crate::rabbitmq::routing::Kind;
use crate::simulation::{End, EndedCopy, Outcome, Publication, PublisherResult, Worker};
use crate::spec::{Location, Sourced};
use std::collections::{BTreeMap, BTreeSet};

/// The aspect of a result that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// The queues to which the message is routed when it is published.
    To,
    /// The queues that the message must reach.
    Reaches,
    /// The queues that the message must not reach.
    Never,
    /// The deliveries from a queue.
    Attempts,
    /// The final states of the messages.
    Ends,
    /// The time of the last event.
    Within,
    /// The reply to the publisher.
    Publisher,
    /// The number of refused messages.
    Refused,
    /// The dead-lettered messages.
    DeadLettered,
    /// The deliveries to a worker: at least one, and at most one for each listed behavior.
    Workers,
    /// The simulation does not know the result.
    Unknown,
    /// The broker and the simulation differ.
    Live,
    /// No client can publish the message in the topology under test.
    Publish,
}

impl Aspect {
    /// Returns the key in test files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::To => "to",
            Self::Reaches => "reaches",
            Self::Never => "never",
            Self::Attempts => "attempts",
            Self::Ends => "ends",
            Self::Within => "within",
            Self::Publisher => "publisher",
            Self::Refused => "refused",
            Self::DeadLettered => "deadLettered",
            Self::Workers => "workers",
            Self::Unknown => "unknown",
            Self::Live => "live",
            Self::Publish => "publish",
        }
    }
}

/// A difference between the expected and simulated results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The aspect of the result.
    pub aspect: Aspect,
    /// The queue; `None` if the aspect does not concern a single queue.
    pub queue: Option<QueueName>,
    /// The expected result, in words.
    pub expected: String,
    /// The simulated result, in words.
    pub actual: String,
    /// The reason, if any, for the simulated result, in words, such as `maxRetries is 1`.
    pub because: Option<String>,
    /// The position in the spec that determines the result, if there is one.
    pub at: Option<Location>,
}

impl Mismatch {
    /// Creates a difference between the broker and the simulation.
    pub(super) fn live(difference: String) -> Self {
        let expected = "the simulated result".to_owned();
        Self { aspect: Aspect::Live, queue: None, expected, actual: difference, because: None, at: None }
    }
}

/// Returns a mismatch if clients cannot publish the message in a case because the exchange does not exist. If another
/// topology is being tested, also returns one if the exchange is internal, or if a message is published directly to a
/// missing queue.
pub(super) fn unpublishable(case: &Case, subject: &Subject<'_>) -> Option<Mismatch> {
    let publication = &case.publication.value;
    let exchange = &publication.exchange;
    let is_internal = || subject.routing().topology().exchanges.get(exchange).is_some_and(|it| it.internal);
    let queue = QueueName::new(publication.routing_key.as_str());
    let (problem, id) = match subject.routing().kind(exchange) {
        None => (format!("exchange {exchange} does not exist"), ObjectId::Exchange(exchange.clone())),
        Some(_) if subject.is_other && is_internal() => {
            (format!("exchange {exchange} is internal"), ObjectId::Exchange(exchange.clone()))
        }
        Some(Kind::Default) if subject.lacks_queue(&queue) => {
            (format!("queue {queue} does not exist"), ObjectId::Queue(queue))
        }
        Some(_) => return None,
    };
    Some(Mismatch {
        aspect: Aspect::Publish,
        queue: None,
        expected: "a message that clients can publish".to_owned(),
        actual: problem,
        because: None,
        at: subject.location(&id),
    })
}

/// Returns the differences between the expected and simulated results.
pub(super) fn compare(case: &Case, outcome: &Outcome, subject: &Subject<'_>) -> Vec<Mismatch> {
    let mut comparison = Comparison { subject, delivered: &outcome.attempts, found: Vec::new() };
    let expected = &case.expected;
    // The routing of the published message can be known even if later results are unknown.
    let unknown: Vec<&String> = match expected.checks_only_routing() {
        true => outcome.unknown_route.iter().collect(),
        false => outcome.unknown.iter().collect(),
    };
    for reason in unknown {
        comparison.add(Aspect::Unknown, None, "a known result".to_owned(), reason.clone());
    }
    if !comparison.found.is_empty() {
        // All other differences would be consequences of the unknown result.
        return comparison.found;
    }
    if let Some(to) = &expected.to {
        let expected: BTreeSet<QueueName> = to.value.keys().cloned().collect();
        comparison.routed_to(&expected, &outcome.routed_to, &case.publication.value);
    }
    if let Some(reaches) = &expected.reaches {
        for queue in reaches.value.keys().filter(|queue| !outcome.reached.contains(*queue)) {
            comparison.add(Aspect::Reaches, Some(queue), "a copy".to_owned(), "no copy".to_owned());
        }
    }
    if let Some(never) = &expected.never {
        for queue in never.value.keys() {
            if subject.lacks_queue(queue) {
                comparison.add(Aspect::Never, Some(queue), "no copy".to_owned(), "no such queue".to_owned());
            } else if outcome.reached.contains(queue) {
                comparison.add(Aspect::Never, Some(queue), "no copy".to_owned(), "a copy".to_owned());
            }
        }
    }
    for (queue, attempts) in &expected.attempts {
        comparison.attempts(queue, &attempts.value, outcome.attempts.get(queue).map_or(&[][..], Vec::as_slice));
    }
    for (queue, (worker, _)) in &case.workers {
        let deliveries = outcome.attempts.get(queue).map_or(0, Vec::len);
        let is_zero_expected = |it: &Sourced<Attempts>| match &it.value {
            Attempts::Number(number) => *number == 0,
            Attempts::Times(times) => times.is_empty(),
        };
        // The mismatch for `attempts` already reports this difference.
        let is_reported = expected.attempts.get(queue).is_some_and(|it| !is_zero_expected(it));
        let is_expected = expected.attempts.get(queue).is_some_and(is_zero_expected);
        if deliveries == 0 && !is_reported && !is_expected {
            comparison.add(Aspect::Workers, Some(queue), "at least 1 delivery".to_owned(), "no delivery".to_owned());
        } else if outcome.unexpected_deliveries.contains(queue)
            && let Worker::Each(behaviors) = worker
        {
            let expected = format!("at most {}", number(behaviors.len() as u64));
            comparison.add(Aspect::Workers, Some(queue), expected, number(deliveries as u64));
        }
    }
    if let Some(ends) = &expected.ends {
        comparison.ends(&ends.value, &outcome.ends);
    }
    if let Some(within) = expected.within.as_ref().filter(|within| outcome.ended_at > within.value) {
        let expected = format!("at most {}", time(within.value));
        comparison.add(Aspect::Within, None, expected, time(outcome.ended_at));
    }
    let messages = |result: PublisherResult| outcome.publisher.get(&result).copied().unwrap_or(0);
    if let Some(publisher) = &expected.publisher
        && messages(publisher.value) != case.publication.value.count
    {
        let all = outcome.publisher.iter().map(|(result, count)| match outcome.publisher.len() {
            1 => result.as_str().to_owned(),
            _ => format!("{} {}", number(*count), result.as_str()),
        });
        comparison.add(Aspect::Publisher, None, publisher.value.as_str().to_owned(), joined(all));
    }
    let refused = messages(PublisherResult::Refused);
    if let Some(expected) = expected.refused.as_ref().filter(|it| it.value != refused) {
        comparison.add(Aspect::Refused, None, count(expected.value, "message"), count(refused, "message"));
    }
    if let Some(dead_lettered) = &expected.dead_lettered {
        let dead = outcome.ends.iter().filter(|it| matches!(it.end, End::Dead(_)));
        comparison.dead_lettered(&dead_lettered.value, &dead.collect::<Vec<_>>());
    }
    comparison.found
}

struct Comparison<'s, 'a> {
    subject: &'s Subject<'a>,
    /// The times of the deliveries from each queue.
    delivered: &'s BTreeMap<QueueName, Vec<i64>>,
    found: Vec<Mismatch>,
}

impl Comparison<'_, '_> {
    fn add(&mut self, aspect: Aspect, queue: Option<&QueueName>, expected: String, actual: String) {
        // Without a delivery, the retries have no effect.
        let is_delivered = aspect == Aspect::Attempts && queue.is_some_and(|queue| self.delivered.contains_key(queue));
        let retries = queue.filter(|_| is_delivered).and_then(|queue| self.subject.max_retries(queue));
        let because = retries.map(|retries| format!("maxRetries is {}", number(retries.value.into())));
        let is_missing = queue.is_some_and(|queue| self.subject.lacks_queue(queue));
        let because = because.or_else(|| {
            queue.filter(|_| is_missing).map(|queue| format!("queue `{queue}` does not exist in this topology"))
        });
        let at = retries.map(|retries| retries.at).or_else(|| queue.and_then(|it| self.subject.position(it)));
        self.found.push(Mismatch { aspect, queue: queue.cloned(), expected, actual, because, at });
    }

    /// Compares the queues to which the message is routed when it is published. A mismatch has the position of the
    /// binding to the first unexpected queue, or of the exchange.
    fn routed_to(&mut self, expected: &BTreeSet<QueueName>, actual: &BTreeSet<QueueName>, published: &Publication) {
        if expected == actual {
            return;
        }
        self.add(Aspect::To, None, names(expected), names(actual));
        let because = match actual.difference(expected).next() {
            Some(unexpected) => self.subject.binding_to(unexpected, published),
            None => self.subject.unmatched(published),
        };
        if let (Some(mismatch), Some((because, at))) = (self.found.last_mut(), because) {
            (mismatch.because, mismatch.at) = (Some(because), at);
        }
    }

    fn attempts(&mut self, queue: &QueueName, expected: &Attempts, actual: &[i64]) {
        match expected {
            Attempts::Number(expected) if *expected != actual.len() as u64 => {
                self.add(Aspect::Attempts, Some(queue), number(*expected), number(actual.len() as u64));
            }
            Attempts::Times(expected) if expected.as_slice() != actual => {
                self.add(Aspect::Attempts, Some(queue), times(expected), times(actual));
            }
            Attempts::Number(_) | Attempts::Times(_) => {}
        }
    }

    fn ends(&mut self, expected: &BTreeMap<QueueName, Sourced<EndCount>>, ends: &[EndedCopy]) {
        let mut actual: BTreeMap<&QueueName, BTreeMap<End, u64>> = BTreeMap::new();
        for copy in ends {
            *actual.entry(&copy.queue).or_default().entry(copy.end).or_default() += 1;
        }
        for (queue, expected) in expected {
            let found = actual.remove(queue).unwrap_or_default();
            let is_met = match &expected.value {
                EndCount::Any => !found.is_empty(),
                EndCount::Number(number) => found.values().sum::<u64>() == *number,
                EndCount::Only(end) => found.len() == 1 && found.contains_key(end),
                EndCount::Exactly(counts) => found == *counts,
            };
            if !is_met {
                let expected = match &expected.value {
                    EndCount::Any => "at least 1 message".to_owned(),
                    EndCount::Number(number) => count(*number, "message"),
                    EndCount::Only(end) => end.as_str().to_owned(),
                    EndCount::Exactly(counts) => end_counts(counts, true),
                };
                let is_counted = expected.contains(' ');
                self.add(Aspect::Ends, Some(queue), expected, end_counts(&found, is_counted));
            }
        }
        for (queue, found) in actual {
            self.add(Aspect::Ends, Some(queue), "no message".to_owned(), end_counts(&found, true));
        }
    }

    fn dead_lettered(&mut self, expected: &DeadLettered, dead: &[&EndedCopy]) {
        if dead.is_empty() {
            self.add(Aspect::DeadLettered, None, "a dead-lettered message".to_owned(), "none".to_owned());
        }
        let before = self.found.len();
        for copy in dead {
            self.dead_lettered_copy(expected, copy);
            if self.found.len() > before {
                // The other copies usually differ in the same way.
                return;
            }
        }
    }

    fn dead_lettered_copy(&mut self, expected: &DeadLettered, copy: &EndedCopy) {
        let queue = Some(&copy.queue);
        let mut text = |what: &str, expected: &Option<String>, actual: &str| {
            if let Some(expected) = expected.as_ref().filter(|it| *it != actual) {
                let quoted = |text: &str| match what {
                    "exchange" => exchange(text),
                    _ => format!("{what} `{text}`"),
                };
                self.add(Aspect::DeadLettered, queue, quoted(expected), quoted(actual));
            }
        };
        text("exchange", &expected.exchange, copy.exchange.as_str());
        text("routing key", &expected.routing_key, &copy.routing_key);
        for (name, value) in &expected.headers {
            let actual = match copy.headers.get(name) {
                Some(Some(actual)) if actual == value => continue,
                Some(Some(actual)) => format!("{name}={actual}"),
                Some(None) => format!("an unknown value of {name}"),
                None => format!("no `{name}` header"),
            };
            self.add(Aspect::DeadLettered, queue, format!("{name}={value}"), actual);
        }
        for death in &expected.deaths {
            let found = copy.deaths.iter().find(|it| it.queue == death.queue && it.reason == death.reason);
            let entry = format!("x-death entry {}/{}", death.queue, death.reason);
            let Some(found) = found else {
                self.add(Aspect::DeadLettered, queue, entry, "no such entry".to_owned());
                continue;
            };
            for (expected, actual) in [
                (death.count.map(|it| format!("count {it}")), format!("count {}", found.count)),
                (death.exchange.as_deref().map(exchange), exchange(found.exchange.as_str())),
                (death.routing_keys.as_deref().map(routing_keys), routing_keys(&found.routing_keys)),
            ] {
                if let Some(expected) = expected.filter(|it| *it != actual) {
                    self.add(Aspect::DeadLettered, queue, format!("{entry}, {expected}"), actual);
                }
            }
        }
    }
}

fn end_counts(counts: &BTreeMap<End, u64>, is_counted: bool) -> String {
    match counts.len() {
        0 => "no message".to_owned(),
        _ => joined(counts.iter().map(|(end, count)| match is_counted {
            true => format!("{} {}", number(*count), end.as_str()),
            false => end.as_str().to_owned(),
        })),
    }
}

fn exchange(name: &str) -> String {
    if name.is_empty() { "the default exchange".to_owned() } else { format!("exchange `{name}`") }
}

fn routing_keys(keys: &[String]) -> String {
    format!("routing keys {}", joined(keys.iter().map(|key| format!("`{key}`"))))
}

fn names(queues: &BTreeSet<QueueName>) -> String {
    if queues.is_empty() { "no queue".to_owned() } else { joined(queues.iter().map(ToString::to_string)) }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

fn times(times: &[i64]) -> String {
    if times.is_empty() { "no delivery".to_owned() } else { joined(times.iter().map(|it| time(*it))) }
}

/// Formats milliseconds as a duration, such as `5s`.
pub(crate) fn time(milliseconds: i64) -> String {
    if milliseconds == 0 { "0s".to_owned() } else { duration(milliseconds).unwrap_or_else(|| milliseconds.to_string()) }
}
