//! Detects concurrent changes: bindings to the queue, and policies on the holding queues.

use super::super::StepFailure;
use super::Moving;
use crate::broker::BrokerError;
use crate::model::{Binding, BrokerVersion, Destination, ExchangeName, QueueName};
use crate::plan::Migration;
use tokio::try_join;

impl Moving<'_> {
    /// Describes the policy that drops held messages, if any.
    pub(in super::super) async fn conflicting_policy(
        &self,
        migration: &Migration,
        version: BrokerVersion,
    ) -> Result<Option<String>, BrokerError> {
        let (broker, vhost) = (self.broker.broker(), self.broker.vhost());
        let (policies, operator) = try_join!(broker.policies(vhost), broker.operator_policies(vhost))?;
        Ok(migration.conflicting_policy(&policies, &operator, version))
    }

    /// Fails if there is one: as long as the old queue is there, all can be put back into it.
    pub(in super::super) async fn expect_no_eater(
        &self,
        migration: &Migration,
        version: BrokerVersion,
    ) -> Result<(), BrokerError> {
        match self.conflicting_policy(migration, version).await? {
            None => Ok(()),
            Some(conflicting_policy) => {
                let reason =
                    format!("{conflicting_policy}, where its messages are held; this has changed since the plan");
                Err(BrokerError::NotMoved { queue: migration.queue.clone(), reason })
            }
        }
    }

    /// Fails when something leads to the queue: whoever bound it did so meanwhile.
    pub(in super::super) async fn unbound(&self, queue: &QueueName) -> Result<(), StepFailure> {
        let (bindings, _) = self.broker.broker().bindings(self.broker.vhost()).await?;
        bindings.into_iter().find(|binding| binding.touches_queue(queue)).map_or(Ok(()), |binding| {
            let (object, binding) = (queue.to_string(), binding.to_string());
            Err(StepFailure::Again(BrokerError::BoundMeanwhile { object, binding }))
        })
    }

    /// Fails when something leads to the queue that would be lost with it. What leads to the tap, too, is not: it is bound
    /// again with the rest, and what comes by it is held.
    pub(in super::super) async fn expect_tapped(
        &self,
        queue: &QueueName,
        tap: &ExchangeName,
    ) -> Result<(), BrokerError> {
        let (_, keys) = self.broker.broker().bindings(self.broker.vhost()).await?;
        let is_tapped = |binding: &Binding, by: &Vec<String>| {
            let other = Binding { destination: Destination::Exchange(tap.clone()), ..binding.clone() };
            keys.get(&other).is_some_and(|tapped| by.iter().all(|key| tapped.contains(key)))
        };
        let lost = keys.iter().find(|(binding, by)| binding.touches_queue(queue) && !is_tapped(binding, by));
        lost.map_or(Ok(()), |(binding, _)| {
            let (object, binding) = (queue.to_string(), binding.to_string());
            Err(BrokerError::BoundMeanwhile { object, binding })
        })
    }
}
