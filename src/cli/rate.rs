//! Measures how fast messages are moved.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The minimum time for a meaningful rate.
const LEAST: Duration = Duration::from_secs(1);
/// The time over which a rate is averaged.
const WINDOW: Duration = Duration::from_secs(10);
/// After this time without progress there is no rate.
const STILL: Duration = Duration::from_secs(3);

/// A moving average of messages per second.
#[derive(Default)]
pub(super) struct Rate {
    /// The counts of moved messages with their times: those of the window, and one before it.
    seen: VecDeque<(Instant, u64)>,
    /// The time at which the count last grew.
    last_progress: Option<Instant>,
}

impl Rate {
    /// Returns the recent messages per second; `None` while there is no meaningful rate.
    pub(super) fn of(&mut self, moved: u64, now: Instant) -> Option<f64> {
        let last = self.seen.back().map(|(_, moved)| *moved);
        if last.is_some_and(|last| last > moved) {
            *self = Self::default();
        }
        if last != Some(moved) {
            self.last_progress = Some(now);
        }
        self.seen.push_back((now, moved));
        while self.seen.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= WINDOW) {
            self.seen.pop_front();
        }
        let (since, from) = *self.seen.front()?;
        let took = now.duration_since(since);
        let is_moving = self.last_progress.is_some_and(|since| now.duration_since(since) < STILL);
        (is_moving && took >= LEAST && moved > from).then(|| (moved - from) as f64 / took.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_starts_at_the_first_count() {
        let (mut rate, now) = (Rate::default(), Instant::now());
        let mut of = |moved: u64, seconds: f64| rate.of(moved, now + Duration::from_secs_f64(seconds));
        assert_eq!(of(100, 0.0), None);
        assert_eq!(of(900, 0.5), None, "too early");
        assert_eq!(of(4_100, 2.0), Some(2_000.0));
        assert_eq!(of(10, 3.0), None, "the count was reset");
        assert_eq!(of(10, 5.0), None, "no progress");
        assert_eq!(of(510, 8.0), Some(100.0));
    }

    #[test]
    fn rate_covers_the_window_and_ends_without_progress() {
        let (mut rate, now) = (Rate::default(), Instant::now());
        let mut of = |moved: u64, seconds: f64| rate.of(moved, now + Duration::from_secs_f64(seconds));
        of(0, 0.0);
        assert_eq!(of(10_000, 10.0), Some(1_000.0));
        assert_eq!(of(10_100, 20.0), Some(10.0), "only the window counts");
        assert_eq!(of(10_100, 22.0), Some(10.0 * 10.0 / 12.0));
        assert_eq!(of(10_100, 23.0), None, "no progress");
        assert_eq!(of(10_130, 23.5), Some(130.0 / 13.5));
    }
}
