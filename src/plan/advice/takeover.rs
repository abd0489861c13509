//! The policy that governs an object now, as far as another one has to take its place: its keys, a higher priority, and
//! a name that is free.

use super::Subject;
use crate::model::names::{LONGEST_NAME, is_reserved, pattern_of};
use crate::model::{ApplyTo, Arguments, Object, Policy, PolicyName, Priority};
use crate::rabbitmq::policy_keys::PolicyKey;
use crate::rabbitmq::{Governed, Named, Policies};
use std::collections::BTreeMap;

/// The frame of a policy for one object.
pub(super) struct Takeover {
    pub(super) name: PolicyName,
    pub(super) pattern: String,
    pub(super) apply_to: ApplyTo,
    pub(super) priority: Priority,
    /// What governs now.
    pub(super) definition: Arguments,
    /// Whether a policy that the spec does not declare governs now: the spec's own words do not take it into account.
    pub(super) is_by_others: bool,
    /// The policy that it is taken from.
    governing: Option<PolicyName>,
    /// Others that the broker may choose instead, because they have the same priority.
    ties: Vec<PolicyName>,
    /// Policies whose patterns cannot be evaluated here.
    unread: Vec<PolicyName>,
}

impl Takeover {
    /// With `is_wired`, the policy that the spec's `wiring: policy` stands for goes above this one by itself.
    pub(super) fn of(subject: &Subject<'_>, is_wired: bool) -> Self {
        let context = subject.context;
        let desired = &context.desired.topology.policies;
        let object = subject.before;
        let id = object.id();
        let name = id.name().unwrap_or_default();
        let mut policies = context.current.policies.clone();
        policies.extend(desired.iter().map(|(name, policy)| (name.clone(), policy.clone())));
        // A generated policy is made anew, above whatever the spec says.
        policies.retain(|known, _| {
            let is_own = known.as_str().starts_with(&format!("{name}.topo."));
            !(is_own && (is_wired || desired.contains_key(known)))
        });
        let version = context.profile.version;
        let read = Policies::new(&policies, version);
        let governed = match object {
            Object::Queue(_, queue) => Governed::from(queue),
            Object::Exchange(..) | Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) | Object::Record(_) => {
                Governed::Exchange
            }
        };
        let found = read.governing(name, governed);
        let governing = found.likely();
        let pattern = pattern_of(name);
        let mut takeover = Self {
            name: PolicyName::from(""),
            pattern: pattern.clone(),
            apply_to: if matches!(object, Object::Exchange(..)) { ApplyTo::Exchanges } else { ApplyTo::Queues },
            priority: governing.map_or(Priority(1.0), |it| it.policy.priority.above().max(Priority(1.0))),
            definition: governing.map_or_else(Arguments::new, |it| it.policy.definition.clone()),
            is_by_others: governing.is_some_and(|it| !desired.contains_key(it.name)),
            governing: governing.map(|it| it.name.clone()),
            ties: found.possible().iter().skip(1).flatten().map(|it| it.name.clone()).collect(),
            unread: read.unreadable().map(|it| it.name.clone()).collect(),
        };
        match governing {
            // The spec's own policy for this one object only needs more keys.
            Some(Named { name: own, policy })
                if desired.contains_key(own) && policy.pattern == pattern && !is_reserved(own.as_str()) =>
            {
                takeover.name = own.clone();
                takeover.apply_to = policy.apply_to;
                takeover.priority = policy.priority;
            }
            Some(_) | None => takeover.name = free_name(name, &policies),
        }
        takeover
    }

    /// A key that has to be taken over, and that a spec cannot say; with the policy that sets it.
    pub(super) fn unsayable(&self) -> Option<(&PolicyName, &str)> {
        let is_sayable = |key: &str| {
            PolicyKey::spelling(key).is_some()
                || !(key.contains(|c: char| c.is_uppercase() || c == '_') || key.starts_with("x-"))
        };
        let key = self.definition.keys().find(|key| !is_sayable(key))?;
        Some((self.governing.as_ref()?, key))
    }

    /// What can keep the policy from doing what it is made for.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self
            .unread
            .iter()
            .map(|policy| {
                format!(
                    "topo cannot evaluate the pattern of policy {policy}: it may have precedence over \
                                   this one"
                )
            })
            .collect();
        if let (Some(taken), false) = (&self.governing, self.ties.is_empty()) {
            let ties: Vec<&str> = self.ties.iter().map(PolicyName::as_str).collect();
            warnings.push(format!(
                "{taken} and {} may govern it, and RabbitMQ does not define which one: this policy includes {taken}",
                ties.join(", ")
            ));
        }
        warnings
    }
}

/// The object's own name, because `owns` and `ignore` then hold for it as for the object; else with a number.
fn free_name(name: &str, policies: &BTreeMap<PolicyName, Policy>) -> PolicyName {
    let mut stem = name;
    while stem.len() + 6 > LONGEST_NAME {
        stem = stem.char_indices().next_back().map_or("", |(last, _)| &stem[..last]);
    }
    let numbered = (2_usize..).map(|number| PolicyName::new(format!("{stem}-{number}")));
    let mut names = std::iter::once(PolicyName::new(name)).chain(numbered);
    names.find(|name| !policies.contains_key(name)).unwrap_or_else(|| PolicyName::new(name))
}

/// A policy's key as specs write it.
pub(super) fn spec_key(key: &str) -> &str {
    PolicyKey::spelling(key).unwrap_or(key)
}
