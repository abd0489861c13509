//! Queries the counts of a queue over AMQP, and waits until a quorum queue has processed the acknowledgements of a
//! canceled consumer. These counts come from the queue itself and not from statistics.

use super::connection::short;
use crate::model::QueueName;
use lapin::Channel;
use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use std::time::{Duration, Instant};

/// The counts that a queue reports itself, without statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The number of ready messages.
    pub ready: u32,
    /// The number of consumers. A quorum queue counts a canceled consumer as long as it holds messages
    /// (`rabbit_fifo:query_stat`).
    pub consumers: u32,
}

/// The time for which the broker queries a quorum queue. After it, the broker reports that the queue has no messages
/// and no consumers (`rabbit_quorum_queue:stat`).
const STAT_TIMEOUT: Duration = Duration::from_millis(250);

/// Queries the counts of a queue. Returns `None` for an empty result that came so late that the queue may not have
/// answered.
pub(super) async fn counted(channel: &Channel, name: &QueueName) -> lapin::Result<Option<Counted>> {
    let started = Instant::now();
    let passive = QueueDeclareOptions { passive: true, ..Default::default() };
    let queue = channel.queue_declare(short(name.as_str()), passive, FieldTable::default()).await?;
    let counted = Counted { ready: queue.message_count(), consumers: queue.consumer_count() };
    let is_empty = counted == Counted { ready: 0, consumers: 0 };
    Ok(Some(counted).filter(|_| !is_empty || started.elapsed() < STAT_TIMEOUT))
}

/// The time in which an idle quorum queue processes acknowledgements.
pub(super) const SETTLE_TIME: Duration = Duration::from_millis(300);

/// Waits until a quorum queue has processed all acknowledgements. The queue counts a canceled consumer as long as the
/// consumer holds messages. `before` is the number of consumers before the cancel.
///
/// A queue without a leader reports no messages and no consumers, so a count is only trusted if two answers agree.
pub(super) async fn ack_settled(channel: &Channel, source: &QueueName, before: Option<u32>) {
    let mut answers = 0;
    while let Ok(answer) = counted(channel, source).await {
        let is_without = |count: u32| count == 0 || before.is_some_and(|before| count < before);
        answers = if answer.is_some_and(|answer| is_without(answer.consumers)) { answers + 1 } else { 0 };
        if answers == 2 {
            return;
        }
        tokio::time::sleep(SETTLE_TIME / 10).await;
    }
}
