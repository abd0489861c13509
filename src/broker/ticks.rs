//! Detects whether two ticks of a quorum queue have passed, based on a known tick interval or on observation.
//!
//! At each tick (`quorum_tick_interval`, 5 s by default), a quorum queue updates its message counts. The management API
//! does not expose the interval. Operators of large clusters can increase the interval, for example to a minute.
//!
//! At each tick, the queue also reports its process statistics. The `reductions` value changes with each report,
//! because the tick itself consumes reductions. Two changes of `reductions` therefore prove two ticks (measured on
//! 3.8.9, 3.10.8, 4.0.5 and 4.3.6). The broker collects the statistics at intervals of 5 s or longer, which delays the
//! observation. The second change still proves that a tick occurred after the first read, because the broker collected
//! the previous value before that tick.
//!
//! Two changes within 1.5 times the assumed interval confirm the assumed interval for all queues in a run.

use super::connection::Broker;
use super::error::BrokerError;
use crate::model::intervals::in_words;
use crate::model::{QueueName, VhostName};
use crate::plan::request::path;
use serde::Deserialize;
use std::time::Duration;
use tokio::time::Instant;

/// The response to `GET /api/queues/VHOST/NAME?columns=reductions`. The response is `[]` if statistics are disabled,
/// and before the first tick.
#[derive(Deserialize)]
struct ProcessStatistics {
    #[serde(default)]
    reductions: Option<u64>,
}

/// The observed ticks of one queue since [`Ticks::new`].
pub(super) struct Ticks<'a> {
    broker: &'a Broker,
    vhost: &'a VhostName,
    name: &'a QueueName,
    started: Instant,
    /// The last observed value of `reductions`; `None` before the first observation, and `Some(None)` if the broker
    /// returned no value.
    last: Option<Option<u64>>,
    /// The number of observed changes.
    changes: u32,
    last_change: Option<Instant>,
}

impl<'a> Ticks<'a> {
    pub(super) fn new(broker: &'a Broker, vhost: &'a VhostName, name: &'a QueueName) -> Self {
        Self { broker, vhost, name, started: Instant::now(), last: None, changes: 0, last_change: None }
    }

    /// Returns true if two ticks have passed. `satisfied` is how long the message count has satisfied the guard. This
    /// time must also be at least two tick intervals.
    ///
    /// # Errors
    /// [`BrokerError::EmptinessUnknown`] if topo observes fewer than two changes within the maximum observation time.
    pub(super) async fn have_passed(&mut self, satisfied: Duration) -> Result<bool, BrokerError> {
        let intervals = self.broker.intervals();
        if !self.broker.is_tick_known() {
            self.observe().await?;
            if self.changes < 2 && self.started.elapsed() >= intervals.longest_observation() {
                let time = in_words(intervals.longest_observation());
                let reason = format!(
                    "its message count may be out of date: topo observed fewer than two updates in {time} (statistics \
                     may be disabled); set --tick-interval to the broker's quorum_tick_interval"
                );
                return Err(BrokerError::EmptinessUnknown { queue: self.name.clone(), reason });
            }
        }
        Ok((self.broker.is_tick_known() || self.changes >= 2) && satisfied >= intervals.two_ticks())
    }

    /// Reads the statistics once, and records whether `reductions` has changed.
    async fn observe(&mut self) -> Result<(), BrokerError> {
        let queue = path("queues", &[self.vhost.as_str(), self.name.as_str()]) + "?columns=reductions";
        let now = match self.broker.get::<ProcessStatistics>(queue).await {
            Ok(process) => process.reductions,
            // The next read of the totals detects the missing queue.
            Err(BrokerError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Some(before) = self.last
            && now.is_some()
            && now != before
        {
            self.changes += 1;
            let limit = self.broker.intervals().tick() * 3 / 2;
            if self.last_change.replace(Instant::now()).is_some_and(|before| before.elapsed() <= limit) {
                self.broker.record_observed_tick();
            }
        }
        self.last = Some(now);
        Ok(())
    }
}
