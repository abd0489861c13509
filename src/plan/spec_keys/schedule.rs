//! Converts retries to spec keys: the delays become a list or a backoff.

use crate::model::Strategy;
use crate::model::retry::backoff_delays;
use crate::model::yaml::value::duration;
use crate::model::yaml::{Entry, Tree, entry};

/// The maximum number of delays that are converted to `retry` for a quorum queue.
pub(super) const MAX_DELAYS: u32 = 100;
/// The minimum number of delays that are converted to a backoff.
const MIN_BACKOFF_DELAYS: usize = 4;

/// The retries of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RetryKeys {
    strategy: Strategy,
    count: usize,
    /// The `delays` or `backoff` key; `None` for retries without delays.
    delays: Option<Entry>,
    /// True if the number of delays is the number of retries, so that `maxRetries` can be omitted.
    implies_count: bool,
}

impl RetryKeys {
    /// Returns retries without delays, which a quorum queue counts.
    pub(crate) fn immediate(count: u32) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Self { strategy: Strategy::Redeliver, count, delays: None, implies_count: false }
    }

    /// Returns one retry for each delay, in milliseconds.
    pub(crate) fn delayed(strategy: Strategy, delays: &[i64]) -> Self {
        if delays.is_empty() {
            return Self { strategy, count: 0, delays: None, implies_count: false };
        }
        let (entry, implies_count) = delays_entry(delays);
        Self { strategy, count: delays.len(), delays: Some(entry), implies_count }
    }

    /// Returns `maxRetries` and `retry`, without values that topo infers.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let strategy = match (self.strategy, &self.delays) {
            (Strategy::Ladder, _) | (Strategy::Redeliver, None) => None,
            (Strategy::Republish | Strategy::Redeliver | Strategy::Delayed, _) => Some(self.strategy_entry()),
        };
        let retry: Vec<Entry> = strategy.into_iter().chain(self.delays.clone()).collect();
        let count = (!self.implies_count).then(|| self.count_entry());
        let retry = (!retry.is_empty()).then(|| entry("retry", Tree::table(retry)));
        count.into_iter().chain(retry).collect()
    }

    /// Returns `maxRetries` and `retry` with every value, so that no default applies.
    pub(crate) fn explicit_entries(&self) -> [Entry; 2] {
        let retry = [self.strategy_entry()].into_iter().chain(self.delays.clone());
        [self.count_entry(), entry("retry", Tree::table(retry))]
    }

    fn count_entry(&self) -> Entry {
        entry("maxRetries", Tree::plain(self.count))
    }

    fn strategy_entry(&self) -> Entry {
        entry("strategy", Tree::plain(self.strategy))
    }
}

/// Returns the `delays` or `backoff` key, and a flag that is true if the key implies the number of retries.
fn delays_entry(delays: &[i64]) -> (Entry, bool) {
    if let Some(backoff) = backoff(delays) {
        return (entry("backoff", backoff), false);
    }
    // The last delay in a list applies to all further retries, so three or more identical delays at the end are
    // listed once. Two identical delays are both listed.
    let repeated = delays.iter().rev().take_while(|it| Some(*it) == delays.last()).count();
    let listed = if repeated > 2 { delays.len() + 1 - repeated } else { delays.len() };
    let list = Tree::list(delays[..listed].iter().map(|it| Tree::plain(duration(*it))));
    (entry("delays", list), listed == delays.len())
}

/// Returns the backoff that computes exactly these delays; `None` if there are too few delays, or if no backoff with an
/// integer factor computes them.
fn backoff(delays: &[i64]) -> Option<Tree> {
    let (Some(initial), Some(second), Some(last)) = (delays.first(), delays.get(1), delays.last()) else { return None };
    let factor = second.checked_div(*initial).filter(|factor| factor * initial == *second && *factor > 1)?;
    let computes = |max: Option<i64>| {
        backoff_delays(*initial, factor as f64, max).zip(delays).all(|(computed, delay)| computed == *delay)
    };
    let max = match () {
        () if delays.len() < MIN_BACKOFF_DELAYS || delays.get(2) <= Some(second) => return None,
        () if computes(None) => None,
        () if computes(Some(*last)) => Some(entry("max", Tree::plain(duration(*last)))),
        () => return None,
    };
    let entries = [entry("initial", Tree::plain(duration(*initial))), entry("factor", Tree::plain(factor))];
    Some(Tree::table(entries.into_iter().chain(max)))
}
