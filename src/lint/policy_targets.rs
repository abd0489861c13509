//! Matches the policies in a spec against its queues and exchanges, and narrows the pattern of a policy to exclude some
//! objects. Ignores generated dead-letter policies, because they copy the keys of a declared policy.

use crate::expand::Expansion;
use crate::model::names::pattern_of;
use crate::model::{Exchange, ObjectId, PolicyName, Queue, QueueName};
use crate::rabbitmq::governing::select_governing;
use crate::rabbitmq::{
    BrokerProfile, Effective, EffectiveSettings, Governed, MatchingPolicy, Pattern, Policies, Source,
};
use crate::spec::Spec;
use std::collections::BTreeSet;

/// A queue or an exchange, with the declared policies that match it, highest priority first.
pub(super) struct PolicyTarget<'a> {
    pub(super) id: ObjectId,
    pub(super) name: &'a str,
    pub(super) kind: Kind<'a>,
    /// The queue whose retries require this object; `None` if the object exists for a different reason.
    pub(super) retry_owner: Option<&'a QueueName>,
    pub(super) matching_policies: Vec<MatchingPolicy<'a>>,
}

/// The kind of a policy target, with its declaration.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    Queue(&'a Queue),
    Exchange(&'a Exchange),
}

impl<'a> PolicyTarget<'a> {
    /// Returns the declared policy that applies to the object; `None` if no policy applies, or if it is uncertain which
    /// policy applies.
    pub(super) fn governing(&self) -> Option<&'a PolicyName> {
        Some(select_governing(&self.matching_policies).certain()??.name)
    }

    /// Returns the effective settings of a queue, given its arguments and the policy that most likely applies to it.
    pub(super) fn effective(&self, queue: &Queue, profile: &BrokerProfile) -> EffectiveSettings {
        EffectiveSettings::of(queue, select_governing(&self.matching_policies).likely(), None, profile)
    }
}

/// Returns every queue and exchange with the declared policies that match it.
pub(super) fn policy_targets<'a>(
    spec: &'a Spec,
    expansion: &'a Expansion,
    policies: &Policies<'a>,
) -> Vec<PolicyTarget<'a>> {
    let topology = &expansion.topology;
    let target = |id: ObjectId, name: &'a str, kind: Kind<'a>, governed: Governed| {
        let mut matching_policies = policies.matching(name, governed);
        matching_policies.retain(|matching| spec.policies.contains_key(matching.named.name));
        PolicyTarget { retry_owner: expansion.retry_owner(&id), id, name, kind, matching_policies }
    };
    let queues = topology.queues.iter().map(|(name, queue)| {
        target(ObjectId::Queue(name.clone()), name.as_str(), Kind::Queue(queue), Governed::from(queue))
    });
    let exchanges = topology.exchanges.iter().map(|(name, exchange)| {
        target(ObjectId::Exchange(name.clone()), name.as_str(), Kind::Exchange(exchange), Governed::Exchange)
    });
    queues.chain(exchanges).collect()
}

/// Returns true if the effective value comes from an argument of the object.
pub(super) fn is_set_by_argument(effective: &Effective) -> bool {
    match effective.source {
        Source::Argument => true,
        Source::Default | Source::Policy(_) | Source::OperatorPolicy(_) => false,
    }
}

/// Formats one or two names in full, and three or more as the first name and a count, such as `` `a` and 2 more``.
pub(super) fn summarize_names<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names[..] {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [first, second] => format!("`{first}` and `{second}`"),
        [first, .., _] => format!("`{first}` and {} more", names.len() - 1),
    }
}

/// The maximum number of names in a readable pattern.
const MAX_NAMES: usize = 4;

