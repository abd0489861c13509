//! What an application can observe of a case, on a broker and in the simulation, and the differences.

use crate::broker::message::{HeaderValue, ReceivedMessage};
use crate::model::QueueName;
use crate::model::count::{count, number};
use crate::simulation::{End, Outcome, PublisherResult};
use std::collections::{BTreeMap, BTreeSet};

/// The time by which a delivery can seem early: the broker counts in milliseconds.
const TOLERANCE: i64 = 2;

/// The observable result of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Observation {
    /// The number of published messages with each reply.
    pub(super) publisher: BTreeMap<PublisherResult, u64>,
    /// The times of the deliveries to the workers of each queue, in milliseconds since the first publish, in order.
    pub(super) attempts: BTreeMap<QueueName, Vec<i64>>,
    /// The messages that stay in queues, with their numbers.
    pub(super) rests: BTreeMap<Rest, u64>,
}

/// A message that stays in a queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rest {
    pub(super) queue: QueueName,
    /// The reason of the last death; empty without a death.
    reason: String,
    exchange: String,
    routing_key: String,
    deaths: BTreeSet<Death>,
}

/// An entry of the header `x-death`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Death {
    queue: String,
    reason: String,
    count: u64,
    exchange: String,
    routing_key: String,
}

impl Observation {
    /// Returns what an application would observe of a simulated result.
    pub(super) fn of_simulation(outcome: &Outcome) -> Self {
        let mut observation =
            Self { publisher: outcome.publisher.clone(), attempts: outcome.attempts.clone(), rests: BTreeMap::new() };
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
                routing_key: death.routing_key.clone(),
            });
            observation.add(Rest {
                queue: copy.queue.clone(),
                reason,
                exchange: copy.exchange.to_string(),
                routing_key: copy.routing_key.clone(),
                deaths: deaths.collect(),
            });
        }
        observation
    }

    /// Adds a message that was read from a queue.
    pub(super) fn add_message(&mut self, queue: &QueueName, message: &ReceivedMessage) {
        let entries = message.header("x-death").map_or(&[][..], HeaderValue::items);
        let deaths: Vec<Death> = entries.iter().map(Death::of).collect();
        self.add(Rest {
            queue: queue.clone(),
            reason: deaths.first().map(|death| death.reason.clone()).unwrap_or_default(),
            exchange: message.exchange.clone(),
            routing_key: message.routing_key.clone(),
            deaths: deaths.into_iter().collect(),
        });
    }

    fn add(&mut self, rest: Rest) {
        *self.rests.entry(rest).or_default() += 1;
    }

    /// Returns the number of messages that stay in each queue.
    pub(super) fn ready(&self) -> BTreeMap<QueueName, u64> {
        let mut ready = BTreeMap::new();
        for (rest, messages) in &self.rests {
            *ready.entry(rest.queue.clone()).or_default() += messages;
        }
        ready
    }

    /// Returns the differences between this observation of a broker and the simulation, in sentences.
    pub(super) fn differences(&self, simulated: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        if self.publisher != simulated.publisher {
            let (broker, simulation) = (replies(&self.publisher), replies(&simulated.publisher));
            differences.push(format!("publisher: the broker replied {broker}, the simulation {simulation}"));
        }
        let queues: BTreeSet<&QueueName> = self.attempts.keys().chain(simulated.attempts.keys()).collect();
        for queue in queues {
            let times = |of: &Self| of.attempts.get(queue).cloned().unwrap_or_default();
            let (broker, simulation) = (times(self), times(simulated));
            if broker.len() != simulation.len() {
                differences.push(format!(
                    "attempts of {queue}: {} by the broker, {} in the simulation",
                    number(broker.len() as u64),
                    number(simulation.len() as u64)
                ));
                continue;
            }
            let early = broker.iter().zip(&simulation).position(|(at, earliest)| at + TOLERANCE < *earliest);
            if let Some(early) = early.and_then(|index| Some((index + 1, broker.get(index)?, simulation.get(index)?))) {
                let (attempt, at, earliest) = early;
                differences.push(format!(
                    "attempt {attempt} of {queue}: by the broker after {at} ms, in the simulation after {earliest} ms"
                ));
            }
        }
        let rests: BTreeSet<&Rest> = self.rests.keys().chain(simulated.rests.keys()).collect();
        for rest in rests {
            let messages = |of: &Self| of.rests.get(rest).copied().unwrap_or(0);
            let (broker, simulation) = (messages(self), messages(simulated));
            if broker != simulation {
                let simulation = if simulation == 0 { "none".to_owned() } else { number(simulation) };
                differences.push(format!(
                    "{rest}: {} on the broker, {simulation} in the simulation",
                    count(broker, "message")
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
        let keys = entry.entry("routing-keys").map_or(&[][..], HeaderValue::items);
        Self {
            queue: text("queue"),
            reason: text("reason"),
            count: count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0),
            exchange: text("exchange"),
            routing_key: keys.first().and_then(HeaderValue::as_text).unwrap_or_default().to_owned(),
        }
    }
}

/// Describes the message: `orders.dead, rejected, exchange orders.dead.dlx, routing key a, x-death: …`.
impl std::fmt::Display for Rest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason = if self.reason.is_empty() { "waiting" } else { &self.reason };
        write!(f, "{}, {reason}, exchange \"{}\", routing key \"{}\"", self.queue, self.exchange, self.routing_key)?;
        for (index, death) in self.deaths.iter().enumerate() {
            let separator = if index == 0 { ", x-death: " } else { "; " };
            let Death { queue, reason, count, exchange, routing_key } = death;
            write!(
                f,
                "{separator}{queue}/{reason} {count} × (exchange \"{exchange}\", routing key \"{routing_key}\")"
            )?;
        }
        Ok(())
    }
}

fn replies(replies: &BTreeMap<PublisherResult, u64>) -> String {
    let parts: Vec<String> = replies.iter().map(|(reply, number)| format!("{number} {}", reply.as_str())).collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}
