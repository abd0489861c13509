//! Determines the length limit of a queue, and detects a full queue that rejects new messages.

use crate::broker::Snapshot;
use crate::model::count::number;
use crate::model::{Queue, QueueName};
use crate::plan::QueueActivity;
use crate::rabbitmq::{ActivePolicies, Policies};

/// The length limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Limit {
    /// The maximum number of messages; `None` if there is no limit.
    messages: Option<u64>,
    /// True if the queue rejects new messages when it is full, and false if the queue drops its oldest messages.
    is_rejecting: bool,
}

impl Limit {
    /// Returns the limit from the queue's arguments and the policies that are likely to apply.
    pub(in super::super) fn of(name: &QueueName, queue: &Queue, seen: &Snapshot) -> Self {
        let version = seen.profile.version;
        let operator_policies = seen.topology.operator_policies();
        let (policies, operator) =
            (Policies::new(&seen.topology.policies, version), Policies::new(&operator_policies, version));
        let settings = ActivePolicies::of(&policies, &seen.profile).with_operators(&operator).likely(name, queue);
        let messages = settings.integer("max-length").and_then(|limit| u64::try_from(limit).ok());
        Self { messages, is_rejecting: settings.overflow_behavior().rejects() }
    }

    /// Returns the maximum number of messages, if the queue drops its oldest messages beyond this number; `None` if
    /// there is no limit, or if the queue rejects new messages.
    pub(in super::super) fn keeps(self) -> Option<u64> {
        self.messages.filter(|_| !self.is_rejecting)
    }

    /// Describes why the queue rejects new messages; `None` if the queue seems to accept messages. `is_rejected` is
    /// true if the broker has rejected a message from a transport.
    pub(super) fn rejection_reason(self, queue: &QueueName, live: &QueueActivity, is_rejected: bool) -> Option<String> {
        let full = self.messages.filter(|_| self.is_rejecting).zip(live.ready.or(live.messages));
        let reason = match full {
            Some((limit, ready)) if ready >= limit => {
                format!("is full ({} of {} messages) and is rejecting new messages", number(ready), number(limit))
            }
            Some(_) | None if is_rejected => "is full and is rejecting new messages".to_owned(),
            Some(_) | None => return None,
        };
        Some(format!("queue {queue} {reason}; consume from it or raise its limit, then apply again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_queue_is_described_if_it_rejects() {
        let live =
            |ready| QueueActivity { messages: Some(90), ready, unacknowledged: None, ..QueueActivity::default() };
        let limit = Limit { messages: Some(50), is_rejecting: true };
        let described = |limit: Limit, live, is_rejected| limit.rejection_reason(&"q".into(), &live, is_rejected);
        assert_eq!(
            described(limit, live(Some(50)), false).unwrap(),
            "queue q is full (50 of 50 messages) and is rejecting new messages; consume from it or raise its limit, \
             then apply again"
        );
        assert_eq!(described(limit, live(Some(49)), false), None, "unacknowledged messages are not counted");
        let dropping = Limit { is_rejecting: false, ..limit };
        assert_eq!((described(dropping, live(Some(50)), false), dropping.keeps()), (None, Some(50)));
        assert_eq!(limit.keeps(), None);
        let by_bytes = described(Limit { messages: None, ..limit }, live(Some(3)), true).unwrap();
        assert!(by_bytes.starts_with("queue q is full and is rejecting new messages;"), "{by_bytes}");
    }
}
