//! Runs a simulation: the clock, the tasks at the current time, and the queues with their messages.

use super::copy::Copy;
use super::outcome::{End, EndedCopy, Event, EventKind, Outcome, PublisherResult};
use super::part::RoutingPart;
use super::publication::{Publication, Worker};
use super::topology::SimulatedTopology;
use crate::model::count::number;
use crate::model::{ExchangeName, QueueName};
use crate::rabbitmq::routing::Message;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// The maximum number of tasks in a simulation: a base, and an additional number for each message.
const MAX_TASKS: (u64, u64) = (50_000, 100);
/// The maximum number of events in an outcome.
const MAX_EVENTS: usize = 10_000;
/// The headers that the simulation does not support on published messages.
const UNSUPPORTED_HEADERS: [&str; 2] = ["x-delay", "x-delivery-count"];

/// A queue in the simulation.
#[derive(Default)]
pub(super) struct QueueState {
    /// The messages that are waiting for delivery, oldest first.
    pub(super) ready: VecDeque<Copy>,
    /// The number of deliveries.
    pub(super) deliveries: usize,
    /// True if the queue delivers no more messages, because the worker has not replied or a message loops.
    pub(super) is_blocked: bool,
}

/// A change at the current time. Tasks run from a list instead of recursively, so that long chains of changes do not
/// overflow the stack.
pub(super) enum Task {
    /// A queue delivers its messages to its worker.
    Deliver(QueueName),
    /// A dead-lettered message arrives in a queue.
    Arrive(Box<DeadLetter>),
}

/// A dead-lettered message on its way to a queue.
pub(super) struct DeadLetter {
    /// The queue that dead-lettered the message.
    pub(super) source: QueueName,
    /// The message before its death.
    pub(super) before: Copy,
    /// True if the source keeps messages that no queue accepts.
    pub(super) is_kept: bool,
    /// The queue that receives the message.
    pub(super) target: QueueName,
    /// The message.
    pub(super) copy: Copy,
}

/// A future change.
pub(super) enum Change {
    /// Messages of the queue expire.
    Expire,
    /// The queue delivers a message again.
    Redeliver(Box<Copy>),
    /// A message expires while its redelivery is delayed.
    ExpireDelayed(Box<Copy>),
}

/// The state of a simulation.
pub(super) struct Run<'s, 'r, 'a> {
    pub(super) simulation: &'s SimulatedTopology<'r, 'a>,
    pub(super) workers: &'s BTreeMap<QueueName, Worker>,
    pub(super) now: i64,
    pub(super) queues: BTreeMap<QueueName, QueueState>,
    pub(super) tasks: VecDeque<Task>,
    /// The times of future changes, and their indexes in `changes`.
    calendar: BinaryHeap<Reverse<(i64, usize)>>,
    /// The future changes. A change is `None` once it has been performed.
    changes: Vec<Option<(QueueName, Change)>>,
    performed_tasks: u64,
    max_tasks: u64,
    pub(super) outcome: Outcome,
}

impl<'s, 'r, 'a> Run<'s, 'r, 'a> {
    pub(super) fn new(simulation: &'s SimulatedTopology<'r, 'a>, workers: &'s BTreeMap<QueueName, Worker>) -> Self {
        Self {
            simulation,
            workers,
            now: 0,
            queues: BTreeMap::new(),
            tasks: VecDeque::new(),
            calendar: BinaryHeap::new(),
            changes: Vec::new(),
            performed_tasks: 0,
            max_tasks: MAX_TASKS.0,
            outcome: Outcome::default(),
        }
    }

    pub(super) fn run(mut self, publication: &Publication) -> Outcome {
        self.max_tasks = self.max_tasks.saturating_add(MAX_TASKS.1.saturating_mul(publication.count));
        // On 4.0 and later, the broker ignores the `x-death` header in messages from clients.
        let reads_deaths = !self.simulation.profile.version.is_at_least(4, 0);
        let unsupported = UNSUPPORTED_HEADERS.into_iter().chain(reads_deaths.then_some("x-death"));
        for name in unsupported.filter(|name| publication.headers.contains_key(*name)) {
            self.outcome.unknown.insert(format!("the simulation does not support the {name} header"));
        }
        for message in 1..=publication.count {
            if message == 1 {
                let first = Copy::published(publication, message).as_message();
                let unclear = self.simulation.routing.route(&publication.exchange, &first).unclear;
                let reasons = self.outcome.unknown.first().cloned();
                self.outcome.unknown_route = reasons.or_else(|| unclear.map(|unclear| unclear.to_string()));
            }
            let (queues, result) = self.publish(Copy::published(publication, message));
            *self.outcome.publisher.entry(result).or_default() += 1;
            if message == 1 {
                self.outcome.routed_to = queues;
            }
            self.perform_tasks();
        }
        while let Some(Reverse((at, number))) = self.calendar.pop() {
            let Some((queue, change)) = self.changes.get_mut(number).and_then(Option::take) else { continue };
            self.now = self.now.max(at);
            match change {
                Change::Expire => self.expire(&queue),
                Change::Redeliver(copy) => self.return_to_front(&queue, *copy),
                Change::ExpireDelayed(copy) => self.expire_delayed(&queue, *copy),
            }
            self.perform_tasks();
        }
        self.record_waiting();
        self.outcome
    }

