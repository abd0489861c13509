//! Waits until a quorum queue has processed all acknowledgements of a canceled consumer.

use super::declare::counted;
use crate::model::QueueName;
use lapin::Channel;
use std::time::Duration;

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
