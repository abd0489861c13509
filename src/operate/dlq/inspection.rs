//! Inspects a dead-letter queue: receives its messages, and returns them to the queue.

use super::dead_letter::DeadLetter;
use super::error::DlqError;
use super::hazard::Hazard;
use super::hazards::{self, DeliveryLimit};
use super::opened::{HoldLimits, Opened};
use super::selection::Selection;
use super::state::VhostState;
use crate::apply::Interrupt;
use crate::broker::message::{HeaderValue, ReceivedMessage};
use crate::broker::transport::{Decision, Gate, MessageHandler, ProcessCounts, ProcessEnd, PropertyEdit, edited};
use crate::broker::{Access, BrokerError};
use crate::model::count::count;
use crate::model::message_headers::{BCC, CC, ORIGINAL_ROUTING_KEY, SOURCE_QUEUE, is_delivery_count};
use crate::model::{ExchangeName, QueueName, QueueType};

/// The options of an inspection.
#[derive(Clone, Debug)]
pub struct InspectOptions {
    /// The messages to report.
    pub selection: Selection,
    /// The maximum number of messages to report.
    pub limit: Option<u64>,
    /// The limits on held messages.
    pub hold: HoldLimits,
    /// The allowed hazards.
    pub allowed: Vec<Hazard>,
}

/// The result of an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The number of messages in the queue before the inspection.
    pub before: u64,
    /// The number of received messages.
    pub received: u64,
    /// The number of messages that matched the selection.
    pub matched: u64,
    /// The number of messages that topo republished to the end of the queue, because they were near the delivery limit.
    pub renewed: u64,
    /// The maximum number of messages that the broker delivers to one consumer before topo processes them.
    pub prefetch: u16,
    /// The reason why the inspection ended.
    pub end: InspectionEnd,
}

impl Inspection {
    /// Returns true if all messages were received.
    pub fn is_complete(&self) -> bool {
        self.end == InspectionEnd::Complete
    }
}

/// The reason why an inspection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InspectionEnd {
    /// All messages were received.
    Complete,
    /// The limit was reached, or the inspection was interrupted.
    Limit,
    /// topo held the maximum number of messages.
    HoldFull,
    /// An error or a time limit ended the inspection. Contains the reason.
    Incomplete(String),
}

/// Inspects the messages in a queue, and calls `visit` for each message that matches, up to the limit. All messages
/// stay in the queue.
///
/// # Errors
/// See [`DlqError`]. An error from `visit` ends the inspection, and [`Inspection::end`] contains the error.
pub async fn inspect(
    access: &Access,
    state: &VhostState,
    queue: &QueueName,
    options: &InspectOptions,
    interrupt: &Interrupt,
    visit: &mut dyn FnMut(DeadLetter) -> Result<(), String>,
) -> Result<Inspection, DlqError> {
    state.expect_queue(queue)?;
    hazards::refuse_low_limit(state, queue)?;
    hazards::refuse(hazards::of_inspection(state, queue), &options.allowed)?;
    let mut opened = Opened::open(access, state, queue, (options.hold, WINDOW), &options.allowed).await?;
    if let Some(limit) = options.limit.filter(|_| options.selection.is_empty() && state.kind(queue) == Some(CLASSIC)) {
        // A classic queue need not deliver messages beyond the limit. A quorum queue must also deliver all messages
        // that earlier runs returned.
        opened.order.prefetch = opened.order.prefetch.min(u16::try_from(limit).unwrap_or(u16::MAX));
    }
    let mut reader = Reader::new(state, queue);
    if let Err(error) = reader.prepare(&opened).await {
        opened.close().await;
        return Err(error.into());
    }
    let mut handler = Inspector { reader, options, interrupt, visit, matched: 0, failure: None };
    let processed = opened.process(&mut handler).await;
    let Inspector { matched, failure, .. } = handler;
    let (before, prefetch) = (opened.order.expected, opened.order.prefetch);
    if processed.is_ok() && state.kind(queue) != Some(QueueType::Stream) {
        opened.wait_for_returned(before).await;
    }
    opened.close().await;
    let processed = processed?;
    let end = match (failure, processed.end) {
        (Some(failure), _) => InspectionEnd::Incomplete(failure),
        (None, _) if processed.of_other_users > 0 => InspectionEnd::Incomplete(format!(
            "{} near the delivery limit cannot be published again, because `user_id` names a different user",
            count(processed.of_other_users, "message")
        )),
        (None, ProcessEnd::Complete) => InspectionEnd::Complete,
        (None, ProcessEnd::Ended) => InspectionEnd::Limit,
        (None, ProcessEnd::HoldFull) => InspectionEnd::HoldFull,
        (None, other) => InspectionEnd::Incomplete(super::report::end_text(&other)),
    };
    Ok(Inspection {
        before,
        received: processed.counts.received,
        matched,
        renewed: processed.counts.published,
        prefetch,
        end,
    })
}

