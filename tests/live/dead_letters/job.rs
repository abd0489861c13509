//! A command that a test interrupts and repeats until all messages are processed, and the check of its messages.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::fixture::{DEAD, Fixture, REPLAY, WORK, numbers};
use crate::support::topo::Running;
use crate::support::{Node, Output, Random, until};

/// The maximum number of messages in doubt after a kill: `--window`.
pub(super) const WINDOW: usize = 100;
/// The filter of a command, which matches the messages with even numbers.
const FILTER: [&str; 2] = ["--routing-key", "order.paid"];
/// The maximum wait for the progress of a run.
const MAX_WAIT: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Command {
    Replay,
    FilteredReplay,
    Drop,
    Restore,
}

impl Command {
    pub(super) const ALL: [Self; 4] = [Self::Replay, Self::FilteredReplay, Self::Drop, Self::Restore];
}

pub(super) struct Job<'a> {
    pub(super) command: Command,
    pub(super) kind: &'static str,
    pub(super) fixture: Fixture<'a>,
    messages: usize,
    words: Vec<String>,
    /// True if the command has succeeded.
    pub(super) is_done: bool,
}

impl<'a> Job<'a> {
    /// Dead-letters this number of messages for a command.
    pub(super) fn new(node: &'a Node, command: Command, kind: &'static str, messages: usize) -> Self {
        let fixture = Fixture::on(node, "killed", kind, "", "");
        fixture.dead_letter(messages);
        let words = match command {
            Command::Replay => fixture.words("replay", REPLAY),
            Command::FilteredReplay => fixture.words("replay", &[REPLAY, &FILTER].concat()),
            Command::Drop => {
                let flags = ["--yes", "--backup", "paid.jsonl", "--window", "100"];
                fixture.words("drop", &[&FILTER[..], &flags].concat())
            }
            Command::Restore => {
                fixture.dlq("export", &["--out", "all.jsonl"]).expect_code(0);
                fixture.drain(DEAD);
                fixture.words("restore", &["all.jsonl", "--yes"])
            }
        };
        Self { command, kind, fixture, messages, words, is_done: false }
    }

    pub(super) fn start(&self) -> Running {
        self.fixture.topo.start(self.words.iter().map(String::as_str))
    }

    /// Records the end of a run. Only an incomplete restore leaves its progress behind, so a complete one is not repeated.
    pub(super) fn ended(&mut self, output: &Output) {
        self.is_done = output.code == Some(0) && self.command == Command::Restore;
    }

    /// Returns the number of messages that the command has replayed, stored in the backup or restored.
    pub(super) fn processed(&self) -> usize {
        match self.command {
            Command::Replay | Command::FilteredReplay => self.fixture.ready(WORK),
            Command::Drop => {
                let backup = std::fs::read(self.fixture.topo.path("paid.jsonl")).unwrap_or_default();
                backup.iter().filter(|byte| **byte == b'\n').count()
            }
            Command::Restore => self.fixture.ready(DEAD),
        }
    }

    /// Returns true if the command has nothing left to process.
    pub(super) fn has_no_more(&self) -> bool {
        let ready = self.fixture.ready(DEAD);
        match self.command {
            Command::Replay => ready == 0,
            Command::FilteredReplay | Command::Drop => ready == self.messages / 2,
            Command::Restore => ready >= self.messages,
        }
    }

    /// Waits until a random moment of a run: in one of five cases shortly after its start, otherwise after it has
    /// processed up to this number of messages.
    pub(super) fn wait_for_moment(&self, running: &mut Running, most: usize, random: &mut Random) {
        if random.below(5) == 0 {
            sleep(Duration::from_millis(random.below(400) as u64));
            return;
        }
        let (before, wanted, started) = (self.processed(), 1 + random.below(most), Instant::now());
        while self.processed() < before + wanted && !running.is_over() && started.elapsed() < MAX_WAIT {
            sleep(Duration::from_millis(2));
        }
        sleep(Duration::from_millis(random.below(20) as u64));
    }

    /// Waits until no other run holds the lock and the queues respond.
    pub(super) fn wait_for_queues(&self) {
        let list = || self.fixture.dlq("list", &["--limit", "1"]);
        until("the lock to be free", || (list().code == Some(0)).then_some(()));
    }

    /// Repeats the command until it succeeds, and checks that no message is lost and that the rest keeps its order. Returns
    /// the number of duplicates.
    pub(super) fn finish(&mut self) -> usize {
        let what = format!("{:?}, {}", self.command, self.kind);
        let (paid, rest): (Vec<_>, Vec<_>) = (0..self.messages).partition(|number| number % 2 == 0);
        until(&format!("{what}: the rest"), || {
            if !self.is_done {
                self.is_done = self.start().wait().code == Some(0);
            }
            // The broker can return messages after the end of a run.
            self.is_done &= self.has_no_more() || self.command == Command::Restore;
            (self.is_done && self.has_no_more()).then_some(())
        });
        let (found, expected) = match self.command {
            Command::Replay => (numbers(&self.fixture.drain(WORK)), 0..self.messages),
            Command::FilteredReplay => (numbers(&self.fixture.drain(WORK)), 0..paid.len()),
            Command::Drop => (archived(&self.fixture.topo.read("paid.jsonl")), 0..paid.len()),
            Command::Restore => (numbers(&self.fixture.drain(DEAD)), 0..self.messages),
        };
        let step = if expected.len() == self.messages { 1 } else { 2 };
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for number in found {
            *counts.entry(number).or_default() += 1;
        }
        for number in expected {
            assert!(counts.contains_key(&(number * step)), "{what}: message {} is lost", number * step);
        }
        let rest = if step == 2 { rest } else { Vec::new() };
        let kept = numbers(&self.fixture.drain(DEAD));
        let different = kept.iter().zip(&rest).position(|(kept, expected)| kept != expected);
        assert_eq!((kept.len(), different), (rest.len(), None), "{what}: number of kept messages, first difference");
        counts.values().map(|count| count - 1).sum()
    }
}

/// Returns the numbers of the messages in an archive.
fn archived(lines: &str) -> Vec<usize> {
    let number = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        message["body"].as_str().unwrap().parse().unwrap()
    };
    lines.lines().map(number).collect()
}
