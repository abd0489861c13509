//! Defines the state and the events of a running migration.

use super::moving::Moving;
use crate::apply::outcome::Migrated;
use crate::apply::request::Interrupt;
use crate::broker::{BrokerError, LockedBroker, Performed, Snapshot};
use crate::model::{Address, Binding, ObjectId, Queue, QueueName};
use crate::plan::{Action, Migration, QueueActivity, Stage, Step, client_groups, request};
use std::time::Duration;
use tokio::time::Instant;

/// An event of a running migration.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Event<'a> {
    /// A step was completed.
    Done(&'a Step),
    /// Messages are being moved or consumed. The values are the step, the number of moved messages, the number of
    /// remaining messages, and the reason for a stall. A number is `None` if unknown.
    Moving(&'a Step, Option<u64>, Option<u64>, Option<&'a str>),
    /// The deletion of a queue is waiting for two ticks, which prove that its guard is satisfied. The duration is the
    /// expected length of this wait.
    Confirming(&'a Step, Duration),
    /// The migration is being rolled back. The error is the reason; `None` after an interruption.
    RollingBack(&'a QueueName, Option<&'a BrokerError>),
}

/// A running migration.
pub(super) struct Run<'a> {
    pub(super) broker: &'a LockedBroker,
    pub(super) interrupt: &'a Interrupt,
    pub(super) observe: &'a dyn Fn(Event<'_>),
    pub(super) planned: &'a [Step],
    pub(super) migration: Migration,
    /// The activity of the old queue before the run; `None` if unknown.
    pub(super) live: Option<&'a QueueActivity>,
    pub(super) moving: Moving<'a>,
    /// True if objects of the migration exist or may exist on the broker, from this run or an earlier run.
    pub(super) is_started: bool,
    /// True if no action remains.
    pub(super) is_complete: bool,
    /// True if the old queue exists, so that a rollback is possible.
    pub(super) has_old_queue: bool,
    /// The last known definition of the old queue, from this run or from the run that started the migration.
    pub(super) old: Option<Queue>,
    /// True if topo has deleted the old queue, and no later pass has found it again.
    pub(super) is_old_deleted: bool,
    /// The time at which the old queue first seemed to be empty; `None` if the queue has not seemed to be empty yet.
    pub(super) seems_empty_since: Option<Instant>,
    /// The earliest time at which the queue may have been deleted; `None` if the queue is known to exist.
    pub(super) missing_since: Option<Instant>,
    /// The binding that routes messages to the queue again. topo adds the binding when the holding queue is almost
    /// empty. `None` if no such binding remains to be added.
    pub(super) switch: Option<Binding>,
    pub(super) done: Vec<(Step, Performed)>,
    pub(super) migrated: Migrated,
}

impl Run<'_> {
    /// Removes shovels that were left behind by killed runs, and reads the vhost.
    pub(super) async fn read_state(&self) -> Result<Snapshot, BrokerError> {
        let vhost = self.broker.vhost().clone();
        self.moving.remove_leftovers(&self.migration).await?;
        Ok(self.broker.broker().read(&[vhost]).await?.remove(0))
    }

    /// Returns the action to report if the migration fails outside an action. This is the first planned action that is
    /// not done yet, or the declaration of the new queue if all planned actions are done.
    pub(super) fn first_action(&self) -> Action {
        let is_done = |step: &&Step| self.done.iter().any(|(done, _)| done.action == step.action);
        let first = self.planned.iter().find(|step| !is_done(step)).map(|step| step.action.clone());
        first.unwrap_or_else(|| Action::DeclareQueue {
            name: self.migration.queue.clone(),
            queue: self.migration.desired.clone(),
        })
    }

    /// Names the clients that consume from the old queue and may declare the queue again.
    pub(super) fn clients_that_may_declare(&self, seen: &Snapshot) -> Vec<String> {
        let queue = &self.migration.queue;
        let exists = |name: &str| seen.topology.queues.contains_key(&QueueName::from(name));
        let groups = self.live.map(client_groups).unwrap_or_default();
        let named = groups.iter().filter_map(|group| {
            let known = group.known(queue, exists);
            group.may_declare(&known).then(|| group.name(&known))
        });
        named.collect()
    }

    /// Returns the error for an application that redeclared the deleted old queue twice.
    pub(super) fn redeclared_error(&self) -> BrokerError {
        let application = self.migrated.redeclaring_application();
        let reason = format!(
            "{application} redeclared the old queue twice while topo was recreating it: stop the application or change \
             its declaration, and apply again"
        );
        BrokerError::NotMoved { queue: self.migration.queue.clone(), reason }
    }

    /// Returns the planned step for an action, or a new step if the action was not planned.
    pub(super) fn step(&self, stage: Stage, action: Action) -> Step {
        let planned = self.planned.iter().find(|step| step.action == action);
        planned.cloned().unwrap_or_else(|| Step {
            is_deferred: false,
            id: 0,
            wave: 0,
            after: Vec::new(),
            recreate: Some(ObjectId::Queue(self.migration.queue.clone())),
            stage: Some(stage),
            address: Address::of(self.broker.vhost(), &action.object()),
            request: request(self.broker.vhost(), &action),
            action,
        })
    }
}
