//! A queue that is full and rejects what comes.

use crate::behaviour::{Effective, Governed, Policies, effective};
use crate::broker::Snapshot;
use crate::model::count::number;
use crate::model::{ArgumentValue, Queue, QueueName};
use crate::plan::QueueActivity;

/// What a queue takes at most, where it rejects the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Limit {
    messages: Option<u64>,
}

impl Limit {
    /// Of a queue that drops nothing when it is full, by its arguments and what governs it.
    pub(in super::super) fn of(name: &QueueName, queue: &Queue, seen: &Snapshot) -> Option<Self> {
        let version = seen.dialect.version;
        let (policies, operator) =
            (Policies::new(&seen.topology.policies, version), Policies::new(&seen.operator_policies, version));
        let governed = Governed::from(queue);
        let policy = policies.governing(name.as_str(), governed).likely();
        let holds = effective(queue, policy, operator.governing(name.as_str(), governed).likely(), &seen.dialect);
        let value = |key: &str| holds.get(key).map(|Effective { value, .. }| value);
        let rejects = value("overflow").and_then(ArgumentValue::as_text).is_some_and(|it| it.starts_with("reject"));
        let messages = value("max-length").and_then(ArgumentValue::as_integer);
        rejects.then(|| Self { messages: messages.and_then(|limit| u64::try_from(limit).ok()) })
    }

    /// Why such a queue takes nothing now, if it does not. `is_rejected`: a mover was told so.
    pub(super) fn rejects(
        limit: Option<Self>,
        queue: &QueueName,
        live: &QueueActivity,
        is_rejected: bool,
    ) -> Option<String> {
        let full = limit.and_then(|limit| limit.messages).zip(live.ready.or(live.messages));
        let why = match full {
            Some((limit, ready)) if ready >= limit => {
                format!("is full ({} of {} messages) and rejects what comes", number(ready), number(limit))
            }
            Some(_) | None if is_rejected => "rejects what comes: it is full".to_owned(),
            Some(_) | None => return None,
        };
        Some(format!("queue {queue} {why}; consume from it or raise its limit, then apply again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue() {
        let live =
            |ready| QueueActivity { messages: Some(90), ready, unacknowledged: None, ..QueueActivity::default() };
        let limit = Some(Limit { messages: Some(50) });
        let said = |limit, live, told| Limit::rejects(limit, &"q".into(), &live, told);
        assert_eq!(
            said(limit, live(Some(50)), false).unwrap(),
            "queue q is full (50 of 50 messages) and rejects what comes; consume from it or raise its limit, then apply again"
        );
        assert_eq!(said(limit, live(Some(49)), false), None, "unacknowledged ones do not count");
        assert_eq!(said(None, live(Some(50)), false), None);
        let by_bytes = said(Some(Limit { messages: None }), live(Some(3)), true).unwrap();
        assert!(by_bytes.starts_with("queue q rejects what comes: it is full;"), "{by_bytes}");
    }
}
