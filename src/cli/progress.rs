//! Progress on standard error: a spinner or a bar on a terminal, plain lines in a log, nothing when quiet.

use super::arguments::Global;
use super::output::tell;
use super::rate::Rate;
use crate::model::ObjectId;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How progress is shown in this run.
#[derive(Clone, Copy)]
pub(super) struct Progress {
    terminal: bool,
    quiet: bool,
}

/// Something under way; dropping it wipes it off the screen.
pub(super) struct UnderWay {
    bar: Option<ProgressBar>,
    quiet: bool,
}

impl UnderWay {
    /// Replaces the message; in a log, it is a line.
    pub(super) fn update(&self, message: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(message.to_owned()),
            None if self.quiet => {}
            None => tell(&format!("{message}\n")),
        }
    }
}

impl Drop for UnderWay {
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

    /// Whether nothing is to be said but what went wrong.
    pub(super) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Something that takes as long as it takes. In a log it says nothing: it is over when the next line comes.
    pub(super) fn spin(self, message: String) -> UnderWay {
        if !self.terminal || self.quiet {
            return UnderWay { bar: None, quiet: self.quiet };
        }
        // A message that does not fit is cut.
        let style = ProgressStyle::with_template("{spinner} {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style).with_message(message);
        bar.enable_steady_tick(Duration::from_millis(120));
        UnderWay { bar: Some(bar), quiet: false }
    }

    /// So many steps.
    pub(super) fn steps(self, total: usize) -> Steps {
        let bar = (self.terminal && !self.quiet).then(|| {
            // What does not fit is cut: a line that is broken leaves its pieces behind.
            let style = ProgressStyle::with_template("{bar:16} {pos}/{len} {wide_msg}");
            let bar = ProgressBar::new(total as u64);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        // A log of ten thousand lines helps nobody: above a hundred steps, every tenth part is a line.
        let every = if total <= 100 { 1 } else { total / 10 };
        Steps {
            bar,
            quiet: self.quiet,
            total,
            done: 0,
            every,
            said: None,
            rates: BTreeMap::new(),
            ids: BTreeSet::new(),
            undone: BTreeSet::new(),
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
    said: Option<Instant>,
    /// Of each move, for some are under way at once.
    rates: BTreeMap<String, Rate>,
    /// The planned steps that were done.
    ids: BTreeSet<usize>,
    /// The recreates that are undone.
    undone: BTreeSet<ObjectId>,
}

impl Steps {
    /// How many messages a second a step moves, by what is told of it here.
    pub(super) fn rate(&mut self, what: &str, moved: u64) -> Option<f64> {
        self.rates.entry(what.to_owned()).or_default().of(moved, Instant::now())
    }

    /// Something to say of the step that is under way; in a log, not more often than now and then.
    pub(super) fn moving(&mut self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None if self.quiet => {}
            None if self.said.is_none_or(|said| said.elapsed() >= Duration::from_secs(5)) => {
                self.said = Some(Instant::now());
                tell(&format!("{:>width$} {what}\n", "", width = 2 * self.total.to_string().len() + 1));
            }
            None => {}
        }
    }

    /// A recreate is undone from now on: nothing of it gets on any more.
    pub(super) fn undoes(&mut self, object: ObjectId, what: &str) {
        self.undone.insert(object);
        match &self.bar {
            Some(bar) => bar.suspend(|| tell(&format!("{what}\n"))),
            None if self.quiet => {}
            None => tell(&format!("{what}\n")),
        }
    }

    /// A step was done. What nobody planned, and what was done before, is not one of so many: a migration that lost a race, or
    /// is undone, does some things again.
    pub(super) fn done(&mut self, id: usize, recreate: Option<&ObjectId>, what: &str) {
        let is_undone = recreate.is_some_and(|object| self.undone.contains(object));
        if id > 0 && !is_undone && self.ids.insert(id) {
            return self.over(what);
        }
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None if self.quiet || self.every > 1 => {}
            None => tell(&format!("{:>width$} {what}\n", "", width = 2 * self.total.to_string().len() + 1)),
        }
    }

    /// One more is over.
    pub(super) fn over(&mut self, what: &str) {
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
                tell(&format!("{:>width$}/{} {what}\n", self.done, self.total, width = self.total.to_string().len()));
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
