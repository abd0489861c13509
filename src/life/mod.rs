//! What becomes of a message in a queue: the way of one that always fails, with times; every way out; who says each setting;
//! what its dead letter carries, and how that is replayed. From the spec and what it stands for, with no broker.

mod document;
mod letter;
mod settings;
mod steps;
#[cfg(test)]
mod tests;
mod ways_out;

pub use document::{Carried, Death, Life, Place, Replay, Source, State, Step, Story, TierStory, WayOut};

use crate::behaviour::Dialect;
use crate::contract::{Contract, InForce, contract_of, wait};
use crate::expand::Expansion;
use crate::model::naming::{self, TierName};
use crate::model::units::duration;
use crate::model::{QueueName, QueueType};
use crate::spec::{Location, Spec};

/// All that the parts of a story are told from.
struct Teller<'a> {
    spec: &'a Spec,
    expansion: &'a Expansion,
    in_force: InForce<'a>,
    /// None for streams.
    contract: Option<Contract>,
}

/// The story of a name; `None` where the spec declares no such queue, and where it is somebody else's.
pub fn story(name: &QueueName, spec: &Spec, expansion: &Expansion, dialect: &Dialect) -> Option<Story> {
    let Some(in_force) = InForce::of(name, spec, expansion, dialect) else {
        return tier(name, spec, expansion).map(Story::Tier);
    };
    let contract = (in_force.queue_type != QueueType::Stream).then(|| contract_of(&in_force));
    let teller = Teller { spec, expansion, in_force, contract };
    Some(Story::Queue(Box::new(teller.life(name, dialect))))
}

impl Teller<'_> {
    fn life(self, name: &QueueName, dialect: &Dialect) -> Life {
        Life {
            vhost: self.spec.vhost.value.clone(),
            queue: name.clone(),
            queue_type: self.in_force.queue_type,
            broker_version: dialect.version,
            at: place(self.spec, self.in_force.written.at),
            letters_of: self.letters_of(name, dialect),
            is_dead_letter_queue: self.is_dead_letter_queue(),
            steps: self.steps(),
            ways_out: self.ways_out(),
            settings: self.settings(),
            letter: self.letter(),
            replay: self.replay(),
            contract: self.contract,
        }
    }

    fn is_dead_letter_queue(&self) -> bool {
        self.spec.dead_letter_queues.contains_key(self.in_force.name)
    }

    /// The queues whose dead letters end in this one.
    fn letters_of(&self, name: &QueueName, dialect: &Dialect) -> Vec<QueueName> {
        let all = self.spec.queues.keys().chain(self.spec.dead_letter_queues.keys());
        let ends_here = |source: &&QueueName| {
            let in_force = InForce::of(source, self.spec, self.expansion, dialect);
            in_force.and_then(|it| it.dead_letters?.queue).is_some_and(|queue| queue == *name)
        };
        all.filter(ends_here).cloned().collect()
    }

    /// Where a message goes that dies, with the reason that it died of.
    fn end(&self, reason: &str) -> String {
        match &self.in_force.dead_letters {
            Some(dead_letters) => format!("{} ({reason})", ended(dead_letters)),
            None => "dropped".to_owned(),
        }
    }
}

/// The dead-letter queue, or the exchange, in words.
fn ended(dead_letters: &crate::contract::DeadLetters) -> String {
    match (&dead_letters.queue, dead_letters.exchange.as_str()) {
        (Some(queue), _) => queue.to_string(),
        (None, "") => "the queue of its key".to_owned(),
        (None, exchange) => format!("exchange {exchange}"),
    }
}

fn place(spec: &Spec, at: Location) -> Place {
    Place { file: spec.files.get(at.file).cloned().unwrap_or_default(), line: at.line }
}

/// A name that is that of a tier of a queue of the spec: one that it makes, or one that it made before it was changed.
fn tier(name: &QueueName, spec: &Spec, expansion: &Expansion) -> Option<TierStory> {
    let parsed = TierName::parse(name)?;
    let written = spec.queues.get(&parsed.queue)?;
    Some(TierStory {
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
