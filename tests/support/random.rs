//! Generates reproducible random cases. All cases derive from one seed, which is printed.

use std::time::{SystemTime, UNIX_EPOCH};

/// A SplitMix64 generator, which is small and sufficient for random cases.
pub(crate) struct Random(u64);

impl Random {
    /// Returns a generator. The same seed produces the same numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to below the bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// Returns true with this probability in percent.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of the items.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Returns the seed of this run: `TOPO_SEED` (tests/run derives it from the source), or a new seed.
pub(crate) fn seed() -> u64 {
    number("TOPO_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        u64::from(now.subsec_nanos()) + now.as_secs()
    })
}

/// Returns the number of random cases. A short run, which runs on every version, has fewer cases than one with
/// `TOPO_LONG=1`.
pub(crate) fn cases(short: usize, long: usize) -> usize {
    if is_long() { long } else { short }
}

/// Returns true in a run with `TOPO_LONG=1`.
pub(crate) fn is_long() -> bool {
    std::env::var_os("TOPO_LONG").is_some()
}

/// Returns true if another case is necessary: up to the usual number of cases, and up to four times that number if
/// events are too rare. A test must not fail by chance.
pub(crate) fn draws_on(drawn: usize, usual: usize, is_enough: impl FnOnce() -> bool) -> bool {
    drawn < usual || drawn < 4 * usual && !is_enough()
}

/// Returns the number in an environment variable, such as `TOPO_PAIR`.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}
