//! Waits in few words: a list, one wait for all, or what they grow by.

use super::value::duration;
use super::yaml::{Entry, Tree, entry};
use crate::model::Strategy;
use crate::spec::Schedule;

/// So many waits are written one by one; and from so many on, what they grow by says more.
pub(super) const MOST_WRITTEN: u32 = 100;
const FEWEST_OF_BACKOFF: usize = 4;

/// Retries without waits.
pub(super) fn at_once(retries: u32) -> Vec<Entry> {
    vec![entry("maxRetries", Tree::plain(retries))]
}

/// `maxRetries`, where the waits do not say it, and `retry`.
pub(super) fn tiers(strategy: Strategy, delays: &[i64]) -> Vec<Entry> {
    let strategy_said = match strategy {
        Strategy::Ladder => None,
        Strategy::Republish | Strategy::Redeliver | Strategy::Delayed => Some(entry("strategy", Tree::plain(strategy))),
    };
    let (waits, says_count) = waits(delays);
    let count = (!says_count).then(|| entry("maxRetries", Tree::plain(delays.len())));
    let retry = entry("retry", Tree::table(strategy_said.into_iter().chain([waits])));
    count.into_iter().chain([retry]).collect()
}

/// The waits, and whether they say how many they are.
fn waits(delays: &[i64]) -> (Entry, bool) {
    if let Some(backoff) = backoff(delays) {
        return (entry("backoff", backoff), false);
    }
    // The last one repeats; two of a kind are sooner read than counted.
    let repeated = delays.iter().rev().take_while(|it| Some(*it) == delays.last()).count();
    let written = if repeated > 2 { delays.len() + 1 - repeated } else { delays.len() };
    let list = Tree::list(delays[..written].iter().map(|it| Tree::plain(duration(*it))));
    (entry("delays", list), written == delays.len())
}

/// What they grow by, if that is all there is to it.
fn backoff(delays: &[i64]) -> Option<Tree> {
    let (Some(initial), Some(second), Some(last)) = (delays.first(), delays.get(1), delays.last()) else { return None };
    let factor = second.checked_div(*initial).filter(|factor| factor * initial == *second && *factor > 1)?;
    let grown = |max: Option<i64>| {
        let backoff = Schedule::Backoff { initial: *initial, factor: factor as f64, max };
        u32::try_from(delays.len()).is_ok_and(|count| backoff.delays(count) == delays)
    };
    let max = match () {
        () if delays.len() < FEWEST_OF_BACKOFF || delays.get(2) <= Some(second) => return None,
        () if grown(None) => None,
        () if grown(Some(*last)) => Some(entry("max", Tree::plain(duration(*last)))),
        () => return None,
    };
    let entries = [entry("initial", Tree::plain(duration(*initial))), entry("factor", Tree::plain(factor))];
    Some(Tree::table(entries.into_iter().chain(max)))
}
