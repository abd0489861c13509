//! Computes the effective settings of queues from their arguments and the policy that governs them. Lists the known
//! settings of a spec's queues and policies, with their positions.

use crate::expand::Expansion;
use crate::model::known_arguments::KnownArgument;
use crate::model::{ArgumentValue, ObjectId, PolicyName, Queue, QueueName, QueueType};
use crate::rabbitmq::{BrokerProfile, Effective, EffectiveSettings, Governed, Policies, Source};
use crate::spec::{DeadLetter, Location, QueueSpec, Spec};

/// A queue whose effective settings are certain.
pub(super) struct EffectiveQueue<'a> {
    pub(super) id: ObjectId,
    pub(super) name: &'a QueueName,
    /// The queue type; `None` if a plugin provides the type.
    pub(super) queue_type: Option<QueueType>,
    /// The queue whose retries require this queue; `None` if this queue was not generated for retries.
    pub(super) retry_owner: Option<&'a QueueName>,
    /// The declaration; `None` for a delayed retry queue.
    pub(super) declaration: Option<&'a QueueSpec>,
    pub(super) is_dead_letter_queue: bool,
    pub(super) settings: EffectiveSettings,
}

impl EffectiveQueue<'_> {
    pub(super) fn is_quorum(&self) -> bool {
        self.queue_type == Some(QueueType::Quorum)
    }

    /// Returns the policy that sets the effective value of a key, and the value; `None` if no policy sets it.
    pub(super) fn setting_from_policy(&self, key: &str) -> Option<(&PolicyName, &Effective)> {
        let effective = self.settings.get(key)?;
        match &effective.source {
            Source::Policy(name) => Some((name, effective)),
            Source::Default | Source::Argument | Source::OperatorPolicy(_) => None,
        }
    }

    /// Returns all settings whose effective value comes from a policy.
    pub(super) fn settings_from_policies(&self) -> impl Iterator<Item = (&PolicyName, &str, &Effective)> {
        self.settings.iter().filter_map(|(key, effective)| match &effective.source {
            Source::Policy(name) => Some((name, key, effective)),
            Source::Default | Source::Argument | Source::OperatorPolicy(_) => None,
        })
    }

    /// Returns the policy key of the queue's length limit, in messages or in bytes; `None` if the queue has no length
    /// limit. If the queue has both limits, returns `max-length`.
    pub(super) fn length_limit_key(&self) -> Option<&'static str> {
        ["max-length", "max-length-bytes"].into_iter().find(|key| self.settings.get(key).is_some())
    }

    /// Returns true if the queue rejects new messages when it is full, instead of dropping its oldest messages.
    pub(super) fn rejects_when_full(&self) -> bool {
        self.settings.overflow_behavior().rejects()
    }

    /// Returns the delivery limit and the effective setting that contains it; `None` if deliveries are
    /// unlimited or no setting contains the limit.
    pub(super) fn delivery_limit(&self) -> Option<(i64, &Effective)> {
        self.settings.delivery_limit().zip(self.settings.get("delivery-limit"))
    }

    pub(super) fn has_dead_letter_exchange(&self) -> bool {
        self.settings.get("dead-letter-exchange").is_some()
    }

    /// Returns true if the queue has no dead-letter exchange and its declaration does not set `deadLetter: none`.
    /// Always false for a stream, which does not dead-letter messages, and for a delayed retry queue.
    pub(super) fn drops_messages_silently(&self) -> bool {
        let is_intended = |declaration: &QueueSpec| {
            declaration.dead_letter.as_ref().is_some_and(|target| target.value == DeadLetter::Nowhere)
        };
        let can_dead_letter = self.queue_type != Some(QueueType::Stream);
        can_dead_letter
            && !self.has_dead_letter_exchange()
            && self.declaration.is_some_and(|declaration| !is_intended(declaration))
    }

    /// Returns the number of retries with the position of the setting; `None` if the spec sets no retries.
    pub(super) fn max_retries(&self) -> Option<(u32, Location)> {
        let retry = self.declaration?.retry.as_ref()?;
        Some((retry.max_retries.value, retry.max_retries.at))
    }
}

/// Returns the queues whose effective settings are certain.
pub(super) fn effective_queues<'a>(
    spec: &'a Spec,
    expansion: &'a Expansion,
    policies: &Policies<'a>,
    profile: &BrokerProfile,
) -> Vec<EffectiveQueue<'a>> {
    let effective_queue = |(name, queue): (&'a QueueName, &'a Queue)| {
        let policy = policies.governing(name.as_str(), Governed::from(queue)).certain()?;
        let dead_letter_queue = spec.dead_letter_queues.get(name);
        let id = ObjectId::Queue(name.clone());
        Some(EffectiveQueue {
            retry_owner: expansion.retry_owner(&id),
            id,
            name,
            queue_type: queue.queue_type(),
            declaration: spec.queues.get(name).or(dead_letter_queue.map(|it| &it.queue)),
            is_dead_letter_queue: dead_letter_queue.is_some(),
            settings: EffectiveSettings::of(queue, policy, None, profile),
        })
    };
    expansion.topology.queues.iter().filter_map(effective_queue).collect()
}

/// A queue or policy setting that is one of the known arguments.
pub(super) struct KnownSetting<'a> {
    /// The queue or the policy.
    pub(super) id: ObjectId,
    /// The name of the queue argument, or the policy key.
    pub(super) key: &'a str,
    /// The properties of the setting.
    pub(super) known: &'static KnownArgument,
    /// The value.
    pub(super) value: &'a ArgumentValue,
    /// The position of the key.
    pub(super) at: Location,
}

/// Returns all known settings of a spec. A value from `defaults` is listed once for each queue that it applies to.
pub(super) fn known_settings(spec: &Spec) -> impl Iterator<Item = KnownSetting<'_>> {
    let dead_letter_queues = spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
    let queue_settings = spec.queues.iter().chain(dead_letter_queues).flat_map(|(name, queue)| {
        queue.arguments.iter().filter_map(move |(key, it)| {
            let known = KnownArgument::named(key)?;
            Some(KnownSetting { id: ObjectId::Queue(name.clone()), key, known, value: &it.value, at: it.at })
        })
    });
    let policy_settings = spec.policies.iter().flat_map(|(name, policy)| {
        policy.definition.iter().filter_map(move |(key, it)| {
            let known = KnownArgument::of_policy_key(key)?;
            Some(KnownSetting { id: ObjectId::Policy(name.clone()), key, known, value: &it.value, at: it.key_at })
        })
    });
    queue_settings.chain(policy_settings)
}
