//! The rules, one line each, by name.

mod at_least_once_without_reject_publish;
mod lazy_mode;
mod mirrored_queue_policy;
mod no_effect_setting;
mod refused_by_broker;
mod transient_queue;
mod unknown_argument;

use super::Rule;

/// The rule that repeats what [`behaviour::refusals`](crate::behaviour::refusals) says; others explain some of it better.
pub(super) const REFUSED_BY_BROKER: &str = refused_by_broker::RULE.name;

/// All of them, sorted.
pub static RULES: &[&Rule] = &[
    &at_least_once_without_reject_publish::RULE,
    &lazy_mode::RULE,
    &mirrored_queue_policy::RULE,
    &no_effect_setting::RULE,
    &refused_by_broker::RULE,
    &transient_queue::RULE,
    &unknown_argument::RULE,
];
