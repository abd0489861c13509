//! The thresholds of a queue in a contract. `topo status` and the alerts of `topo alerts` report the queue from these
//! values on.

use super::document::{GrowthThreshold, QueueThresholds, SeverityLevels, Wait};
use crate::model::{Growth, Levels, Thresholds};

impl QueueThresholds {
    /// Describes thresholds; `None` if there are none.
    pub(super) fn of(thresholds: &Thresholds) -> Option<Self> {
        let growth = |it: Growth| GrowthThreshold { messages: it.messages, within: Wait::of(it.within) };
        (*thresholds != Thresholds::default()).then(|| Self {
            depth: levels(thresholds.depth, |messages| messages),
            growth: levels(thresholds.growth, growth),
            age: levels(thresholds.age, Wait::of),
            no_consumers: thresholds.no_consumers.map(Wait::of),
        })
    }
}

fn levels<T, U>(levels: Levels<T>, described: impl Fn(T) -> U) -> SeverityLevels<U> {
    SeverityLevels { warning: levels.warning.map(&described), critical: levels.critical.map(&described) }
}
