//! Lists all rules, sorted by name.

mod argument_has_policy_key;
mod at_least_once_without_reject_publish;
mod classic_on_clustered_durable_work;
mod comment_in_key;
mod crash_loop_not_counted;
mod dangling_alternate_exchange;
mod dead_letter_cycle_dropped;
mod dead_letter_queue_expires;
mod dead_letter_queue_limited;
mod dead_letter_queue_without_threshold;
mod dead_letters_reach_nothing;
mod delivery_limit_without_dead_letter;
mod duplicate_binding;
mod duration_looks_like_seconds;
mod expires_on_delayed;
mod expires_shorter_than_ttl;
mod glob_looks_like_pattern;
mod headers_without_x_match;
mod ladder_near_delivery_limit;
mod lazy_mode;
mod limit_too_small;
mod mirrored_queue_policy;
mod misspelled_tag;
mod name_breaks_metrics;
mod name_with_whitespace;
mod no_dead_letter;
mod no_effect_setting;
mod owns_everything;
mod pattern_looks_like_glob;
mod pattern_unanchored;
mod policy_equal_priority;
mod policy_loses_to_argument;
mod policy_matches_nothing;
mod policy_on_generated_queue;
mod policy_shadowed;
mod policy_skipped_by_unsupported_key;
mod protect_misspelled;
mod prune_reaches_undeclared;
mod quorum_even_size;
mod refused_by_broker;
mod reject_comes_straight_back;
mod reject_publish_with_tiers;
mod secret_in_spec;
mod shovel_declares_queue;
mod slow_quarantine;
mod stream_dead_letter_queue_loses_messages;
mod threshold_above_max_length;
mod topic_binding_shadowed;
mod transient_queue;
mod trigger_happy;
mod ttl_without_dead_letter;
mod unbound_exchange;
mod unbound_queue;
mod unbounded_queue;
mod unbounded_stream;
mod unknown_argument;
mod unknown_upstream;
mod unreachable_exchange;
mod unused_allow;
mod unused_entry;
mod unused_upstream;
mod wildcard_inside_word;
mod wildcard_on_direct;
mod wildcard_on_fanout;

pub(super) use unused_allow::{RULE as UNUSED_ALLOW, report_unused};

use super::Rule;

/// The name of the rule that reports [`rabbitmq::refusals`](crate::rabbitmq::refusals). More specific rules explain
/// some refusals better.
pub(super) const REFUSED_BY_BROKER: &str = refused_by_broker::RULE.name;

/// The names of the rules that require a topology with all queues. A binding to an unknown queue would make their
/// findings wrong.
pub(super) const NEED_ALL_QUEUES: [&str; 3] =
    [dangling_alternate_exchange::RULE.name, dead_letters_reach_nothing::RULE.name, unbound_exchange::RULE.name];

/// All rules, sorted by name.
pub static RULES: &[&Rule] = &[
    &argument_has_policy_key::RULE,
    &at_least_once_without_reject_publish::RULE,
    &classic_on_clustered_durable_work::RULE,
    &comment_in_key::RULE,
    &crash_loop_not_counted::RULE,
    &dangling_alternate_exchange::RULE,
    &dead_letter_cycle_dropped::RULE,
    &dead_letter_queue_expires::RULE,
    &dead_letter_queue_limited::RULE,
    &dead_letter_queue_without_threshold::RULE,
    &dead_letters_reach_nothing::RULE,
    &delivery_limit_without_dead_letter::RULE,
    &duplicate_binding::RULE,
    &duration_looks_like_seconds::RULE,
    &expires_on_delayed::RULE,
    &expires_shorter_than_ttl::RULE,
    &glob_looks_like_pattern::RULE,
    &headers_without_x_match::RULE,
    &ladder_near_delivery_limit::RULE,
    &lazy_mode::RULE,
    &limit_too_small::RULE,
    &mirrored_queue_policy::RULE,
    &misspelled_tag::RULE,
    &name_breaks_metrics::RULE,
    &name_with_whitespace::RULE,
    &no_dead_letter::RULE,
    &no_effect_setting::RULE,
    &owns_everything::RULE,
    &pattern_looks_like_glob::RULE,
    &pattern_unanchored::RULE,
    &policy_equal_priority::RULE,
    &policy_loses_to_argument::RULE,
    &policy_matches_nothing::RULE,
    &policy_on_generated_queue::RULE,
    &policy_shadowed::RULE,
    &policy_skipped_by_unsupported_key::RULE,
    &protect_misspelled::RULE,
    &prune_reaches_undeclared::RULE,
    &quorum_even_size::RULE,
    &refused_by_broker::RULE,
    &reject_comes_straight_back::RULE,
    &reject_publish_with_tiers::RULE,
    &secret_in_spec::RULE,
    &shovel_declares_queue::RULE,
    &slow_quarantine::RULE,
    &stream_dead_letter_queue_loses_messages::RULE,
    &threshold_above_max_length::RULE,
    &topic_binding_shadowed::RULE,
    &transient_queue::RULE,
    &trigger_happy::RULE,
    &ttl_without_dead_letter::RULE,
    &unbound_exchange::RULE,
    &unbound_queue::RULE,
    &unbounded_queue::RULE,
    &unbounded_stream::RULE,
    &unknown_argument::RULE,
    &unknown_upstream::RULE,
    &unreachable_exchange::RULE,
    &unused_allow::RULE,
    &unused_entry::RULE,
    &unused_upstream::RULE,
    &wildcard_inside_word::RULE,
    &wildcard_on_direct::RULE,
    &wildcard_on_fanout::RULE,
];
