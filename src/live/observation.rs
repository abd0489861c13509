//! Defines the observable result of a case, and compares the result on a broker with the simulated result.

use super::worker::header;
use crate::broker::message::{HeaderValue, ReceivedMessage};
use crate::model::QueueName;
use crate::model::count::{count, number};
use crate::simulation::{End, Outcome, PublisherResult};
use std::collections::{BTreeMap, BTreeSet};

/// How early, in milliseconds, a delivery can appear to be, because the broker rounds times.
const TOLERANCE: i64 = 2;

/// The observable result of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Observation {
    /// The number of published messages for each reply.
    pub(super) publisher: BTreeMap<PublisherResult, u64>,
    /// The times of the deliveries to the workers of each queue, in milliseconds since the first publish, in order.
    pub(super) attempts: BTreeMap<QueueName, Vec<i64>>,
    /// The messages that remain in queues, each with the number of identical messages.
    pub(super) remaining: BTreeMap<RemainingMessage, u64>,
}

/// The components of a message that are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Compared {
    /// The headers that the publisher or a worker sets.
    pub(super) headers: Vec<String>,
    /// True to compare the sequence number of the published message. False if the order of the messages depends on
    /// workers.
    pub(super) numbers: bool,
}

/// A message that remains in a queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RemainingMessage {
    pub(super) queue: QueueName,
    /// The sequence number of the published message, if sequence numbers are compared.
    number: Option<u64>,
    /// The compared headers, with their values as strings.
    headers: BTreeMap<String, String>,
    /// The reason for the last dead-lettering; empty if the message was not dead-lettered.
    reason: String,
    exchange: String,
    routing_key: String,
    deaths: BTreeSet<Death>,
}

/// An entry of the `x-death` header.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Death {
    queue: String,
    reason: String,
    count: u64,
    exchange: String,
    routing_keys: Vec<String>,
}

impl Observation {
    /// Returns the observable components of a simulated result.
    pub(super) fn of_simulation(outcome: &Outcome, compared: &Compared) -> Self {
        let mut observation = Self {
            publisher: outcome.publisher.clone(),
            attempts: outcome.attempts.clone(),
            remaining: BTreeMap::new(),
        };
        for copy in &outcome.ends {
            let reason = match copy.end {
                End::Waiting => String::new(),
                End::Dead(reason) => reason.as_str().to_owned(),
                End::Acked | End::Held | End::Dropped | End::Loops => continue,
            };
            let deaths = copy.deaths.iter().map(|death| Death {
                queue: death.queue.to_string(),
                reason: death.reason.as_str().to_owned(),
                count: death.count,
                exchange: death.exchange.to_string(),
                routing_keys: death.routing_keys.clone(),
            });
            let value = |name: &String| copy.headers.get(name).flatten().and_then(header);
            let headers =
                compared.headers.iter().filter_map(|name| Some((name.clone(), format!("{:?}", value(name)?))));
            observation.add(RemainingMessage {
                queue: copy.queue.clone(),
                number: compared.numbers.then_some(copy.message),
                headers: headers.collect(),
                reason,
                exchange: copy.exchange.to_string(),
                routing_key: copy.routing_key.clone(),
                deaths: deaths.collect(),
            });
        }
        observation
    }

    /// Adds a message that was read from a queue.
    pub(super) fn add_message(
        &mut self,
        queue: &QueueName,
        (number, message): (u64, &ReceivedMessage),
        compared: &Compared,
    ) {
        let entries = message.header("x-death").map_or(&[][..], HeaderValue::items);
        let deaths: Vec<Death> = entries.iter().map(Death::of).collect();
        let value = |name: &String| Some((name.clone(), format!("{:?}", message.header(name)?)));
        self.add(RemainingMessage {
            queue: queue.clone(),
            number: compared.numbers.then_some(number),
            headers: compared.headers.iter().filter_map(value).collect(),
            reason: deaths.first().map(|death| death.reason.clone()).unwrap_or_default(),
            exchange: message.exchange.clone(),
            routing_key: message.routing_key.clone(),
            deaths: deaths.into_iter().collect(),
        });
    }

