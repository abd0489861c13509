//! Decides whether and where to publish each message in a replay, and controls the rate.

use super::super::dead_letter::DeadLetter;
use super::super::inspection::Reader;
use super::super::report::{MAX_CAME_BACK, ReturnedMessage, RunCounts, RunEnd};
use super::breaker::{BreakerState, Verdict};
use super::plan::target_of;
use super::{ReplayOptions, ReturnPath};
use crate::apply::Interrupt;
use crate::broker::message::{HeaderValue, ReceivedMessage};
use crate::broker::transport::{Decision, Gate, MessageHandler, ProcessCounts, PropertyEdit, edited};
use crate::model::message_headers::{
    ORIGINAL_EXCHANGE, ORIGINAL_ROUTING_KEY, REPLAY_RUN, REPLAYS, is_removed_from_replayed,
};
use crate::model::{ExchangeName, QueueName};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The interval between two checks of the breaker while the replay waits.
const WAIT: Duration = Duration::from_millis(100);

/// The reason why a run stops at a returned message with a high priority.
const PRIORITY: &str = "because of its priority, a message that came back was delivered before older messages";

/// The prepared path to a target.
pub(super) struct PreparedTarget {
    pub(super) path: ReturnPath,
    /// The exchange; empty for the default exchange and for the original exchange.
    pub(super) exchange: ExchangeName,
}

/// The counts of messages that have arrived and that this run did not replay. Both counts can include the same message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    /// The messages that the observer received.
    observed: u64,
    /// The messages that the queue delivered in the current pass.
    delivered: u64,
}

/// The handler of a replay.
pub(super) struct Replayer<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) options: &'a ReplayOptions,
    pub(super) targets: &'a BTreeMap<QueueName, PreparedTarget>,
    pub(super) breaker: BreakerState,
    pub(super) interrupt: &'a Interrupt,
    pub(super) progress: &'a dyn Fn(&ProcessCounts, u64),
    pub(super) counts: RunCounts,
    /// The messages that arrived after the start of the run and that this run did not replay.
    pub(super) arrived: Arrivals,
    /// The lowest priority at which the queue delivers a message before older messages; `None` if the queue has no
    /// priorities.
    pub(super) min_priority: Option<u8>,
    /// The first messages that came back, at most [`MAX_CAME_BACK`].
    pub(super) came_back: Vec<ReturnedMessage>,
    /// The earliest time at which the next message can be replayed.
    pub(super) next: Instant,
    pub(super) ended: Option<RunEnd>,
}

impl Replayer<'_> {
    fn is_limit_reached(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.breaker.next_number() >= limit)
    }

    /// Returns the decision for a message that matches the selection.
    fn replay(&mut self, it: &DeadLetter) -> Decision {
        if it.replays() > 0 && !self.options.again {
            self.counts.replayed_before += 1;
            return self.reader.keep(it);
        }
        let target = target_of(&self.options.destination, it);
        let Some((queue, prepared)) = target.and_then(|queue| self.targets.get_key_value(&queue)) else {
            self.counts.unknown_source += 1;
            return self.reader.keep(it);
        };
        let key = it.original_routing_key.clone();
        let (exchange, routing_key) = match &prepared.path {
            ReturnPath::ReturnExchange(_) | ReturnPath::TemporaryExchange => (prepared.exchange.clone(), key),
            ReturnPath::DefaultExchange => (ExchangeName::new(""), queue.as_str().to_owned()),
            ReturnPath::OriginalExchange => (ExchangeName::new(it.original_exchange.clone().unwrap_or_default()), key),
        };
        let Some(encoded_properties) = self.edited(it) else {
            self.counts.unreadable += 1;
            return self.reader.keep(it);
        };
        self.breaker.record_replay(Instant::now());
        if let Some(rate) = self.options.rate {
            self.next = self.next.max(Instant::now()) + Duration::from_secs_f64(1.0 / rate);
        }
        Decision::Publish { exchange, routing_key, encoded_properties }
    }

    /// Returns the properties of the replayed message without the history of its failed deliveries. Adds the original
    /// exchange and routing key, so that they are still known after another death. Returns `None` if the properties
    /// cannot be read.
    fn edited(&self, it: &DeadLetter) -> Option<Vec<u8>> {
        let text = |text: &str| HeaderValue::Text(text.to_owned());
        let run = format!("{}/{}", self.options.run, self.breaker.next_number());
        let mut adds = vec![(REPLAYS, HeaderValue::Integer(i128::from(it.replays()) + 1)), (REPLAY_RUN, text(&run))];
        if let Some(exchange) = &it.original_exchange {
            adds.push((ORIGINAL_EXCHANGE, text(exchange)));
        }
        if it.is_routing_key_known {
            adds.push((ORIGINAL_ROUTING_KEY, text(&it.original_routing_key)));
        }
        let edit = PropertyEdit { removes: is_removed_from_replayed, adds: &adds, makes_persistent: true };
        edited(&it.message.encoded_properties, &edit)
    }

    /// Records a message that came back. Returns false if this run did not replay the message.
    fn record_if_returned(&mut self, message: &ReceivedMessage) -> bool {
        let Some(number) = self.number(message) else { return false };
        if self.breaker.record_return(number) && self.came_back.len() < MAX_CAME_BACK {
            self.came_back.push(came_back(self.reader.describe(message.clone())));
        }
        true
    }

    fn count_arrived(&mut self) {
        self.counts.arrived = self.counts.arrived.max(self.arrived.observed).max(self.arrived.delivered);
    }

    /// Returns the number that this run assigned to a message; `None` if this run did not replay the message.
    fn number(&self, message: &ReceivedMessage) -> Option<u64> {
        let (run, number) = message.text_header(REPLAY_RUN)?.split_once('/')?;
        if run == self.options.run { number.parse().ok() } else { None }
    }
}

