//! Deliveries to workers, and the methods that workers call.

use super::copy::Copy;
use super::outcome::{End, EventKind};
use super::publication::Behavior;
use super::run::{Change, QueueState, Run};
use crate::contract::{Answer, AttemptCounter, Contract, Method};
use crate::model::message_headers::{ORIGINAL_EXCHANGE, ORIGINAL_ROUTING_KEY, RETRY_COUNT};
use crate::model::{ArgumentValue, Arguments, QueueName, QueueType};
use crate::rabbitmq::redelivery_delays;
use crate::rabbitmq::routing::{DeathHistory, Reason};

impl Run<'_, '_, '_> {
    pub(super) fn state(&mut self, queue: &QueueName) -> &mut QueueState {
        self.queues.entry(queue.clone()).or_default()
    }

    /// Returns true if a worker receives the next message of the queue at once.
    pub(super) fn is_received(&self, queue: &QueueName) -> bool {
        self.workers.contains_key(queue) && !self.queues.get(queue).is_some_and(|state| state.is_blocked)
    }

    /// Delivers the messages of a queue to its worker.
    pub(super) fn deliver(&mut self, queue: &QueueName) {
        let Some(worker) = self.workers.get(queue) else { return };
        while !self.state(queue).is_blocked
            && let Some(copy) = self.state(queue).ready.pop_front()
        {
            let state = self.state(queue);
            let behavior = worker.behavior(state.deliveries);
            state.deliveries += 1;
            let attempt = state.deliveries;
            let now = self.now;
            self.outcome.attempts.entry(queue.clone()).or_default().push(now);
            self.event(copy.message, EventKind::Delivered { queue: queue.clone(), attempt, behavior });
            if self.loops(copy.message) {
                self.state(queue).is_blocked = true;
                self.end(queue, copy, End::Loops);
                return;
            }
            if behavior.is_none() {
                self.outcome.unexpected_deliveries.insert(queue.clone());
            }
            self.react(queue, copy, behavior.unwrap_or(Behavior::Hold));
        }
    }

    /// Performs the reaction of a worker.
    fn react(&mut self, queue: &QueueName, copy: Copy, behavior: Behavior) {
        match behavior {
            Behavior::Ack => self.end(queue, copy, End::Acked),
            Behavior::Hold => {
                self.state(queue).is_blocked = true;
                self.end(queue, copy, End::Held);
            }
            Behavior::Nack | Behavior::Reject => self.die(queue, copy, Reason::Rejected),
            Behavior::Requeue | Behavior::Crash => self.requeue(queue, copy, true),
            // From 4.3 on, a quorum queue does not count it.
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
        let is_counted = contract.counter.as_ref().is_some_and(|it| it.counted_by == AttemptCounter::Worker);
        let gives_up = behavior == Behavior::GiveUp || is_counted && copy.retries >= contract.max_retries;
        let answer: &Answer = if gives_up { &contract.on_give_up } else { &contract.on_failure };
        if let Some(publish) = &answer.publish {
            let index = usize::try_from(copy.retries).unwrap_or(usize::MAX).min(publish.routing_keys.len() - 1);
            let mut next = copy.clone();
            if is_counted && !gives_up {
                next.retries += 1;
                let mut headers: Arguments = [(RETRY_COUNT.to_owned(), i64::from(next.retries).into())].into();
                if copy.retries == 0 {
                    headers.insert(ORIGINAL_EXCHANGE.to_owned(), ArgumentValue::from(copy.exchange.as_str()));
                    headers.insert(ORIGINAL_ROUTING_KEY.to_owned(), ArgumentValue::from(copy.routing_key.as_str()));
                }
                next.set_headers(&headers);
            }
            next.exchange = publish.exchange.clone();
            next.routing_key = publish.routing_keys.get(index).cloned().unwrap_or_default();
            if self.simulation.profile.version.is_at_least(4, 0) {
                // The broker does not read `x-death` of clients.
                next.history = DeathHistory::default();
            }
            self.publish(next);
        }
        match (answer.method, answer.requeue) {
            // The copy goes on as the same message.
            (Method::Ack, _) if answer.publish.is_some() => {}
            (Method::Ack, _) => self.end(queue, copy, End::Acked),
            (Method::Nack, Some(true)) => self.react(queue, copy, Behavior::NackRequeue),
            (Method::Reject, Some(true)) => self.react(queue, copy, Behavior::Requeue),
            (Method::Nack | Method::Reject, _) => self.die(queue, copy, Reason::Rejected),
        }
    }

    /// Returns a message to its queue. `is_counted` is true if a quorum queue counts the delivery.
    fn requeue(&mut self, queue: &QueueName, mut copy: Copy, is_counted: bool) {
        let settings = self.simulation.settings.get(queue);
        let Some(settings) = settings.filter(|it| it.kind() == Some(QueueType::Quorum)) else {
            self.state(queue).ready.push_front(copy);
            return;
        };
        if is_counted {
            copy.delivery_count += 1;
            if settings.delivery_limit().is_some_and(|limit| copy.delivery_count > limit) {
                self.die(queue, copy, Reason::DeliveryLimit);
                return;
            }
        }
        let limits = settings.integer("delayed-retry-min").zip(settings.integer("delayed-retry-max"));
        let is_delayed = match settings.text("delayed-retry-type") {
            Some("all") => true,
            Some("failed") => is_counted,
            Some("returned") => !is_counted,
            Some(_) | None => false,
        };
        match limits.filter(|_| is_delayed) {
            Some((least, most)) => {
                let number = copy.delivery_count.max(1);
                let delay = redelivery_delays(least, most, number).last().unwrap_or(0);
                self.plan(self.now.saturating_add(delay), queue, Change::Redeliver(Box::new(copy)));
            }
            None => self.state(queue).ready.push_front(copy),
        }
    }
}