    fn add(&mut self, message: RemainingMessage) {
        *self.remaining.entry(message).or_default() += 1;
    }

    /// Returns the number of messages that remain in each queue.
    pub(super) fn ready(&self) -> BTreeMap<QueueName, u64> {
        let mut ready = BTreeMap::new();
        for (remaining, messages) in &self.remaining {
            *ready.entry(remaining.queue.clone()).or_default() += messages;
        }
        ready
    }

    /// Returns the differences between this observation of a broker and the simulation, as sentences.
    pub(super) fn differences(&self, simulated: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        if self.publisher != simulated.publisher {
            let (broker, simulation) = (replies(&self.publisher), replies(&simulated.publisher));
            differences.push(format!("publisher: {broker} on the broker, {simulation} in the simulation"));
        }
        let queues: BTreeSet<&QueueName> = self.attempts.keys().chain(simulated.attempts.keys()).collect();
        for queue in queues {
            let times = |of: &Self| of.attempts.get(queue).cloned().unwrap_or_default();
            let (broker, simulation) = (times(self), times(simulated));
            if broker.len() != simulation.len() {
                differences.push(format!(
                    "deliveries from {queue}: {} on the broker, {} in the simulation",
                    number(broker.len() as u64),
                    number(simulation.len() as u64)
                ));
                continue;
            }
            let early = broker.iter().zip(&simulation).position(|(at, earliest)| at + TOLERANCE < *earliest);
            if let Some(early) = early.and_then(|index| Some((index + 1, broker.get(index)?, simulation.get(index)?))) {
                let (attempt, at, earliest) = early;
                differences.push(format!(
                    "delivery {attempt} from {queue} is too early: {at} ms after the publish; the simulation expects at least \
                     {earliest} ms"
                ));
            }
        }
        let all: BTreeSet<&RemainingMessage> = self.remaining.keys().chain(simulated.remaining.keys()).collect();
        for message in all {
            let messages = |of: &Self| of.remaining.get(message).copied().unwrap_or(0);
            let (broker, simulation) = (messages(self), messages(simulated));
            if broker != simulation {
                differences.push(format!(
                    "{message}: {} on the broker, {} in the simulation",
                    count(broker, "message"),
                    number(simulation)
                ));
            }
        }
        differences
    }
}

impl Death {
    fn of(entry: &HeaderValue) -> Self {
        let text = |name: &str| entry.entry(name).and_then(HeaderValue::as_text).unwrap_or_default().to_owned();
        let count = entry.entry("count").and_then(HeaderValue::as_integer);
        let keys = entry.entry("routing-keys").map_or(&[][..], HeaderValue::items).iter();
        Self {
            queue: text("queue"),
            reason: text("reason"),
            count: count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0),
            exchange: text("exchange"),
            routing_keys: keys.map(|key| key.as_text().unwrap_or_default().to_owned()).collect(),
        }
    }
}

/// Describes the message, such as `orders.dead, rejected, exchange "orders.dead.dlx", routing key "a", x-death: …`.
impl std::fmt::Display for RemainingMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason = if self.reason.is_empty() { "waiting" } else { &self.reason };
        write!(f, "{}, {reason}, exchange \"{}\", routing key \"{}\"", self.queue, self.exchange, self.routing_key)?;
        for (index, death) in self.deaths.iter().enumerate() {
            let separator = if index == 0 { ", x-death: " } else { "; " };
            let Death { queue, reason, count, exchange, routing_keys } = death;
            let keys = routing_keys.join("\", \"");
            let word = if routing_keys.len() == 1 { "routing key" } else { "routing keys" };
            write!(f, "{separator}{queue}/{reason} {count} × (exchange \"{exchange}\", {word} \"{keys}\")")?;
        }
        Ok(())
    }
}

