//! Detects when two ticks of a quorum queue have passed: by a specified interval, or by observation.
//!
//! With each tick (`quorum_tick_interval`, 5 s by default), a quorum queue renews its counts. The management API does not
//! show that interval, and operators of large clusters set it to a minute. With each tick, the queue also reports its
//! process statistics, and of those `reductions` never stays the same: the tick itself takes some. So two changes of it are
//! two ticks (measured on 3.8.9, 3.10.8, 4.0.5 and 4.3.6). The statistics themselves are collected every 5 s or less often, which
//! delays an observation. The second of two changes is of a tick after the first look all the same: its predecessor was collected
//! before. Two changes that follow each other as fast as assumed show the interval, which is the same for all queues of a run.

use super::connection::Broker;
use super::error::BrokerError;
use crate::model::intervals::in_words;
use crate::model::{QueueName, VhostName};
use crate::plan::request::path;
use serde::Deserialize;
use std::time::Duration;
use tokio::time::Instant;

/// `GET /api/queues/VHOST/NAME?columns=reductions`. Absent without statistics, and before the first tick: then the answer
/// is `[]`.
#[derive(Deserialize)]
struct Process {
    #[serde(default)]
    reductions: Option<u64>,
}

/// The ticks of one queue since the first look at it.
pub(super) struct Ticks<'a> {
    broker: &'a Broker,
    vhost: &'a VhostName,
    name: &'a QueueName,
    began: Instant,
    last: Option<Option<u64>>,
    changes: u32,
    changed: Option<Instant>,
}

impl<'a> Ticks<'a> {
    pub(super) fn new(broker: &'a Broker, vhost: &'a VhostName, name: &'a QueueName) -> Self {
        Self { broker, vhost, name, began: Instant::now(), last: None, changes: 0, changed: None }
    }

    /// Whether two ticks have passed in a time in which the count did not change. `seen` is that time.
    pub(super) async fn are_over(&mut self, seen: Duration) -> Result<bool, BrokerError> {
        let intervals = self.broker.intervals();
        if !self.broker.is_tick_known() {
            self.observe().await?;
            if self.changes < 2 && self.began.elapsed() >= intervals.longest_observation() {
                let time = in_words(intervals.longest_observation());
                let reason = format!(
                    "its message count is not current: the broker did not update it twice in {time}, or has no statistics; \
                     set --tick-interval to the quorum_tick_interval of the broker"
                );
                return Err(BrokerError::EmptinessUnknown { queue: self.name.clone(), reason });
            }
        }
        Ok((self.broker.is_tick_known() || self.changes >= 2) && seen >= intervals.two_ticks())
    }

    async fn observe(&mut self) -> Result<(), BrokerError> {
        let queue = path("queues", &[self.vhost.as_str(), self.name.as_str()]) + "?columns=reductions";
        let now = match self.broker.get::<Process>(queue).await {
            Ok(process) => process.reductions,
            // The next look at the totals finds the same.
            Err(BrokerError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Some(before) = self.last
            && now.is_some()
            && now != before
        {
            self.changes += 1;
            let limit = self.broker.intervals().tick() * 3 / 2;
            if self.changed.replace(Instant::now()).is_some_and(|before| before.elapsed() <= limit) {
                self.broker.tick_observed();
            }
        }
        self.last = Some(now);
        Ok(())
    }
}
