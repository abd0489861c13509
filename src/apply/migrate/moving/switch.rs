//! Finds the moment to route new messages to the queue again: when no older message is in transit.

use super::{Current, IDLE, Moving, POLL, STEADY_TIME};
use crate::broker::BrokerError;
use crate::broker::transport::{Move, Progress, State};
use crate::model::Binding;
use crate::plan::Level;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The maximum number of messages in transit that new messages may overtake.
const MOST_IN_FLIGHT: usize = 3;
/// The maximum number of ready messages that new messages may overtake: a third of a second at 300 messages a second.
const MOST_READY: u32 = 100;
/// The pause between two checks for an idle moment.
const PAUSE: Duration = Duration::from_millis(2);

impl Moving<'_> {
    /// Watches a move over AMQP for one poll. Returns true if it has moved all messages, which it detects before the
    /// totals of the broker show it.
    ///
    /// If messages still arrive, the moment matters: as soon as the tap leads to the queue again, new messages could
    /// overtake messages in transit. So `switch` is bound when the last message is confirmed, over the same connection.
    /// At 300 messages a second, the next message is usually some milliseconds away.
    pub(super) async fn wait_until_idle(
        &mut self,
        until: Level,
        switch: Option<&Binding>,
    ) -> Result<bool, BrokerError> {
        let amqp = self.amqp().cloned();
        let Some(amqp) = amqp else { return Ok(false) };
        let Some(Current { from, since, handle: Move::Amqp(moving), .. }) = &mut self.current else { return Ok(false) };
        let idle_time = |progress: &Progress| progress.last_moved.map_or(since.elapsed(), |last| last.elapsed());
        let deadline = Instant::now() + POLL;
        if until == Level::NearlyEmpty {
            let binder = amqp.binder().await?;
            while Instant::now() < deadline {
                let is_idle = moving.until_idle(POLL).await;
                // A busy broker delivers in bursts, and nothing is in transit between them, so topo also queries the
                // queue.
                let ready = binder.counted(from).await?.map(|counted| counted.ready);
                let progress = moving.progress();
                let is_quiet = is_idle && ready == Some(0) && progress.in_flight == 0;
                let has_nothing_to_move =
                    ready == Some(0) && progress.last_moved.is_none() && idle_time(&progress) >= IDLE;
                // Only if no idle moment occurs: new messages overtake the last few.
                let is_close = progress.state == State::Moving
                    && ready.is_some_and(|ready| ready <= MOST_READY)
                    && progress.in_flight <= MOST_IN_FLIGHT
                    && since.elapsed() >= STEADY_TIME;
                if is_quiet || is_close || has_nothing_to_move {
                    if let Some(switch) = switch {
                        binder.bind(switch).await?;
                    }
                    return Ok(true);
                }
                if progress.state.is_over() {
                    return Ok(false);
                }
                // Without a pause, the broker would have no time for other work.
                sleep(PAUSE).await;
            }
            return Ok(false);
        }
        loop {
            let progress = moving.progress();
            if progress.state == State::Moving && progress.in_flight == 0 && idle_time(&progress) >= IDLE {
                return Ok(true);
            }
            if progress.state.is_over() || Instant::now() >= deadline {
                return Ok(false);
            }
            sleep(POLL / 10).await;
        }
    }
}
