//! The intervals at which a broker updates its queue counts, and the wait times that depend on these intervals.

use std::time::Duration;

/// The broker's `collect_statistics_interval` and `quorum_tick_interval`. The management API does not report
/// these settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intervals {
    statistics: Option<Duration>,
    tick: Option<Duration>,
}

/// The broker's default for both intervals.
const DEFAULT: Duration = Duration::from_secs(5);
/// The minimum margin for a late update. The margin is a fifth of the interval, but at least this minimum and at most
/// [`MAX_MARGIN`].
const MIN_MARGIN: Duration = Duration::from_millis(500);
/// The maximum margin for a late update.
const MAX_MARGIN: Duration = Duration::from_secs(1);

impl Intervals {
    /// Creates intervals from the values that a user specified. `None` means the broker's default, 5 s.
    pub fn new(statistics: Option<Duration>, tick: Option<Duration>) -> Self {
        Self { statistics, tick }
    }

    fn statistics(self) -> Duration {
        self.statistics.unwrap_or(DEFAULT)
    }

    /// Returns the interval at which a quorum queue updates its counts.
    pub fn tick(self) -> Duration {
        self.tick.unwrap_or(DEFAULT)
    }

    /// Returns true if a user specified the tick interval. Otherwise, topo must observe ticks before it can rely on a
    /// wait time.
    pub fn is_tick_specified(self) -> bool {
        self.tick.is_some()
    }

    /// Returns the time within which a quorum queue updates its counts once: 6 s by default.
    pub fn one_tick(self) -> Duration {
        with_margin(self.tick())
    }

    /// Returns the time within which a quorum queue updates its counts twice: 12 s by default.
    pub fn two_ticks(self) -> Duration {
        self.one_tick() * 2
    }

    /// Returns the maximum time that topo waits to observe two ticks if the tick interval is not specified. It is 36 s,
    /// three times [`Self::two_ticks`], because the broker's interval can be longer than the default.
    pub fn longest_observation(self) -> Duration {
        self.two_ticks() * 3
    }

    /// Returns the pause between two reads of a quorum queue's message count: half a tick, but at most 1 s.
    pub fn poll_interval(self) -> Duration {
        (self.tick() / 2).min(Duration::from_secs(1))
    }

    /// Returns the maximum pause between two reads during an observation: one tick, but at least 1 s. During a longer
    /// pause, topo could miss an update of the counts.
    pub fn longest_pause(self) -> Duration {
        self.tick().max(Duration::from_secs(1))
    }

    /// Returns how long consumers can go without progress before topo considers them stalled: two ticks and a margin,
    /// 11 s by default. The minimum is 5 s, so that slow consumers are not considered stalled if the tick is short.
    pub fn stall_timeout(self) -> Duration {
        (self.tick() * 2 + margin(self.tick())).max(DEFAULT)
    }

    /// Returns the time to wait for a queue whose counts show no progress: `requested`, but at least two ticks if the
    /// tick is longer than the default.
    pub fn drain_timeout(self, requested: Duration) -> Duration {
        if self.tick() > DEFAULT { requested.max(self.two_ticks()) } else { requested }
    }

    /// Scales the time limit for a wait in proportion to the tick. Returns `time` unchanged if the tick is not longer
    /// than the default.
    pub fn scaled(self, time: Duration) -> Duration {
        time.max(time.mul_f64(self.tick().as_secs_f64() / DEFAULT.as_secs_f64()))
    }

    /// Returns the tick as a multiple of the default tick, rounded up. The result is at least 1. Up to this many times
    /// as many messages can arrive between two ticks as with the default tick.
    pub fn tick_factor(self) -> i64 {
        i64::try_from(self.tick().as_millis().div_ceil(DEFAULT.as_millis())).unwrap_or(i64::MAX)
    }

    /// Returns the time within which a new consumer appears in the statistics: 6 s by default.
    pub fn listing(self) -> Duration {
        with_margin(self.statistics())
    }

    /// Returns the time within which canceled consumers subscribe again and appear in the statistics: 12 s, or longer
    /// if the statistics interval is longer than the default.
    pub fn consumers_return(self) -> Duration {
        (self.listing() * 2).max(Duration::from_secs(12))
    }
}

/// Formats an interval for a sentence: `5 s`, `500 ms`.
pub fn in_words(interval: Duration) -> String {
    match interval.as_millis() {
        milliseconds if milliseconds % 1000 == 0 => format!("{} s", milliseconds / 1000),
        milliseconds => format!("{milliseconds} ms"),
    }
}

fn margin(interval: Duration) -> Duration {
    (interval / 5).clamp(MIN_MARGIN, MAX_MARGIN)
}

fn with_margin(interval: Duration) -> Duration {
    interval + margin(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_default_intervals_match_the_documentation() {
        let seconds = |time: Duration| time.as_secs_f64();
        let waits = Intervals::default();
        assert_eq!(seconds(waits.one_tick()), 6.0);
        assert_eq!(seconds(waits.two_ticks()), 12.0);
        assert_eq!(seconds(waits.longest_observation()), 36.0);
        assert_eq!(seconds(waits.poll_interval()), 1.0);
        assert_eq!(seconds(waits.longest_pause()), 5.0);
        assert_eq!(seconds(waits.stall_timeout()), 11.0);
        assert_eq!(seconds(waits.listing()), 6.0);
        assert_eq!(seconds(waits.consumers_return()), 12.0);
        assert_eq!(seconds(waits.scaled(Duration::from_secs(60))), 60.0);
        assert_eq!(seconds(waits.drain_timeout(Duration::from_secs(2))), 2.0);
        assert_eq!(waits.tick_factor(), 1);
        assert!(!waits.is_tick_specified());
    }

    #[test]
    fn waits_follow_the_intervals() {
        let minute = Some(Duration::from_secs(60));
        let slow = Intervals::new(minute, minute);
        assert_eq!(slow.two_ticks(), Duration::from_secs(122));
        assert_eq!(slow.stall_timeout(), Duration::from_secs(121));
        assert_eq!(slow.longest_pause(), Duration::from_secs(60));
        assert_eq!(slow.drain_timeout(Duration::from_secs(30)), Duration::from_secs(122));
        assert_eq!(slow.scaled(Duration::from_secs(120)), Duration::from_secs(1440));
        assert_eq!(slow.tick_factor(), 12);
        assert_eq!(slow.consumers_return(), Duration::from_secs(122));
        let half = Some(Duration::from_millis(500));
        let fast = Intervals::new(half, half);
        assert_eq!(fast.two_ticks(), Duration::from_secs(2));
        assert_eq!(fast.poll_interval(), Duration::from_millis(250));
        assert_eq!(fast.scaled(Duration::from_secs(120)), Duration::from_secs(120));
        assert!(fast.is_tick_specified());
    }
}
