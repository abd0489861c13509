//! Describes the lifecycle of the messages of a queue, from the spec and its expansion, without a broker.
//!
//! A lifecycle contains the path of a message that always fails, with times, and all ways to leave the queue. It also
//! contains the origin of each setting, and the headers and the replay of a dead-lettered message.

mod document;
mod exits;
mod settings;
mod steps;
#[cfg(test)]
mod tests;

pub use document::{
    DeadLetteredProperties, Death, Exit, Explanation, Lifecycle, Replay, SettingOrigin, SpecLine, State, Step,
    TierDescription,
};

use crate::contract::{Context, Contract, DeadLetters, EffectiveQueue, contract_of, wait};
use crate::expand::Expansion;
use crate::model::naming::{self, TierName};
use crate::model::units::duration;
use crate::model::{QueueName, QueueType};
use crate::rabbitmq::BrokerProfile;
use crate::spec::{Location, Spec};
use std::collections::BTreeSet;

/// The maximum number of possible destinations that are listed by name.
const MOST_NAMED: usize = 3;

/// The data that the parts of a lifecycle are computed from.
struct Describer<'c, 'a> {
    context: &'c Context<'a>,
    queue: EffectiveQueue<'c, 'a>,
    /// `None` for streams.
    contract: Option<Contract>,
}

/// Explains the name of a queue or a tier. Returns `None` for unknown and external queues.
pub fn explanation(
    name: &QueueName,
    spec: &Spec,
    expansion: &Expansion,
    profile: &BrokerProfile,
) -> Option<Explanation> {
    let context = Context::new(spec, expansion, profile);
    let Some(queue) = EffectiveQueue::of(name, &context) else {
        return tier(name, spec, expansion).map(Explanation::Tier);
    };
    let contract = (queue.queue_type != QueueType::Stream).then(|| contract_of(&queue));
    let describer = Describer { context: &context, queue, contract };
    Some(Explanation::Queue(Box::new(describer.lifecycle(name, profile))))
}

impl Describer<'_, '_> {
    fn lifecycle(self, name: &QueueName, profile: &BrokerProfile) -> Lifecycle {
        Lifecycle {
            vhost: self.context.spec.vhost.value.clone(),
            queue: name.clone(),
            queue_type: self.queue.queue_type,
            broker_version: profile.version,
            at: spec_line(self.context.spec, self.queue.written.at),
            dead_letter_sources: self.dead_letter_sources(name),
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
        self.context.spec.dead_letter_queues.contains_key(self.queue.name)
    }

    /// Returns the queues whose dead-lettered messages arrive in this one, all or some of them.
    fn dead_letter_sources(&self, name: &QueueName) -> Vec<QueueName> {
        let spec = self.context.spec;
        let all = spec.queues.keys().chain(spec.dead_letter_queues.keys());
        let to = |source| EffectiveQueue::of(source, self.context).and_then(|it| it.dead_letters);
        let ends_here = |to: DeadLetters| to.queues.contains(name) || to.possible_queues.contains(name);
        all.filter(|source| to(source).is_some_and(ends_here)).cloned().collect()
    }

    /// Describes the destination of a message that is dead-lettered for this reason.
    fn end(&self, reason: &str) -> String {
        match self.dead_letter_destination() {
            Some(place) => format!("{place} ({reason})"),
            None => self.dropped(),
        }
    }

    /// Names the dead-letter queues or the exchange. Returns `None` if the broker drops every dead-lettered message.
    fn dead_letter_destination(&self) -> Option<String> {
        self.queue.arriving().map(destination)
    }

    /// Describes the end of a message that is routed to no queue.
    fn dropped(&self) -> String {
        match &self.queue.dead_letters {
            Some(to) if self.queue.keeps_unroutable_messages() => {
                format!("stays in the queue, not redelivered: {} routes it to no queue", exchange(to))
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

/// Describes the destination of dead-lettered messages, at least some of which reach a queue.
fn destination(to: &DeadLetters) -> String {
    let listed = |queues: &BTreeSet<QueueName>| queues.iter().map(QueueName::as_str).collect::<Vec<_>>().join(", ");
    match (&to.queue, to.queues.is_empty(), to.possible_queues.len()) {
        (Some(queue), _, _) => queue.to_string(),
        (None, false, 0) => listed(&to.queues),
        (None, false, 1..=MOST_NAMED) => format!("{}; perhaps {}", listed(&to.queues), listed(&to.possible_queues)),
        (None, false, _) => format!("{}; perhaps others", listed(&to.queues)),
        (None, true, _) if to.exchange.as_str().is_empty() => "the queue that its routing key names".to_owned(),
        (None, true, 1..=MOST_NAMED) => format!("{}, perhaps to {}", exchange(to), listed(&to.possible_queues)),
        (None, true, _) => exchange(to),
    }
}

fn spec_line(spec: &Spec, at: Location) -> SpecLine {
    SpecLine { file: spec.files.get(at.file).cloned().unwrap_or_default(), line: at.line }
}

/// Describes the name of a tier of a declared queue. The tier may be a current one or one of an earlier spec.
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
        at: written.retry.as_ref().map(|retry| spec_line(spec, retry.at())),
        queue: parsed.queue,
    })
}

/// Formats milliseconds as `30s`, or as a bare number if no unit fits.
fn time(milliseconds: i64) -> String {
    duration(milliseconds).unwrap_or_else(|| milliseconds.to_string())
}
