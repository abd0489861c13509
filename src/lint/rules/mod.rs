//! The rules, one line each, by name.

mod at_least_once_without_reject_publish;
mod crash_loop_not_counted;
mod dead_letter_cycle_dropped;
mod dead_letter_queue_expires;
mod dead_letter_queue_limited;
mod dead_letters_reach_nothing;
mod delivery_limit_without_dead_letter;
mod expires_on_delayed;
mod ladder_near_delivery_limit;
mod lazy_mode;
mod mirrored_queue_policy;
mod no_dead_letter;
mod no_effect_setting;
mod policy_on_generated_queue;
mod refused_by_broker;
mod reject_publish_with_tiers;
mod slow_quarantine;
mod transient_queue;
mod trigger_happy;
mod ttl_without_dead_letter;
mod unknown_argument;

use super::Rule;

/// The rule that repeats what [`behaviour::refusals`](crate::behaviour::refusals) says; others explain some of it better.
pub(super) const REFUSED_BY_BROKER: &str = refused_by_broker::RULE.name;

/// All of them, sorted.
pub static RULES: &[&Rule] = &[
    &at_least_once_without_reject_publish::RULE,
    &crash_loop_not_counted::RULE,
    &dead_letter_cycle_dropped::RULE,
    &dead_letter_queue_expires::RULE,
    &dead_letter_queue_limited::RULE,
    &dead_letters_reach_nothing::RULE,
    &delivery_limit_without_dead_letter::RULE,
    &expires_on_delayed::RULE,
    &ladder_near_delivery_limit::RULE,
    &lazy_mode::RULE,
    &mirrored_queue_policy::RULE,
    &no_dead_letter::RULE,
    &no_effect_setting::RULE,
    &policy_on_generated_queue::RULE,
    &refused_by_broker::RULE,
    &reject_publish_with_tiers::RULE,
    &slow_quarantine::RULE,
    &transient_queue::RULE,
    &trigger_happy::RULE,
    &ttl_without_dead_letter::RULE,
    &unknown_argument::RULE,
];