/// The queue type that returns messages to their original positions.
const CLASSIC: QueueType = QueueType::Classic;

/// The maximum number of messages in doubt. In an inspection, only renewed messages can be in doubt.
const WINDOW: u16 = 100;

/// Reads the messages in a queue. Renews a message near its delivery limit: republishes it to the end of the queue.
pub(super) struct Reader<'a> {
    state: &'a VhostState,
    queue: &'a QueueName,
    /// The delivery limit of the queue; `None` if the run does not renew messages.
    limit: Option<DeliveryLimit>,
    position: u64,
    /// The number of renewed messages.
    pub(super) renewed: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(state: &'a VhostState, queue: &'a QueueName) -> Self {
        Self { state, queue, limit: DeliveryLimit::of(state, queue), position: 0, renewed: 0 }
    }

    /// Checks that the user may renew messages. If the user may not, and the queue does not count inspections, the run
    /// continues without renewing messages.
    ///
    /// # Errors
    /// Each inspection counts as a delivery, and the user is not allowed to publish to the default exchange; or the
    /// check itself fails.
    pub(super) async fn prepare(&mut self, opened: &Opened) -> Result<(), BrokerError> {
        let Some(limit) = self.limit else { return Ok(()) };
        match opened.transport.check_publish(&ExchangeName::new("")).await {
            Err(BrokerError::AccessRefused { .. }) if !limit.is_costly => self.limit = None,
            checked => checked?,
        }
        Ok(())
    }

    /// Reads the next message.
    pub(super) fn read(&mut self, message: ReceivedMessage) -> DeadLetter {
        self.position += 1;
        self.describe(message)
    }

    /// Reads a message without advancing the position.
    pub(super) fn describe(&self, message: ReceivedMessage) -> DeadLetter {
        let state = self.state;
        DeadLetter::of(self.position, message, |name| state.is_intermediate(name), |name| state.has_queue(name))
    }

    /// Returns true if the run must read all messages. A message that is delivered but not read would return to the
    /// queue and could exceed its delivery limit.
    pub(super) fn must_read_all(&self) -> bool {
        self.limit.is_some_and(|limit| limit.is_costly)
    }

    /// Returns the decision for a message that stays. The broker would drop or dead-letter a message that returns at
    /// its delivery limit. topo instead publishes the message to the end of the queue. topo does so several deliveries
    /// before the limit, because a killed run also counts as a delivery.
    pub(super) fn keep(&mut self, it: &DeadLetter) -> Decision {
        if self.limit.is_none_or(|limit| !limit.is_near(it.delivery_count())) {
            return Decision::Keep;
        }
        // Publishing through the default exchange changes the routing key.
        let text = |text: &str| HeaderValue::Text(text.to_owned());
        let mut adds = Vec::new();
        if it.is_routing_key_known || it.original_routing_key != self.queue.as_str() {
            adds.push((ORIGINAL_ROUTING_KEY, text(&it.original_routing_key)));
        }
        if let Some(source) = &it.source {
            adds.push((SOURCE_QUEUE, text(source.as_str())));
        }
        let edit = PropertyEdit {
            removes: |name| is_delivery_count(name) || [CC, BCC].contains(&name),
            adds: &adds,
            makes_persistent: false,
        };
        match edited(&it.message.encoded_properties, &edit) {
            Some(encoded_properties) => {
                self.renewed += 1;
                let routing_key = self.queue.as_str().to_owned();
                Decision::Publish { exchange: ExchangeName::new(""), routing_key, encoded_properties }
            }
            None => Decision::Keep,
        }
    }
}

struct Inspector<'a> {
    reader: Reader<'a>,
    options: &'a InspectOptions,
    interrupt: &'a Interrupt,
    visit: &'a mut dyn FnMut(DeadLetter) -> Result<(), String>,
    matched: u64,
    failure: Option<String>,
}

impl Inspector<'_> {
    fn is_limit_reached(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.matched >= limit)
    }
}

impl MessageHandler for Inspector<'_> {
    fn gate(&mut self) -> Gate {
        let is_limited = self.is_limit_reached() && !self.reader.must_read_all();
        if is_limited || self.failure.is_some() || self.interrupt.is_requested() { Gate::Closed } else { Gate::Open }
    }

    fn decide(&mut self, message: ReceivedMessage) -> Decision {
        let it = self.reader.read(message);
        let decision = self.reader.keep(&it);
        if !self.is_limit_reached() && self.options.selection.matches(&it) {
            self.matched += 1;
            self.failure = (self.visit)(it).err();
        }
        decision
    }

    fn may_return_unread(&self) -> bool {
        !self.reader.must_read_all()
    }

    fn progressed(&mut self, _: &ProcessCounts) {}
}
