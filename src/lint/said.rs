//! What is written of queues, whether with them or in a policy: the arguments that are known, where each is said.

use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use crate::model::{ArgumentValue, ObjectId};
use crate::spec::{Location, Spec};

/// One setting.
pub(super) struct Said<'a> {
    /// The queue or the policy.
    pub(super) id: ObjectId,
    /// The argument or the policy's key.
    pub(super) setting: &'a str,
    /// What it is.
    pub(super) known: &'static KnownArgument,
    /// What is said.
    pub(super) value: &'a ArgumentValue,
    /// Where its key stands.
    pub(super) at: Location,
}

/// All of a spec; a default is said by each of its queues.
pub(super) fn said(spec: &Spec) -> impl Iterator<Item = Said<'_>> {
    let dead_letter_queues = spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
    let of_queues = spec.queues.iter().chain(dead_letter_queues).flat_map(|(name, queue)| {
        queue.arguments.iter().filter_map(move |(setting, it)| {
            let known = KnownArgument::named(setting)?;
            Some(Said { id: ObjectId::Queue(name.clone()), setting, known, value: &it.value, at: it.at })
        })
    });
    let of_policies = spec.policies.iter().flat_map(|(name, policy)| {
        policy.definition.iter().filter_map(move |(setting, it)| {
            let known = KNOWN_ARGUMENTS.iter().find(|known| known.policy_key == Some(setting))?;
            Some(Said { id: ObjectId::Policy(name.clone()), setting, known, value: &it.value, at: it.key_at })
        })
    });
    of_queues.chain(of_policies)
}
