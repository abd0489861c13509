//! Runs a simulation: the clock, and the queues with their messages.

use super::Simulation;
use super::copy::Copy;
use super::outcome::{End, EndedCopy, Event, EventKind, Outcome, PublisherResult};
use super::publication::{Publication, Worker};
use crate::model::{ExchangeName, QueueName};
use crate::rabbitmq::routing::{Certainty, Message};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// The number of deliveries and deaths of one message after which it counts as moving without an end.
const MAX_MOVES: u32 = 1_000;

/// A queue of the simulation.
#[derive(Default)]
pub(super) struct QueueState {
    /// The messages that wait for a delivery, the oldest first.
    pub(super) ready: VecDeque<Copy>,
    /// The number of deliveries.
    pub(super) deliveries: usize,
    /// True if the worker has not replied to a delivery.
    pub(super) is_blocked: bool,
}

/// A future change.
pub(super) enum Change {
    /// Messages of the queue expire.
    Expire,
    /// The queue delivers a message again.
    Redeliver(Box<Copy>),
}

/// The state of a simulation.
pub(super) struct Run<'s, 'r, 'a> {
    pub(super) simulation: &'s Simulation<'r, 'a>,
    pub(super) workers: &'s BTreeMap<QueueName, Worker>,
    pub(super) now: i64,
    pub(super) queues: BTreeMap<QueueName, QueueState>,
    /// The times and the numbers of future changes.
    pub(super) calendar: BinaryHeap<Reverse<(i64, usize)>>,
    /// The future changes by number.
    pub(super) changes: Vec<Option<(QueueName, Change)>>,
    /// The number of moves of each message.
    moves: BTreeMap<u64, u32>,
    pub(super) outcome: Outcome,
}

impl<'s, 'r, 'a> Run<'s, 'r, 'a> {
    pub(super) fn new(simulation: &'s Simulation<'r, 'a>, workers: &'s BTreeMap<QueueName, Worker>) -> Self {
        Self {
            simulation,
            workers,
            now: 0,
            queues: BTreeMap::new(),
            calendar: BinaryHeap::new(),
            changes: Vec::new(),
            moves: BTreeMap::new(),
            outcome: Outcome::default(),
        }
    }

    pub(super) fn run(mut self, publication: &Publication) -> Outcome {
        for message in 1..=publication.count {
            let copy = Copy::published(publication, message);
            let (queues, result) = self.publish(copy);
            *self.outcome.publisher.entry(result).or_default() += 1;
            if message == 1 {
                self.outcome.routed_to = queues;
            }
        }
        while let Some(Reverse((at, number))) = self.calendar.pop() {
            let Some((queue, change)) = self.changes.get_mut(number).and_then(Option::take) else { continue };
            self.now = self.now.max(at);
            match change {
                Change::Expire => self.expire(&queue),
                Change::Redeliver(copy) => self.return_to_front(&queue, *copy),
            }
        }
        self.end_waiting();
        self.outcome
    }

    /// Plans a change of a queue.
    pub(super) fn plan(&mut self, at: i64, queue: &QueueName, change: Change) {
        self.calendar.push(Reverse((at, self.changes.len())));
        self.changes.push(Some((queue.clone(), change)));
    }

    /// Publishes a copy to its exchange. Returns the queues that it was routed to, and the result for the publisher.
    pub(super) fn publish(&mut self, copy: Copy) -> (BTreeSet<QueueName>, PublisherResult) {
        let queues = self.route(&copy.exchange, &copy.as_message());
        self.event(
            copy.message,
            EventKind::Published {
                exchange: copy.exchange.clone(),
                routing_key: copy.routing_key.clone(),
                queues: queues.clone(),
            },
        );
        let mut result = if queues.is_empty() { PublisherResult::Returned } else { PublisherResult::Confirmed };
        for queue in &queues {
            if !self.arrive(queue, copy.clone()) {
                result = PublisherResult::Refused;
            }
        }
        (queues, result)
    }

    /// Returns the queues to which an exchange routes a message. Records a reason if they are not known.
    pub(super) fn route(&mut self, exchange: &ExchangeName, message: &Message) -> BTreeSet<QueueName> {
        let route = self.simulation.routing.route(exchange, message);
        if let Some(unclear) =
            route.unclear.filter(|_| route.reaches == Certainty::Perhaps || !route.possible_queues.is_empty())
        {
            self.outcome.unknown.insert(unclear.to_string());
        }
        route.certain_queues
    }

    /// Counts a move of a message. Returns true if it moves without an end.
    pub(super) fn loops(&mut self, message: u64) -> bool {
        let moves = self.moves.entry(message).or_default();
        *moves += 1;
        *moves > MAX_MOVES
    }

    pub(super) fn event(&mut self, message: u64, kind: EventKind) {
        self.outcome.ended_at = self.now;
        self.outcome.events.push(Event { at: self.now, message, kind });
    }

    /// Records the end of a copy.
    pub(super) fn end(&mut self, queue: &QueueName, copy: Copy, end: End) {
        self.outcome.ends.push(EndedCopy {
            queue: queue.clone(),
            end,
            exchange: copy.exchange,
            routing_key: copy.routing_key,
            headers: copy.headers,
            deaths: copy.deaths,
        });
    }

    /// Ends the copies that stay in queues.
    fn end_waiting(&mut self) {
        for (queue, state) in std::mem::take(&mut self.queues) {
            for copy in state.ready {
                let end = copy.deaths.first().map_or(End::Waiting, |death| End::Dead(death.reason));
                self.end(&queue, copy, end);
            }
        }
    }
}
