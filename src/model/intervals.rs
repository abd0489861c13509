//! How often a broker renews the counts of its queues, and every wait that follows from it.

use std::time::Duration;

/// The broker's `collect_statistics_interval` and `quorum_tick_interval`. The management API shows neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intervals {
    statistics: Option<Duration>,
    tick: Option<Duration>,
}

/// The default of the broker, for both.
const DEFAULT: Duration = Duration::from_secs(5);
/// The margin for a broker that is late: a fifth of an interval, within these bounds.
const LEAST_MARGIN: Duration = Duration::from_millis(500);
const MOST_MARGIN: Duration = Duration::from_secs(1);

impl Intervals {
    /// The intervals that a user specified; `None` assumes the default of the broker, 5 s.
    pub fn new(statistics: Option<Duration>, tick: Option<Duration>) -> Self {
        Self { statistics, tick }
    }

    fn statistics(self) -> Duration {
        self.statistics.unwrap_or(DEFAULT)
    }

    /// The time after which a quorum queue renews its counts.
    pub fn tick(self) -> Duration {
        self.tick.unwrap_or(DEFAULT)
    }

    /// Whether a user specified the tick. An assumed tick has to be observed before a wait proves anything.
    pub fn is_tick_specified(self) -> bool {
        self.tick.is_some()
    }

    /// Within this time, a quorum queue has renewed its counts once: 6 s by default.
    pub fn one_tick(self) -> Duration {
        with_margin(self.tick())
    }

    /// Within this time, a quorum queue has renewed its counts twice: 12 s by default.
    pub fn two_ticks(self) -> Duration {
        self.one_tick() * 2
    }

    /// The longest time in which an assumed tick is to be observed twice: 36 s by default.
    pub fn longest_observation(self) -> Duration {
        self.two_ticks() * 3
    }

    /// The pause between two looks at the total of a quorum queue: two looks in each tick, and 1 s at most.
    pub fn between_looks(self) -> Duration {
        (self.tick() / 2).min(Duration::from_secs(1))
    }

    /// The longest pause between two looks that are one observation: a tick, so that each count is seen.
    pub fn longest_pause(self) -> Duration {
        self.tick().max(Duration::from_secs(1))
    }

    /// Consumers that take nothing for this time do not drain: 11 s by default, two ticks and a margin. A consumer that is
    /// only slow keeps at least 5 s, however short the tick is.
    pub fn stalled(self) -> Duration {
        (self.tick() * 2 + margin(self.tick())).max(DEFAULT)
    }

    /// The patience with a queue whose counts show no progress. A tick that is longer than the default shows progress
    /// after two ticks at the earliest.
    pub fn patience(self, asked: Duration) -> Duration {
        if self.tick() > DEFAULT { asked.max(self.two_ticks()) } else { asked }
    }

    /// How much longer than by default something takes that is proven by ticks: `time`, or in proportion to the tick.
    pub fn scaled(self, time: Duration) -> Duration {
        time.max(time.mul_f64(self.tick().as_secs_f64() / DEFAULT.as_secs_f64()))
    }

    /// How many times more arrives between two ticks than by default; at least once.
    pub fn ticks_by_default(self) -> i64 {
        i64::try_from(self.tick().as_millis().div_ceil(DEFAULT.as_millis())).unwrap_or(i64::MAX)
    }

    /// Within this time, a consumer that subscribed is in the statistics: 6 s by default.
    pub fn listing(self) -> Duration {
        with_margin(self.statistics())
    }

    /// Within this time, consumers that were cancelled subscribe again and are in the statistics: 12 s, or longer where
    /// the statistics are renewed less often.
    pub fn consumers_return(self) -> Duration {
        (self.listing() * 2).max(Duration::from_secs(12))
    }
}

/// An interval in a sentence: `5 s`, `500 ms`.
pub fn in_words(interval: Duration) -> String {
    match interval.as_millis() {
        milliseconds if milliseconds % 1000 == 0 => format!("{} s", milliseconds / 1000),
        milliseconds => format!("{milliseconds} ms"),
    }
}

fn margin(interval: Duration) -> Duration {
    (interval / 5).clamp(LEAST_MARGIN, MOST_MARGIN)
}

fn with_margin(interval: Duration) -> Duration {
    interval + margin(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_the_default_intervals_are_the_documented_ones() {
        let seconds = |time: Duration| time.as_secs_f64();
        let waits = Intervals::default();
        assert_eq!(seconds(waits.one_tick()), 6.0);
        assert_eq!(seconds(waits.two_ticks()), 12.0);
        assert_eq!(seconds(waits.longest_observation()), 36.0);
        assert_eq!(seconds(waits.between_looks()), 1.0);
        assert_eq!(seconds(waits.longest_pause()), 5.0);
        assert_eq!(seconds(waits.stalled()), 11.0);
        assert_eq!(seconds(waits.listing()), 6.0);
        assert_eq!(seconds(waits.consumers_return()), 12.0);
        assert_eq!(seconds(waits.scaled(Duration::from_secs(60))), 60.0);
        assert_eq!(seconds(waits.patience(Duration::from_secs(2))), 2.0);
        assert_eq!(waits.ticks_by_default(), 1);
        assert!(!waits.is_tick_specified());
    }

    #[test]
    fn waits_follow_the_intervals() {
        let minute = Some(Duration::from_secs(60));
        let slow = Intervals::new(minute, minute);
        assert_eq!(slow.two_ticks(), Duration::from_secs(122));
        assert_eq!(slow.stalled(), Duration::from_secs(121));
        assert_eq!(slow.longest_pause(), Duration::from_secs(60));
        assert_eq!(slow.patience(Duration::from_secs(30)), Duration::from_secs(122));
        assert_eq!(slow.scaled(Duration::from_secs(120)), Duration::from_secs(1440));
        assert_eq!(slow.ticks_by_default(), 12);
        assert_eq!(slow.consumers_return(), Duration::from_secs(122));
        let half = Some(Duration::from_millis(500));
        let fast = Intervals::new(half, half);
        assert_eq!(fast.two_ticks(), Duration::from_secs(2));
        assert_eq!(fast.between_looks(), Duration::from_millis(250));
        assert_eq!(fast.scaled(Duration::from_secs(120)), Duration::from_secs(120));
        assert!(fast.is_tick_specified());
    }
}
