//! Selects the policy that governs a queue or an exchange: the highest-priority matching policy whose keys the queue
//! type supports.
//!
//! The rules follow `rabbit_policy:match_all` and apply to policies and operator policies separately. On 3.8, a policy
//! with unsupported keys can also govern a new queue until any policy in the vhost is set or cleared, because
//! `rabbit_amqqueue:is_policy_applicable` does not find the new queue. This module ignores that temporary state.

use super::pattern::{Pattern, Shape};
use super::policy_keys::is_accepted;
use crate::model::{ApplyTo, BrokerVersion, Policy, PolicyName, Priority, Queue, QueueType};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The kind of object that a policy can govern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Governed {
    /// A queue of this type; `None` if a plugin provides the type. Such a type supports every key.
    Queue(Option<QueueType>),
    /// An exchange.
    Exchange,
}

impl From<&Queue> for Governed {
    fn from(queue: &Queue) -> Self {
        Self::Queue(queue.queue_type())
    }
}

/// A policy with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<'a> {
    /// The name.
    pub name: &'a PolicyName,
    /// The policy.
    pub policy: &'a Policy,
}

/// The policies that can govern an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Governing<'a> {
    /// The possible policies, most likely first; never empty. `None` means no policy.
    possible: Vec<Option<Named<'a>>>,
}

impl<'a> Governing<'a> {
    /// Returns the policy that most likely governs the object; `None` if the object most likely has no policy.
    pub fn likely(&self) -> Option<Named<'a>> {
        self.possible[0]
    }

    /// Returns all policies that can govern the object, most likely first.
    ///
    /// There are several candidates if topo cannot evaluate a pattern, or if several matching policies have the highest
    /// priority. Among policies with the same priority, the broker uses the policy that its store lists first.
    pub fn possible(&self) -> &[Option<Named<'a>>] {
        &self.possible
    }

    /// Returns the names of all policies that can govern the object, sorted. Contains `None` if the object may
    /// have no policy.
    pub fn names(&self) -> BTreeSet<Option<&'a PolicyName>> {
        self.possible.iter().map(|named| named.map(|named| named.name)).collect()
    }

    /// Returns the governing policy. The outer `None` means that the governing policy is uncertain, and the inner
    /// `None` means that no policy governs the object.
    pub fn certain(&self) -> Option<Option<Named<'a>>> {
        if self.possible.len() == 1 { Some(self.possible[0]) } else { None }
    }
}

/// A policy whose `apply-to` matches an object and whose pattern matches or may match the object's name.
#[derive(Clone, Copy, Debug)]
pub struct MatchingPolicy<'a> {
    /// The policy.
    pub named: Named<'a>,
    /// True if the pattern certainly matches; false if topo cannot evaluate it.
    pub is_certain: bool,
    /// A key that the queue type does not support, which makes the broker skip the policy; `None` if the queue type
    /// supports all keys.
    pub unsupported_key: Option<&'a str>,
}

/// The policies of a vhost with their compiled patterns, indexed by the exact name or the prefix that a pattern
/// matches.
pub struct Policies<'a> {
    version: BrokerVersion,
    /// The policies, highest priority first.
    entries: Vec<(Named<'a>, Pattern)>,
    exact: BTreeMap<String, Vec<usize>>,
    prefixes: BTreeMap<String, Vec<usize>>,
    prefix_lengths: BTreeSet<usize>,
    /// The policies whose patterns match neither a single name nor a known prefix.
    unindexed: Vec<usize>,
}

impl<'a> Policies<'a> {
    /// Compiles the policies of one vhost.
    pub fn new(policies: impl IntoIterator<Item = (&'a PolicyName, &'a Policy)>, version: BrokerVersion) -> Self {
        let named =
            |(name, policy): (&'a PolicyName, &'a Policy)| (Named { name, policy }, Pattern::new(&policy.pattern));
        let mut entries: Vec<_> = policies.into_iter().map(named).collect();
        entries.sort_by_key(|(named, _)| (Reverse(named.policy.priority), named.name));
        let mut all = Self {
            version,
            entries,
            exact: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            prefix_lengths: BTreeSet::new(),
            unindexed: Vec::new(),
        };
        for (index, (_, pattern)) in all.entries.iter().enumerate() {
            match pattern.shape() {
                Shape::Exact(name) => all.exact.entry(name.clone()).or_default().push(index),
                Shape::Prefix(prefix) => {
                    all.prefix_lengths.insert(prefix.len());
                    all.prefixes.entry(prefix.clone()).or_default().push(index);
                }
                Shape::Any => all.unindexed.push(index),
            }
        }
        all
    }

    /// Returns the broker version whose rules apply.
    pub fn version(&self) -> BrokerVersion {
        self.version
    }

