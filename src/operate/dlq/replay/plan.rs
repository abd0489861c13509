//! Plans a replay: inspects the messages, and determines the target queues and the path to each target.

use super::super::dead_letter::DeadLetter;
use super::super::error::DlqError;
use super::super::hazard::Hazard;
use super::super::hazards::{self, Incoming};
use super::super::inspection::{InspectOptions, InspectionEnd, inspect};
use super::super::opened::receives_arrivals;
use super::super::state::VhostState;
use super::{Breaker, Destination, MAX_WAIT, ReplayOptions};
use crate::apply::Interrupt;
use crate::broker::Access;
use crate::model::naming::return_exchange;
use crate::model::{Destination as BindingDestination, ExchangeName, QueueName, QueueType};
use std::collections::BTreeMap;
use std::time::Duration;

/// The maximum number of routing keys or exchanges that are counted separately for a target.
const MAX_KEYS: usize = 1000;

/// The path of replayed messages to their target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReturnPath {
    /// The exchange that returns the queue's retried messages. The messages have their original routing keys.
    ReturnExchange(ExchangeName),
    /// A temporary fanout exchange that topo declares and deletes. The messages have their original routing keys.
    TemporaryExchange,
    /// The default exchange. The routing key of the messages is the name of the queue.
    DefaultExchange,
    /// The original exchange of each message, with the original routing key.
    OriginalExchange,
}

/// A target of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayTarget {
    /// The queue; for [`ReturnPath::OriginalExchange`], the queue in which the messages failed.
    pub queue: QueueName,
    /// The number of inspected messages to replay to this target.
    pub messages: u64,
    /// The number of inspected messages for each original routing key, for up to 1,000 routing keys.
    pub routing_keys: BTreeMap<String, u64>,
    /// The number of inspected messages with other routing keys.
    pub of_other_keys: u64,
    /// The number of inspected messages that do not contain their original routing key. topo publishes these messages
    /// with their current routing key.
    pub of_unknown_keys: u64,
    /// The number of inspected messages for each original exchange, for up to 1,000 exchanges.
    pub exchanges: BTreeMap<String, u64>,
    /// The path to the target.
    pub path: ReturnPath,
    /// The number of consumers; `None` if unknown.
    pub consumers: Option<u64>,
    /// The number of messages that the target contains; `None` if unknown.
    pub backlog: Option<u64>,
    /// The sum of the target's retry delays.
    pub retries: Duration,
    /// The time after which replayed messages can expire behind older messages; `None` if they do not expire.
    pub expiry: Option<Duration>,
}

/// The plan for a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayPlan {
    /// The dead-letter queue.
    pub queue: QueueName,
    /// The number of messages in the queue.
    pub before: u64,
    /// The number of inspected messages.
    pub inspected: u64,
    /// True if all messages were inspected.
    pub is_complete: bool,
    /// The targets.
    pub targets: Vec<ReplayTarget>,
    /// The number of matching messages that stay because their source is unknown.
    pub unknown_source: u64,
    /// The number of matching messages that stay because they were replayed before.
    pub replayed_before: u64,
    /// True if topo can bind its own queue, which receives a copy of each message that the broker dead-letters again.
    /// This is impossible for messages that are dead-lettered through the default exchange.
    pub has_observer: bool,
    /// True if topo detects returned messages as soon as they arrive. topo receives them through the observer, or
    /// immediately from the dead-letter queue.
    pub is_observed: bool,
    /// The hazards of publishing messages to the targets, with their descriptions.
    pub hazards: Vec<(Hazard, String)>,
}

impl ReplayPlan {
    /// Returns the number of inspected messages to replay.
    pub fn messages(&self) -> u64 {
        self.targets.iter().map(|target| target.messages).sum()
    }

    /// Returns true if topo would have to wait longer than [`MAX_WAIT`] for the outcome of the canary messages.
    pub fn waits_too_long(&self, breaker: Breaker) -> bool {
        self.is_observed && breaker.canary > 0 && self.verdict(breaker.settle) > MAX_WAIT
    }

    /// Returns the time after which the outcome of a replayed message is known.
    pub fn verdict(&self, settle: Duration) -> Duration {
        self.targets.iter().map(|target| target.retries).max().unwrap_or_default().saturating_add(settle)
    }
}

/// Returns the target of a message; `None` if it is unknown.
pub(super) fn target_of(destination: &Destination, it: &DeadLetter) -> Option<QueueName> {
    match destination {
        Destination::Queue(queue) => Some(queue.clone()),
        Destination::Source => it.source.clone(),
        Destination::OriginalExchange => it.original_exchange.as_ref().and(it.source.clone()),
    }
}

