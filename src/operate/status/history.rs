//! Computes the growth of a queue, and how long it has contained messages, from the samples that the broker keeps.
//!
//! The newest sample comes first. Its time can be up to one step in the future, because the broker rounds times up. The
//! broker returns 0 for each point in time for which it has no sample. To compute the growth, or an age beyond the
//! shortest window, topo trusts a 0 only if there is evidence that the broker was already keeping samples at that time.

use crate::broker::{NodeState, QueueHistory, QueueReading, Window};
use crate::model::QueueName;
use std::collections::BTreeMap;

/// How long, in seconds, a node must have run beyond a period before topo considers the samples for that period
/// complete. Queues and statistics start later than the node, so a queue can lack samples during this time.
const START_UP: u64 = 300;

/// The readings for the queues in one vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VhostReading {
    /// The current counts.
    pub queues: BTreeMap<QueueName, QueueReading>,
    /// The statistics with the samples for each window, shortest window first. Empty if statistics are disabled.
    pub histories: Vec<(Window, BTreeMap<QueueName, QueueHistory>)>,
    /// The states of the nodes; `None` if the connected user cannot read them.
    pub nodes: Option<BTreeMap<String, NodeState>>,
}

/// The time for which a queue has contained messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Age {
    /// The lower bound in seconds.
    pub(super) at_least: u64,
    /// True if there is no upper bound, because the broker has no older samples.
    pub(super) is_open: bool,
}

/// The samples for the queues in one vhost, with the evidence that they are complete.
pub(super) struct Histories<'a> {
    reading: &'a VhostReading,
    /// For each window and node, the index of the oldest sample that is not 0.
    evidence: Vec<BTreeMap<Option<&'a str>, usize>>,
}

impl<'a> Histories<'a> {
    pub(super) fn new(reading: &'a VhostReading) -> Self {
        let evidence = reading.histories.iter().map(|(_, histories)| {
            let mut oldest: BTreeMap<Option<&str>, usize> = BTreeMap::new();
            for (name, history) in histories {
                if let Some(index) = history.samples.iter().rposition(|messages| *messages > 0) {
                    let of_node = oldest.entry(node_of(reading, name)).or_default();
                    *of_node = index.max(*of_node);
                }
            }
            oldest
        });
        Self { reading, evidence: evidence.collect() }
    }

    /// Returns the samples for a queue in each window that has samples.
    fn samples(&self, queue: &QueueName) -> impl Iterator<Item = (usize, Window, &'a [u64])> {
        let histories = self.reading.histories.iter().enumerate();
        let queue = queue.clone();
        histories.filter_map(move |(index, (window, histories))| {
            let samples = histories.get(&queue)?.samples.as_slice();
            (!samples.is_empty()).then_some((index, *window, samples))
        })
    }

    /// Returns true if the broker was already keeping samples for the queue's node at the time of the sample. The
    /// evidence is a message in any queue on the node at that time or earlier, or the node's uptime. For longer
    /// windows, the uptime is not evidence, because the broker may not keep samples for the whole window.
    fn is_covered(&self, queue: &QueueName, window_index: usize, window: Window, index: usize) -> bool {
        let node = node_of(self.reading, queue);
        let is_seen =
            self.evidence.get(window_index).and_then(|oldest| oldest.get(&node)).is_some_and(|oldest| *oldest >= index);
        let uptime = || {
            let nodes = self.reading.nodes.as_ref()?;
            nodes.get(node?)?.uptime.map(|milliseconds| milliseconds / 1000)
        };
        let period = u64::try_from(index).unwrap_or(u64::MAX).saturating_mul(window.step);
        is_seen || (window_index == 0 && uptime().is_some_and(|uptime| uptime >= period.saturating_add(START_UP)))
    }

    /// Returns the time for which the queue has contained messages; `None` if the queue is empty or the time is
    /// unknown.
    pub(super) fn age(&self, queue: &QueueName, messages: Option<u64>) -> Option<Age> {
        if messages == Some(0) {
            return None;
        }
        let mut age: Option<Age> = None;
        for (window_index, window, samples) in self.samples(queue) {
            let run = samples.iter().take_while(|messages| **messages > 0).count();
            // The first sample can be one step in the future, so `run` samples cover at least `run - 2` steps.
            let at_least = u64::try_from(run.saturating_sub(2)).unwrap_or_default().saturating_mul(window.step);
            // In a longer window, a 0 ends the run only if the broker was already keeping samples at that time.
            let is_open = run == samples.len()
                || (age.is_some_and(|age| age.is_open) && !self.is_covered(queue, window_index, window, run));
            let longest = age.map_or(0, |age| age.at_least);
            age = Some(Age { at_least: at_least.max(longest), is_open });
        }
        age
    }

    /// Returns the number of messages by which the queue has grown in the last `within` seconds; `None` if unknown.
    pub(super) fn growth(&self, queue: &QueueName, messages: Option<u64>, within: u64) -> Option<i64> {
        let now = i64::try_from(messages?).ok()?;
        let (window_index, window, samples) = self.samples(queue).find(|(_, window, _)| window.length >= within)?;
        let index = usize::try_from(within.div_ceil(window.step)).ok()?;
        let before = *samples.get(index)?;
        if before == 0 && !self.is_covered(queue, window_index, window, index) {
            return None;
        }
        Some(now - i64::try_from(before).ok()?)
    }
}

/// Returns the node that hosts a queue.
fn node_of<'a>(reading: &'a VhostReading, queue: &QueueName) -> Option<&'a str> {
    reading.queues.get(queue)?.node.as_deref()
}