impl MessageHandler for Replayer<'_> {
    fn gate(&mut self) -> Gate {
        let now = Instant::now();
        let verdict = self.breaker.verdict(now);
        self.ended = match verdict {
            _ if self.interrupt.is_requested() => Some(RunEnd::Interrupted),
            Verdict::Stop { judged } => Some(RunEnd::Breaker { judged }),
            _ if self.is_limit_reached() && !self.reader.must_read_all() => {
                if !self.breaker.is_done(now) {
                    return Gate::Until(now + WAIT);
                }
                Some(RunEnd::Limit)
            }
            Verdict::Continue | Verdict::Wait => None,
        };
        match verdict {
            _ if self.ended.is_some() => Gate::Closed,
            Verdict::Wait => Gate::Until(now + WAIT),
            Verdict::Continue | Verdict::Stop { .. } if self.next > now => Gate::Until(self.next),
            Verdict::Continue | Verdict::Stop { .. } => Gate::Open,
        }
    }

    fn decide(&mut self, message: ReceivedMessage) -> Decision {
        // Unless priorities changed the order, this message and all later ones came back or arrived after the start.
        if self.number(&message).is_some() {
            let priority = message.properties.priority.unwrap_or(0);
            let is_early = self.min_priority.is_some_and(|min| priority >= min);
            self.ended = Some(if is_early { RunEnd::Stopped(PRIORITY.to_owned()) } else { RunEnd::Complete });
            return Decision::End;
        }
        let it = self.reader.read(message);
        if self.is_limit_reached() || !self.options.selection.matches(&it) {
            return self.reader.keep(&it);
        }
        self.counts.matched += 1;
        self.replay(&it)
    }

    fn arrived(&mut self, message: &ReceivedMessage) {
        if !self.record_if_returned(message) {
            self.arrived.delivered += 1;
            self.count_arrived();
        }
    }

    fn observed(&mut self, message: &ReceivedMessage) {
        if !self.record_if_returned(message) {
            self.arrived.observed += 1;
            self.count_arrived();
        }
    }

    fn is_done(&mut self) -> bool {
        self.breaker.is_done(Instant::now())
    }

    fn reopen(&mut self) -> bool {
        let matched = self.breaker.next_number();
        self.counts = RunCounts { matched, arrived: self.counts.arrived, ..RunCounts::default() };
        // The next pass receives these messages again.
        self.arrived.delivered = 0;
        // The positions change between passes. If the queue counts deliveries, each pass costs one more delivery.
        self.options.selection.positions.is_empty() && !self.reader.must_read_all()
    }

    fn may_return_unread(&self) -> bool {
        !self.reader.must_read_all()
    }

    fn progressed(&mut self, counts: &ProcessCounts) {
        let published = counts.published.saturating_sub(self.reader.renewed);
        (self.progress)(&ProcessCounts { published, ..*counts }, self.breaker.returned());
    }
}

fn came_back(it: DeadLetter) -> ReturnedMessage {
    ReturnedMessage {
        fingerprint: it.fingerprint(),
        error: it.error().map(str::to_owned),
        source: it.source,
        routing_key: it.original_routing_key,
    }
}
