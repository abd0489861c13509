//! Converts the thresholds of a queue to the document format of contracts. `topo status` and the alerts from `topo
//! alerts` report a queue that reaches these values.

use super::document::{GrowthThreshold, QueueThresholds, SeverityLevels, Wait};
use crate::model::{Growth, Levels, Thresholds};

impl QueueThresholds {
    /// Returns the converted thresholds; `None` if no threshold is set.
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

fn levels<T, U>(levels: Levels<T>, convert: impl Fn(T) -> U) -> SeverityLevels<U> {
    SeverityLevels { warning: levels.warning.map(&convert), critical: levels.critical.map(&convert) }
}
