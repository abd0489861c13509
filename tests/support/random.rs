//! Reproducible random cases: everything derives from one seed, which is printed.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64: small, and sufficient for drawing cases.
pub(crate) struct Random(u64);

impl Random {
    /// The same seed yields the same numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below the bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// Returns true with this percentage.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of the items.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// The seed of this run: `TOPO_SEED` (tests/run derives it from the source), or a new one.
pub(crate) fn seed() -> u64 {
    number("TOPO_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        u64::from(now.subsec_nanos()) + now.as_secs()
    })
}

/// The number of random cases: fewer in a short run, which every version repeats, than with `TOPO_LONG=1`.
pub(crate) fn cases(short: usize, long: usize) -> usize {
    if std::env::var_os("TOPO_LONG").is_some() { long } else { short }
}

/// Returns true if another case is drawn: the usual number, and up to four times as many if events are too rare. Chance alone
/// must not fail a test.
pub(crate) fn draws_on(drawn: usize, usual: usize, is_enough: impl FnOnce() -> bool) -> bool {
    drawn < usual || drawn < 4 * usual && !is_enough()
}

/// The number in an environment variable, such as `TOPO_PAIR`.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}
