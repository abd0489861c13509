//! Shows progress on standard error: a spinner or a bar on a terminal, plain lines in a log, and nothing with
//! `--quiet`. Computes the message rate of migrations.

use super::arguments::Global;
use super::output::{eprint, set_spinner};
use crate::model::ObjectId;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// The settings for displaying progress.
#[derive(Clone, Copy)]
pub(super) struct Progress {
    terminal: bool,
    quiet: bool,
}

/// The display of a running operation. Dropping the value removes the spinner from the terminal.
pub(super) struct Operation {
    bar: Option<ProgressBar>,
    quiet: bool,
}

impl Operation {
    /// Replaces the message. In a log, prints the message as a new line.
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

    /// Returns true if topo prints only results and errors.
    pub(super) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Shows an operation of unknown duration. In a log, prints nothing.
    pub(super) fn start_spinner(self, message: String) -> Operation {
        if !self.terminal || self.quiet {
            return Operation { bar: None, quiet: self.quiet };
        }
        // A message that is wider than the terminal is truncated.
        let style = ProgressStyle::with_template("{spinner} {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style).with_message(message);
        bar.enable_steady_tick(Duration::from_millis(120));
        set_spinner(&bar);
        Operation { bar: Some(bar), quiet: false }
    }

    /// Shows the progress of `total` steps.
    pub(super) fn start_steps(self, total: usize) -> Steps {
        let bar = (self.terminal && !self.quiet).then(|| {
            // Long lines are truncated, because a wrapped line would leave remnants on the terminal.
            let style = ProgressStyle::with_template("{bar:16} {pos}/{len} {wide_msg}");
            let bar = ProgressBar::new(total as u64);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        // With more than 100 steps, a log reports completed steps only after each tenth of the total.
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
            retried: BTreeSet::new(),
            rolled_back: BTreeSet::new(),
        }
    }
}

/// The progress display for the steps of an apply.
pub(super) struct Steps {
    bar: Option<ProgressBar>,
    quiet: bool,
    total: usize,
    done: usize,
    /// The number of steps per log line.
    every: usize,
    /// The time of the last log line about a running step.
    last_line: Option<Instant>,
    /// The message rate of each running step. Several steps can move messages concurrently.
    rates: BTreeMap<String, Rate>,
    /// The ids of the planned steps that are done.
    ids: BTreeSet<usize>,
    /// The ids of the steps for which a retry reason was shown.
    retried: BTreeSet<usize>,
    /// The objects whose recreation is being or has been rolled back.
    rolled_back: BTreeSet<ObjectId>,
}

impl Steps {
    /// Computes a step's rate in messages per second from the reported counts. Returns `None` while there is no
    /// meaningful rate.
    pub(super) fn rate(&mut self, what: &str, moved: u64) -> Option<f64> {
        self.rates.entry(what.to_owned()).or_default().update(moved, Instant::now())
    }

    /// Shows why topo retries a step. In a log with a line for each step, always prints a step's first reason.
    pub(super) fn show_retry(&mut self, id: usize, what: &str) {
        if self.retried.insert(id) && self.every == 1 {
            self.last_line = None;
        }
        self.show_state(what);
    }

    /// Shows the state of the current step. In a log, prints at most one line every five seconds.
    pub(super) fn show_state(&mut self, what: &str) {
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

    /// Shows that topo is rolling back the steps that recreate an object. These steps no longer count as done.
    pub(super) fn start_rollback(&mut self, object: ObjectId, what: &str) {
        self.rolled_back.insert(object);
        match &self.bar {
            Some(bar) => bar.suspend(|| eprint(&format!("{what}\n"))),
            None if self.quiet => {}
            None => eprint(&format!("{what}\n")),
        }
    }

    /// Shows a completed step. Counts only planned steps, and counts each step only once, because a migration that
    /// loses a race or is rolled back repeats steps.
    pub(super) fn complete_step(&mut self, id: usize, recreate: Option<&ObjectId>, what: &str) {
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

    /// Counts and shows a step that completed or failed, or that is left for the next run.
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

/// The minimum period that the counts must cover for a meaningful rate.
const MIN_TIME: Duration = Duration::from_secs(1);
/// The time over which a rate is averaged.
const WINDOW: Duration = Duration::from_secs(10);
/// How long the count can stay the same before topo treats the rate as unknown.
const MAX_PAUSE: Duration = Duration::from_secs(3);

/// A moving average of messages per second.
#[derive(Default)]
pub(super) struct Rate {
    /// The counts of moved messages with their times: the counts in the window, and the last count before the window.
    counts: VecDeque<(Instant, u64)>,
    /// The time at which the count last grew.
    last_progress: Option<Instant>,
}

impl Rate {
    /// Adds a count, and returns the recent messages per second. Returns `None` while there is no meaningful rate.
    pub(super) fn update(&mut self, moved: u64, now: Instant) -> Option<f64> {
        let last = self.counts.back().map(|(_, moved)| *moved);
        if last.is_some_and(|last| last > moved) {
            *self = Self::default();
        }
        if last != Some(moved) {
            self.last_progress = Some(now);
        }
        self.counts.push_back((now, moved));
        while self.counts.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= WINDOW) {
            self.counts.pop_front();
        }
        let (since, from) = *self.counts.front()?;
        let elapsed = now.duration_since(since);
        let is_moving = self.last_progress.is_some_and(|since| now.duration_since(since) < MAX_PAUSE);
        (is_moving && elapsed >= MIN_TIME && moved > from).then(|| (moved - from) as f64 / elapsed.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_starts_at_the_first_count() {
        let (mut rate, now) = (Rate::default(), Instant::now());
        let mut update = |moved: u64, seconds: f64| rate.update(moved, now + Duration::from_secs_f64(seconds));
        assert_eq!(update(100, 0.0), None);
        assert_eq!(update(900, 0.5), None, "too early");
        assert_eq!(update(4_100, 2.0), Some(2_000.0));
        assert_eq!(update(10, 3.0), None, "the count was reset");
        assert_eq!(update(10, 5.0), None, "no progress");
        assert_eq!(update(510, 8.0), Some(100.0));
    }

    #[test]
    fn rate_covers_the_window_and_is_unknown_without_progress() {
        let (mut rate, now) = (Rate::default(), Instant::now());
        let mut update = |moved: u64, seconds: f64| rate.update(moved, now + Duration::from_secs_f64(seconds));
        update(0, 0.0);
        assert_eq!(update(10_000, 10.0), Some(1_000.0));
        assert_eq!(update(10_100, 20.0), Some(10.0), "only the window counts");
        assert_eq!(update(10_100, 22.0), Some(10.0 * 10.0 / 12.0));
        assert_eq!(update(10_100, 23.0), None, "no progress");
        assert_eq!(update(10_130, 23.5), Some(130.0 / 13.5));
    }
}
