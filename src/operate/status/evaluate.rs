//! Evaluates the readings of a vhost against the thresholds.

use super::document::{Problem, QueueStatus, RetryStatus, State, Threshold, TierStatus};
use super::history::{Histories, VhostReading};
use super::watched::Watched;
use crate::broker::QueueReading;
use crate::model::names::is_reserved;
use crate::model::{Growth, Levels, QueueName, Severity, Thresholds};
use std::collections::BTreeMap;

/// The period, in seconds, over which topo measures the displayed growth.
const GROWTH_PERIOD: u64 = 300;

/// The period, in seconds, over which topo measures the growth if the broker has no samples for a longer period.
const FALLBACK_PERIOD: u64 = 600;

/// The states in which the broker does not serve a queue (`rabbit_amqqueue:i_down/3` in 3.8,
/// `rabbit_queue_type:i_down/3` in 3.9 and later, `rabbit_quorum_queue:cluster_state/1` and `i(state, …)`).
const UNAVAILABLE: [&str; 7] = ["down", "crashed", "stopped", "terminated", "minority", "recovering", "timeout"];

/// The queues in a status report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Queues {
    pub(super) dead_letter_queues: Vec<QueueStatus>,
    pub(super) queues: Vec<QueueStatus>,
    pub(super) retries: Vec<RetryStatus>,
    pub(super) temporary_queues: usize,
}

/// Evaluates the watched queues.
pub(super) fn queues(watched: &Watched, reading: &VhostReading) -> Queues {
    let histories = Histories::new(reading);
    let of = |queues: &BTreeMap<QueueName, Thresholds>| -> Vec<QueueStatus> {
        queues.iter().map(|(name, thresholds)| queue(name, thresholds, reading, &histories)).collect()
    };
    let is_temporary =
        |name: &&QueueName| !watched.contains(name) && watched.tier(name).is_none() && !is_reserved(name.as_str());
    Queues {
        dead_letter_queues: of(&watched.dead_letter_queues),
        queues: of(&watched.queues),
        retries: retries(watched, reading),
        temporary_queues: match watched.is_whole_vhost {
            true => reading.queues.keys().filter(is_temporary).count(),
            false => 0,
        },
    }
}

/// Returns the retry tiers that contain messages. Includes retired tiers.
fn retries(watched: &Watched, reading: &VhostReading) -> Vec<RetryStatus> {
    let mut by_queue: BTreeMap<QueueName, Vec<TierStatus>> = BTreeMap::new();
    for (name, QueueReading { messages, .. }) in &reading.queues {
        let (Some(tier), Some(messages @ 1..)) = (watched.tier(name), *messages) else { continue };
        let status = TierStatus { tier: name.clone(), retry: tier.number, delay_milliseconds: tier.delay, messages };
        by_queue.entry(tier.queue).or_default().push(status);
    }
    let status = |(queue, mut tiers): (QueueName, Vec<TierStatus>)| {
        tiers.sort_by_key(|tier| (tier.retry, tier.delay_milliseconds));
        RetryStatus { queue, messages: tiers.iter().map(|tier| tier.messages).sum(), tiers }
    };
    by_queue.into_iter().map(status).collect()
}

