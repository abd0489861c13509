//! Describes the lifecycle of a message in a queue: the path of a message that always fails, with times; every exit;
//! the origin of each setting; the headers of a dead-lettered message, and its replay. Computed from the spec and its
//! expansion, without a broker.

mod dead_lettered_message;
mod document;
mod exits;
mod settings;
mod steps;
#[cfg(test)]
mod tests;

pub use document::{Carried, Death, Exit, Explanation, Lifecycle, Place, Replay, Source, State, Step, TierDescription};

use crate::contract::{Context, Contract, DeadLetters, InForce, contract_of, wait};
use crate::expand::Expansion;
use crate::model::naming::{self, TierName};
use crate::model::units::duration;
use crate::model::{QueueName, QueueType};
use crate::rabbitmq::BrokerProfile;
use crate::spec::{Location, Spec};
use std::collections::BTreeSet;

/// This many queues are named that may get a message.
const MOST_NAMED: usize = 3;

/// All that the parts of a story are told from.
struct Describer<'c, 'a> {
    context: &'c Context<'a>,
    in_force: InForce<'c, 'a>,
    /// None for streams.
    contract: Option<Contract>,
}

/// The story of a name; `None` where the spec declares no such queue, and where it is somebody else's.
pub fn story(name: &QueueName, spec: &Spec, expansion: &Expansion, profile: &BrokerProfile) -> Option<Explanation> {
    let context = Context::new(spec, expansion, profile);
    let Some(in_force) = InForce::of(name, &context) else {
        return tier(name, spec, expansion).map(Explanation::Tier);
    };
    let contract = (in_force.queue_type != QueueType::Stream).then(|| contract_of(&in_force));
    let teller = Describer { context: &context, in_force, contract };
    Some(Explanation::Queue(Box::new(teller.life(name, profile))))
}

impl Describer<'_, '_> {
    fn life(self, name: &QueueName, profile: &BrokerProfile) -> Lifecycle {
        Lifecycle {
            vhost: self.context.spec.vhost.value.clone(),
            queue: name.clone(),
            queue_type: self.in_force.queue_type,
            broker_version: profile.version,
            at: place(self.context.spec, self.in_force.written.at),
            letters_of: self.letters_of(name),
            is_dead_letter_queue: self.is_dead_letter_queue(),
            steps: self.steps(),
            exits: self.exits(),
            settings: self.settings(),
            dead_lettered_message: self.dead_lettered_message(),
            replay: self.replay(),
            contract: self.contract,
        }
    }

    fn is_dead_letter_queue(&self) -> bool {
        self.context.spec.dead_letter_queues.contains_key(self.in_force.name)
    }

    /// The queues whose dead-lettered messages arrive in this one, all or some of them.
    fn letters_of(&self, name: &QueueName) -> Vec<QueueName> {
        let spec = self.context.spec;
        let all = spec.queues.keys().chain(spec.dead_letter_queues.keys());
        let to = |source| InForce::of(source, self.context).and_then(|it| it.dead_letters);
        let ends_here = |to: DeadLetters| to.queues.contains(name) || to.possible_queues.contains(name);
        all.filter(|source| to(source).is_some_and(ends_here)).cloned().collect()
    }

    /// Where a message goes that dies, with the reason that it died of.
    fn end(&self, reason: &str) -> String {
        match self.place_of_the_dead() {
            Some(place) => format!("{place} ({reason})"),
            None => self.dropped(),
        }
    }

    /// The dead-letter queues, or the exchange, in words; `None` where the broker drops every dead-lettered message.
    fn place_of_the_dead(&self) -> Option<String> {
        self.in_force.arriving().map(arrival)
    }

    /// What becomes of a message that no queue takes.
    fn dropped(&self) -> String {
        match &self.in_force.dead_letters {
            Some(to) if self.in_force.keeps_what_is_not_routed() => {
                format!("stays in the queue, not delivered again: {} routes it to no queue", exchange(to))
            }
            Some(to) => format!("dropped: {} routes it to no queue", exchange(to)),
            None => "dropped".to_owned(),
        }
    }
}

fn exchange(to: &DeadLetters) -> String {
    match to.exchange.as_str() {
        "" => "the default exchange".to_owned(),
        name => format!("exchange {name}"),
    }
}

/// Where dead-lettered messages arrive that are not all dropped.
fn arrival(to: &DeadLetters) -> String {
    let listed = |queues: &BTreeSet<QueueName>| queues.iter().map(QueueName::as_str).collect::<Vec<_>>().join(", ");
    match (&to.queue, to.queues.is_empty(), to.possible_queues.len()) {
        (Some(queue), _, _) => queue.to_string(),
        (None, false, 0) => listed(&to.queues),
        (None, false, 1..=MOST_NAMED) => format!("{}; perhaps {}", listed(&to.queues), listed(&to.possible_queues)),
        (None, false, _) => format!("{}; perhaps others", listed(&to.queues)),
        (None, true, _) if to.exchange.as_str().is_empty() => "the queue of its key".to_owned(),
        (None, true, 1..=MOST_NAMED) => format!("{}, perhaps to {}", exchange(to), listed(&to.possible_queues)),
        (None, true, _) => exchange(to),
    }
}

fn place(spec: &Spec, at: Location) -> Place {
    Place { file: spec.files.get(at.file).cloned().unwrap_or_default(), line: at.line }
}

/// A name that is that of a tier of a queue of the spec: one that it makes, or one that it made before it was changed.
fn tier(name: &QueueName, spec: &Spec, expansion: &Expansion) -> Option<TierDescription> {
    let parsed = TierName::parse(name)?;
    let written = spec.queues.get(&parsed.queue)?;
    Some(TierDescription {
        vhost: spec.vhost.value.clone(),
        tier: name.clone(),
        retry: parsed.number,
        wait: wait(parsed.delay),
        is_made: expansion.topology.queues.contains_key(name),
        routing_key: naming::retry_key(&parsed.queue, parsed.number),
        exchange: naming::return_exchange(&parsed.queue),
        at: written.retry.as_ref().map(|retry| place(spec, retry.at())),
        queue: parsed.queue,
    })
}

/// Milliseconds in words: `30s`, and the bare number where there is no unit for it.
fn time(milliseconds: i64) -> String {
    duration(milliseconds).unwrap_or_else(|| milliseconds.to_string())
}
