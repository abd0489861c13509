//! Executes the migration of one queue: determines the remaining actions, executes them, and repeats until no action
//! remains.
//!
//! Each pass derives the remaining actions from the current state of the broker ([`Migration::remaining_actions`]). A
//! concurrent change by an application, such as a new binding to the queue, therefore only adds actions. In the same
//! way, the next run resumes a migration that a killed run started. A rollback is a migration with a different goal.

mod binding_swap;
mod execute_stages;
mod moving;
mod stall;
mod state;
mod step_failure;

pub(super) use state::Event;

use super::outcome::Migrated;
use super::request::{ApplyResources, Interrupt};
use crate::broker::{BrokerError, LockedBroker, Performed};
use crate::model::QueueName;
use crate::plan::{Action, Goal, Migration, QueueActivity, Stage, Step, Unexpected};
use moving::Moving;
use state::Run;
use std::mem;
use std::time::Duration;
use step_failure::StepFailure;
use tokio::time::{Instant, sleep};

/// The pause between a lost race and the next attempt.
const PAUSE: Duration = Duration::from_millis(20);
/// The maximum number of lost races. An application that repeatedly redeclares the old queue wins some races.
const MAX_RACES: usize = 200;
/// topo rolls the migration back after clients have redeclared the old queue this many times. topo therefore deletes a
/// redeclared queue only once.
const MAX_REDECLARATIONS: usize = 2;
/// How long topo keeps trying after the first lost race.
const MAX_RACE_TIME: Duration = Duration::from_secs(90);

/// The result of a migration.
pub(super) struct MigrationResult {
    /// The completed steps, in order.
    pub(super) done: Vec<(Step, Performed)>,
    /// The step that failed, with its error; `None` if no step failed.
    pub(super) failed: Option<(Step, BrokerError)>,
    /// True if the migration was rolled back.
    pub(super) is_rolled_back: bool,
    /// The summary for the report; `None` if it is certain that the migration changed nothing.
    pub(super) migrated: Option<Migrated>,
}