    /// Returns all policies that match or may match an object, sorted by descending priority, then by name.
    pub fn matching(&self, name: &str, governed: Governed) -> Vec<MatchingPolicy<'a>> {
        let exact = self.exact.get(name.strip_suffix('\n').unwrap_or(name));
        let lengths = self.prefix_lengths.range(..=name.len());
        let prefixes = lengths.filter_map(|length| self.prefixes.get(name.get(..*length)?));
        let mut candidates: Vec<usize> = exact.into_iter().chain(prefixes).flatten().copied().collect();
        candidates.extend(&self.unindexed);
        candidates.sort_unstable();
        let to_matching = |index: usize| {
            let (named, pattern) = &self.entries[index];
            if !is_for(named.policy.apply_to, governed) {
                return None;
            }
            let matches = pattern.matches(name);
            let unsupported_key = match governed {
                Governed::Queue(Some(kind)) => {
                    named.policy.definition.keys().find(|key| !is_accepted(key, kind, self.version)).map(String::as_str)
                }
                Governed::Queue(None) | Governed::Exchange => None,
            };
            let matching = MatchingPolicy { named: *named, is_certain: matches.is_some(), unsupported_key };
            (matches != Some(false)).then_some(matching)
        };
        candidates.into_iter().filter_map(to_matching).collect()
    }

    /// Returns the policies that can govern an object.
    pub fn governing(&self, name: &str, governed: Governed) -> Governing<'a> {
        select_governing(&self.matching(name, governed))
    }

    /// Returns the policies whose patterns topo cannot evaluate.
    pub fn unreadable(&self) -> impl Iterator<Item = Named<'a>> {
        self.entries.iter().filter(|(_, pattern)| !pattern.is_readable()).map(|(named, _)| *named)
    }
}

/// Selects the policies that can govern an object from the matching policies, which must be sorted by descending
/// priority.
pub fn select_governing<'a>(matching: &[MatchingPolicy<'a>]) -> Governing<'a> {
    let (mut certain, mut possible) = (Vec::new(), Vec::new());
    let mut highest: Option<Priority> = None;
    for it in matching.iter().filter(|it| it.unsupported_key.is_none()) {
        let priority = it.named.policy.priority;
        if highest.is_some_and(|highest| priority < highest) {
            break;
        }
        if it.is_certain {
            highest = Some(priority);
            certain.push(Some(it.named));
        } else {
            possible.push(Some(it.named));
        }
    }
    if certain.is_empty() {
        certain.push(None);
    }
    certain.append(&mut possible);
    Governing { possible: certain }
}

/// Returns true if `apply-to` includes this kind of object.
fn is_for(apply_to: ApplyTo, governed: Governed) -> bool {
    match (apply_to, governed) {
        (ApplyTo::All, _) => true,
        (ApplyTo::Queues, Governed::Queue(_)) | (ApplyTo::Exchanges, Governed::Exchange) => true,
        (ApplyTo::ClassicQueues, Governed::Queue(kind)) => kind == Some(QueueType::Classic),
        (ApplyTo::QuorumQueues, Governed::Queue(kind)) => kind == Some(QueueType::Quorum),
        (ApplyTo::Streams, Governed::Queue(kind)) => kind == Some(QueueType::Stream),
        (ApplyTo::Exchanges, Governed::Queue(_)) => false,
        (ApplyTo::Queues | ApplyTo::ClassicQueues | ApplyTo::QuorumQueues | ApplyTo::Streams, Governed::Exchange) => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Arguments;

    fn policies(list: &[(&str, &str, f64, &str)]) -> BTreeMap<PolicyName, Policy> {
        let policy = |(name, pattern, priority, key): &(&str, &str, f64, &str)| {
            let definition = Arguments::from([((*key).to_owned(), 5.into())]);
            let policy = Policy {
                pattern: (*pattern).to_owned(),
                apply_to: ApplyTo::Queues,
                priority: Priority(*priority),
                definition,
            };
            (PolicyName::new(*name), policy)
        };
        list.iter().map(policy).collect()
    }

    fn names(all: &BTreeMap<PolicyName, Policy>, queue: &str) -> Vec<String> {
        let policies = Policies::new(all, BrokerVersion::new(4, 0, 5));
        let governing = policies.governing(queue, Governed::Queue(Some(QueueType::Classic)));
        let name = |named: &Option<Named<'_>>| named.map_or_else(String::new, |named| named.name.to_string());
        governing.possible().iter().map(name).collect()
    }

    #[test]
    fn highest_supported_priority_governs() {
        let all = policies(&[
            ("one", "^orders$", 1.0, "max-length"),
            ("prefix", "^ord", 0.5, "max-length"),
            ("skipped", "^ord", 9.0, "delivery-limit"),
            ("any", "", 0.0, "max-length"),
        ]);
        assert_eq!(names(&all, "orders"), ["one"]);
        assert_eq!(names(&all, "order"), ["prefix"]);
        assert_eq!(names(&all, "other"), ["any"]);
        let policies = Policies::new(&all, BrokerVersion::new(4, 0, 5));
        assert_eq!(policies.governing("orders", Governed::Exchange).likely(), None);
    }

    #[test]
    fn uncertain_policies_are_all_possible() {
        let all = policies(&[
            ("low", "", 0.0, "max-length"),
            ("b", "^x", 1.0, "max-length"),
            ("a", "^x", 1.0, "max-length"),
            ("unread", "(", 1.0, "max-length"),
            ("higher", "^y(", 2.0, "max-length"),
        ]);
        assert_eq!(names(&all, "x"), ["a", "b", "unread"]);
        assert_eq!(names(&all, "y"), ["low", "higher", "unread"]);
        assert_eq!(names(&policies(&[("unread", "(", 1.0, "max-length")]), "x"), ["", "unread"]);
    }
}
