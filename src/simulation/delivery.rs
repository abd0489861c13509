//! Simulates deliveries to workers, and the methods that workers call.

use super::copy::Copy;
use super::outcome::{End, EventKind, PublisherResult};
use super::publication::Behavior;
use super::run::{Change, Run};
use crate::contract::{Contract, Method};
use crate::model::{QueueName, QueueType};
use crate::rabbitmq::redelivery_delays;
use crate::rabbitmq::routing::Reason;

/// The number of deliveries after which a copy is considered to loop.
const MAX_DELIVERIES: u32 = 1_000;

impl Run<'_, '_, '_> {
    /// Returns true if a worker receives the next message of the queue immediately.
    pub(super) fn has_ready_worker(&self, queue: &QueueName) -> bool {
        self.workers.contains_key(queue) && !self.queues.get(queue).is_some_and(|state| state.is_blocked)
    }

    /// Delivers the messages in a queue to its worker.
    pub(super) fn deliver(&mut self, queue: &QueueName) {
        let Some(worker) = self.workers.get(queue) else { return };
        while !self.state(queue).is_blocked
            && let Some(mut copy) = self.state(queue).ready.pop_front()
        {
            let state = self.state(queue);
            let behavior = worker.behavior(state.deliveries);
            state.deliveries += 1;
            let attempt = state.deliveries;
            let now = self.now;
            self.outcome.attempts.entry(queue.clone()).or_default().push(now);
            let method = behavior.and_then(|behavior| self.method(queue, &copy, behavior));
            self.record_event(copy.message, EventKind::Delivered { queue: queue.clone(), attempt, behavior, method });
            copy.deliveries += 1;
            if copy.deliveries > MAX_DELIVERIES {
                self.state(queue).is_blocked = true;
                self.record_end(queue, copy, End::Loops);
                return;
            }
            if behavior.is_none() {
                self.outcome.unexpected_deliveries.insert(queue.clone());
            }
            self.react(queue, copy, behavior.unwrap_or(Behavior::Hold));
        }
    }

    /// Returns the method that a worker calls, with its `requeue` flag. Returns `None` if the worker calls no method,
    /// or if its contract is unknown.
    fn method(&self, queue: &QueueName, copy: &Copy, behavior: Behavior) -> Option<(Method, Option<bool>)> {
        match behavior {
            Behavior::Ack => Some((Method::Ack, None)),
            Behavior::Nack => Some((Method::Nack, Some(false))),
            Behavior::Reject => Some((Method::Reject, Some(false))),
            Behavior::Requeue => Some((Method::Reject, Some(true))),
            Behavior::NackRequeue => Some((Method::Nack, Some(true))),
            Behavior::Crash | Behavior::Hold => None,
            Behavior::Fail | Behavior::GiveUp => {
                let contract = self.simulation.contracts.get(queue)?;
                let answer = contract.reaction(copy.retries, behavior == Behavior::GiveUp).answer;
                Some((answer.method, answer.requeue))
            }
        }
    }

    /// Performs the reaction of a worker.
    fn react(&mut self, queue: &QueueName, copy: Copy, behavior: Behavior) {
        let kind = self.simulation.settings.get(queue).and_then(|settings| settings.kind());
        match behavior {
            Behavior::Hold => {
                self.state(queue).is_blocked = true;
                self.record_end(queue, copy, End::Held);
            }
            // A stream keeps its messages regardless of the reply.
            _ if kind == Some(QueueType::Stream) => self.record_stay(queue, copy),
            Behavior::Ack => self.record_end(queue, copy, End::Acked),
            Behavior::Nack => self.dead_letter(queue, copy, Reason::Rejected),
            Behavior::Reject => {
                let is_counted = self.simulation.profile.version.is_at_least(4, 3) && kind == Some(QueueType::Quorum);
                let delivery_count = copy.delivery_count + i64::from(is_counted);
                self.dead_letter(queue, Copy { delivery_count, ..copy }, Reason::Rejected);
            }
            Behavior::Requeue | Behavior::Crash => self.requeue(queue, copy, true),
            // On 4.3 and later, a quorum queue does not count `basic.nack` with `requeue=true`.
            Behavior::NackRequeue => {
                let is_counted = !self.simulation.profile.version.is_at_least(4, 3);
                self.requeue(queue, copy, is_counted);
            }
            Behavior::Fail | Behavior::GiveUp => match self.simulation.contracts.get(queue) {
                Some(contract) => self.reply(queue, copy, contract, behavior),
                None => {
                    self.outcome.unknown.insert(format!("queue {queue} has no contract"));
                }
            },
        }
    }

    /// Performs the reaction that a contract requires.
    fn reply(&mut self, queue: &QueueName, copy: Copy, contract: &Contract, behavior: Behavior) {
        let reaction = contract.reaction(copy.retries, behavior == Behavior::GiveUp);
        let answer = reaction.answer;
        if let Some(publish) = &answer.publish {
            let mut next = copy.clone();
            let headers = reaction.headers(copy.exchange.as_str(), &copy.routing_key);
            if !headers.is_empty() {
                next.retries += 1;
                next.set_headers(&headers);
            }
            next.exchange = publish.exchange.clone();
            next.routing_key = reaction.routing_key(publish).to_owned();
            next.set_republished_keys();
            next.delivery_count = 0;
            // On 4.0 and later, the broker ignores the `x-death` header in messages from clients.
            next.has_foreign_deaths = self.simulation.profile.version.is_at_least(4, 0);
            let (_, result) = self.publish(next);
            if result != PublisherResult::Confirmed {
                self.record_end(queue, copy.clone(), End::Dropped);
            }
        }
        match (answer.method, answer.requeue) {
            // The published copy replaces this copy.
            (Method::Ack, _) if answer.publish.is_some() => {}
            (Method::Ack, _) => self.record_end(queue, copy, End::Acked),
            (Method::Nack, Some(true)) => self.react(queue, copy, Behavior::NackRequeue),
            (Method::Reject, Some(true)) => self.react(queue, copy, Behavior::Requeue),
            (Method::Nack, _) => self.react(queue, copy, Behavior::Nack),
            (Method::Reject, _) => self.react(queue, copy, Behavior::Reject),
        }
    }

    /// Returns a message to its queue. `is_counted` is true if a quorum queue counts the delivery. If the count exceeds
    /// the delivery limit, dead-letters the message instead.
    fn requeue(&mut self, queue: &QueueName, mut copy: Copy, is_counted: bool) {
        let settings = self.simulation.settings.get(queue);
        let Some(settings) = settings.filter(|it| it.kind() == Some(QueueType::Quorum)) else {
            self.state(queue).ready.push_front(copy);
            return;
        };
        if is_counted {
            copy.delivery_count += 1;
            if settings.delivery_limit().is_some_and(|limit| copy.delivery_count > limit) {
                self.dead_letter(queue, copy, Reason::DeliveryLimit);
                return;
            }
        }
        let is_delayed = match settings.text("delayed-retry-type") {
            Some("all") => true,
            Some("failed") => is_counted,
            Some("returned") => !is_counted,
            Some(_) | None => false,
        };
        let min_delay = settings.integer("delayed-retry-min").filter(|_| is_delayed);
        let Some(min_delay) = min_delay else {
            self.state(queue).ready.push_front(copy);
            return;
        };
        // Without a maximum, all delays are equal.
        let max_delay = settings.integer("delayed-retry-max").unwrap_or(min_delay);
        let delay = redelivery_delays(min_delay, max_delay, copy.delivery_count.max(1)).last().unwrap_or(0);
        let due = self.now.saturating_add(delay);
        match copy.expires_at.filter(|at| *at <= due) {
            Some(at) => self.schedule(at.max(self.now), queue, Change::ExpireDelayed(Box::new(copy))),
            None => self.schedule(due, queue, Change::Redeliver(Box::new(copy))),
        }
    }
}