fn replies(replies: &BTreeMap<PublisherResult, u64>) -> String {
    let parts: Vec<String> = replies.iter().map(|(reply, number)| format!("{number} {}", reply.as_str())).collect();
    if parts.is_empty() { "no replies".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rabbitmq::routing::Reason;
    use crate::simulation::{DeathEntry, EndedCopy};

    const COMPARED: fn() -> Compared = || Compared { headers: vec!["tenant".to_owned()], numbers: true };

    fn outcome() -> Outcome {
        let death = DeathEntry {
            queue: "work".into(),
            reason: Reason::Rejected,
            count: 2,
            exchange: "orders".into(),
            routing_keys: vec!["a".to_owned()],
        };
        let copy = EndedCopy {
            message: 1,
            queue: "dead".into(),
            end: End::Dead(Reason::Rejected),
            exchange: "dlx".into(),
            routing_key: "b".to_owned(),
            headers: crate::rabbitmq::routing::Headers::exactly(&[("tenant".to_owned(), "eu".into())].into()),
            deaths: vec![death],
        };
        Outcome {
            publisher: [(PublisherResult::Confirmed, 1)].into(),
            attempts: [("work".into(), vec![0, 100])].into(),
            ends: vec![copy],
            ..Outcome::default()
        }
    }

    fn message() -> ReceivedMessage {
        let text = |text: &str| HeaderValue::Text(text.to_owned());
        let entry = |name: &str, value| (name.to_owned(), value);
        let death = HeaderValue::Table(vec![
            entry("count", HeaderValue::Integer(2)),
            entry("queue", text("work")),
            entry("reason", text("rejected")),
            entry("exchange", text("orders")),
            entry("routing-keys", HeaderValue::List(vec![text("a")])),
        ]);
        let mut message = ReceivedMessage {
            exchange: "dlx".to_owned(),
            routing_key: "b".to_owned(),
            is_redelivered: false,
            properties: crate::broker::message::MessageProperties::default(),
            encoded_properties: Vec::new(),
            body: Vec::new(),
        };
        message.properties.headers =
            vec![entry("tenant", text("eu")), entry("x-death", HeaderValue::List(vec![death]))];
        message
    }

    fn on_broker(number: u64, queue: &str, message: &ReceivedMessage) -> Observation {
        let mut observation = Observation {
            publisher: [(PublisherResult::Confirmed, 1)].into(),
            attempts: [("work".into(), vec![0, 120])].into(),
            remaining: BTreeMap::new(),
        };
        observation.add_message(&queue.into(), (number, message), &COMPARED());
        observation
    }

    #[test]
    fn differences_in_any_compared_component_are_reported() {
        let simulated = Observation::of_simulation(&outcome(), &COMPARED());
        let same = on_broker(1, "dead", &message());
        assert_eq!(same.differences(&simulated), [""; 0]);
        let differs = |observation: &Observation, expected: &[&str]| {
            let found = observation.differences(&simulated);
            assert_eq!(found.len(), expected.len(), "{found:#?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected), "{found}: {expected}");
            }
        };
        let mut other = same.clone();
        other.publisher = [(PublisherResult::Returned, 1)].into();
        differs(&other, &["publisher: 1 returned on the broker, 1 confirmed in the simulation"]);
        let mut other = same.clone();
        other.attempts = [("work".into(), vec![0])].into();
        differs(&other, &["deliveries from work: 1 on the broker, 2 in the simulation"]);
        let mut other = same.clone();
        other.attempts = [("work".into(), vec![0, 97])].into();
        differs(&other, &["delivery 2 from work is too early: 97 ms after the publish"]);
        other.attempts = [("work".into(), vec![0, 98])].into();
        differs(&other, &[]);
        let mut other = same.clone();
        other.remaining.clear();
        differs(&other, &["0 messages on the broker, 1 in the simulation"]);
        let both = ["on the broker", "on the broker"];
        differs(&on_broker(2, "dead", &message()), &both);
        differs(&on_broker(1, "other", &message()), &both);
        let mut other = message();
        other.exchange.clear();
        differs(&on_broker(1, "dead", &other), &both);
        let mut other = message();
        other.routing_key = "c".to_owned();
        differs(&on_broker(1, "dead", &other), &both);
        let mut other = message();
        other.properties.headers.remove(0);
        differs(&on_broker(1, "dead", &other), &both);
        let mut other = message();
        other.properties.headers.remove(1);
        differs(&on_broker(1, "dead", &other), &both);
    }
}
