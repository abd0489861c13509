//! Detects when messages stop making progress, and describes the reason.

use crate::broker::transport::Fault;
use crate::broker::{LockedBroker, QueueState};
use crate::model::count::number;
use crate::model::intervals::in_words;
use crate::model::{Intervals, QueueName};
use crate::plan::{Level, QueueActivity};
use std::time::Duration;
use tokio::time::Instant;

/// The maximum number of messages in a holding queue that new messages may overtake while a shovel empties the queue. A
/// shovel does not report when it is idle, so topo can use only the queue's total.
const MAX_OVERTAKEN: u64 = 50;
/// How long a message count must not decrease before topo treats it as flat. A flat count may mean that a publisher is
/// active.
const PLATEAU: Duration = Duration::from_secs(2);

/// How long a transport must be idle before topo assumes that it has moved all messages.
pub(super) const IDLE: Duration = Duration::from_millis(500);

/// Detects when the message count of a queue stops decreasing.
pub(super) struct StallDetector {
    drain_timeout: Duration,
    intervals: Intervals,
    started: Instant,
    minimum: u64,
    moved: u64,
    /// The time of the last decrease or the last moved message.
    last_progress: Instant,
    /// The time at which the message count last reached a new minimum.
    last_decrease: Instant,
    /// The number of messages that topo had moved at `last_decrease`.
    moved_at_decrease: u64,
    maximum: u64,
    /// The time at which topo found that the queue had become empty; `None` if the queue is not empty.
    empty_since: Option<Instant>,
    /// The last recorded message count; `None` if unknown.
    last: Option<u64>,
}

impl StallDetector {
    pub(super) fn new(drain_timeout: Duration, intervals: Intervals) -> Self {
        let now = Instant::now();
        Self {
            drain_timeout,
            intervals,
            started: now,
            minimum: u64::MAX,
            moved: 0,
            last_progress: now,
            last_decrease: now,
            moved_at_decrease: 0,
            maximum: 0,
            empty_since: None,
            last: None,
        }
    }

    /// Records the queue's message count, if known, and the total number of moved messages.
    pub(super) fn record(&mut self, messages: Option<u64>, moved: u64) {
        let now = Instant::now();
        let has_decreased = messages.is_some_and(|messages| messages < self.minimum);
        if has_decreased || moved > self.moved {
            self.last_progress = now;
        }
        if has_decreased {
            (self.last_decrease, self.moved_at_decrease) = (now, moved);
            self.minimum = messages.unwrap_or(self.minimum);
        }
        self.empty_since = if messages == Some(0) { self.empty_since.or(Some(now)) } else { None };
        self.moved = moved.max(self.moved);
        self.maximum = self.maximum.max(messages.unwrap_or(0));
        self.last = messages;
    }

    /// Returns true if the message count has not decreased for [`PLATEAU`].
    pub(super) fn is_flat(&self) -> bool {
        self.last_decrease.elapsed() >= PLATEAU
    }

    /// Returns the number of messages that topo has moved since the message count last decreased. `None` if the count
    /// has decreased within the drain timeout, or if this number is at most twice the highest recorded count.
    pub(super) fn moved_without_decrease(&self) -> Option<u64> {
        let moved = self.moved - self.moved_at_decrease;
        (self.has_decrease_timed_out() && moved > self.maximum.saturating_mul(2)).then_some(moved)
    }

    /// Returns true if the consumers do not seem to be making progress, because the message count has not decreased for
    /// the stall timeout or a third of the drain timeout, whichever is shorter.
    pub(super) fn seems_stalled(&self) -> bool {
        self.last_decrease.elapsed() >= self.intervals.stall_timeout().min(self.drain_timeout / 3)
    }

    /// Returns true if no message has been moved and the message count has not decreased for [`PLATEAU`].
    pub(super) fn is_idle(&self) -> bool {
        self.last_progress.elapsed() >= PLATEAU
    }

    /// Returns true if half of the drain timeout has passed since the detector was created.
    pub(super) fn is_past_half_of_drain_timeout(&self) -> bool {
        self.started.elapsed() >= self.drain_timeout / 2
    }

    /// Returns true if no message has been moved and the message count has not decreased for the duration of the drain
    /// timeout.
    pub(super) fn has_progress_timed_out(&self) -> bool {
        self.last_progress.elapsed() >= self.drain_timeout
    }

    /// Returns true if the message count has not decreased for the duration of the drain timeout, even if messages were
    /// moved.
    pub(super) fn has_decrease_timed_out(&self) -> bool {
        self.has_not_decreased_for(self.drain_timeout)
    }

