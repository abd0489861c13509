//! Groups the messages in a dead-letter queue, so that topo can list them.

use super::dead_letter::DeadLetter;
use crate::model::QueueName;
use crate::model::printable::one_line;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of groups. Messages that would need an additional group are only counted.
const MAX_GROUPS: usize = 10_000;
/// The maximum number of other sources in a group.
const MAX_SOURCES: usize = 10;
/// The maximum number of characters in a group's error.
const MAX_ERROR: usize = 200;

/// A property by which messages are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupKey {
    /// The queue in which the message failed.
    Source,
    /// The reason for the death.
    Reason,
    /// The error from the last attempt.
    Error,
    /// The original routing key.
    RoutingKey,
    /// The original exchange.
    Exchange,
    /// The number of times that topo has replayed the message.
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

    /// Returns the value of this property for a message; `None` if unknown.
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

/// The messages in a dead-letter queue that have the same value for each key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The values, in the order of the keys; `None` for an unknown value.
    pub values: Vec<Option<String>>,
    /// The number of messages.
    pub messages: u64,
    /// The total size of the bodies, in bytes.
    pub bytes: u64,
    /// The time of the oldest death, in seconds since 1970; `None` if unknown.
    pub oldest: Option<u64>,
    /// The time of the newest death, in seconds since 1970; `None` if unknown.
    pub newest: Option<u64>,
    /// The other queues in which messages in the group may have failed, at most 10.
    pub other_sources: BTreeSet<QueueName>,
}

/// The groups of messages in a dead-letter queue.
#[derive(Clone, Debug)]
pub struct Groups {
    keys: Vec<GroupKey>,
    groups: BTreeMap<Vec<Option<String>>, Group>,
    /// The number of messages that belong to no group, because the maximum number of groups was reached.
    pub ungrouped: u64,
}

impl Groups {
    /// Creates an empty collection of groups.
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
            other_sources: BTreeSet::new(),
        });
        group.messages += 1;
        group.bytes += it.message.body.len() as u64;
        group.oldest = [group.oldest, it.died_at].into_iter().flatten().min();
        group.newest = group.newest.max(it.died_at);
        for source in &it.other_sources {
            if group.other_sources.len() < MAX_SOURCES {
                group.other_sources.insert(source.clone());
            }
        }
    }

    /// Returns the keys.
    pub fn keys(&self) -> &[GroupKey] {
        &self.keys
    }

    /// Returns the groups, largest first.
    pub fn sorted(&self) -> Vec<&Group> {
        let mut groups: Vec<&Group> = self.groups.values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.messages));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::message::{HeaderValue, MessageProperties, ReceivedMessage};

    /// Returns a message that these queues dead-lettered at these times.
    fn dead_lettered(deaths: &[(&str, u64)]) -> DeadLetter {
        let text = |text: &str| HeaderValue::Text(text.to_owned());
        let death = |(queue, time): &(&str, u64)| {
            let entries =
                [("queue", text(queue)), ("reason", text("rejected")), ("time", HeaderValue::Timestamp(*time))];
            HeaderValue::Table(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        };
        let deaths = HeaderValue::List(deaths.iter().map(death).collect());
        let message = ReceivedMessage {
            exchange: String::new(),
            routing_key: "key".to_owned(),
            is_redelivered: false,
            properties: MessageProperties { headers: vec![("x-death".to_owned(), deaths)], ..Default::default() },
            encoded_properties: Vec::new(),
            body: b"12".to_vec(),
        };
        DeadLetter::of(1, message, |_| false, |_| true)
    }

    #[test]
    fn other_sources_are_collected() {
        let mut groups = Groups::new(vec![GroupKey::Source]);
        groups.add(&dead_lettered(&[("a", 2), ("b", 1)]));
        groups.add(&dead_lettered(&[("a", 3)]));
        groups.add(&dead_lettered(&[("b", 4)]));
        let sorted = groups.sorted();
        let [first, second] = sorted.as_slice() else { panic!("{sorted:?}") };
        let others: Vec<&str> = first.other_sources.iter().map(QueueName::as_str).collect();
        assert_eq!((first.values[0].as_deref(), first.messages, others), (Some("a"), 2, vec!["b"]));
        assert_eq!((first.oldest, first.newest, first.bytes), (Some(2), Some(3), 4));
        assert_eq!((second.values[0].as_deref(), second.other_sources.len()), (Some("b"), 0));
    }

    #[test]
    fn groups_are_limited() {
        let mut groups = Groups::new(vec![GroupKey::Source]);
        for number in 0..MAX_GROUPS + 2 {
            groups.add(&dead_lettered(&[(&number.to_string(), 1)]));
        }
        assert_eq!((groups.sorted().len(), groups.ungrouped), (MAX_GROUPS, 2));
    }
}
