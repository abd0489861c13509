//! Lists the known arguments of queues, set on the queue or in a policy, with their positions.

use crate::model::known_arguments::KnownArgument;
use crate::model::{ArgumentValue, ObjectId};
use crate::spec::{Location, Spec};

/// One setting.
pub(super) struct KnownSetting<'a> {
    /// The queue or the policy.
    pub(super) id: ObjectId,
    /// The name of the argument, or the key of the policy.
    pub(super) key: &'a str,
    /// The known argument.
    pub(super) known: &'static KnownArgument,
    /// The value.
    pub(super) value: &'a ArgumentValue,
    /// The position of its key.
    pub(super) at: Location,
}

/// Returns all known settings of a spec. A default counts for each of its queues.
pub(super) fn known_settings(spec: &Spec) -> impl Iterator<Item = KnownSetting<'_>> {
    let dead_letter_queues = spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
    let of_queues = spec.queues.iter().chain(dead_letter_queues).flat_map(|(name, queue)| {
        queue.arguments.iter().filter_map(move |(key, it)| {
            let known = KnownArgument::named(key)?;
            Some(KnownSetting { id: ObjectId::Queue(name.clone()), key, known, value: &it.value, at: it.at })
        })
    });
    let of_policies = spec.policies.iter().flat_map(|(name, policy)| {
        policy.definition.iter().filter_map(move |(key, it)| {
            let known = KnownArgument::of_policy_key(key)?;
            Some(KnownSetting { id: ObjectId::Policy(name.clone()), key, known, value: &it.value, at: it.key_at })
        })
    });
    of_queues.chain(of_policies)
}
