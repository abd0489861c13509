//! Executes the migration of one queue: determines the remaining actions, executes them, and repeats until no action
//! remains.
//!
//! Each pass reads the remaining actions off the broker ([`Migration::remaining`]). So a concurrent change of an
//! application (it binds the queue again, or declares the old one again) only adds actions. The next run resumes the
//! migration of a killed run. A rollback works in the same way, with another goal.

mod binding_swap;
mod execute_stages;
mod fault;
mod migrated;
mod moving;
mod stall_detector;
mod stall_reason;

pub use migrated::{Consumers, Migrated, Missing};

use super::Interrupt;
use crate::broker::transport::Transport;
use crate::broker::{BrokerError, LockedBroker, Performed, Snapshot};
use crate::model::{Address, Binding, ObjectId, Queue, QueueName};
use crate::plan::{Action, Goal, Migration, Stage, Step, Unexpected, request};
use moving::Moving;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The resources of an apply, in addition to the plan.
#[derive(Clone, Copy)]
pub struct ApplyResources<'a> {
    /// The maximum number of concurrent requests.
    pub concurrency: usize,
    /// The transport for messages; `None` if the plan needs none.
    pub transport: Option<&'a Transport>,
    /// The time for which a migration may stall before it is rolled back.
    pub drain_timeout: Duration,
}

/// An event of a running migration.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event<'a> {
    /// A step was done.
    Done(&'a Step),
    /// Messages are moved or consumed: the step, the number so far, the remaining number, and the reason for a stall.
    Moving(&'a Step, Option<u64>, Option<u64>, Option<&'a str>),
    /// The deletion waits for two ticks, which prove its guard. The duration is the length of this wait.
    Proving(&'a Step, Duration),
    /// The migration is being rolled back. The error is the reason; `None` after an interruption.
    RollingBack(&'a QueueName, Option<&'a BrokerError>),
}

/// The pause between a lost race and the next attempt.
const PAUSE: Duration = Duration::from_millis(20);
/// The maximum number of lost races. An application that repeatedly declares the old queue again wins some of them.
const MAX_RACES: usize = 200;
/// The maximum time for which races may be lost.
const MAX_RACE_TIME: Duration = Duration::from_secs(90);

/// The result of a migration.
pub(super) struct Ended {
    /// The completed steps, in order.
    pub(super) done: Vec<(Step, Performed)>,
    /// The step that failed.
    pub(super) failed: Option<(Step, BrokerError)>,
    /// True if the migration was rolled back.
    pub(super) is_rolled_back: bool,
    /// The summary for the report; `None` if nothing of the migration is, or may be, on the broker.
    pub(super) migrated: Option<Migrated>,
}

/// The reason why a step could not be done.
enum StepFailure {
    /// The broker's state has changed: read it again.
    Retry(BrokerError),
    /// The step cannot be done; the migration is rolled back if possible.
    GiveUp(BrokerError),
    /// The run was interrupted, and the migration can be rolled back.
    Interrupted,
    /// No further change is allowed.
    Stop(BrokerError),
}

impl From<BrokerError> for StepFailure {
    fn from(error: BrokerError) -> Self {
        // A connection to another broker cannot roll back either.
        let is_fatal = matches!(error, BrokerError::LockLost { .. } | BrokerError::AnotherBroker { .. });
        if is_fatal { Self::Stop(error) } else { Self::GiveUp(error) }
    }
}

impl StepFailure {
    /// Converts the failure to a retry if the error matches.
    fn retry_if(self, is_retryable: impl Fn(&BrokerError) -> bool) -> Self {
        match self {
            Self::GiveUp(error) if is_retryable(&error) => Self::Retry(error),
            Self::Retry(_) | Self::GiveUp(_) | Self::Interrupted | Self::Stop(_) => self,
        }
    }
}

/// A running migration.
struct Run<'a> {
    broker: &'a LockedBroker,
    interrupt: &'a Interrupt,
    observe: &'a dyn Fn(Event<'_>),
    planned: &'a [Step],
    migration: Migration,
    moving: Moving<'a>,
    /// True if objects of the migration exist or may exist on the broker, from this run or an earlier one.
    is_started: bool,
    /// True if no action remains.
    is_complete: bool,
    /// True if the old queue exists, so that a rollback is possible.
    has_old_queue: bool,
    /// The old queue as last seen, by this run or by the one that started the migration.
    old: Option<Queue>,
    /// True if an application declared the old queue again before the new one existed.
    has_lost_race: bool,
    /// The time since which the old queue has seemed to be empty.
    seems_empty_since: Option<Instant>,
    /// The time since which the queue has not existed.
    missing_since: Option<Instant>,
    /// The binding that routes messages to the queue again. It is added as soon as almost no messages are held.
    switch: Option<Binding>,
    /// The number of consumers before the migration.
    consumers: Option<usize>,
    done: Vec<(Step, Performed)>,
    migrated: Migrated,
}

