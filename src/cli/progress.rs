//! Progress on standard error: a spinner or a bar on a terminal, plain lines in a log, nothing when quiet. The bar
//! shows how fast messages are moved.

use super::arguments::Global;
use super::output::eprint;
use crate::model::ObjectId;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// The display of progress in this run.
#[derive(Clone, Copy)]
pub(super) struct Progress {
    terminal: bool,
    quiet: bool,
}

/// An operation in progress; dropping it clears it from the screen.
pub(super) struct Operation {
    bar: Option<ProgressBar>,
    quiet: bool,
}

impl Operation {
    /// Replaces the message; in a log, it is a line.
    pub(super) fn update(&self, message: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(message.to_owned()),
            None if self.quiet => {}
            None => eprint(&format!("{message}\n")),
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Progress {
    pub(super) fn new(global: &Global) -> Self {
        Self { terminal: std::io::stderr().is_terminal(), quiet: global.quiet }
    }

    /// Returns true if only errors are printed.
    pub(super) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Shows an operation of unknown duration. A log gets no line.
    pub(super) fn start_spinner(self, message: String) -> Operation {
        if !self.terminal || self.quiet {
            return Operation { bar: None, quiet: self.quiet };
        }
        // A message that does not fit is cut.
        let style = ProgressStyle::with_template("{spinner} {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style).with_message(message);
        bar.enable_steady_tick(Duration::from_millis(120));
        Operation { bar: Some(bar), quiet: false }
    }

    /// Shows a number of steps.
    pub(super) fn steps(self, total: usize) -> Steps {
        let bar = (self.terminal && !self.quiet).then(|| {
            // Long lines are cut: a wrapped line would leave remains on the screen.
            let style = ProgressStyle::with_template("{bar:16} {pos}/{len} {wide_msg}");
            let bar = ProgressBar::new(total as u64);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        // Above a hundred steps, a log gets only ten lines.
        let every = if total <= 100 { 1 } else { total / 10 };
        Steps {
            bar,
            quiet: self.quiet,
            total,
            done: 0,
            every,
            last_line: None,
            rates: BTreeMap::new(),
            ids: BTreeSet::new(),
            stalled: BTreeSet::new(),
            rolled_back: BTreeSet::new(),
        }
    }
}

/// The steps of an apply.
pub(super) struct Steps {
    bar: Option<ProgressBar>,
    quiet: bool,
    total: usize,
    done: usize,
    every: usize,
    /// The time of the last line about a move.
    last_line: Option<Instant>,
    /// The rate of each move; several can run concurrently.
    rates: BTreeMap<String, Rate>,
    /// The planned steps that were done.
    ids: BTreeSet<usize>,
    /// The steps that were tried again.
    stalled: BTreeSet<usize>,
    /// The recreations that are rolled back.
    rolled_back: BTreeSet<ObjectId>,
}

impl Steps {
    /// Returns the messages per second of a step, from the reported counts.
    pub(super) fn rate(&mut self, what: &str, moved: u64) -> Option<f64> {
        self.rates.entry(what.to_owned()).or_default().of(moved, Instant::now())
    }

    /// Shows why a step is tried again. In a log with a line for each step, the first reason of a step is always shown.
    pub(super) fn stalled(&mut self, id: usize, what: &str) {
        if self.stalled.insert(id) && self.every == 1 {
            self.last_line = None;
        }
        self.moving(what);
    }

    /// Shows the state of the current step; in a log, at most every five seconds.
    pub(super) fn moving(&mut self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None if self.quiet => {}
            None if self.last_line.is_none_or(|at| at.elapsed() >= Duration::from_secs(5)) => {
                self.last_line = Some(Instant::now());
                eprint(&format!("{:>width$} {what}\n", "", width = 2 * self.total.to_string().len() + 1));
            }
            None => {}
        }
    }

    /// Shows that topo is rolling back the steps that recreate an object. These steps no longer count as progress.
    pub(super) fn roll_back(&mut self, object: ObjectId, what: &str) {
        self.rolled_back.insert(object);
        match &self.bar {
            Some(bar) => bar.suspend(|| eprint(&format!("{what}\n"))),
            None if self.quiet => {}
            None => eprint(&format!("{what}\n")),
        }
    }

    /// Shows a completed step. Unplanned and repeated steps do not count: a migration that lost a race or is rolled
    /// back repeats some of them.
    pub(super) fn done(&mut self, id: usize, recreate: Option<&ObjectId>, what: &str) {
        let is_rolled_back = recreate.is_some_and(|object| self.rolled_back.contains(object));
        if id > 0 && !is_rolled_back && self.ids.insert(id) {
            return self.end_step(what);
        }
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None if self.quiet || self.every > 1 => {}
            None => eprint(&format!("{:>width$} {what}\n", "", width = 2 * self.total.to_string().len() + 1)),
        }
    }

    /// Counts one more step as ended.
    pub(super) fn end_step(&mut self, what: &str) {
        self.done += 1;
        self.total = self.total.max(self.done);
        match &self.bar {
            Some(bar) => {
                bar.set_length(self.total as u64);
                bar.set_message(what.to_owned());
                bar.inc(1);
            }
            None if self.quiet => {}
            None if self.done.is_multiple_of(self.every) || self.done == self.total => {
                eprint(&format!("{:>width$}/{} {what}\n", self.done, self.total, width = self.total.to_string().len()));
            }
            None => {}
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

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
