//! Executes one step of a migration: most steps are a single request, but moving messages and the swap are not.

use super::moving::{Limit, Purpose, Return};
use super::{Event, Run, StepFailure};
use crate::broker::transport::AmqpTransport;
use crate::broker::{BrokerError, Performed, Snapshot};
use crate::model::{Destination, QueueName, QueueType};
use crate::plan::{Action, Goal, Guard, Level, Migration, QueueActivity, Stage, Step};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the proof that the old queue is empty may fail, after it first seemed empty; longer with longer ticks.
const LONGEST_PROOF: Duration = Duration::from_secs(120);
/// The time until every channel has noticed that a queue is gone.
const SETTLED: Duration = Duration::from_millis(500);

impl Run<'_> {
    pub(super) async fn carry_out(
        &mut self,
        step: &Step,
        stage: Stage,
        seen: &Snapshot,
    ) -> Result<Performed, StepFailure> {
        self.broker.check()?;
        if self.is_old && self.migration.goal == Goal::Recreate && self.interrupt.is_requested() {
            return Err(StepFailure::Interrupted);
        }
        let queue = self.migration.queue.clone();
        match &step.action {
            Action::MoveMessages { from, to, .. } if *from == queue => {
                self.note_consumers(&queue).await?;
                let tell = |moved, left, why: Option<&str>| (self.observe)(Event::Moving(step, moved, left, why));
                let held = (&self.migration, seen);
                self.moving.drain((from, to), held, self.interrupt, tell).await?;
                self.seems_empty.get_or_insert_with(Instant::now);
                Ok(Performed::Done)
            }
            Action::MoveMessages { .. } => self.bring_back(step, stage, seen).await,
            Action::DeleteQueue { name, .. } if *name == queue => self.delete_old(step, seen).await,
            Action::DeleteQueue { guard: Guard::Nothing, .. } => self.perform(step).await,
            Action::DeleteQueue { .. } => self.delete_holding(step).await,
            Action::DeclareQueue { name, .. } if *name == queue => {
                let declared = self.perform(step).await;
                if let Some(since) = self.gone_since.take() {
                    self.migrated.gap = Some(since.elapsed());
                }
                // An application has declared the old queue again; it is empty.
                let is_raced = |error: &BrokerError| matches!(error, BrokerError::Inequivalent { .. });
                let declared = declared.map_err(|setback| setback.again_if(is_raced));
                self.has_lost |= matches!(declared, Err(StepFailure::Again(BrokerError::Inequivalent { .. })));
                if let Err(StepFailure::GiveUp(_)) = &declared {
                    self.restore_old().await;
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

    async fn perform(&self, step: &Step) -> Result<Performed, StepFailure> {
        // A connection that broke may be another one's fault, and what is to be bound may be deleted by somebody: a look tells
        // what was done, and what is there.
        let is_unclear = |error: &BrokerError| {
            error.is_transient() || error.leaves_doubt() || matches!(error, BrokerError::NotFound { .. })
        };
        let observe = |time| (self.observe)(Event::Proving(step, time));
        let performed = self.broker.perform_observed(&step.action, &observe).await;
        performed.map_err(|error| StepFailure::from(error).again_if(is_unclear))
    }

    async fn bring_back(&mut self, step: &Step, stage: Stage, seen: &Snapshot) -> Result<Performed, StepFailure> {
        let Action::MoveMessages { from, to, until } = &step.action else { return Ok(Performed::Done) };
        let Migration { queue, holding, .. } = &self.migration;
        let is_drained = from.as_str() == self.migration.names().drained;
        let purpose = if stage == Stage::Prepare {
            Purpose::WayBack
        } else if is_drained {
            Purpose::ReturnDrained
        } else {
            Purpose::ReturnHeld
        };
        // By now, the queue matches the desired one or never will.
        let into = match self.migration.goal {
            Goal::Recreate => &self.migration.desired,
            Goal::PutBack => seen.topology.queues.get(queue).unwrap_or(&self.migration.desired),
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
        let tell = |moved, left| (self.observe)(Event::Moving(step, moved, left, None));
        if self.migrated.conflicting_policy.is_none() {
            self.migrated.conflicting_policy =
                self.moving.conflicting_policy(&self.migration, seen.profile.version).await?;
        }
        self.moving.bring_back(&back, tell).await?;
        if *until == Level::Empty {
            self.moving.stop().await;
        }
        Ok(Performed::Done)
    }

    /// Deletes a holding queue. What it says of itself may be a tick old, and by then it was emptied.
    async fn delete_holding(&mut self, step: &Step) -> Result<Performed, StepFailure> {
        self.moving.stop().await;
        let began = Instant::now();
        let tick = self.broker.broker().intervals().one_tick();
        loop {
            let deleted = self.perform(step).await;
            let Err(StepFailure::GiveUp(error @ BrokerError::NotEmpty { .. })) = deleted else { return deleted };
            if began.elapsed() > tick {
                return Err(StepFailure::Again(error));
            }
            sleep(tick / 10).await;
        }
    }

    /// The target of the bindings of this stage.
    pub(super) fn instead(&self, stage: Stage) -> Option<Destination> {
        match stage {
            Stage::Tap => Some(Destination::Exchange(self.migration.names().tap)),
            Stage::Return => Some(Destination::Queue(self.migration.queue.clone())),
            Stage::Prepare | Stage::Drain | Stage::Swap | Stage::Clean => None,
        }
    }

    /// Deletes the old queue, if no binding leads to it and it is proven empty.
    async fn delete_old(&mut self, step: &Step, seen: &Snapshot) -> Result<Performed, StepFailure> {
        let queue = self.migration.queue.clone();
        let old = seen.topology.queues.get(&queue);
        let is_quorum = old.is_some_and(|old| old.queue_type() == Some(QueueType::Quorum));
        if is_quorum {
            // Avoid the proof of emptiness, which takes time.
            self.moving.unbound(&queue).await?;
        }
        if self.moving.is_shovel() {
            // A running shovel would declare the queue again, without arguments.
            self.moving.stop().await;
        }
        let asked = Instant::now();
        let at_once = self.may_be_exchanged_at_once(&queue, is_quorum, seen).await?;
        let amqp = self.moving.amqp().filter(|_| at_once).cloned();
        let deleted = match (self.may_go(step, &queue, seen).await, &amqp) {
            (Ok(true), Some(amqp)) => self.swap(amqp, &queue, !is_quorum).await,
            (Ok(true), None) => self.broker.perform(&step.action).await,
            (Ok(false), _) => Ok(Performed::AlreadyGone),
            (Err(error), _) => Err(error),
        };
        match deleted {
            Ok(deleted) => {
                self.is_old = false;
                if amqp.is_none() {
                    self.gone_since = Some(Instant::now());
                }
                self.moving.ended().await;
                if !at_once {
                    sleep(SETTLED).await;
                }
                Ok(deleted)
            }
            Err(error @ BrokerError::NotEmpty { .. }) => {
                let since = *self.seems_empty.get_or_insert(asked);
                Err(if since.elapsed() > self.broker.broker().intervals().scaled(LONGEST_PROOF) {
                    StepFailure::GiveUp(error)
                } else {
                    StepFailure::Again(error)
                })
            }
            // Perhaps an application declared the old queue again: the next check of the state decides.
            Err(error @ BrokerError::Inequivalent { .. }) => {
                self.has_lost = true;
                Err(StepFailure::Again(error))
            }
            Err(error @ BrokerError::BoundMeanwhile { .. }) => Err(StepFailure::Again(error)),
            Err(error) if error.leaves_doubt() => Err(StepFailure::Again(error)),
            Err(error @ (BrokerError::LockLost { .. } | BrokerError::AnotherBroker { .. })) => Err(error.into()),
            // The old queue no longer exists, so a rollback is impossible.
            Err(error @ BrokerError::NoMembers { .. }) => Err(StepFailure::Stop(error)),
            Err(error) => {
                self.restore_old().await;
                Err(error.into())
            }
        }
    }

    /// Proves that the queue is empty, and looks once more, for that took a while: nothing may lead to it that would be lost
    /// with it, what was in it must be safe, and the lock ours. False if there is no such queue.
    async fn may_go(&self, step: &Step, queue: &QueueName, seen: &Snapshot) -> Result<bool, BrokerError> {
        let observe = |time| (self.observe)(Event::Proving(step, time));
        if !self.broker.broker().prove_empty(self.broker.vhost(), queue, &observe).await? {
            return Ok(false);
        }
        self.moving.expect_no_eater(&self.migration, seen.profile.version).await?;
        self.broker.confirm().await?;
        self.moving.expect_tapped(queue, &self.migration.names().tap).await?;
        Ok(true)
    }

    /// Whether the new queue may be declared as soon as the old one is deleted.
    ///
    /// From 3.9 to 3.13, a channel whose queue is gone subscribes its consumers again if it finds one of that name, and
    /// then forgets that it did (`rabbit_channel`: `handle_consuming_queue_down_or_eol`, then `rabbit_queue_type:remove`): they
    /// get no cancel, and never a message again. So every channel must have seen that there is no queue. Where an
    /// application without consumers declared the queue again, no consumer has to be waited for.
    async fn may_be_exchanged_at_once(
        &self,
        queue: &QueueName,
        is_quorum: bool,
        seen: &Snapshot,
    ) -> Result<bool, BrokerError> {
        let version = &seen.profile.version;
        if version.is_at_least(4, 0)
            || !version.is_at_least(3, 9) && !is_quorum
            || self.moving.is_alone(queue, is_quorum).await
        {
            return Ok(true);
        }
        let nobody_is_listed = |live: QueueActivity| live.consumers.is_some_and(|all| all.is_empty());
        Ok(self.has_lost && self.moving.live(queue).await?.is_some_and(nobody_is_listed))
    }

    /// The new queue was refused (for want of a permission on its dead-letter exchange, say), perhaps when the old one was
    /// gone already: it is made again as it was, so that all can be put back. Where that fails too, nothing can be.
    async fn restore_old(&mut self) {
        let name = self.migration.queue.clone();
        self.is_old = match (&self.old, self.migration.goal) {
            (Some(old), Goal::Recreate) => {
                let again = Action::DeclareQueue { name, queue: old.clone() };
                self.broker.perform(&again).await.is_ok()
            }
            (Some(_) | None, Goal::Recreate | Goal::PutBack) => false,
        };
    }

    /// Deletes the queue and declares the new one in one write, to minimize the unrouted window.
    async fn swap(
        &mut self,
        amqp: &AmqpTransport,
        queue: &QueueName,
        if_empty: bool,
    ) -> Result<Performed, BrokerError> {
        self.broker.broker().forget_emptiness(self.broker.vhost(), queue);
        let began = Instant::now();
        let hold = QueueName::new(self.migration.names().hold);
        amqp.swap(queue, &self.migration.desired, if_empty, (self.broker.broker(), &hold)).await?;
        // Until both responses have arrived at the latest.
        self.migrated.gap = Some(began.elapsed());
        Ok(Performed::Done)
    }

    /// Counts the consumers once, before any of them is canceled.
    async fn note_consumers(&mut self, queue: &QueueName) -> Result<(), BrokerError> {
        if self.consumers.is_none() {
            self.consumers = self.moving.live(queue).await?.and_then(|live| live.consumers).map(|all| all.len());
        }
        Ok(())
    }

    /// Waits for the canceled consumers to return, and counts them. Not by the list of consumers, which still contains those
    /// of a quorum queue that is deleted (3.10.8, 4.0.5).
    pub(super) async fn await_consumers(&mut self) {
        let Some(before) = self.consumers.filter(|before| *before > 0) else { return };
        let deadline = Instant::now() + self.broker.broker().intervals().consumers_return();
        loop {
            let after = self.consumers_now().await;
            self.migrated.consumers = after.map(|after| super::Consumers { before, after });
            let are_back = after.is_some_and(|after| after >= before);
            if are_back || Instant::now() >= deadline || self.interrupt.is_requested() {
                return;
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// How many consume from the queue: it says so itself over AMQP; without that, by its statistics.
    async fn consumers_now(&self) -> Option<usize> {
        let queue = &self.migration.queue;
        let count = match self.moving.amqp() {
            Some(amqp) => u64::from(amqp.counted(queue).await.ok()??.consumers),
            None => self.broker.broker().queue_state(self.broker.vhost(), queue).await.ok()??.consumers?,
        };
        usize::try_from(count).ok()
    }
}
