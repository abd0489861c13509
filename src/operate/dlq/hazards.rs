//! Finds the hazards of the `topo dlq` commands before the first message is moved.

use super::error::DlqError;
use super::hazard::Hazard;
use super::state::VhostState;
use crate::broker::Access;
use crate::model::count::{count, number};
use crate::model::{BrokerVersion, QueueName, QueueType};
use std::time::Duration;

/// Returns the hazards of reading a dead-letter queue.
///
/// A length limit causes no hazard. Held messages do not count toward the limit. When they return, the queue drops the
/// same messages that it would have dropped without the inspection.
pub(super) fn of_inspection(state: &VhostState, queue: &QueueName) -> Vec<(Hazard, String)> {
    let mut hazards = Vec::new();
    hazards.extend(state.consumers(queue).filter(|count| *count > 0).map(|count| of_other_consumers(queue, count)));
    if let Some(DeliveryLimit { limit, is_costly }) = DeliveryLimit::of(state, queue) {
        let counted = if is_costly {
            format!("each inspection of queue `{queue}` counts toward its delivery limit of {limit}")
        } else {
            format!(
                "a killed inspection of queue `{queue}` counts toward its delivery limit of {limit}, and so do deliveries \
                 from earlier queues"
            )
        };
        let text = format!(
            "{counted}; topo moves messages near the limit to the end of the queue. A policy with `delivery-limit: -1` \
             removes the limit"
        );
        hazards.push((Hazard::InspectionCost, text));
    }
    hazards
}

/// Returns the hazard of a dead-letter queue with consumers.
pub(super) fn of_other_consumers(queue: &QueueName, consumers: u64) -> (Hazard, String) {
    let text = format!(
        "queue `{queue}` has {}; topo does not see messages that are delivered to other consumers",
        count(consumers, "consumer")
    );
    (Hazard::OtherConsumers, text)
}

/// The number of remaining deliveries at which topo renews a message.
const MARGIN: u64 = 4;

/// The delivery limit of a quorum queue. On RabbitMQ 4.3 and later, the queue compares the limit with a delivery count
/// that includes deliveries from earlier queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeliveryLimit {
    /// The maximum delivery count of a message that stays in the queue.
    limit: u64,
    /// True if each inspection counts as a delivery. Otherwise, only a killed run counts.
    pub(super) is_costly: bool,
}

impl DeliveryLimit {
    /// Returns the delivery limit of a quorum queue; `None` for queues without a limit and for other queue types. As
    /// of RabbitMQ 4.0, quorum queues have a default limit.
    pub(super) fn of(state: &VhostState, queue: &QueueName) -> Option<Self> {
        let settings = state.settings(queue).filter(|_| state.kind(queue) == Some(QueueType::Quorum))?;
        let limit = u64::try_from(settings.delivery_limit()?).unwrap_or(0);
        Some(Self { limit, is_costly: !returns_uncounted(state.snapshot.profile.version) })
    }

    /// Returns the minimum limit that a queue must have for an inspection. With a lower limit, messages could be lost.
    fn required(self) -> u64 {
        if self.is_costly { 2 * MARGIN } else { 1 }
    }

    /// Returns true if topo renews a message with this delivery count. If inspections are not counted, the margin is
    /// only for killed runs, so topo does not renew a message that has never been delivered.
    pub(super) fn is_near(self, delivery_count: u64) -> bool {
        let margin = if self.is_costly { MARGIN } else { MARGIN.min(self.limit / 2).max(1) };
        delivery_count + margin >= self.limit && (self.is_costly || delivery_count > 0)
    }
}

/// Returns true on RabbitMQ 4.3 and later. In these versions, a quorum queue does not count a delivery that is returned
/// with `basic.nack`, but counts deliveries that are returned because the channel is closed.
pub(super) fn returns_uncounted(version: BrokerVersion) -> bool {
    version.is_at_least(4, 3)
}

/// Refuses a queue whose delivery limit is so low that an inspection could lose messages.
///
/// # Errors
/// [`DlqError::LowLimit`] if the limit is too low.
pub(super) fn refuse_low_limit(state: &VhostState, queue: &QueueName) -> Result<(), DlqError> {
    match DeliveryLimit::of(state, queue).filter(|it| it.limit < it.required()) {
        Some(it) => Err(DlqError::LowLimit { queue: queue.clone(), limit: it.limit, required: it.required() }),
        None => Ok(()),
    }
}

/// The messages that a command publishes to a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    pub(super) messages: u64,
    /// The total size of the bodies in bytes; `None` if unknown.
    pub(super) bytes: Option<u64>,
}

