//! Drops messages from a dead-letter queue. Unless the backup is disabled, topo first stores them in an archive.

use super::archive::archived_line;
use super::error::DlqError;
use super::hazard::Hazard;
use super::hazards;
use super::inspection::Reader;
use super::opened::{HoldLimits, Opened};
use super::report::{Continuation, RunCounts, RunEnd, RunReport, run_end};
use super::selection::Selection;
use super::state::VhostState;
use crate::apply::Interrupt;
use crate::broker::Access;
use crate::broker::message::ReceivedMessage;
use crate::broker::transport::{Decision, Gate, MessageHandler, ProcessCounts};
use crate::model::{QueueName, QueueType};

/// Stores lines of an archive permanently. The error is the reason why the lines cannot be stored.
pub type Store = Box<dyn FnMut(&str) -> Result<(), String>>;

/// The options of a drop.
pub struct DropOptions {
    /// The messages to drop.
    pub selection: Selection,
    /// The maximum number of messages to drop.
    pub limit: Option<u64>,
    /// The limits on held messages.
    pub hold: HoldLimits,
    /// The maximum number of messages in doubt, which is also the maximum number of messages that are stored together.
    pub window: u16,
    /// Stores lines of an archive permanently; `None` to drop the messages without a backup.
    pub store: Option<Store>,
    /// The allowed hazards.
    pub allowed: Vec<Hazard>,
    /// The identifier of the run.
    pub run: String,
}

/// Drops the messages that match the selection, up to the limit. If [`DropOptions::store`] is set, topo stores each
/// message before it drops the message.
///
/// # Errors
/// See [`DlqError`]. No message has been dropped.
pub async fn drop_messages(
    access: &Access,
    state: &VhostState,
    queue: &QueueName,
    options: DropOptions,
    interrupt: &Interrupt,
    progress: &dyn Fn(&ProcessCounts),
) -> Result<RunReport, DlqError> {
    state.expect_queue(queue)?;
    if state.kind(queue) == Some(QueueType::Stream) {
        return Err(DlqError::Stream { queue: queue.clone() });
    }
    hazards::refuse_low_limit(state, queue)?;
    hazards::refuse(hazards::of_inspection(state, queue), &options.allowed)?;
    let mut opened = Opened::open(access, state, queue, (options.hold, options.window), &options.allowed).await?;
    let mut reader = Reader::new(state, queue);
    if let Err(error) = reader.prepare(&opened).await {
        opened.close().await;
        return Err(error.into());
    }
    let mut handler = Dropper {
        reader,
        state,
        queue,
        options,
        interrupt,
        progress,
        lines: String::new(),
        matched: 0,
        arrived: 0,
        ended: None,
    };
    let processed = opened.process(&mut handler).await;
    let before = opened.order.expected;
    let after = match &processed {
        Ok(it) => opened.wait_for_returned(before.saturating_sub(it.counts.removed)).await,
        Err(_) => None,
    };
    opened.close().await;
    let processed = processed?;
    let counts = RunCounts {
        received: processed.counts.received,
        matched: handler.matched,
        arrived: handler.arrived,
        done: processed.counts.removed,
        renewed: processed.counts.published,
        of_other_users: processed.of_other_users,
        in_doubt: processed.counts.in_doubt,
        ..RunCounts::default()
    };
    Ok(RunReport {
        run: handler.options.run.clone(),
        vhost: state.snapshot.topology.vhost.clone(),
        queue: queue.clone(),
        before,
        after,
        counts,
        other_users: processed.other_users.clone(),
        came_back: Vec::new(),
        end: run_end(&processed, handler.ended),
        continuation: Continuation::of(&handler.options.selection, handler.options.limit, counts.done),
    })
}

struct Dropper<'a> {
    reader: Reader<'a>,
    state: &'a VhostState,
    queue: &'a QueueName,
    options: DropOptions,
    interrupt: &'a Interrupt,
    progress: &'a dyn Fn(&ProcessCounts),
    /// The archive lines that are not stored yet.
    lines: String,
    matched: u64,
    arrived: u64,
    ended: Option<RunEnd>,
}

impl Dropper<'_> {
    fn is_limit_reached(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.matched >= limit)
    }
}

impl MessageHandler for Dropper<'_> {
    fn gate(&mut self) -> Gate {
        self.ended = match self.options.limit {
            _ if self.interrupt.is_requested() => Some(RunEnd::Interrupted),
            Some(_) if self.is_limit_reached() && !self.reader.must_read_all() => Some(RunEnd::Limit),
            Some(_) | None => None,
        };
        if self.ended.is_some() { Gate::Closed } else { Gate::Open }
    }

    fn decide(&mut self, message: ReceivedMessage) -> Decision {
        let it = self.reader.read(message);
        if self.is_limit_reached() || !self.options.selection.matches(&it) {
            return self.reader.keep(&it);
        }
        self.matched += 1;
        if self.options.store.is_some() {
            self.lines.push_str(&archived_line(&self.state.snapshot.topology.vhost, self.queue, &it));
        }
        Decision::Remove
    }

    fn flush(&mut self) -> Result<(), String> {
        let lines = std::mem::take(&mut self.lines);
        self.options.store.as_mut().map_or(Ok(()), |store| store(&lines))
    }

    fn arrived(&mut self, _: &ReceivedMessage) {
        self.arrived += 1;
    }

    fn reopen(&mut self) -> bool {
        // The next pass receives these messages again.
        self.arrived = 0;
        // The positions change between passes. If the queue counts deliveries, each pass costs one more delivery.
        self.options.selection.positions.is_empty() && !self.reader.must_read_all()
    }

    fn may_return_unread(&self) -> bool {
        !self.reader.must_read_all()
    }

    fn progressed(&mut self, counts: &ProcessCounts) {
        (self.progress)(counts);
    }
}