/// Migrates a queue, or rolls the migration back. `planned` are its steps in the plan.
pub(super) async fn migrate(
    broker: &LockedBroker,
    interrupt: &Interrupt,
    resources: ApplyResources<'_>,
    migration: &Migration,
    planned: &[Step],
    observe: &dyn Fn(Event<'_>),
) -> Ended {
    let mut run = Run {
        broker,
        interrupt,
        observe,
        planned,
        migration: migration.clone(),
        moving: Moving::new(broker, resources),
        is_started: !is_planned_from_start(migration, planned),
        is_complete: false,
        has_old_queue: false,
        old: None,
        has_lost_race: false,
        seems_empty_since: None,
        missing_since: None,
        switch: None,
        consumers: None,
        done: Vec::new(),
        migrated: Migrated::new(migration.queue.clone()),
    };
    let failed = run.complete().await;
    run.moving.stop().await;
    if failed.is_none() && run.migration.goal == Goal::Recreate {
        run.await_consumers().await;
    }
    let Run { migration: ended, moving, is_started, is_complete, done, mut migrated, .. } = run;
    let in_doubt = failed.as_ref().is_some_and(|(_, error)| error.may_have_been_processed());
    (migrated.returned, migrated.possible_duplicates) = (moving.returned(), moving.possible_duplicates());
    migrated.reordered = moving.reordered();
    migrated.behind = moving.behind();
    migrated.fallback = moving.fallback().map(str::to_owned);
    migrated.missing = moving.missing().filter(|_| is_complete);
    // An incomplete rollback does not restore the original state.
    migrated.is_rolled_back = is_complete && ended.goal == Goal::RollBack;
    migrated.is_interrupted = !is_complete;
    let is_rolled_back = migrated.is_rolled_back && migration.goal == Goal::Recreate;
    let is_reported = is_complete || is_started || in_doubt || !done.is_empty();
    Ended { done, failed, is_rolled_back, migrated: is_reported.then_some(migrated) }
}

/// Returns true if the plan starts the migration. A plan that resumes a migration declares no holding queue.
fn is_planned_from_start(migration: &Migration, planned: &[Step]) -> bool {
    let hold = migration.names().hold;
    planned.iter().any(|step| matches!(&step.action, Action::DeclareQueue { name, .. } if name.as_str() == hold))
}

impl Run<'_> {
    /// Runs passes until no action remains. Returns the step that failed and its error, if the migration did not
    /// complete.
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
                // As a rule, one pass is enough. An application that repeatedly reverts steps is a race, too.
                Ok(false) if races < MAX_RACES => {
                    races += 1;
                    continue;
                }
                Ok(false) => {
                    let reason = "another client repeatedly reverts the steps of the migration".to_owned();
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
                // Another client has declared the existing queue. As a rule, it is the old one.
                let live = self.moving.live(&self.migration.queue).await;
                self.has_old_queue = live.is_ok_and(|live| live.is_some());
            }
            let can_roll_back = self.has_old_queue && self.migration.goal == Goal::Recreate;
            match failure {
                StepFailure::Retry(error) => {
                    // A request that failed for a transient reason was already retried, with growing pauses.
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
                    // The reason for the rollback is the failure. The reason why the rollback failed is reported
                    // separately.
                    if gave_up.is_some() {
                        self.migrated.rollback_error = Some(error.to_string());
                    }
                    return Some(gave_up.unwrap_or((step, error)));
                }
            }
        }
    }

    async fn roll_back(&mut self, why: Option<&BrokerError>) {
        if self.is_started || !self.done.is_empty() {
            (self.observe)(Event::RollingBack(&self.migration.queue, why));
        }
        self.migration = self.migration.for_rollback();
        self.moving.stop().await;
    }

    /// Executes the remaining actions. Returns true if there were none.
    async fn run_pass(&mut self) -> Result<bool, (Step, StepFailure)> {
        let seen =
            self.read_state().await.map_err(|error| (self.step(Stage::Prepare, self.first_action()), error.into()))?;
        self.is_started |= seen.topology.queues.contains_key(&QueueName::from(self.migration.names().hold.as_str()));
        if let Some(Unexpected { object, difference }) = self.migration.unexpected(&seen.topology) {
            let reason = format!("{object} differs from topo's declaration: {difference}");
            let error = BrokerError::NotMoved { queue: self.migration.queue.clone(), reason };
            return Err((self.step(Stage::Prepare, self.first_action()), StepFailure::Stop(error)));
        }
        let live = seen.topology.queues.get(&self.migration.queue);
        let is_desired = live.is_some_and(|live| self.migration.is_desired(live, &seen.profile));
        self.has_old_queue = live.is_some() && !is_desired;
        if live.is_none() && self.migration.goal == Goal::RollBack {
            let reason = "the old queue no longer exists, and its messages are in the holding queues; apply without \
                          `--abort` to declare the queue of the spec and to return the messages"
                .to_owned();
            let error = BrokerError::NotMoved { queue: self.migration.queue.clone(), reason };
            return Err((self.step(Stage::Return, self.first_action()), StepFailure::Stop(error)));
        }
        let old = live.filter(|_| !is_desired).or(self.old.as_ref()).cloned();
        self.old = old.or_else(|| self.migration.old(&seen.topology));
        let mut todo = self.migration.remaining(&seen.topology, &seen.properties_keys, is_desired);
        let tap = self.migration.names().tap;
        self.switch = todo.iter().filter(|one| one.stage == Stage::Return).find_map(|one| {
            if let Action::Bind { binding } = &one.action { Some(binding.clone()) } else { None }
                .filter(|it| it.source == tap)
        });
        let mut checked = None;
        let mut index = 0;
        while let Some(mut one) = todo.get(index).cloned() {
            let mut step = self.step(one.stage, one.action.clone());
            if matches!(one.action, Action::Unbind { .. }) && checked != Some(one.stage) {
                checked = Some(one.stage);
                if let Err(error) = self.refresh_keys(&mut todo, index, one.stage).await {
                    return Err((step, error.into()));
                }
                let Some(first) = todo.get(index).cloned() else { break };
                one = first;
                step = self.step(one.stage, one.action.clone());
                match self.ensure_equal_replacements(&todo[index..], one.stage).await {
                    Ok(false) => {}
                    // The keys that this pass would use for its unbinds are outdated.
                    Ok(true) => return Ok(false),
                    Err(failure) => return Err((step, failure)),
                }
            }
            match self.execute(&step, one.stage, &seen).await {
                Ok(performed) => {
                    (self.observe)(Event::Done(&step));
                    self.done.push((step, performed));
                }
                Err(failure) => return Err((step, failure)),
            }
            index += 1;
        }
        Ok(todo.is_empty())
    }

    async fn read_state(&self) -> Result<Snapshot, BrokerError> {
        let vhost = self.broker.vhost().clone();
        self.moving.remove_leftovers(&self.migration).await?;
        Ok(self.broker.broker().read(&[vhost]).await?.remove(0))
    }

    /// Returns the action to which a failure before the first action belongs: the first planned action that is not
    /// done.
    fn first_action(&self) -> Action {
        let is_done = |step: &&Step| self.done.iter().any(|(done, _)| done.action == step.action);
        let first = self.planned.iter().find(|step| !is_done(step)).map(|step| step.action.clone());
        first.unwrap_or_else(|| Action::DeclareQueue {
            name: self.migration.queue.clone(),
            queue: self.migration.desired.clone(),
        })
    }

    /// Returns the planned step of the action, or a new step if it was not planned.
    fn step(&self, stage: Stage, action: Action) -> Step {
        let planned = self.planned.iter().find(|step| step.action == action);
        planned.cloned().unwrap_or_else(|| Step {
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
