//! Describes the lifecycle of a queue's messages. Needs only the spec and its expansion, not a broker.
//!
//! A lifecycle contains the timed path of a message that always fails, all exits from the queue, and the origin of each
//! setting. It also describes the headers and the replay of a dead-lettered message.

mod document;
mod exits;
mod settings;
mod steps;
#[cfg(test)]
mod tests;

pub use document::{
    DeadLetteredProperties, Death, Exit, Explanation, Lifecycle, SettingOrigin, SpecLine, State, Step, TierDescription,
};

use crate::contract::{Context, Contract, DeadLetters, EffectiveQueue, Wait, contract_of};
use crate::expand::Expansion;
use crate::model::naming::{self, TierName};
use crate::model::units::duration;
use crate::model::{QueueName, QueueType};
use crate::rabbitmq::BrokerProfile;
use crate::spec::{Location, Spec};
use std::collections::BTreeSet;

/// The maximum number of possible destinations that are listed by name.
const MAX_NAMED: usize = 3;

/// The inputs from which the parts of a lifecycle are computed.
struct Describer<'c, 'a> {
    context: &'c Context<'a>,
    queue: EffectiveQueue<'c, 'a>,
    /// The contract of the queue; `None` for streams.
    contract: Option<Contract>,
}

/// Explains the name of a queue or a tier. Returns `None` for unknown and external queues, and for queues whose type a
/// plugin provides.
pub fn explanation(
    name: &QueueName,
    spec: &Spec,
    expansion: &Expansion,
    profile: &BrokerProfile,
) -> Option<Explanation> {
    let operator_policies = expansion.topology.operator_policies();
    let context = Context::new((spec, expansion), &operator_policies, profile);
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
            at: spec_line(self.context.spec, self.queue.declaration.at),
            dead_letter_sources: self.dead_letter_sources(name),
            is_dead_letter_queue: self.is_dead_letter_queue(),
            steps: self.steps(),
            exits: self.exits(),
            settings: self.settings(),
            dead_lettered_message: self.dead_lettered_message(),
            replay: self.contract.as_ref().and_then(|it| it.replay.clone()),
            contract: self.contract,
        }
    }

    fn is_dead_letter_queue(&self) -> bool {
        self.context.spec.dead_letter_queues.contains_key(self.queue.name)
    }

    /// Returns the queues that dead-letter some or all of their messages to this queue.
    fn dead_letter_sources(&self, name: &QueueName) -> Vec<QueueName> {
        let spec = self.context.spec;
        let all = spec.queues.keys().chain(spec.dead_letter_queues.keys());
        let to = |source| EffectiveQueue::of(source, self.context).and_then(|it| it.dead_letters);
        let ends_here = |to: DeadLetters| to.queues.contains(name) || to.possible_queues.contains(name);
        all.filter(|source| to(source).is_some_and(ends_here)).cloned().collect()
    }

    /// Describes what happens to a message that is dead-lettered for `reason`.
    fn end(&self, reason: &str) -> String {
        match self.dead_letter_destination() {
            Some(place) => format!("{place} ({reason})"),
            None => self.unroutable_end(),
        }
    }

    /// Describes the dead-letter queues or the dead-letter exchange. Returns `None` if no dead-lettered message reaches
    /// a queue.
    fn dead_letter_destination(&self) -> Option<String> {
        self.queue.reachable_dead_letters().map(destination)
    }

    /// Describes what happens to a dead-lettered message that reaches no queue.
    fn unroutable_end(&self) -> String {
        let cc = if self.queue.can_route_by_cc() { ", unless its publisher set the CC or BCC header" } else { "" };
        match &self.queue.dead_letters {
            Some(to) if self.queue.keeps_unroutable_messages() => {
                format!("stays in the queue and is not redelivered: {} does not route it to a queue{cc}", exchange(to))
            }
            Some(to) => format!("dropped: {} does not route it to a queue{cc}", exchange(to)),
            None => "dropped".to_owned(),
        }
    }
}

/// Describes the dead-letter exchange.
fn exchange(to: &DeadLetters) -> String {
    match to.exchange.as_str() {
        "" => "the default exchange".to_owned(),
        name => format!("exchange {name}"),
    }
}

/// Describes the destination of dead-lettered messages, at least some of which reach a queue.
fn destination(to: &DeadLetters) -> String {
    let list = |queues: &BTreeSet<QueueName>| queues.iter().map(QueueName::as_str).collect::<Vec<_>>().join(", ");
    match (&to.queue, to.queues.is_empty(), to.possible_queues.len()) {
        (Some(queue), _, _) => queue.to_string(),
        (None, false, 0) => list(&to.queues),
        (None, false, 1..=MAX_NAMED) => format!("{}; possibly {}", list(&to.queues), list(&to.possible_queues)),
        (None, false, _) => format!("{}; possibly other queues", list(&to.queues)),
        (None, true, _) if to.exchange.as_str().is_empty() => "the queue named by its routing key".to_owned(),
        (None, true, 1..=MAX_NAMED) => {
            format!("{}, and possibly from there to {}", exchange(to), list(&to.possible_queues))
        }
        (None, true, _) => exchange(to),
    }
}

fn spec_line(spec: &Spec, at: Location) -> SpecLine {
    SpecLine { file: spec.files.get(at.file).cloned().unwrap_or_default(), line: at.line }
}

/// Describes a tier of a declared queue. The tier may be a retired one. Returns `None` if the name does not have the
/// form of a tier name, or if its queue is not declared.
fn tier(name: &QueueName, spec: &Spec, expansion: &Expansion) -> Option<TierDescription> {
    let parsed = TierName::parse(name)?;
    let declaration = spec.queues.get(&parsed.queue)?;
    Some(TierDescription {
        vhost: spec.vhost.value.clone(),
        tier: name.clone(),
        retry: parsed.number,
        wait: Wait::of(parsed.delay),
        is_generated: expansion.topology.queues.contains_key(name),
        routing_key: naming::retry_key(&parsed.queue, parsed.number),
        exchange: naming::return_exchange(&parsed.queue),
        at: declaration.retry.as_ref().map(|retry| spec_line(spec, retry.at())),
        queue: parsed.queue,
    })
}

/// Formats milliseconds as a duration such as `30s`; zero and negative values become plain numbers.
fn time(milliseconds: i64) -> String {
    duration(milliseconds).unwrap_or_else(|| milliseconds.to_string())
}
