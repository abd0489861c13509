//! What holds for a queue in the end: its arguments, and the policy of the spec that governs it.

use super::{Finding, Rule, Subject};
use crate::behaviour::{Effective, Governed, Source, WhenFull, effective};
use crate::expand::Because;
use crate::model::{ObjectId, PolicyName, Queue, QueueName, QueueType};
use crate::spec::{DeadLetter, Location, QueueSpec};

/// A queue of which it is known what holds.
pub(super) struct Settled<'a> {
    pub(super) id: ObjectId,
    pub(super) name: &'a QueueName,
    /// Its type; `None` is a plugin's.
    pub(super) kind: Option<QueueType>,
    /// The queue for whose retries it is generated, if it is.
    pub(super) retries_of: Option<&'a QueueName>,
    /// How it is written; `None` for a tier.
    pub(super) written: Option<&'a QueueSpec>,
    pub(super) is_dead_letter_queue: bool,
    /// A list, as it is a handful of keys, of very many queues.
    holds: Box<[(String, Effective)]>,
}

impl Settled<'_> {
    /// What holds for a policy's key, and who says so.
    pub(super) fn get(&self, key: &str) -> Option<&Effective> {
        self.holds.iter().find(|(known, _)| known == key).map(|(_, holds)| holds)
    }

    pub(super) fn integer(&self, key: &str) -> Option<i64> {
        self.get(key)?.value.as_integer()
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.value.as_text()
    }

    pub(super) fn is_quorum(&self) -> bool {
        self.kind == Some(QueueType::Quorum)
    }

    /// The policy that says what holds for a key, if one does.
    pub(super) fn by_policy(&self, key: &str) -> Option<(&PolicyName, &Effective)> {
        let holds = self.get(key)?;
        match &holds.source {
            Source::Policy(name) => Some((name, holds)),
            Source::Default | Source::Argument | Source::OperatorPolicy(_) => None,
        }
    }

    /// The first of the limits of its length.
    pub(super) fn limit(&self) -> Option<&'static str> {
        ["max-length", "max-length-bytes"].into_iter().find(|key| self.get(key).is_some())
    }

    /// Whether a full queue refuses publishers instead of dropping its oldest message.
    pub(super) fn rejects(&self) -> bool {
        WhenFull::of(self.get("overflow").map(|it| &it.value), self.kind).refuses()
    }

    /// After how many redeliveries it lets go of a message.
    pub(super) fn delivery_limit(&self) -> Option<(i64, &Effective)> {
        let limit = self.get("delivery-limit")?;
        limit.value.as_integer().filter(|number| *number >= 0 && self.is_quorum()).map(|number| (number, limit))
    }

    pub(super) fn has_dead_letter_exchange(&self) -> bool {
        self.get("dead-letter-exchange").is_some()
    }

    /// Its dead letters go nowhere, and nobody says that this is meant.
    pub(super) fn loses_in_silence(&self) -> bool {
        let is_meant = |it: &QueueSpec| it.dead_letter.as_ref().is_some_and(|said| said.value == DeadLetter::Nowhere);
        let can_die = self.kind != Some(QueueType::Stream);
        can_die && !self.has_dead_letter_exchange() && self.written.is_some_and(|written| !is_meant(written))
    }

    /// How often a failed message is tried again, and where that is said.
    pub(super) fn max_retries(&self) -> Option<(u32, Location)> {
        let retry = self.written?.retry.as_ref()?;
        Some((retry.max_retries.value, retry.max_retries.at))
    }
}

/// The queues of which it is certain what holds.
pub(super) fn settled<'a>(subject: &Subject<'a>) -> Vec<Settled<'a>> {
    let spec = subject.spec;
    let policies = subject.routing().policies();
    let settle = |(name, queue): (&'a QueueName, &'a Queue)| {
        let policy = policies.governing(name.as_str(), Governed::from(queue)).certain()?;
        let dead_letter_queue = spec.dead_letter_queues.get(name);
        let id = ObjectId::Queue(name.clone());
        Some(Settled {
            retries_of: subject.retries_of(&id),
            id,
            name,
            kind: queue.queue_type(),
            written: spec.queues.get(name).or(dead_letter_queue.map(|it| &it.queue)),
            is_dead_letter_queue: dead_letter_queue.is_some(),
            holds: effective(queue, policy, None, subject.dialect).into_iter().collect(),
        })
    };
    subject.expansion.topology.queues.iter().filter_map(settle).collect()
}

impl<'a> Subject<'a> {
    /// The queue for whose retries an object is generated, if it is.
    pub(super) fn retries_of(&self, id: &ObjectId) -> Option<&'a QueueName> {
        match &self.expansion.origins.get(id)?.because {
            Because::Retry(queue) => Some(queue),
            Because::Declared
            | Because::DeadLetterExchange(_)
            | Because::DeadLetterBinding(_)
            | Because::DeadLetterPolicy(_) => None,
        }
    }
}

impl Rule {
    /// Something found about what holds for a queue, at the place where that is said: the queue's own, or the policy's.
    pub(super) fn about(
        &self,
        subject: &Subject<'_>,
        queue: &Settled<'_>,
        key: &str,
        text: impl Into<String>,
    ) -> Finding {
        let own = self.finding(subject, &queue.id, &format!("x-{key}"), text);
        match queue.by_policy(key) {
            // One that is only live is written nowhere.
            Some((name, _)) if subject.expansion.topology.policies.contains_key(name) => {
                let place = subject.place(&ObjectId::Policy(name.clone()), key);
                let at = queue.written.map_or(own.at, |written| written.at);
                Finding { at: place.at, also: vec![(at, "it governs this queue".to_owned())], ..own }
            }
            Some(_) | None => own,
        }
    }

    /// Something found about a queue, at a place of its own.
    pub(super) fn at(
        &self,
        subject: &Subject<'_>,
        queue: &Settled<'_>,
        at: Location,
        text: impl Into<String>,
    ) -> Finding {
        Finding { at, also: Vec::new(), ..self.finding(subject, &queue.id, "name", text) }
    }
}
