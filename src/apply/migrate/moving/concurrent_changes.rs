//! Detects concurrent changes: new bindings to the queue, and new policies on the holding queues.

use super::super::step_failure::StepFailure;
use super::Moving;
use crate::broker::BrokerError;
use crate::model::{Binding, BrokerVersion, Destination, ExchangeName, QueueName};
use crate::plan::Migration;
use tokio::try_join;

impl Moving<'_> {
    /// Returns the description of a policy that removes messages from the holding queues, if any.
    pub(in super::super) async fn conflicting_policy(
        &self,
        migration: &Migration,
        version: BrokerVersion,
    ) -> Result<Option<String>, BrokerError> {
        let (broker, vhost) = (self.broker.broker(), self.broker.vhost());
        let (policies, operator) = try_join!(broker.policies(vhost), broker.operator_policies(vhost))?;
        Ok(migration.conflicting_policy(&policies, &operator, version))
    }

    /// Returns an error if a policy removes messages from the holding queues. Must be called while the old queue
    /// exists, because the error requires a rollback.
    pub(in super::super) async fn expect_no_conflicting_policy(
        &self,
        migration: &Migration,
        version: BrokerVersion,
    ) -> Result<(), BrokerError> {
        match self.conflicting_policy(migration, version).await? {
            None => Ok(()),
            Some(conflicting_policy) => {
                let reason = format!(
                    "{conflicting_policy}, a holding queue of this migration; the policies have changed since the plan \
                     was made"
                );
                Err(BrokerError::NotMoved { queue: migration.queue.clone(), reason })
            }
        }
    }

    /// Returns [`StepFailure::Retry`] if the queue has a binding, which another client must have added since the last
    /// read.
    pub(in super::super) async fn expect_unbound(&self, queue: &QueueName) -> Result<(), StepFailure> {
        let (bindings, _) = self.broker.broker().bindings(self.broker.vhost()).await?;
        bindings.into_iter().find(|binding| binding.leads_to_queue(queue)).map_or(Ok(()), |binding| {
            let (object, binding) = (format!("queue {queue}"), binding.to_string());
            Err(StepFailure::Retry(BrokerError::BoundSincePlan { object, binding }))
        })
    }

    /// Returns an error if the queue has a binding without an equal binding to the tap. Such a binding would be lost
    /// with the queue. The binding to the tap routes the messages to the holding queue, and topo uses it to restore the
    /// binding to the queue.
    pub(in super::super) async fn expect_tapped(
        &self,
        queue: &QueueName,
        tap: &ExchangeName,
    ) -> Result<(), BrokerError> {
        let (_, all_keys) = self.broker.broker().bindings(self.broker.vhost()).await?;
        let is_tapped = |binding: &Binding, properties_keys: &Vec<String>| {
            let to_tap = Binding { destination: Destination::Exchange(tap.clone()), ..binding.clone() };
            all_keys.get(&to_tap).is_some_and(|tapped| properties_keys.iter().all(|key| tapped.contains(key)))
        };
        let lost = all_keys
            .iter()
            .find(|(binding, properties_keys)| binding.leads_to_queue(queue) && !is_tapped(binding, properties_keys));
        lost.map_or(Ok(()), |(binding, _)| {
            let (object, binding) = (format!("queue {queue}"), binding.to_string());
            Err(BrokerError::BoundSincePlan { object, binding })
        })
    }
}