    fn perform_tasks(&mut self) {
        while let Some(task) = self.tasks.pop_front() {
            self.performed_tasks += 1;
            if self.performed_tasks > self.max_tasks {
                self.outcome.unknown.insert(format!("the simulation exceeded {} steps", number(self.max_tasks)));
                self.tasks.clear();
                self.calendar.clear();
                return;
            }
            match task {
                Task::Deliver(queue) => self.deliver(&queue),
                Task::Arrive(dead_letter) => self.add_dead_lettered(*dead_letter),
            }
        }
    }

    /// Schedules a future change to a queue.
    pub(super) fn schedule(&mut self, at: i64, queue: &QueueName, change: Change) {
        self.calendar.push(Reverse((at, self.changes.len())));
        self.changes.push(Some((queue.clone(), change)));
    }

    /// Publishes a copy to its exchange. Returns the queues to which the exchange routed the copy, and the result for
    /// the publisher.
    pub(super) fn publish(&mut self, copy: Copy) -> (BTreeSet<QueueName>, PublisherResult) {
        let queues = self.route(&copy.exchange, &copy.as_message());
        self.record_event(
            copy.message,
            EventKind::Published {
                exchange: copy.exchange.clone(),
                routing_key: copy.routing_key.clone(),
                more_keys: copy.more_keys.keys().map(str::to_owned).collect(),
                queues: queues.clone(),
            },
        );
        let mut result = if queues.is_empty() { PublisherResult::Returned } else { PublisherResult::Confirmed };
        for queue in &queues {
            if !self.add_published(queue, copy.clone()) {
                result = PublisherResult::Refused;
            }
        }
        (queues, result)
    }

    /// Returns the queues to which an exchange is certain to route a message. If the message might also reach other
    /// queues, records the reason.
    pub(super) fn route(&mut self, exchange: &ExchangeName, message: &Message) -> BTreeSet<QueueName> {
        let route = self.simulation.routing.route(exchange, message);
        if self.simulation.is_recording {
            let taken = self.simulation.routing.taken(exchange, message);
            self.outcome.taken.extend(taken.bindings.into_iter().cloned().map(RoutingPart::Binding));
            self.outcome.taken.extend(taken.alternates.into_iter().map(RoutingPart::Alternate));
        }
        self.outcome.unknown.extend(route.unclear.map(|unclear| unclear.to_string()));
        route.certain_queues
    }

    pub(super) fn state(&mut self, queue: &QueueName) -> &mut QueueState {
        self.queues.entry(queue.clone()).or_default()
    }

    pub(super) fn record_event(&mut self, message: u64, kind: EventKind) {
        self.outcome.ended_at = self.now;
        if self.outcome.events.len() < MAX_EVENTS {
            self.outcome.events.push(Event { at: self.now, message, kind });
        } else {
            self.outcome.omitted_events += 1;
        }
    }

    /// Records the end of a copy.
    pub(super) fn record_end(&mut self, queue: &QueueName, copy: Copy, end: End) {
        self.outcome.ends.push(EndedCopy {
            message: copy.message,
            queue: queue.clone(),
            end,
            exchange: copy.exchange,
            routing_key: copy.routing_key,
            headers: copy.headers,
            deaths: copy.deaths,
        });
    }

    /// Records that a copy stays in a queue.
    pub(super) fn record_stay(&mut self, queue: &QueueName, copy: Copy) {
        let end = copy.deaths.first().map_or(End::Waiting, |death| End::Dead(death.reason));
        self.record_end(queue, copy, end);
    }

    /// Records the copies that remain in queues.
    fn record_waiting(&mut self) {
        for (queue, state) in std::mem::take(&mut self.queues) {
            state.ready.into_iter().for_each(|copy| self.record_stay(&queue, copy));
        }
    }
}
