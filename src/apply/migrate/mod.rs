//! Carries out the migration of one queue: asks what is left to do, does it, and asks again, until nothing is.
//!
//! What is left is read off the broker each time ([`Migration::remaining`]). So what an application does meanwhile (binds the
//! queue again, declares the old one again) is only something more to do; a run that was killed is gone on with by the
//! next; and a migration that cannot be finished is undone by the same means, with another goal.

mod drain;
mod gap;
mod moved;
mod progress;

pub use moved::Migrated;
pub use progress::MoveProgress;

use super::Interrupt;
use crate::broker::{BrokerError, LockedBroker, Mover, Performed, Snapshot};
use crate::model::{Binding, Destination, ObjectId};
use crate::plan::{Action, Goal, Migration, Stage, Step, request};
use drain::Drain;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What a migration needs besides the plan.
pub struct Means<'a> {
    /// What moves messages; `None` where none was asked for.
    pub mover: Option<&'a Mover>,
    /// How long may pass in which nothing gets less, before a migration is undone.
    pub patience: Duration,
}

/// How often what was seen may turn out to hold no longer, before a migration is given up: an application that declares
/// the old queue again wins such a race now and then, and not every time.
const MOST_RACES: usize = 100;
/// So long a migration may go on without the proof that the old queue is empty, from when it first seemed to be.
const LONGEST_PROOF: Duration = Duration::from_secs(120);

/// How a migration ended.
pub(super) struct Ended {
    /// What was done, in order.
    pub(super) done: Vec<(Step, Performed)>,
    /// What could not be done.
    pub(super) failed: Option<(Step, BrokerError)>,
    /// Whether all was put back as it was.
    pub(super) is_undone: bool,
    /// What is worth telling of it.
    pub(super) migrated: Migrated,
}

/// What keeps a thing from being done.
enum Setback {
    /// What was seen no longer holds: look again.
    Again,
    /// It cannot be done; what was done is to be undone, where that is possible.
    GiveUp(BrokerError),
    /// Nothing more may be done.
    Stop(BrokerError),
}

impl From<BrokerError> for Setback {
    fn from(error: BrokerError) -> Self {
        match error {
            BrokerError::LockLost { .. } => Self::Stop(error),
            error => Self::GiveUp(error),
        }
    }
}

/// One migration under way.
struct Run<'a> {
    broker: &'a LockedBroker,
    interrupt: &'a Interrupt,
    means: &'a Means<'a>,
    migration: Migration,
    observe: &'a dyn Fn(MoveProgress<'_>),
    drain: Drain<'a>,
    gap: gap::Gap,
    races: usize,
    /// Since when the old queue seems to be empty.
    seems_empty: Option<Instant>,
    done: Vec<(Step, Performed)>,
    migrated: Migrated,
}

/// Migrates a queue, or puts everything back.
pub(super) async fn migrate(
    broker: &LockedBroker,
    interrupt: &Interrupt,
    means: &Means<'_>,
    migration: &Migration,
    observe: &dyn Fn(MoveProgress<'_>),
) -> Ended {
    let mut run = Run {
        broker,
        interrupt,
        means,
        migration: migration.clone(),
        observe,
        drain: Drain::new(broker, means),
        gap: gap::Gap::default(),
        races: 0,
        seems_empty: None,
        done: Vec::new(),
        migrated: Migrated::new(&migration.queue),
    };
    let failed = run.to_the_end().await;
    run.drain.stop().await;
    let Run { migration: ended, done, mut migrated, drain, gap, .. } = run;
    migrated.moved = drain.moved();
    migrated.maybe_twice = drain.maybe_twice();
    migrated.gap = gap.length();
    let is_undone = ended.goal == Goal::PutBack && migration.goal == Goal::Recreate;
    Ended { done, failed, is_undone, migrated }
}

impl Run<'_> {
    /// Why it did not come to the end that it was begun for, if it did not.
    async fn to_the_end(&mut self) -> Option<(Step, BrokerError)> {
        let mut gave_up = None;
        loop {
            match self.pass().await {
                Ok(true) => return gave_up,
                Ok(false) => {}
                Err((_, Setback::Again)) => {
                    self.races += 1;
                    sleep(Duration::from_millis(20)).await;
                }
                Err((step, Setback::GiveUp(error))) if gave_up.is_none() && self.can_be_undone().await => {
                    gave_up = Some((step, error));
                    self.migration = self.migration.put_back();
                    self.drain.stop().await;
                    self.races = 0;
                }
                Err((step, Setback::GiveUp(error) | Setback::Stop(error))) => return Some(gave_up.unwrap_or((step, error))),
            }
        }
    }

    /// Does what is left to do; true when nothing was.
    async fn pass(&mut self) -> Result<bool, (Step, Setback)> {
        let anywhere = self.step(Stage::Prepare, Action::DeleteQueue { name: self.migration.queue.clone(), guard: crate::plan::Guard::Empty });
        let vhost = self.broker.vhost().clone();
        let seen = match self.broker.broker().read(&[vhost]).await {
            Ok(mut snapshots) => snapshots.remove(0),
            Err(error) => return Err((anywhere, error.into())),
        };
        let todo = self.migration.remaining(&seen.topology, &seen.properties_keys, self.is_wanted(&seen));
        if todo.is_empty() {
            return Ok(true);
        }
        if self.migrated.consumers_before.is_none() {
            self.migrated.consumers_before = self.drain.consumers(&self.migration.queue).await;
        }
        let mut turned = None;
        for (index, todo) in todo.iter().enumerate() {
            let step = self.step(todo.stage, todo.action.clone());
            let is_first_unbind = matches!(todo.action, Action::Unbind { .. }) && turned != Some(todo.stage);
            if is_first_unbind && matches!(todo.stage, Stage::Tap | Stage::Return) {
                turned = Some(todo.stage);
                let bindings = todo_bindings(&seen, todo.stage, &self.migration);
                if let Err(setback) = self.are_the_same(&bindings).await {
                    return Err((step, setback));
                }
            }
            (self.observe)(MoveProgress::Stage(todo.stage, &self.migration.queue));
            let next = todo.get_next(&todo_slice(&todo_actions(&seen)), index);
            let _ = next;
            match self.one(&step).await {
                Ok(performed) => {
                    (self.observe)(MoveProgress::Done(&step));
                    self.done.push((step, performed));
                }
                Err(setback) => return Err((step, setback)),
            }
        }
        Ok(false)
    }
}
