//! Limits the number of messages in transit, and detects stalls.

use super::moving::IDLE;
use crate::broker::transport::Order;
use crate::model::Intervals;
use crate::plan::Level;
use std::time::Duration;
use tokio::time::Instant;

/// The maximum number of held messages that new messages may overtake, if topo only knows the total of the queue. A
/// shovel does not report when it is idle.
const MOST_OVERTAKEN: u64 = 50;
/// After this time without progress, a queue may have a publisher.
const PLATEAU: Duration = Duration::from_secs(2);

/// The maximum size of the messages in transit, estimated by their average size: a thousand messages of 64 KiB, or one
/// of any size.
const BYTES_IN_TRANSIT: u64 = 64 << 20;

/// Returns the number of messages that may be in transit, for an average size in bytes.
pub(super) fn prefetch(average: u64) -> u16 {
    let fitting = BYTES_IN_TRANSIT.checked_div(average).unwrap_or(u64::MAX);
    u16::try_from(fitting).unwrap_or(u16::MAX).clamp(1, Order::PREFETCH)
}

/// Detects if the number of messages decreases, and since when it does not.
pub(super) struct StallDetector {
    drain_timeout: Duration,
    intervals: Intervals,
    started: Instant,
    minimum: u64,
    moved: u64,
    /// The time of the last decrease or the last moved message.
    last_progress: Instant,
    /// The time at which the number last reached a new minimum, and the number of messages moved by then.
    last_decrease: Instant,
    moved_at_decrease: u64,
    maximum: u64,
    /// The time since which the queue has been empty.
    empty_since: Option<Instant>,
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

    /// Returns true if the number has not decreased for a moment.
    pub(super) fn is_flat(&self) -> bool {
        self.last_decrease.elapsed() >= PLATEAU
    }

    /// Returns the number of moved messages if the queue does not drain, although topo has moved more than twice its
    /// maximum number of messages.
    pub(super) fn moved_without_decrease(&self) -> Option<u64> {
        let moved = self.moved - self.moved_at_decrease;
        (self.has_not_decreased() && moved > self.maximum.saturating_mul(2)).then_some(moved)
    }

    /// Returns true if no consumer seems to make progress.
    pub(super) fn has_stalled(&self) -> bool {
        self.last_decrease.elapsed() >= self.intervals.stalled().min(self.drain_timeout / 3)
    }

    /// Returns true if nothing was moved and the number has not decreased for a moment.
    pub(super) fn has_stopped(&self) -> bool {
        self.last_progress.elapsed() >= PLATEAU
    }

    pub(super) fn is_half_timed_out(&self) -> bool {
        self.started.elapsed() >= self.drain_timeout / 2
    }

    /// Returns true if nothing was moved and the number has not decreased until the timeout.
    pub(super) fn is_timed_out(&self) -> bool {
        self.last_progress.elapsed() >= self.drain_timeout
    }

    pub(super) fn has_not_decreased(&self) -> bool {
        self.has_not_decreased_for(self.drain_timeout)
    }

    /// Returns true if the number has not decreased for this time, even if messages were moved.
    pub(super) fn has_not_decreased_for(&self, time: Duration) -> bool {
        self.last_decrease.elapsed() >= time
    }

    pub(super) fn is_empty_for(&self, settle_time: Duration) -> bool {
        self.empty_since.is_some_and(|since| since.elapsed() >= settle_time)
    }

    /// Returns true if the target level is reached, judged by totals alone. The total of a quorum queue is up to a tick
    /// old, and that of a classic queue is current.
    pub(super) fn has_reached(&self, until: Level, has_ticks: bool) -> bool {
        let tick = if has_ticks { self.intervals.one_tick() } else { IDLE };
        match until {
            Level::Empty => self.is_empty_for(tick),
            Level::NearlyEmpty => self.last.is_some_and(|messages| messages <= MOST_OVERTAKEN),
        }
    }
}