/// Migrates a queue, or rolls a migration back. `planned` contains the migration's steps in the plan, and `live` is the
/// activity of the old queue, if known.
pub(super) async fn migrate(
    broker: &LockedBroker,
    interrupt: &Interrupt,
    resources: ApplyResources<'_>,
    migration: &Migration,
    (planned, live): (&[Step], Option<&QueueActivity>),
    observe: &dyn Fn(Event<'_>),
) -> MigrationResult {
    let mut run = Run {
        broker,
        interrupt,
        observe,
        planned,
        migration: migration.clone(),
        live,
        moving: Moving::new(broker, resources),
        is_started: !is_planned_from_start(migration, planned),
        is_complete: false,
        has_old_queue: false,
        old: None,
        is_old_deleted: false,
        seems_empty_since: None,
        missing_since: None,
        switch: None,
        done: Vec::new(),
        migrated: Migrated::new(migration.queue.clone()),
    };
    let failed = run.complete().await;
    run.moving.stop().await;
    let Run { migration: ended, moving, is_started, is_complete, done, mut migrated, .. } = run;
    let in_doubt = failed.as_ref().is_some_and(|(_, error)| error.may_have_been_processed());
    (migrated.returned, migrated.possible_duplicates) = (moving.returned_messages(), moving.possible_duplicates());
    migrated.reordered = moving.reordered_messages();
    migrated.behind = moving.messages_behind();
    migrated.fallback = moving.fallback().map(str::to_owned);
    migrated.missing = moving.missing_messages().filter(|_| is_complete);
    // An incomplete rollback does not restore the original state.
    migrated.is_rolled_back = is_complete && ended.goal == Goal::RollBack;
    migrated.is_interrupted = !is_complete;
    let is_rolled_back = migrated.is_rolled_back && migration.goal == Goal::Recreate;
    let is_reported = is_complete || is_started || in_doubt || !done.is_empty();
    MigrationResult { done, failed, is_rolled_back, migrated: is_reported.then_some(migrated) }
}

/// Returns true if the plan starts the migration. A plan that resumes a migration declares no holding queue.
fn is_planned_from_start(migration: &Migration, planned: &[Step]) -> bool {
    let hold = migration.names().hold;
    planned.iter().any(|step| matches!(&step.action, Action::DeclareQueue { name, .. } if name.as_str() == hold))
}

impl Run<'_> {
    /// Runs passes until no action remains. If the migration failed, returns the failed step and its error, even if the
    /// rollback succeeded. `None` if the migration succeeded, or if it was rolled back only because of an interruption.
    async fn complete(&mut self) -> Option<(Step, BrokerError)> {
        let mut gave_up = None;
        let mut races = 0;
        let mut raced_since: Option<Instant> = None;
        let max_race_time = self.broker.broker().intervals().scaled(MAX_RACE_TIME);
        loop {
            let (step, failure) = match self.run_pass().await {
                Ok(true) => {
                    self.is_complete = true;
                    return gave_up;
                }
                // Usually, a few passes are sufficient. Every incomplete pass is counted as a lost race, because an
                // application may repeatedly revert steps.
                Ok(false) if races < MAX_RACES => {
                    races += 1;
                    continue;
                }
                Ok(false) => {
                    let reason = "another client keeps reverting the migration's steps".to_owned();
                    let error = BrokerError::NotMoved { queue: self.migration.queue.clone(), reason };
                    (self.step(Stage::Prepare, self.first_action()), StepFailure::GiveUp(error))
                }
                Err((step, StepFailure::Retry(error)))
                    if races >= MAX_RACES || raced_since.is_some_and(|since| since.elapsed() > max_race_time) =>
                {
                    (step, StepFailure::GiveUp(error))
                }
                Err(other) => other,
            };
            if matches!(failure, StepFailure::GiveUp(BrokerError::Inequivalent { .. })) {
                // Another client has declared the existing queue, usually with the old definition.
                let live = self.moving.queue_activity(&self.migration.queue).await;
                self.has_old_queue = live.is_ok_and(|live| live.is_some());
            }
            let can_roll_back = self.has_old_queue && self.migration.goal == Goal::Recreate;
            match failure {
                StepFailure::Retry(error) => {
                    // The HTTP client has already retried a request that failed with a transient error, so only a few
                    // more attempts follow.
                    raced_since.get_or_insert_with(Instant::now);
                    races += if error.is_transient() { MAX_RACES / 5 } else { 1 };
                    sleep(PAUSE).await;
                }
                StepFailure::Interrupted => self.roll_back(None).await,
                StepFailure::GiveUp(error) if can_roll_back => {
                    self.roll_back(Some(&error)).await;
                    gave_up = Some((step, error));
                }
                StepFailure::GiveUp(error) | StepFailure::Stop(error) => {
                    // Returns the failure that caused the rollback. The failure of the rollback is reported separately.
                    if gave_up.is_some() {
                        self.migrated.rollback_error = Some(error.to_string());
                    }
                    return Some(gave_up.unwrap_or((step, error)));
                }
            }
        }
    }

    /// Changes the goal of the migration to a rollback, and stops the current move.
    async fn roll_back(&mut self, why: Option<&BrokerError>) {
        if self.is_started || !self.done.is_empty() {
            (self.observe)(Event::RollingBack(&self.migration.queue, why));
        }
        self.migration = self.migration.for_rollback();
        self.moving.stop().await;
    }

    /// Reads the broker's state and executes the remaining actions. Returns true if no action remained.
    async fn run_pass(&mut self) -> Result<bool, (Step, StepFailure)> {
        let seen =
            self.read_state().await.map_err(|error| (self.step(Stage::Prepare, self.first_action()), error.into()))?;
        self.is_started |= seen.topology.queues.contains_key(&QueueName::from(self.migration.names().hold.as_str()));
        if let Some(Unexpected { object, difference }) = self.migration.unexpected_object(&seen.topology) {
            let reason = format!("{object} differs from topo's declaration: {difference}");
            let error = BrokerError::NotMoved { queue: self.migration.queue.clone(), reason };
            return Err((self.step(Stage::Prepare, self.first_action()), StepFailure::Stop(error)));
        }
        let live = seen.topology.queues.get(&self.migration.queue);
        let is_desired = live.is_some_and(|live| self.migration.is_desired(live, &seen.profile));
        self.has_old_queue = live.is_some() && !is_desired;
        if live.is_some() {
            // If a deletion received no response, the old queue may never have been deleted.
            if self.has_old_queue && !self.is_old_deleted {
                self.missing_since = None;
            }
            self.end_gap();
            if mem::take(&mut self.is_old_deleted) && self.has_old_queue {
                self.migrated.redeclared += 1;
                self.migrated.redeclared_by = self.clients_that_may_declare(&seen);
            }
        }
        if self.migrated.redeclared >= MAX_REDECLARATIONS && self.migration.goal == Goal::Recreate {
            let error = self.redeclared_error();
            return Err((self.step(Stage::Swap, self.first_action()), StepFailure::GiveUp(error)));
        }
        if live.is_none() && self.migration.goal == Goal::RollBack {
            let reason = "the old queue no longer exists, and its messages are in the holding queues; apply without \
                          `--abort` to declare the queue as specified and return the messages"
                .to_owned();
            let error = BrokerError::NotMoved { queue: self.migration.queue.clone(), reason };
            return Err((self.step(Stage::Return, self.first_action()), StepFailure::Stop(error)));
        }
        let old = live.filter(|_| !is_desired).or(self.old.as_ref()).cloned();
        self.old = old.or_else(|| self.migration.old_queue(&seen.topology));
        let mut remaining = self.migration.remaining_actions(&seen.topology, &seen.properties_keys, is_desired);
        let tap = self.migration.names().tap;
        self.switch = remaining.iter().filter(|next| next.stage == Stage::Return).find_map(|next| {
            if let Action::Bind { binding } = &next.action { Some(binding.clone()) } else { None }
                .filter(|it| it.source == tap)
        });
        let mut checked_stage = None;
        let mut index = 0;
        while let Some(mut next) = remaining.get(index).cloned() {
            let mut step = self.step(next.stage, next.action.clone());
            if matches!(next.action, Action::Unbind { .. }) && checked_stage != Some(next.stage) {
                checked_stage = Some(next.stage);
                if let Err(error) = self.refresh_keys(&mut remaining, index, next.stage).await {
                    return Err((step, error.into()));
                }
                let Some(refreshed) = remaining.get(index).cloned() else { break };
                next = refreshed;
                step = self.step(next.stage, next.action.clone());
                match self.ensure_equal_replacements(&remaining[index..], next.stage).await {
                    Ok(false) => {}
                    // The keys that this pass would use for its unbinds are outdated.
                    Ok(true) => return Ok(false),
                    Err(failure) => return Err((step, failure)),
                }
            }
            match self.execute(&step, next.stage, &seen).await {
                Ok(performed) => {
                    (self.observe)(Event::Done(&step));
                    self.done.push((step, performed));
                }
                Err(failure) => return Err((step, failure)),
            }
            index += 1;
        }
        Ok(remaining.is_empty())
    }
}
