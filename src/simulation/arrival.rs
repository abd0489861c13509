//! Simulates messages that arrive in a queue, including overflow and expiry.

use super::copy::Copy;
use super::outcome::{End, EventKind};
use super::run::{Change, DeadLetter, Run, Task};
use crate::model::{QueueName, QueueType};
use crate::rabbitmq::OverflowBehavior;
use crate::rabbitmq::routing::Reason;

/// The result of an arrival.
enum Arrival {
    /// The queue accepted the message.
    Accepted,
    /// The full queue rejected the message.
    Rejected,
    /// The full queue rejected the message and dead-lettered it.
    DeadLettered,
}

impl Run<'_, '_, '_> {
    /// Adds a published copy to a queue. Returns false if the queue rejects it.
    pub(super) fn add_published(&mut self, queue: &QueueName, copy: Copy) -> bool {
        matches!(self.add(queue, copy, false), Arrival::Accepted)
    }

    /// Adds a dead-lettered copy to a queue.
    pub(super) fn add_dead_lettered(&mut self, DeadLetter { source, before, is_kept, target, copy }: DeadLetter) {
        // Before 3.12, a queue with at-most-once dead-lettering cannot publish to a stream (observed on 3.9 to 3.11).
        let kind = self.simulation.settings.get(&target).and_then(|settings| settings.kind());
        if !is_kept && kind == Some(QueueType::Stream) && !self.simulation.profile.version.is_at_least(3, 12) {
            return self.record_end(&source, before, End::Dropped);
        }
        match self.add(&target, copy, true) {
            Arrival::Accepted | Arrival::DeadLettered => {}
            Arrival::Rejected if is_kept => {
                let reason = format!("queue {source} retries dead-lettering a message to the full queue {target}");
                self.outcome.unknown.insert(reason);
            }
            Arrival::Rejected => self.record_end(&source, before, End::Dropped),
        }
    }

    fn add(&mut self, queue: &QueueName, mut copy: Copy, is_dead_lettered: bool) -> Arrival {
        let Some(settings) = self.simulation.settings.get(queue) else {
            self.outcome.unknown.insert(format!("queue {queue} is external, so its settings are unknown"));
            return Arrival::Accepted;
        };
        if self.simulation.has_uncertain_settings(queue) {
            self.outcome.unknown.insert(format!("more than one policy can apply to queue {queue}"));
        }
        self.outcome.reached.insert(queue.clone());
        let version = self.simulation.profile.version;
        if !version.is_at_least(4, 3) {
            // Only on 4.3 and later does the count include the deliveries from earlier queues.
            copy.delivery_count = 0;
        }
        let kind = settings.kind();
        let (is_quorum, is_stream) = (kind == Some(QueueType::Quorum), kind == Some(QueueType::Stream));
        if settings.has("max-length-bytes") && !is_stream {
            self.outcome
                .unknown
                .insert(format!("queue {queue} has `max-length-bytes`, and the message sizes are unknown"));
        }
        let limit = settings.integer("max-length").and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.filter(|_| !is_stream && !self.has_ready_worker(queue));
        let overflow = settings.overflow_behavior();
        let waiting = self.state(queue).ready.len();
        // A quorum queue that rejects messages holds one more message than its limit (measured on 3.10.8 and 4.3.6),
        // and does not reject dead-lettered messages.
        let more = usize::from(is_quorum);
        if let Some(limit) = limit.filter(|_| overflow.rejects() && !(is_quorum && is_dead_lettered))
            && waiting >= limit + more
        {
            self.record_event(copy.message, EventKind::Refused { queue: queue.clone() });
            if overflow != OverflowBehavior::RejectsAndDeadLetters {
                return Arrival::Rejected;
            }
            self.dead_letter(queue, copy, Reason::Maxlen);
            return Arrival::DeadLettered;
        }
        // Quorum queues support a TTL on 3.10 and later.
        let expiration = copy.expiration.filter(|_| !is_quorum || version.is_at_least(3, 10));
        let ttl = [settings.integer("message-ttl"), expiration].into_iter().flatten().min().filter(|_| !is_stream);
        if is_quorum && ttl == Some(0) {
            // The message expires even if a worker is waiting for messages.
            self.dead_letter(queue, copy, Reason::Expired);
            return Arrival::Accepted;
        }
        if let Some(expires) = settings.integer("expires").filter(|_| !self.workers.contains_key(queue))
            && ttl.is_none_or(|ttl| ttl >= expires)
        {
            let reason =
                format!("queue {queue} has no worker, so the broker deletes it after {expires} ms (`expires`)");
            self.outcome.unknown.insert(reason);
        }
        copy.expires_at = ttl.map(|ttl| self.now.saturating_add(ttl));
        if let Some(at) = copy.expires_at {
            self.schedule(at, queue, Change::Expire);
        }
        self.state(queue).ready.push_back(copy);
        self.tasks.push_back(Task::Deliver(queue.clone()));
        if let Some(limit) = limit.filter(|_| !overflow.rejects()) {
            while self.state(queue).ready.len() > limit
                && let Some(oldest) = self.state(queue).ready.pop_front()
            {
                self.dead_letter(queue, oldest, Reason::Maxlen);
            }
        }
        Arrival::Accepted
    }

    /// Dead-letters the expired messages at the head of a queue. Messages expire only at the head.
    pub(super) fn expire(&mut self, queue: &QueueName) {
        let now = self.now;
        let is_expired = |copy: &Copy| copy.expires_at.is_some_and(|at| at <= now);
        while self.state(queue).ready.front().is_some_and(is_expired)
            && let Some(copy) = self.state(queue).ready.pop_front()
        {
            self.dead_letter(queue, copy, Reason::Expired);
        }
    }

    /// Dead-letters a message that expires while its redelivery is delayed.
    pub(super) fn expire_delayed(&mut self, queue: &QueueName, copy: Copy) {
        self.dead_letter(queue, copy, Reason::Expired);
    }

    /// Returns a copy to the front of its queue.
    pub(super) fn return_to_front(&mut self, queue: &QueueName, copy: Copy) {
        self.state(queue).ready.push_front(copy);
        self.tasks.push_back(Task::Deliver(queue.clone()));
    }
}
