//! Executes one step of a migration. Most steps are a single request. A move, a deletion or the swap can take several
//! requests.

use super::moving::Purpose;
use super::moving::length_limit::Limit;
use super::moving::return_messages::Return;
use super::state::{Event, Run};
use super::step_failure::StepFailure;
use crate::broker::transport::AmqpTransport;
use crate::broker::{BrokerError, Performed, Snapshot};
use crate::model::{Destination, QueueName, QueueType};
use crate::plan::{Action, Goal, Guard, Level, Migration, Stage, Step};
use crate::rabbitmq::needs_pause;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long topo keeps trying to prove that the old queue is empty, measured from the time at which the queue first
/// seemed empty. Longer ticks extend this time.
const MAX_PROOF_TIME: Duration = Duration::from_secs(120);
/// The maximum time until every channel has detected that a queue no longer exists.
const SETTLE_TIME: Duration = Duration::from_millis(500);

impl Run<'_> {
    /// Executes a step.
    pub(super) async fn execute(
        &mut self,
        step: &Step,
        stage: Stage,
        seen: &Snapshot,
    ) -> Result<Performed, StepFailure> {
        self.broker.check()?;
        if self.has_old_queue && self.migration.goal == Goal::Recreate && self.interrupt.is_requested() {
            return Err(StepFailure::Interrupted);
        }
        let queue = self.migration.queue.clone();
        match &step.action {
            Action::MoveMessages { from, to, .. } if *from == queue => {
                let notify = |moved, left, why: Option<&str>| (self.observe)(Event::Moving(step, moved, left, why));
                let state = (&self.migration, seen);
                self.moving.drain((from, to), state, self.interrupt, notify).await?;
                self.seems_empty_since.get_or_insert_with(Instant::now);
                Ok(Performed::Done)
            }
            Action::MoveMessages { .. } => self.return_messages(step, stage, seen).await,
            Action::DeleteQueue { name, .. } if *name == queue => self.delete_old(step, seen).await,
            Action::DeleteQueue { guard: Guard::Nothing, .. } => self.perform(step).await,
            Action::DeleteQueue { .. } => self.delete_holding(step).await,
            Action::DeclareQueue { name, .. } if *name == queue => {
                let declared = self.perform(step).await;
                // After an `Inequivalent` error, the old queue exists again, because an application has declared it.
                // The application's new queue contains none of the drained messages.
                let is_race = |error: &BrokerError| matches!(error, BrokerError::Inequivalent { .. });
                let declared = declared.map_err(|failure| failure.retry_if(is_race));
                let exists = match &declared {
                    Ok(_) => true,
                    Err(StepFailure::GiveUp(_)) => {
                        self.restore_old().await;
                        self.has_old_queue
                    }
                    // The next pass checks whether the queue exists.
                    Err(_) => false,
                };
                if exists {
                    self.end_gap();
                }
                declared
            }
            Action::PutVhost { .. }
            | Action::DeclareExchange { .. }
            | Action::PutTopicPermission { .. }
            | Action::PutPolicy { .. }
            | Action::DeclareQueue { .. }
            | Action::Bind { .. }
            | Action::Unbind { .. }
            | Action::DeleteExchange { .. }
            | Action::DeletePolicy { .. }
            | Action::PutRecord { .. }
            | Action::DeleteRecord { .. } => self.perform(step).await,
        }
    }

    /// Performs the action of a step.
    async fn perform(&self, step: &Step) -> Result<Performed, StepFailure> {
        // After a lost connection, an unclear result or a missing object, the migration reads the broker's state again.
        let is_unclear = |error: &BrokerError| {
            error.is_transient() || error.may_have_been_processed() || matches!(error, BrokerError::NotFound { .. })
        };
        let observe = |time| (self.observe)(Event::Confirming(step, time));
        let performed = self.broker.perform_observed(&step.action, &observe).await;
        performed.map_err(|error| StepFailure::from(error).retry_if(is_unclear))
    }

    /// Moves messages from a holding queue back to the old or the new queue.
    async fn return_messages(&mut self, step: &Step, stage: Stage, seen: &Snapshot) -> Result<Performed, StepFailure> {
        let Action::MoveMessages { from, to, until } = &step.action else { return Ok(Performed::Done) };
        let Migration { queue, holding, .. } = &self.migration;
        let is_drained = from.as_str() == self.migration.names().drained;
        let purpose = if stage == Stage::Prepare {
            Purpose::Redrain
        } else if is_drained {
            Purpose::ReturnDrained
        } else {
            Purpose::ReturnHeld
        };
        // The final definition of the queue is the desired definition, or the current definition in a rollback.
        let into = match self.migration.goal {
            Goal::Recreate => &self.migration.desired,
            Goal::RollBack => seen.topology.queues.get(queue).unwrap_or(&self.migration.desired),
        };
        let limit = Limit::of(queue, into, seen);
        self.migrated.keeps = limit.keeps();
        let back = Return {
            from,
            through: to,
            into: queue,
            limit,
            purpose,
            until: *until,
            switch: self.switch.as_ref().filter(|_| *until == Level::NearlyEmpty),
            has_ticks: holding.queue_type() == Some(QueueType::Quorum),
        };
        let notify = |moved, left| (self.observe)(Event::Moving(step, moved, left, None));
        if self.migrated.conflicting_policy.is_none() {
            self.migrated.conflicting_policy =
                self.moving.conflicting_policy(&self.migration, seen.profile.version).await?;
        }
        self.moving.return_messages(&back, notify).await?;
        if *until == Level::Empty {
            self.moving.stop().await;
        }
        Ok(Performed::Done)
    }

    /// Deletes a holding queue. The queue's count may be one tick old, so topo retries for one tick if the queue is not
    /// empty.
    async fn delete_holding(&mut self, step: &Step) -> Result<Performed, StepFailure> {
        self.moving.stop().await;
        let started = Instant::now();
        let tick = self.broker.broker().intervals().one_tick();
        loop {
            let deleted = self.perform(step).await;
            let Err(StepFailure::GiveUp(error @ BrokerError::NotEmpty { .. })) = deleted else { return deleted };
            if started.elapsed() > tick {
                return Err(StepFailure::Retry(error));
            }
            sleep(tick / 10).await;
        }
    }

    /// Returns the destination of a stage's replacement bindings; `None` if the stage replaces no bindings.
    pub(super) fn replacement_destination(&self, stage: Stage) -> Option<Destination> {
        match stage {
            Stage::Tap => Some(Destination::Exchange(self.migration.names().tap)),
            Stage::Return => Some(Destination::Queue(self.migration.queue.clone())),
            Stage::Prepare | Stage::Drain | Stage::Swap | Stage::Clean => None,
        }
    }

    /// Deletes the old queue, after proving that the queue is empty. If possible, declares the new queue in the same
    /// write.
    async fn delete_old(&mut self, step: &Step, seen: &Snapshot) -> Result<Performed, StepFailure> {
        let queue = self.migration.queue.clone();
        let old = seen.topology.queues.get(&queue);
        let is_quorum = old.is_some_and(|old| old.queue_type() == Some(QueueType::Quorum));
        if is_quorum {
            // Checks the bindings before the proof, because the proof takes time.
            self.moving.expect_unbound(&queue).await?;
        }
        if self.moving.is_shovel() {
            // A running shovel would declare the queue again, without arguments.
            self.moving.stop().await;
        }
        let checked_at = Instant::now();
        let proven = self.prove_deletable(step, &queue, seen).await;
        // Consumers can subscribe during the proof, so topo counts them afterward.
        let is_immediate = self.can_swap_immediately(&queue, is_quorum, seen).await;
        let amqp = self.moving.amqp().filter(|_| is_immediate).cloned();
        let started = Instant::now();
        let deleted = match (proven, &amqp) {
            (Ok(true), Some(amqp)) => self.swap(amqp, &queue, !is_quorum).await,
            (Ok(true), None) => self.broker.perform(&step.action).await,
            (Ok(false), _) => Ok(Performed::AlreadyGone),
            (Err(error), _) => Err(error),
        };
        match deleted {
            Ok(deleted) => {
                self.has_old_queue = false;
                self.is_old_deleted = deleted == Performed::Done;
                if amqp.is_none() {
                    self.missing_since = Some(Instant::now());
                }
                self.moving.await_end().await;
                if !is_immediate {
                    sleep(SETTLE_TIME).await;
                }
                Ok(deleted)
            }
            Err(error @ BrokerError::NotEmpty { .. }) => {
                let since = *self.seems_empty_since.get_or_insert(checked_at);
                Err(if since.elapsed() > self.broker.broker().intervals().scaled(MAX_PROOF_TIME) {
                    StepFailure::GiveUp(error)
                } else {
                    StepFailure::Retry(error)
                })
            }
            // topo deleted the old queue, and then an application declared it again. The next pass counts this
            // redeclaration.
            Err(error @ BrokerError::Inequivalent { .. }) => {
                self.is_old_deleted = true;
                Err(StepFailure::Retry(error))
            }
            Err(error @ BrokerError::BoundSincePlan { .. }) => Err(StepFailure::Retry(error)),
            Err(error) if error.may_have_been_processed() => {
                self.missing_since.get_or_insert(started);
                Err(StepFailure::Retry(error))
            }
            Err(error @ (BrokerError::LockLost { .. } | BrokerError::DifferentBroker { .. })) => Err(error.into()),
            // The broker lists the old queue, but the queue has no running member, so a rollback is impossible.
            Err(error @ BrokerError::NoMembers { .. }) => Err(StepFailure::Stop(error)),
            Err(error) => {
                self.restore_old().await;
                Err(error.into())
            }
        }
    }

    /// Proves that the queue is empty. The proof takes time, so this function then checks that no policy removes
    /// messages from the holding queues, that the lock is held, and that every binding to the queue has an equal
    /// binding to the tap. Returns false if the queue does not exist.
    async fn prove_deletable(&self, step: &Step, queue: &QueueName, seen: &Snapshot) -> Result<bool, BrokerError> {
        let observe = |time| (self.observe)(Event::Confirming(step, time));
        if !self.broker.broker().prove_empty(self.broker.vhost(), queue, &observe).await? {
            return Ok(false);
        }
        self.moving.expect_no_conflicting_policy(&self.migration, seen.profile.version).await?;
        self.broker.confirm().await?;
        self.moving.expect_tapped(queue, &self.migration.names().tap).await?;
        Ok(true)
    }

    /// Returns true if the new queue may be declared immediately after the old queue is deleted. Otherwise, every
    /// channel must first notice that the queue does not exist ([`needs_pause`]). The consumer list proves nothing,
    /// because it does not contain consumers that subscribed in the last few seconds.
    async fn can_swap_immediately(&self, queue: &QueueName, is_quorum: bool, seen: &Snapshot) -> bool {
        !needs_pause(seen.profile.version, is_quorum) || self.moving.has_no_other_consumers(queue, is_quorum).await
    }

    /// Declares the old queue again after a failed deletion or after the broker refused the new queue, for example
    /// because a permission on its dead-letter exchange is missing. A rollback is possible only if this succeeds.
    async fn restore_old(&mut self) {
        let name = self.migration.queue.clone();
        self.has_old_queue = match (&self.old, self.migration.goal) {
            (Some(old), Goal::Recreate) => {
                let declare = Action::DeclareQueue { name, queue: old.clone() };
                let is_restored = self.broker.perform(&declare).await.is_ok();
                // The next pass must not count this declaration as a declaration by an application.
                self.is_old_deleted &= !is_restored;
                is_restored
            }
            (Some(_) | None, Goal::Recreate | Goal::RollBack) => false,
        };
    }

    /// Deletes the old queue and declares the new queue in one write, to minimize the unrouted window.
    async fn swap(
        &mut self,
        amqp: &AmqpTransport,
        queue: &QueueName,
        if_empty: bool,
    ) -> Result<Performed, BrokerError> {
        self.broker.broker().forget_emptiness(self.broker.vhost(), queue);
        let started = Instant::now();
        let hold = QueueName::new(self.migration.names().hold);
        let swapped = amqp.swap(queue, &self.migration.desired, if_empty, (self.broker.broker(), &hold)).await;
        if matches!(swapped, Ok(()) | Err(BrokerError::Inequivalent { .. })) {
            self.missing_since = Some(started);
            self.end_gap();
        }
        swapped.map(|()| Performed::Done)
    }

    /// Adds the time since the queue was deleted to the total time during which the queue did not exist. The result is
    /// an upper bound: it includes the broker's response times, and an application may have declared the queue earlier.
    pub(super) fn end_gap(&mut self) {
        if let Some(since) = self.missing_since.take() {
            self.migrated.gap = Some(self.migrated.gap.unwrap_or_default() + since.elapsed());
        }
    }
}
