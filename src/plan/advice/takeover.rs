//! Builds a policy that displaces the governing policy of an object. The new policy has the keys of the governing
//! policy, a higher priority, and an unused name. If the governing policy is in the spec and matches only this object,
//! the resolution adds keys to that policy instead.

use super::Subject;
use crate::model::names::{MAX_NAME_BYTES, is_reserved, pattern_of};
use crate::model::{ApplyTo, Arguments, Object, Policy, PolicyName, Priority};
use crate::rabbitmq::policy_keys::PolicyKey;
use crate::rabbitmq::{Governed, Named, Policies};
use std::collections::BTreeMap;

/// A policy for one object, without the settings that resolve a conflict.
pub(super) struct Takeover {
    pub(super) name: PolicyName,
    pub(super) pattern: String,
    pub(super) apply_to: ApplyTo,
    pub(super) priority: Priority,
    /// The settings of the governing policy.
    pub(super) definition: Arguments,
    /// True if the governing policy is unmanaged, so that the spec does not contain its settings.
    pub(super) is_unmanaged: bool,
    /// The name of the governing policy.
    governing: Option<PolicyName>,
    /// Other policies with the same priority, which may govern the object instead.
    ties: Vec<PolicyName>,
    /// Policies whose patterns topo cannot evaluate.
    unreadable: Vec<PolicyName>,
}

impl Takeover {
    /// Builds the policy. If `is_wired` is true, ignores the policy that `wiring: policy` generates, because the
    /// generated policy will have a higher priority.
    pub(super) fn of(subject: &Subject<'_>, is_wired: bool) -> Self {
        let context = subject.context;
        let desired = &context.desired.topology.policies;
        let object = subject.before;
        let id = object.id();
        let name = id.name().unwrap_or_default();
        let mut policies = context.current.policies.clone();
        policies.extend(desired.iter().map(|(name, policy)| (name.clone(), policy.clone())));
        // topo recomputes generated policies, with higher priorities than the policies in the spec.
        policies.retain(|known, _| {
            let is_own = known.as_str().starts_with(&format!("{name}.topo."));
            !(is_own && (is_wired || desired.contains_key(known)))
        });
        let version = context.profile.version;
        let all = Policies::new(&policies, version);
        let governed = match object {
            Object::Queue(_, queue) => Governed::from(queue),
            Object::Exchange(..) | Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) | Object::Record(_) => {
                Governed::Exchange
            }
        };
        let found = all.governing(name, governed);
        let governing = found.likely();
        let pattern = pattern_of(name);
        let mut takeover = Self {
            name: PolicyName::from(""),
            pattern: pattern.clone(),
            apply_to: if matches!(object, Object::Exchange(..)) { ApplyTo::Exchanges } else { ApplyTo::Queues },
            priority: governing.map_or(Priority(1.0), |it| it.policy.priority.above().max(Priority(1.0))),
            definition: governing.map_or_else(Arguments::new, |it| it.policy.definition.clone()),
            is_unmanaged: governing.is_some_and(|it| !desired.contains_key(it.name)),
            governing: governing.map(|it| it.name.clone()),
            ties: found.possible().iter().skip(1).flatten().map(|it| it.name.clone()).collect(),
            unreadable: all.unreadable().map(|it| it.name.clone()).collect(),
        };
        match governing {
            // If a policy in the spec matches only this object, the resolution adds keys to that policy.
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

    /// Returns a key that the policy must include and that a spec cannot represent, with the governing policy that sets
    /// the key; `None` if a spec can represent all keys.
    pub(super) fn unrepresentable_key(&self) -> Option<(&PolicyName, &str)> {
        let is_representable = |key: &str| {
            PolicyKey::spelling(key).is_some()
                || !(key.contains(|c: char| c.is_uppercase() || c == '_') || key.starts_with("x-"))
        };
        let key = self.definition.keys().find(|key| !is_representable(key))?;
        Some((self.governing.as_ref()?, key))
    }

    /// Returns warnings about policies that may have precedence over this policy.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self
            .unreadable
            .iter()
            .map(|policy| {
                format!("policy {policy}, whose pattern topo cannot evaluate, may have precedence over this policy")
            })
            .collect();
        if let (Some(governing), false) = (&self.governing, self.ties.is_empty()) {
            let ties: Vec<&str> = self.ties.iter().map(PolicyName::as_str).collect();
            warnings.push(format!(
                "{governing} and {} may govern the object, and RabbitMQ does not define which of them does: this \
                 policy includes the settings of {governing}",
                ties.join(", ")
            ));
        }
        warnings
    }
}

/// Returns an unused policy name. Prefers the object's name, so that `owns` and `ignore` match both the object and the
/// policy. If a policy already has this name, appends a number.
fn free_name(name: &str, policies: &BTreeMap<PolicyName, Policy>) -> PolicyName {
    let mut stem = name;
    while stem.len() + 6 > MAX_NAME_BYTES {
        stem = stem.char_indices().next_back().map_or("", |(last, _)| &stem[..last]);
    }
    let numbered = (2_usize..).map(|number| PolicyName::new(format!("{stem}-{number}")));
    let mut names = std::iter::once(PolicyName::new(name)).chain(numbered);
    names.find(|name| !policies.contains_key(name)).unwrap_or_else(|| PolicyName::new(name))
}

/// Returns the spelling of a policy key in a spec.
pub(super) fn spec_key(key: &str) -> &str {
    PolicyKey::spelling(key).unwrap_or(key)
}
