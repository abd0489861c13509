//! Records the subscriptions and the deliveries of workers, and recognizes the messages of a case.

use crate::broker::message::ReceivedMessage;
use crate::model::QueueName;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// The deliveries to the workers of a case.
#[derive(Default)]
pub(super) struct Log {
    subscribed: RefCell<BTreeSet<QueueName>>,
    attempts: RefCell<BTreeMap<QueueName, Vec<Instant>>>,
}

impl Log {
    /// Records that a worker has subscribed to its queue.
    pub(super) fn record_subscription(&self, queue: &QueueName) {
        self.subscribed.borrow_mut().insert(queue.clone());
    }

    /// Returns the number of queues from which a worker consumes.
    pub(super) fn subscriptions(&self) -> usize {
        self.subscribed.borrow().len()
    }

    /// Records a delivery from a queue.
    pub(super) fn record_delivery(&self, queue: &QueueName) {
        self.attempts.borrow_mut().entry(queue.clone()).or_default().push(Instant::now());
    }

    /// Returns the times of the deliveries from each queue, in milliseconds since `start`.
    pub(super) fn attempts_since(&self, start: Instant) -> BTreeMap<QueueName, Vec<i64>> {
        let since = |at: &Instant| i64::try_from(at.saturating_duration_since(start).as_millis()).unwrap_or(i64::MAX);
        let attempts = self.attempts.borrow();
        attempts.iter().map(|(queue, times)| (queue.clone(), times.iter().map(since).collect())).collect()
    }

    /// Returns the number of deliveries from a queue.
    pub(super) fn deliveries(&self, queue: &QueueName) -> usize {
        self.attempts.borrow().get(queue).map_or(0, Vec::len)
    }
}

/// Returns the sequence number of a message from the case; `None` for messages from other cases.
pub(super) fn number_of(message: &ReceivedMessage, case: &str) -> Option<u64> {
    message.text("message_id")?.strip_prefix(case)?.strip_prefix('/')?.parse().ok()
}