/// Returns the hazard if a queue would drop its oldest messages when it receives the incoming messages.
pub(super) async fn of_receiving(
    access: &Access,
    state: &VhostState,
    target: &QueueName,
    incoming: Incoming,
) -> Option<(Hazard, String)> {
    let settings = state.settings(target)?;
    if settings.overflow_behavior().rejects() {
        return None;
    }
    let limit = |key| settings.integer(key).and_then(|it| u64::try_from(it).ok());
    let present = state.ready(target);
    // If the count is unknown, topo assumes that the limit is exceeded.
    let exceeds = |limit: &u64| present.is_none_or(|present| present.saturating_add(incoming.messages) > *limit);
    if let Some(limit) = limit("max-length").filter(exceeds) {
        let contents = present.map_or("an unknown number of messages".to_owned(), |present| count(present, "message"));
        let text = format!(
            "queue `{target}` contains {contents} and drops its oldest messages when it contains more than {}",
            number(limit)
        );
        return Some((Hazard::MessageDrop, text));
    }
    let limit = limit("max-length-bytes")?;
    let queue_state = access.broker.queue_state(&state.snapshot.topology.vhost, target).await.ok().flatten();
    let present = queue_state.and_then(|it| it.ready_bytes);
    let total = present.zip(incoming.bytes).map(|(present, incoming)| present.saturating_add(incoming));
    // If a size is unknown, topo assumes that the limit is exceeded.
    total.is_none_or(|total| total > limit).then(|| {
        let contents = present.map_or("an unknown number of bytes".to_owned(), |bytes| count(bytes, "byte"));
        let text = format!(
            "queue `{target}` contains {contents} and drops its oldest messages when it contains more than {}",
            count(limit, "byte")
        );
        (Hazard::MessageDrop, text)
    })
}

/// Returns the hazards of replaying messages to a queue.
pub(super) async fn of_target(
    access: &Access,
    state: &VhostState,
    target: &QueueName,
    incoming: Incoming,
) -> Vec<(Hazard, String)> {
    let is_unused = state.consumers(target) == Some(0) && !has_consumers(access, state, target).await;
    let no_consumers = is_unused.then(|| (Hazard::NoConsumers, format!("queue `{target}` has no consumers")));
    no_consumers.into_iter().chain(of_receiving(access, state, target, incoming).await).collect()
}

/// Returns true if a queue has consumers. Queries the queue over AMQP, because the statistics list a new consumer only
/// after the next interval. Returns false if the query fails.
async fn has_consumers(access: &Access, state: &VhostState, queue: &QueueName) -> bool {
    let Ok(transport) = access.amqp(&state.snapshot.topology.vhost).await else { return false };
    let counts = transport.queue_counts(queue).await;
    transport.close().await;
    counts.is_ok_and(|counts| counts.is_some_and(|counts| counts.consumers > 0))
}

/// Returns the reason why a queue cannot receive replayed messages; `None` if there is none. [`refusal_of_size`] checks
/// the limit in bytes.
pub(super) fn refusal_of_target(state: &VhostState, target: &QueueName) -> Option<String> {
    if !state.has_queue(target) {
        return Some("the queue does not exist".to_owned());
    }
    if state.kind(target) == Some(QueueType::Stream) {
        return Some("the queue is a stream; all of its consumers would receive the replayed messages".to_owned());
    }
    let settings = state.settings(target)?;
    let limit = settings.integer("max-length").and_then(|it| u64::try_from(it).ok())?;
    let is_full = state.ready(target).is_some_and(|ready| ready >= limit);
    (is_full && settings.overflow_behavior().rejects())
        .then(|| format!("the queue is full: it rejects new messages at its limit of {}", count(limit, "message")))
}

/// Returns the reason why a queue cannot receive replayed messages: it has reached its limit in bytes and rejects new
/// messages. Returns `None` if the queue can receive messages or if its size is unknown.
pub(super) async fn refusal_of_size(access: &Access, state: &VhostState, target: &QueueName) -> Option<String> {
    let settings = state.settings(target).filter(|it| it.overflow_behavior().rejects())?;
    let limit = settings.integer("max-length-bytes").and_then(|it| u64::try_from(it).ok())?;
    let queue_state = access.broker.queue_state(&state.snapshot.topology.vhost, target).await.ok().flatten();
    let is_full = queue_state.and_then(|it| it.ready_bytes).is_some_and(|bytes| bytes >= limit);
    is_full.then(|| format!("the queue is full: it rejects new messages at its limit of {}", count(limit, "byte")))
}

/// Returns the message TTL of a queue in which new messages can expire behind older messages. Returns `None` if the
/// queue has no TTL, or if it is empty and has consumers.
pub(super) fn expiry_behind_backlog(state: &VhostState, target: &QueueName) -> Option<Duration> {
    let ttl = state.settings(target)?.integer("message-ttl").and_then(|it| u64::try_from(it).ok())?;
    let is_empty = state.messages(target) == Some(0) && state.consumers(target) != Some(0);
    (!is_empty).then(|| Duration::from_millis(ttl))
}

/// Refuses hazards that are not allowed.
///
/// # Errors
/// [`DlqError::Hazards`] with the hazards that are not allowed.
pub(super) fn refuse(hazards: Vec<(Hazard, String)>, allowed: &[Hazard]) -> Result<(), DlqError> {
    let refused: Vec<_> = hazards.into_iter().filter(|(hazard, _)| !allowed.contains(hazard)).collect();
    if refused.is_empty() { Ok(()) } else { Err(DlqError::Hazards(refused)) }
}