/// Inspects the messages, and plans their replay. The messages stay in the dead-letter queue.
///
/// # Errors
/// See [`DlqError`].
pub async fn plan_replay(
    access: &Access,
    state: &VhostState,
    queue: &QueueName,
    options: &ReplayOptions,
    interrupt: &Interrupt,
) -> Result<ReplayPlan, DlqError> {
    state.expect_queue(queue)?;
    if state.kind(queue) == Some(QueueType::Stream) {
        return Err(DlqError::Stream { queue: queue.clone() });
    }
    let mut counted: BTreeMap<QueueName, ReplayTarget> = BTreeMap::new();
    let (mut unknown_source, mut replayed_before) = (0, 0);
    let mut visit = |it: DeadLetter| {
        let target = target_of(&options.destination, &it);
        match target {
            _ if it.replays() > 0 && !options.again => replayed_before += 1,
            None => unknown_source += 1,
            Some(target) => {
                let path = initial_path(state, &target, &options.destination);
                let entry = counted.entry(target.clone()).or_insert_with(|| target_entry(state, &target, path));
                entry.messages += 1;
                if !it.is_routing_key_known {
                    entry.of_unknown_keys += 1;
                } else if !count_in(&mut entry.routing_keys, it.original_routing_key) {
                    entry.of_other_keys += 1;
                }
                count_in(&mut entry.exchanges, it.original_exchange.unwrap_or_default());
            }
        }
        Ok(())
    };
    let inspection = InspectOptions {
        selection: options.selection.clone(),
        limit: None,
        hold: options.hold,
        allowed: options.allowed.clone(),
    };
    let inspected = inspect(access, state, queue, &inspection, interrupt, &mut visit).await?;
    let is_complete = match inspected.end {
        InspectionEnd::Complete => true,
        InspectionEnd::Limit | InspectionEnd::HoldFull => false,
        InspectionEnd::Incomplete(reason) => return Err(DlqError::Inspection { reason }),
    };
    // Messages behind the inspected messages may come from any of the queue's sources.
    if !is_complete && options.destination == Destination::Source {
        for source in state.dead_letter_queues.get(queue).into_iter().flatten() {
            let is_selected = options.selection.sources.is_empty() || options.selection.sources.contains(source);
            if is_selected && hazards::refusal_of_target(state, source).is_none() {
                let path = initial_path(state, source, &options.destination);
                counted.entry(source.clone()).or_insert_with(|| target_entry(state, source, path));
            }
        }
    }
    let targets: Vec<ReplayTarget> = counted.into_values().collect();
    for ReplayTarget { queue: target, messages, .. } in &targets {
        let refusal = match hazards::refusal_of_target(state, target) {
            Some(reason) => Some(reason),
            None => hazards::refusal_of_size(access, state, target).await,
        };
        if let Some(reason) = refusal {
            return Err(DlqError::Target { target: target.clone(), messages: *messages, reason });
        }
        if *target == *queue {
            let reason = "it is the dead-letter queue itself".to_owned();
            return Err(DlqError::Target { target: target.clone(), messages: *messages, reason });
        }
    }
    // In the worst case, all messages behind the inspected messages have the same target.
    let unseen = inspected.before.saturating_sub(inspected.received);
    let vhost = &state.snapshot.topology.vhost;
    let average = access.broker.queue_state(vhost, queue).await.ok().flatten().and_then(|it| it.average_bytes());
    let mut hazards = Vec::new();
    for target in &targets {
        let messages = target.messages.saturating_add(if is_complete { 0 } else { unseen });
        let messages = messages.min(options.limit.unwrap_or(u64::MAX));
        let incoming = Incoming { messages, bytes: average.map(|average| average.saturating_mul(messages)) };
        hazards.extend(hazards::of_target(access, state, &target.queue, incoming).await);
    }
    let has_observer = has_observer(state, queue, &targets);
    Ok(ReplayPlan {
        queue: queue.clone(),
        before: inspected.before,
        inspected: inspected.received,
        is_complete,
        unknown_source,
        replayed_before,
        has_observer,
        is_observed: has_observer || receives_arrivals(inspected.before, inspected.prefetch),
        targets,
        hazards,
    })
}

/// Returns true if topo can bind its own queue to every exchange through which messages come back.
fn has_observer(state: &VhostState, queue: &QueueName, targets: &[ReplayTarget]) -> bool {
    let is_by_default_exchange = |target: &ReplayTarget| {
        let to = state.settings(&target.queue).and_then(|it| it.dead_lettering());
        to.is_some_and(|it| it.exchange.as_str().is_empty())
    };
    state.bindings_of(queue).next().is_some() && !targets.iter().any(is_by_default_exchange)
}

/// Counts a value. Returns false without counting if the value is new and the map already contains the maximum number
/// of values.
fn count_in(counts: &mut BTreeMap<String, u64>, value: String) -> bool {
    let is_full = counts.len() >= MAX_KEYS && !counts.contains_key(&value);
    if !is_full {
        *counts.entry(value).or_default() += 1;
    }
    !is_full
}

fn target_entry(state: &VhostState, target: &QueueName, path: ReturnPath) -> ReplayTarget {
    ReplayTarget {
        queue: target.clone(),
        messages: 0,
        routing_keys: BTreeMap::new(),
        of_other_keys: 0,
        of_unknown_keys: 0,
        exchanges: BTreeMap::new(),
        path,
        consumers: state.consumers(target),
        backlog: state.messages(target),
        retries: Duration::from_millis(u64::try_from(state.retry_delays(target)).unwrap_or(0)),
        expiry: hazards::expiry_behind_backlog(state, target),
    }
}

/// Returns the preferred path to a target. The run chooses a different path if the user lacks a permission.
fn initial_path(state: &VhostState, target: &QueueName, destination: &Destination) -> ReturnPath {
    if *destination == Destination::OriginalExchange {
        return ReturnPath::OriginalExchange;
    }
    let exchange = return_exchange(target);
    let is_fanout =
        state.snapshot.topology.exchanges.get(&exchange).is_some_and(|it| it.kind == "fanout" && !it.internal);
    let mut bound = state.snapshot.topology.bindings.iter().filter(|binding| binding.source == exchange);
    let only = bound.next().filter(|_| bound.next().is_none());
    let is_only = only.is_some_and(|binding| binding.destination == BindingDestination::Queue(target.clone()));
    if is_fanout && is_only { ReturnPath::ReturnExchange(exchange) } else { ReturnPath::TemporaryExchange }
}
