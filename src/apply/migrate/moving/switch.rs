//! Finds the moment to route new messages to the queue again: when no older message is in transit.

use super::{Current, IDLE, LONG_ENOUGH, Moving, POLL};
use crate::broker::BrokerError;
use crate::broker::transport::{Move, Progress, State};
use crate::model::Binding;
use crate::plan::Level;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What a transport may have under way where new messages are let through before the last old ones.
const MOST_IN_FLIGHT: usize = 3;
/// And what may be ready: a third of a second of 300 messages a second.
const MOST_READY: u32 = 100;
/// Between two looks for the moment in which nothing is left.
const BREATH: Duration = Duration::from_millis(2);

impl Moving<'_> {
    /// Watches a transport of our own for a while: whether it has got all there was. It knows that before any total does.
    ///
    /// Where messages still come, the moment counts: from when the tap is bound again, what comes to the queue must not
    /// overtake what is under way. So it is bound in the moment in which the last message is confirmed, over the same
    /// connection: with 300 messages a second the next one is mostly some milliseconds off.
    pub(super) async fn is_idle(&mut self, until: Level, switch: Option<&Binding>) -> Result<bool, BrokerError> {
        let amqp = self.amqp().cloned();
        let Some(amqp) = amqp else { return Ok(false) };
        let Some(Current { from, since, handle: Move::Amqp(moving), .. }) = &mut self.current else { return Ok(false) };
        let quiet = |progress: &Progress| progress.last_moved.map_or(since.elapsed(), |last| last.elapsed());
        let deadline = Instant::now() + POLL;
        if until == Level::NearlyEmpty {
            let binder = amqp.binder().await?;
            while Instant::now() < deadline {
                let is_idle = moving.until_idle(POLL).await;
                // A busy broker delivers by fits and starts, and between them nothing is under way: so it is asked.
                let ready = binder.counted(from).await?.map(|counted| counted.ready);
                let progress = moving.progress();
                let is_quiet = is_idle && ready == Some(0) && progress.in_flight == 0;
                let never_began = ready == Some(0) && progress.last_moved.is_none() && quiet(&progress) >= IDLE;
                // Only where no such moment comes: the last few are overtaken.
                let is_close = progress.state == State::Moving
                    && ready.is_some_and(|ready| ready <= MOST_READY)
                    && progress.in_flight <= MOST_IN_FLIGHT
                    && since.elapsed() >= LONG_ENOUGH;
                if is_quiet || is_close || never_began {
                    if let Some(switch) = switch {
                        binder.bind(switch).await?;
                    }
                    return Ok(true);
                }
                if progress.state.is_over() {
                    return Ok(false);
                }
                // Asked again at once, it would have no time for anything else.
                sleep(BREATH).await;
            }
            return Ok(false);
        }
        loop {
            let progress = moving.progress();
            if progress.state == State::Moving && progress.in_flight == 0 && quiet(&progress) >= IDLE {
                return Ok(true);
            }
            if progress.state.is_over() || Instant::now() >= deadline {
                return Ok(false);
            }
            sleep(POLL / 10).await;
        }
    }
}
