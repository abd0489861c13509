//! Messages that arrive in a queue: overflow and expiry.

use super::copy::Copy;
use super::outcome::EventKind;
use super::run::{Change, Run};
use crate::model::{QueueName, QueueType};
use crate::rabbitmq::OverflowBehavior;
use crate::rabbitmq::routing::Reason;

impl Run<'_, '_, '_> {
    /// Adds a copy to a queue. Returns false if the queue rejects it.
    pub(super) fn arrive(&mut self, queue: &QueueName, mut copy: Copy) -> bool {
        let Some(settings) = self.simulation.settings.get(queue) else {
            self.outcome.unknown.insert(format!("queue {queue} is external, so its settings are not known"));
            return true;
        };
        self.outcome.reached.insert(queue.clone());
        copy.delivery_count = 0;
        let integer = |key| settings.integer(key);
        let (limit, overflow, kind) = (integer("max-length"), settings.overflow_behavior(), settings.kind());
        let ttl = [integer("message-ttl"), copy.expiration].into_iter().flatten().min();
        if settings.has("max-length-bytes") && kind != Some(QueueType::Stream) {
            self.outcome.unknown.insert(format!("queue {queue} limits the size of its messages, which is not known"));
        }
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).filter(|_| kind != Some(QueueType::Stream));
        let is_received = self.is_received(queue);
        let waiting = self.queues.entry(queue.clone()).or_default().ready.len();
        // A quorum queue that rejects messages holds one more than its limit (measured on 3.10.8 and 4.3.6).
        let more = usize::from(kind == Some(QueueType::Quorum));
        if let Some(limit) = limit.filter(|_| overflow.rejects() && !is_received)
            && waiting >= limit + more
        {
            self.event(copy.message, EventKind::Refused { queue: queue.clone() });
            if overflow == OverflowBehavior::RejectsAndDeadLetters {
                self.die(queue, copy, Reason::Maxlen);
            }
            return false;
        }
        copy.expires_at = ttl.map(|ttl| self.now.saturating_add(ttl)).filter(|_| kind != Some(QueueType::Stream));
        let expires_at = copy.expires_at;
        self.state(queue).ready.push_back(copy);
        self.deliver(queue);
        if let Some(limit) = limit.filter(|_| !overflow.rejects()) {
            while self.state(queue).ready.len() > limit
                && let Some(oldest) = self.state(queue).ready.pop_front()
            {
                self.die(queue, oldest, Reason::Maxlen);
            }
        }
        if let Some(at) = expires_at {
            self.plan(at, queue, Change::Expire);
        }
        true
    }

    /// Dead-letters the expired messages at the head of a queue. Messages expire only there.
    pub(super) fn expire(&mut self, queue: &QueueName) {
        let now = self.now;
        let is_expired = |copy: &Copy| copy.expires_at.is_some_and(|at| at <= now);
        while self.state(queue).ready.front().is_some_and(is_expired)
            && let Some(copy) = self.state(queue).ready.pop_front()
        {
            self.die(queue, copy, Reason::Expired);
        }
    }

    /// Returns a copy to the front of its queue.
    pub(super) fn return_to_front(&mut self, queue: &QueueName, copy: Copy) {
        self.state(queue).ready.push_front(copy);
        // It may have expired in the meantime.
        if !self.is_received(queue) {
            self.expire(queue);
        }
        self.deliver(queue);
    }
}