/// Returns a pattern that matches each name in `kept` and no name in `avoided`. Returns `None` if `kept` is empty, or
/// if there is no readable pattern.
///
/// The pattern only excludes names, because a list of the kept names would not match objects that exist only on the
/// broker. topo tests each candidate with the broker's regular expression syntax, starting with the shortest candidate.
pub(super) fn narrow_pattern(pattern: &str, kept: &BTreeSet<&str>, avoided: &BTreeSet<&str>) -> Option<String> {
    if kept.is_empty() {
        return None;
    }
    let is_tier = |name: &&str| Pattern::new(TIER).matches(name) == Some(true);
    let (tiers, others): (Vec<&str>, Vec<&str>) = avoided.iter().copied().partition(is_tier);
    let rest = match pattern.strip_prefix('^') {
        Some(rest) if !pattern.contains('|') => rest.to_owned(),
        Some(_) | None => format!(".*(?:{pattern})"),
    };
    let without = |excluded: &str| format!("^(?!{excluded}){rest}");
    let candidates = [
        any_of(&others).filter(|_| tiers.is_empty()).map(|names| without(&format!("{names}$"))),
        // Excludes all delayed retry queues, because their names contain delays, which can change.
        others.is_empty().then(|| without(TIER)),
        any_of(&others).filter(|_| !tiers.is_empty()).map(|names| without(&format!("{names}$|{TIER}"))),
    ];
    let is_correct = |candidate: &String| {
        let candidate = Pattern::new(candidate);
        kept.iter().all(|name| candidate.matches(name) == Some(true))
            && avoided.iter().all(|name| candidate.matches(name) == Some(false))
    };
    candidates.into_iter().flatten().find(is_correct)
}

/// The pattern that matches the names of delayed retry queues.
const TIER: &str = r".*\.retry\.\d+\.\w+$";

/// Returns a partial pattern that matches any of the names; `None` if there are no names or too many names.
fn any_of(names: &[&str]) -> Option<String> {
    let escape = |name: &&str| {
        let pattern = pattern_of(name);
        let bare = pattern.strip_prefix('^').unwrap_or(&pattern);
        bare.strip_suffix('$').unwrap_or(bare).to_owned()
    };
    match names {
        [] => None,
        [one] => Some(escape(one)),
        several if several.len() <= MAX_NAMES => {
            Some(format!("(?:{})", several.iter().map(escape).collect::<Vec<_>>().join("|")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn narrow(pattern: &str, kept: &[&str], avoided: &[&str]) -> String {
        let (kept, avoided) = (kept.iter().copied().collect(), avoided.iter().copied().collect());
        narrow_pattern(pattern, &kept, &avoided).unwrap_or_default()
    }

    #[test]
    fn excludes_names_and_tiers() {
        let work = &["orders.work"][..];
        assert_eq!(
            narrow(r"^orders\.work", work, &["orders.work.retry.1.5s"]),
            r"^(?!.*\.retry\.\d+\.\w+$)orders\.work"
        );
        assert_eq!(narrow(r"^orders\.", work, &["orders.dead"]), r"^(?!orders\.dead$)orders\.");
        assert_eq!(narrow("o|q", work, &["o.dead", "q.dead"]), r"^(?!(?:o\.dead|q\.dead)$).*(?:o|q)");
        let tiers: Vec<String> = (1..9).map(|number| format!("o.a.retry.{number}.5s")).collect();
        let mut avoided: Vec<&str> = tiers.iter().map(String::as_str).collect();
        assert_eq!(narrow("^o", work, &avoided), r"^(?!.*\.retry\.\d+\.\w+$)o");
        avoided.push("o.dead");
        assert_eq!(narrow("^o", work, &avoided), r"^(?!o\.dead$|.*\.retry\.\d+\.\w+$)o");
        assert_eq!(narrow("^o", &[], &["o.dead"]), "");
        assert_eq!(narrow("^o", &["o.dead"], &["o.dead"]), "");
    }

    proptest! {
        /// The narrowed pattern also matches names that are not in `kept`, because objects with such names can exist on
        /// the broker.
        #[test]
        fn narrowed_pattern_matches_every_other_name(
            pattern in prop::sample::select(vec!["^o", "o", r"^o\.", "o|q", "", ".*", "^(?:o|q)", r"\.a"]),
            names in prop::collection::btree_set("[oq][.|$+(]?[ab]{0,2}", 2..9),
            avoided_count in 1_usize..4,
        ) {
            let is_matched = |name: &&str| Pattern::new(pattern).matches(name) == Some(true);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let avoided: BTreeSet<&str> = names.iter().copied().filter(is_matched).take(avoided_count).collect();
            let is_other = |name: &&str| is_matched(name) && !avoided.contains(name);
            let others: Vec<&str> = names.iter().copied().filter(is_other).collect();
            let Some(kept) = others.first() else { return Ok(()) };
            let narrowed = narrow_pattern(pattern, &BTreeSet::from([*kept]), &avoided);
            let narrowed = Pattern::new(&narrowed.expect("there is always a pattern"));
            for name in &others {
                prop_assert_eq!(narrowed.matches(name), Some(true), "{}", name);
            }
            for name in &avoided {
                prop_assert_eq!(narrowed.matches(name), Some(false), "{}", name);
            }
        }
    }
}
