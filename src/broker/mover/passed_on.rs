//! Whether a quorum queue has heard of all acknowledgements.

use super::declare::counted;
use crate::model::QueueName;
use lapin::Channel;
use std::time::Duration;

/// Within which acknowledgements are passed on to a quorum queue, where it is idle.
pub(super) const PASSED_ON: Duration = Duration::from_millis(300);

/// Waits until a quorum queue has heard of all acknowledgements: it counts a consumer that was cancelled as long as that
/// has messages. `before` is how many there were with it. A queue without a leader is said to have nothing, so nothing is
/// believed once only.
pub(super) async fn passed_on(channel: &Channel, source: &QueueName, before: Option<u32>) {
    let mut said = 0;
    while let Ok(answer) = counted(channel, source).await {
        let is_without = |count: u32| count == 0 || before.is_some_and(|before| count < before);
        said = if answer.is_some_and(|answer| is_without(answer.consumers)) { said + 1 } else { 0 };
        if said == 2 {
            return;
        }
        tokio::time::sleep(PASSED_ON / 10).await;
    }
}
