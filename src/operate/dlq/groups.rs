//! Groups the messages of a dead-letter queue for a list.

use super::dead_letter::DeadLetter;
use crate::model::printable::one_line;
use std::collections::BTreeMap;

/// The maximum number of groups. Further messages are counted in one group.
const MAX_GROUPS: usize = 10_000;
/// The maximum number of characters of an error in a group.
const MAX_ERROR: usize = 200;

/// A property by which messages are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupKey {
    /// The queue in which the message failed.
    Source,
    /// The reason of the death.
    Reason,
    /// The error of the last attempt.
    Error,
    /// The original routing key.
    RoutingKey,
    /// The original exchange.
    Exchange,
    /// The number of replays by topo.
    Replays,
}

impl GroupKey {
    /// All keys.
    pub const ALL: [Self; 6] =
        [Self::Source, Self::Reason, Self::Error, Self::RoutingKey, Self::Exchange, Self::Replays];

    /// Returns the name in flags and headings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Reason => "reason",
            Self::Error => "error",
            Self::RoutingKey => "routing-key",
            Self::Exchange => "exchange",
            Self::Replays => "replays",
        }
    }

    /// Returns the value of a message; `None` if unknown.
    fn value(self, it: &DeadLetter) -> Option<String> {
        match self {
            Self::Source => it.source.as_ref().map(|source| source.as_str().to_owned()),
            Self::Reason => it.reason.clone(),
            Self::Error => it.error().map(|error| one_line(error).chars().take(MAX_ERROR).collect()),
            Self::RoutingKey => Some(it.original_routing_key.clone()),
            Self::Exchange => it.original_exchange.clone(),
            Self::Replays => Some(it.replays().to_string()),
        }
    }
}

/// The messages of a dead-letter queue with the same values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The values, in the order of the keys; `None` for an unknown value.
    pub values: Vec<Option<String>>,
    /// The number of messages.
    pub messages: u64,
    /// The size of the bodies, in bytes.
    pub bytes: u64,
    /// The time of the oldest death, in seconds since 1970; `None` if unknown.
    pub oldest: Option<u64>,
    /// The time of the newest death, in seconds since 1970; `None` if unknown.
    pub newest: Option<u64>,
}

/// The groups of a dead-letter queue.
#[derive(Clone, Debug)]
pub struct Groups {
    keys: Vec<GroupKey>,
    groups: BTreeMap<Vec<Option<String>>, Group>,
    /// The number of messages beyond the maximum number of groups.
    pub ungrouped: u64,
}

impl Groups {
    /// Creates empty groups.
    pub fn new(keys: Vec<GroupKey>) -> Self {
        Self { keys, groups: BTreeMap::new(), ungrouped: 0 }
    }

    /// Adds a message.
    pub fn add(&mut self, it: &DeadLetter) {
        let values: Vec<_> = self.keys.iter().map(|key| key.value(it)).collect();
        if self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(&values) {
            self.ungrouped += 1;
            return;
        }
        let group = self.groups.entry(values.clone()).or_insert(Group {
            values,
            messages: 0,
            bytes: 0,
            oldest: None,
            newest: None,
        });
        group.messages += 1;
        group.bytes += it.message.body.len() as u64;
        group.oldest = [group.oldest, it.died_at].into_iter().flatten().min();
        group.newest = group.newest.max(it.died_at);
    }

    /// Returns the keys.
    pub fn keys(&self) -> &[GroupKey] {
        &self.keys
    }

    /// Returns the groups, the largest first.
    pub fn sorted(&self) -> Vec<&Group> {
        let mut groups: Vec<&Group> = self.groups.values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.messages));
        groups
    }
}
