//! Finds the hazards of the commands on dead-letter queues, before the first message is moved.

use super::error::DlqError;
use super::hazard::Hazard;
use super::state::VhostState;
use crate::broker::Access;
use crate::model::count::{count, number};
use crate::model::{QueueName, QueueType};

/// Returns the hazards of reading a dead-letter queue.
///
/// A length limit causes no hazard. Messages that are held do not count towards it, but the messages that the queue
/// drops when they return are those that it would have dropped without the inspection.
pub(super) fn of_inspection(state: &VhostState, queue: &QueueName) -> Vec<(Hazard, String)> {
    let mut hazards = Vec::new();
    if let Some(consumers) = state.consumers(queue).filter(|count| *count > 0) {
        let text = format!(
            "queue `{queue}` has {}; topo does not see messages that are delivered to other consumers",
            count(consumers, "consumer")
        );
        hazards.push((Hazard::OtherConsumers, text));
    }
    if let Some(limit) = costly_limit(state, queue).filter(|limit| *limit >= MIN_LIMIT) {
        let text = format!(
            "each inspection increments the delivery count of the messages in queue `{queue}` (delivery limit {limit}); \
             topo republishes messages near the limit to the end of the queue. To remove the limit, set \
             `delivery-limit: -1` in a policy"
        );
        hazards.push((Hazard::InspectionCost, text));
    }
    hazards
}

/// The minimum delivery limit of a quorum queue that topo can inspect. With a lower limit, an inspection could lose
/// messages.
const MIN_LIMIT: i64 = 8;

/// Refuses a queue whose delivery limit is so low that an inspection could lose messages.
pub(super) fn refuse_low_limit(state: &VhostState, queue: &QueueName) -> Result<(), DlqError> {
    match costly_limit(state, queue).filter(|limit| *limit < MIN_LIMIT) {
        Some(limit) => Err(DlqError::LowLimit { queue: queue.clone(), limit, required: MIN_LIMIT }),
        None => Ok(()),
    }
}

/// Returns the delivery limit of a quorum queue whose messages topo cannot return without a counted delivery; `None`
/// for other queues. From 4.3 on, `basic.nack` is not counted. Before 4.0, queues without an own limit have none.
pub(super) fn costly_limit(state: &VhostState, queue: &QueueName) -> Option<i64> {
    let version = state.snapshot.profile.version;
    let is_costly = state.kind(queue) == Some(QueueType::Quorum) && !version.is_at_least(4, 3);
    state.settings(queue).filter(|_| is_costly)?.delivery_limit()
}

/// The messages that a command publishes to a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    pub(super) messages: u64,
    /// The total size of the bodies in bytes; `None` if unknown.
    pub(super) bytes: Option<u64>,
}

/// Returns the hazard that a queue drops its oldest messages when it receives messages.
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
    let present = state.messages(target).unwrap_or(0);
    if let Some(limit) = limit("max-length").filter(|limit| present.saturating_add(incoming.messages) > *limit) {
        let text = format!(
            "queue `{target}` contains {} and drops its oldest messages when it contains more than {}",
            count(present, "message"),
            number(limit)
        );
        return Some((Hazard::MessageDrop, text));
    }
    let limit = limit("max-length-bytes")?;
    let queue_state = access.broker.queue_state(&state.snapshot.topology.vhost, target).await.ok().flatten();
    let present = queue_state.and_then(|it| it.bytes);
    let total = present.zip(incoming.bytes).map(|(present, incoming)| present.saturating_add(incoming));
    // Without the sizes, the limit may be exceeded.
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
    let no_consumers = (state.consumers(target) == Some(0))
        .then(|| (Hazard::NoConsumers, format!("queue `{target}` has no consumers")));
    no_consumers.into_iter().chain(of_receiving(access, state, target, incoming).await).collect()
}

/// Returns the reason why a queue cannot receive replayed messages; `None` if it can.
pub(super) fn refusal_of_target(state: &VhostState, target: &QueueName) -> Option<String> {
    if !state.has_queue(target) {
        return Some("the queue does not exist".to_owned());
    }
    if state.kind(target) == Some(QueueType::Stream) {
        return Some("the queue is a stream; all of its consumers would receive the replayed messages".to_owned());
    }
    let settings = state.settings(target)?;
    let limit = settings.integer("max-length").and_then(|it| u64::try_from(it).ok())?;
    let is_full = state.messages(target).is_some_and(|messages| messages >= limit);
    (is_full && settings.overflow_behavior().rejects())
        .then(|| format!("the queue is full: it rejects new messages at its limit of {}", count(limit, "message")))
}

/// Refuses hazards that are not allowed.
pub(super) fn refuse(hazards: Vec<(Hazard, String)>, allowed: &[Hazard]) -> Result<(), DlqError> {
    let refused: Vec<_> = hazards.into_iter().filter(|(hazard, _)| !allowed.contains(hazard)).collect();
    if refused.is_empty() { Ok(()) } else { Err(DlqError::Hazards(refused)) }
}