/// Evaluates one queue.
fn queue(name: &QueueName, thresholds: &Thresholds, reading: &VhostReading, histories: &Histories<'_>) -> QueueStatus {
    let Some(current) = reading.queues.get(name) else {
        let problems = vec![Problem::Missing { state: State::Warning }];
        return QueueStatus { state: State::Warning, problems, ..QueueStatus::of(name) };
    };
    let history = reading.histories.first().and_then(|(_, histories)| histories.get(name));
    let unavailable = unavailable(current, reading);
    // The statistics of an unavailable queue are outdated.
    let history = history.filter(|_| unavailable.is_none());
    let messages = current.messages.or(history.and_then(|history| history.messages));
    let consumers = history.and_then(|history| history.consumers);
    let age = history.and_then(|_| histories.age(name, messages));
    let growth = |within: u64| history.and_then(|_| histories.growth(name, messages, within));
    let mut problems: Vec<Problem> = unavailable.into_iter().collect();
    let mut unchecked = Vec::new();
    if !thresholds.depth.is_empty() {
        let is_reached = |limit: i64| messages.is_some_and(|messages| at_least(messages, limit));
        match thresholds.depth.highest(is_reached) {
            Some((severity, limit)) => problems.push(Problem::Depth { state: severity.into(), limit }),
            None if messages.is_none() => unchecked.push(Threshold::Depth),
            None => {}
        }
    }
    match growth_problem(&thresholds.growth, growth) {
        Ok(problem) => problems.extend(problem),
        Err(Unmeasured) => unchecked.push(Threshold::Growth),
    }
    let is_older = |limit: i64| age.is_some_and(|age| at_least(age.at_least, seconds(limit)));
    let is_age_known = |limit: i64| messages == Some(0) || is_older(limit) || age.is_some_and(|age| !age.is_open);
    if let Some((severity, limit)) = thresholds.age.highest(is_older) {
        problems.push(Problem::Age { state: severity.into(), limit_seconds: seconds(limit).unsigned_abs() });
    }
    if Severity::ALL.into_iter().filter_map(|severity| thresholds.age.of(severity)).any(|limit| !is_age_known(limit)) {
        unchecked.push(Threshold::Age);
    }
    if let Some(limit) = thresholds.no_consumers {
        match consumers {
            Some(0) if is_older(limit) => {
                let limit_seconds = seconds(limit).unsigned_abs();
                problems.push(Problem::NoConsumers { state: State::Warning, limit_seconds });
            }
            Some(0) if !is_age_known(limit) => unchecked.push(Threshold::NoConsumers),
            Some(_) => {}
            None if messages == Some(0) => {}
            None => unchecked.push(Threshold::NoConsumers),
        }
    }
    problems.sort_by_key(|problem| std::cmp::Reverse(problem.state()));
    QueueStatus {
        exists: true,
        state: problems.first().map(Problem::state).unwrap_or_default(),
        messages,
        ready: current.ready,
        unacknowledged: current.unacknowledged,
        growth_in_5_minutes: growth(GROWTH_PERIOD),
        not_empty_for_seconds: age.map(|age| age.at_least),
        consumers,
        problems,
        unchecked,
        ..QueueStatus::of(name)
    }
}

/// Returns the problem with a queue that the broker does not serve; `None` if the queue is available. Some versions
/// report a classic queue as running although its node is down.
fn unavailable(current: &QueueReading, reading: &VhostReading) -> Option<Problem> {
    let state = current.state.as_deref().filter(|state| UNAVAILABLE.contains(state));
    let node = current.node.as_ref().and_then(|node| reading.nodes.as_ref()?.get(node));
    let is_down = node.is_some_and(|node| !node.is_running);
    let queue_state = state.or(is_down.then_some("down"))?.to_owned();
    Some(Problem::Unavailable { state: State::Critical, queue_state, node: current.node.clone() })
}

/// The error for a threshold that topo cannot check, because the growth is unknown.
struct Unmeasured;

/// Returns the problem for the most severe growth threshold that was crossed. If the broker has no samples for the
/// period of a threshold, topo measures the growth over 10 minutes instead. A queue whose growth reaches the threshold
/// in a shorter time has also crossed the threshold.
///
/// # Errors
/// [`Unmeasured`] if no threshold was crossed, but not all of them could be checked.
fn growth_problem(levels: &Levels<Growth>, growth: impl Fn(u64) -> Option<i64>) -> Result<Option<Problem>, Unmeasured> {
    let mut is_unmeasured = false;
    for severity in Severity::ALL.into_iter().rev() {
        let Some(limit) = levels.of(severity) else { continue };
        let within = seconds(limit.within).unsigned_abs();
        let measured = growth(within).map(|growth| (growth, within));
        let shorter =
            || growth(FALLBACK_PERIOD).filter(|_| within > FALLBACK_PERIOD).map(|growth| (growth, FALLBACK_PERIOD));
        match measured.or_else(shorter) {
            Some((growth, within_seconds)) if growth >= limit.messages => {
                let (state, limit) = (severity.into(), limit.messages);
                return Ok(Some(Problem::Growth { state, limit, growth, within_seconds }));
            }
            Some((_, measured)) => is_unmeasured |= measured < within,
            None => is_unmeasured = true,
        }
    }
    if is_unmeasured { Err(Unmeasured) } else { Ok(None) }
}

/// Converts milliseconds to seconds.
fn seconds(milliseconds: i64) -> i64 {
    milliseconds / 1000
}

fn at_least(value: u64, limit: i64) -> bool {
    i64::try_from(value).unwrap_or(i64::MAX) >= limit
}