    /// Returns true if the message count has not decreased for `time`, even if messages were moved.
    pub(super) fn has_not_decreased_for(&self, time: Duration) -> bool {
        self.last_decrease.elapsed() >= time
    }

    /// Returns true if the queue has been empty for `time`.
    pub(super) fn has_been_empty_for(&self, time: Duration) -> bool {
        self.empty_since.is_some_and(|since| since.elapsed() >= time)
    }

    /// Returns true if the queue has reached the level according to the recorded message counts alone. `has_ticks` is
    /// true for a quorum queue, whose count is up to one tick old. The count of a classic queue is current.
    pub(super) fn has_reached(&self, level: Level, has_ticks: bool) -> bool {
        let tick = if has_ticks { self.intervals.one_tick() } else { IDLE };
        match level {
            Level::Empty => self.has_been_empty_for(tick),
            Level::NearlyEmpty => self.last.is_some_and(|messages| messages <= MAX_OVERTAKEN),
        }
    }
}

/// Describes why a queue is not draining. `tick` is the maximum age of a quorum queue's counts; `None` for
/// other queues.
pub(super) fn describe_stall(
    live: &QueueActivity,
    consumers: &[&str],
    fault: Option<&Fault>,
    tick: Option<Duration>,
) -> String {
    let mut text = match (live.unacknowledged, live.messages) {
        (Some(1), _) => "1 message is unacknowledged".to_owned(),
        (Some(held), _) if held > 0 => format!("{} messages are unacknowledged", number(held)),
        (Some(_), Some(messages)) if live.ready == Some(0) && messages > 0 => {
            if messages == 1 {
                "1 message is neither ready nor unacknowledged: it is waiting for a delayed retry, or for \
                 at-least-once dead-lettering to be confirmed"
                    .to_owned()
            } else {
                format!(
                    "{} messages are neither ready nor unacknowledged: they are waiting for a delayed retry, or for \
                     at-least-once dead-lettering to be confirmed",
                    number(messages)
                )
            }
        }
        (_, Some(1)) => "1 message remains and is not being consumed".to_owned(),
        (_, Some(messages)) => format!("{} messages remain and are not being consumed", number(messages)),
        (_, None) => "the broker does not report how many messages remain".to_owned(),
    };
    if let Some(tick) = tick {
        text.push_str(&format!(" (the count may be up to {} old)", in_words(tick)));
    }
    let peers: Vec<&str> =
        consumers.iter().map(|peer| if peer.is_empty() { "unknown address" } else { peer }).collect();
    if !peers.is_empty() {
        text.push_str(&format!("; consumers: {}", peers.join(", ")));
    }
    if let Some(fault) = fault {
        text.push_str(&format!("; {fault}"));
    }
    text
}

/// Describes why a quorum queue is not accepting messages; `None` if its members seem to be available.
pub(super) async fn unavailability(broker: &LockedBroker, queue: &QueueName) -> Option<String> {
    let (broker, vhost) = (broker.broker(), broker.vhost());
    let state = broker.queue_state(vhost, queue).await.ok().flatten();
    if let Some(reason) = state.and_then(|state| missing_leader(queue, &state)) {
        return Some(reason);
    }
    broker.missing_members(vhost, queue).await.map(|error| error.to_string())
}

/// Describes a quorum queue or stream without a leader; `None` for all other queues.
fn missing_leader(queue: &QueueName, state: &QueueState) -> Option<String> {
    if state.members.is_empty() || state.leader.is_some() {
        return None;
    }
    let up = match state.online.as_slice() {
        [] => "none is running".to_owned(),
        some => format!("running: {}", some.join(", ")),
    };
    Some(format!(
        "queue {queue} is not accepting messages: it has no leader (members: {}; {up})",
        state.members.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(leader: Option<&str>, members: &[&str], online: &[&str]) -> QueueState {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        QueueState {
            leader: leader.map(str::to_owned),
            members: owned(members),
            online: owned(online),
            messages: None,
            bytes: None,
            ready_bytes: None,
            consumers: None,
        }
    }

    #[test]
    fn missing_leader_is_described_with_the_running_members() {
        let described = |state| missing_leader(&"q".into(), &state);
        assert_eq!(described(state(Some("a"), &["a", "b"], &["a"])), None);
        assert_eq!(described(state(None, &[], &[])), None, "a classic queue has no members");
        assert_eq!(
            described(state(None, &["a", "b", "c"], &["b", "c"])).unwrap(),
            "queue q is not accepting messages: it has no leader (members: a, b, c; running: b, c)"
        );
        assert!(described(state(None, &["a", "b"], &[])).unwrap().ends_with("(members: a, b; none is running)"));
    }
}
