//! Limits the messages in transit, and detects stalls.

use super::moving::IDLE;
use crate::broker::transport::Order;
use crate::model::Intervals;
use crate::plan::Level;
use std::time::Duration;
use tokio::time::Instant;

/// So few in a total may be left when new ones are let through before them, where no transport of our own knows better.
const MOST_LEFT: u64 = 50;
/// After this time without progress, a queue may have a publisher.
const LEVEL: Duration = Duration::from_secs(2);

/// What is under way, by the average size: a thousand messages of 64 KiB, or one of any size.
const BYTES_UNDER_WAY: u64 = 64 << 20;

/// How many messages of this size, in bytes, may be under way.
pub(super) fn prefetch(average: u64) -> u16 {
    let fitting = BYTES_UNDER_WAY.checked_div(average).unwrap_or(u64::MAX);
    u16::try_from(fitting).unwrap_or(u16::MAX).clamp(1, Order::PREFETCH)
}

/// Detects whether a count decreases, and since when it does not.
pub(super) struct StallDetector {
    patience: Duration,
    intervals: Intervals,
    begun: Instant,
    least: u64,
    moved: u64,
    /// When it last was less, or something was moved.
    went_on: Instant,
    /// When there last was less than ever, and how many had been moved by then.
    fell: Instant,
    moved_when_it_fell: u64,
    most: u64,
    /// Since when there has been nothing.
    empty_since: Option<Instant>,
    last: Option<u64>,
}

impl StallDetector {
    pub(super) fn new(patience: Duration, intervals: Intervals) -> Self {
        let now = Instant::now();
        Self {
            patience,
            intervals,
            begun: now,
            least: u64::MAX,
            moved: 0,
            went_on: now,
            fell: now,
            moved_when_it_fell: 0,
            most: 0,
            empty_since: None,
            last: None,
        }
    }

    pub(super) fn saw(&mut self, messages: Option<u64>, moved: u64) {
        let now = Instant::now();
        let less = messages.is_some_and(|messages| messages < self.least);
        if less || moved > self.moved {
            self.went_on = now;
        }
        if less {
            (self.fell, self.moved_when_it_fell) = (now, moved);
            self.least = messages.unwrap_or(self.least);
        }
        self.empty_since = if messages == Some(0) { self.empty_since.or(Some(now)) } else { None };
        self.moved = moved.max(self.moved);
        self.most = self.most.max(messages.unwrap_or(0));
        self.last = messages;
    }

    /// Whether it does not get less, for the moment.
    pub(super) fn is_level(&self) -> bool {
        self.fell.elapsed() >= LEVEL
    }

    /// Whether more was moved than was ever there, and still it does not get less. How many were moved.
    pub(super) fn is_fed(&self) -> Option<u64> {
        let moved = self.moved - self.moved_when_it_fell;
        (self.is_not_falling() && moved > self.most.saturating_mul(2)).then_some(moved)
    }

    /// Whether no consumer seems to make progress.
    pub(super) fn has_stalled(&self) -> bool {
        self.fell.elapsed() >= self.intervals.stalled().min(self.patience / 3)
    }

    /// Whether nothing is moved and nothing gets less, for the moment.
    pub(super) fn has_stopped(&self) -> bool {
        self.went_on.elapsed() >= LEVEL
    }

    pub(super) fn is_half_over(&self) -> bool {
        self.begun.elapsed() >= self.patience / 2
    }

    /// Whether nothing was moved, and nothing got less, for all that time.
    pub(super) fn is_over(&self) -> bool {
        self.went_on.elapsed() >= self.patience
    }

    pub(super) fn is_not_falling(&self) -> bool {
        self.has_not_fallen_for(self.patience)
    }

    /// Whether there was not less than ever before for so long, whatever was moved.
    pub(super) fn has_not_fallen_for(&self, time: Duration) -> bool {
        self.fell.elapsed() >= time
    }

    pub(super) fn is_empty_for(&self, settled: Duration) -> bool {
        self.empty_since.is_some_and(|since| since.elapsed() >= settled)
    }

    /// Whether enough was moved, by totals alone, which are a tick old for a quorum queue, and live for a classic one.
    pub(super) fn is_reached(&self, until: Level, has_ticks: bool) -> bool {
        let tick = if has_ticks { self.intervals.one_tick() } else { IDLE };
        match until {
            Level::Empty => self.is_empty_for(tick),
            Level::NearlyEmpty => self.last.is_some_and(|messages| messages <= MOST_LEFT),
        }
    }
}
