//! Matches the policies of a spec with its queues and exchanges, and narrows the pattern of a policy so that it excludes
//! some of them. Policies of dead-letter wiring are left out, because they copy the keys of a declared policy.

use crate::expand::Expansion;
use crate::model::names::pattern_of;
use crate::model::{Exchange, ObjectId, PolicyName, Queue, QueueName};
use crate::rabbitmq::governing::chosen;
use crate::rabbitmq::{BrokerProfile, Effective, EffectiveSettings, Fit, Governed, Pattern, Policies, Source};
use crate::spec::Spec;
use std::collections::BTreeSet;

/// A queue or an exchange, with the policies that match it, the highest priority first.
pub(super) struct PolicyTarget<'a> {
    pub(super) id: ObjectId,
    pub(super) name: &'a str,
    pub(super) kind: Kind<'a>,
    /// The queue for whose retries it is generated, if it is generated.
    pub(super) retry_owner: Option<&'a QueueName>,
    pub(super) fits: Vec<Fit<'a>>,
}

/// The kind of a policy target, with its declaration.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    Queue(&'a Queue),
    Exchange(&'a Exchange),
}

impl<'a> PolicyTarget<'a> {
    /// Returns the policy that applies to the object, if that is certain.
    pub(super) fn governing(&self) -> Option<&'a PolicyName> {
        Some(chosen(&self.fits).certain()??.name)
    }

    /// Returns the effective settings of a queue from its arguments and the policy that applies to it.
    pub(super) fn effective(&self, queue: &Queue, profile: &BrokerProfile) -> EffectiveSettings {
        EffectiveSettings::of(queue, chosen(&self.fits).likely(), None, profile)
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
        let mut fits = policies.fitting(name, governed);
        fits.retain(|fit| spec.policies.contains_key(fit.named.name));
        PolicyTarget { retry_owner: expansion.retry_owner(&id), id, name, kind, fits }
    };
    let queues = topology.queues.iter().map(|(name, queue)| {
        target(ObjectId::Queue(name.clone()), name.as_str(), Kind::Queue(queue), Governed::from(queue))
    });
    let exchanges = topology.exchanges.iter().map(|(name, exchange)| {
        target(ObjectId::Exchange(name.clone()), name.as_str(), Kind::Exchange(exchange), Governed::Exchange)
    });
    queues.chain(exchanges).collect()
}

/// Returns true if an argument of the object sets the value.
pub(super) fn is_own(effective: &Effective) -> bool {
    match effective.source {
        Source::Argument => true,
        Source::Default | Source::Policy(_) | Source::OperatorPolicy(_) => false,
    }
}

/// Formats the first of several names and the number of the others: `` `a` and 2 more``.
pub(super) fn first_of<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names[..] {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [first, second] => format!("`{first}` and `{second}`"),
        [first, .., _] => format!("`{first}` and {} more", names.len() - 1),
    }
}

/// The maximum number of names in a readable pattern.
const MOST_NAMES: usize = 4;

/// Returns a pattern that still matches each name in `kept` and no name in `avoided`, if there is a readable one.
///
/// The pattern only excludes names, because a list of the kept names would exclude objects that topo does not know.
/// Each candidate is checked with the broker's regular expressions; the shortest is preferred.
pub(super) fn narrower(pattern: &str, kept: &BTreeSet<&str>, avoided: &BTreeSet<&str>) -> Option<String> {
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
        // The names of delayed retry queues contain delays, which change.
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

/// The pattern of the names of delayed retry queues.
const TIER: &str = r".*\.retry\.\d+\.\w+$";

/// Returns names as a part of a pattern, or `None` if there are too many or none.
fn any_of(names: &[&str]) -> Option<String> {
    let escaped = |name: &&str| {
        let pattern = pattern_of(name);
        let bare = pattern.strip_prefix('^').unwrap_or(&pattern);
        bare.strip_suffix('$').unwrap_or(bare).to_owned()
    };
    match names {
        [] => None,
        [one] => Some(escaped(one)),
        several if several.len() <= MOST_NAMES => {
            Some(format!("(?:{})", several.iter().map(escaped).collect::<Vec<_>>().join("|")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(pattern: &str, kept: &[&str], avoided: &[&str]) -> String {
        let (kept, avoided) = (kept.iter().copied().collect(), avoided.iter().copied().collect());
        narrower(pattern, &kept, &avoided).unwrap_or_default()
    }

    #[test]
    fn excludes_names_and_tiers() {
        let work = &["orders.work"][..];
        assert_eq!(of(r"^orders\.work", work, &["orders.work.retry.1.5s"]), r"^(?!.*\.retry\.\d+\.\w+$)orders\.work");
        assert_eq!(of(r"^orders\.", work, &["orders.dead"]), r"^(?!orders\.dead$)orders\.");
        assert_eq!(of("o|q", work, &["o.dead", "q.dead"]), r"^(?!(?:o\.dead|q\.dead)$).*(?:o|q)");
        let tiers: Vec<String> = (1..9).map(|number| format!("o.a.retry.{number}.5s")).collect();
        let mut avoided: Vec<&str> = tiers.iter().map(String::as_str).collect();
        assert_eq!(of("^o", work, &avoided), r"^(?!.*\.retry\.\d+\.\w+$)o");
        avoided.push("o.dead");
        assert_eq!(of("^o", work, &avoided), r"^(?!o\.dead$|.*\.retry\.\d+\.\w+$)o");
        assert_eq!(of("^o", &[], &["o.dead"]), "");
        assert_eq!(of("^o", &["o.dead"], &["o.dead"]), "");
    }

    proptest! {
        /// The pattern still matches names in neither list, because they can exist on the broker.
        #[test]
        fn narrowed_pattern_matches_every_other_name(
            pattern in prop::sample::select(vec!["^o", "o", r"^o\.", "o|q", "", ".*", "^(?:o|q)", r"\.a"]),
            names in prop::collection::btree_set("[oq][.|$+(]?[ab]{0,2}", 2..9),
            dead in 1_usize..4,
        ) {
            let governed = |name: &&str| Pattern::new(pattern).matches(name) == Some(true);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let avoided: BTreeSet<&str> = names.iter().copied().filter(governed).take(dead).collect();
            let others: Vec<&str> = names.iter().copied().filter(|name| governed(name) && !avoided.contains(name)).collect();
            let Some(known) = others.first() else { return Ok(()) };
            let narrowed = narrower(pattern, &BTreeSet::from([*known]), &avoided);
            let narrowed = Pattern::new(&narrowed.expect("there is always one"));
            for name in &others {
                prop_assert_eq!(narrowed.matches(name), Some(true), "{}", name);
            }
            for name in &avoided {
                prop_assert_eq!(narrowed.matches(name), Some(false), "{}", name);
            }
        }
    }
}
