//! Executes the migration of one queue: determines the remaining actions, executes them, and repeats until none is left.
//!
//! What is left is read off the broker each time ([`Migration::remaining`]). So what an application does meanwhile (binds
//! the queue again, declares the old one again) is only something more to do; a run that was killed is gone on with by the
//! next; and a migration that cannot be finished is undone by the same means, with another goal.

mod binding_swap;
mod carry_out;
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
    pub at_once: usize,
    /// The transport for messages; `None` if the plan needs none.
    pub transport: Option<&'a Transport>,
    /// How long a migration may stall before it is rolled back.
    pub patience: Duration,
}

/// An event of a running migration.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event<'a> {
    /// A step was done.
    Done(&'a Step),
    /// Messages are moved or consumed: the source, the number so far, the remaining number, and why it stalls.
    Moving(&'a Step, Option<u64>, Option<u64>, Option<&'a str>),
    /// The deletion waits for two ticks, which prove its guard. They take this time.
    Proving(&'a Step, Duration),
    /// The migration is being rolled back, and why; `None` after an interruption.
    GoingBack(&'a QueueName, Option<&'a BrokerError>),
}

/// The pause between a lost race and the next attempt.
const PAUSE: Duration = Duration::from_millis(20);
/// How often what was seen may turn out not to hold any more: an application that declares the old queue again and again
/// wins such a race now and then, and not every time.
const MOST_RACES: usize = 200;

/// And for how long.
const LONGEST_RACE: Duration = Duration::from_secs(90);

/// The result of a migration.
pub(super) struct Ended {
    /// The completed steps, in order.
    pub(super) done: Vec<(Step, Performed)>,
    /// The step that failed.
    pub(super) failed: Option<(Step, BrokerError)>,
    /// Whether the migration was rolled back.
    pub(super) is_rolled_back: bool,
    /// The summary for the report; `None` if nothing of the migration is, or may be, on the broker.
    pub(super) migrated: Option<Migrated>,
}

/// The reason why a step could not be done.
enum StepFailure {
    /// The broker's state has changed: read it again.
    Again(BrokerError),
    /// The step cannot be done; the migration is rolled back if possible.
    GiveUp(BrokerError),
    /// The run was interrupted, and the migration can be rolled back.
    Interrupted,
    /// No further change is allowed.
    Stop(BrokerError),
}

impl From<BrokerError> for StepFailure {
    fn from(error: BrokerError) -> Self {
        // By a connection to another broker, nothing could be put back either.
        let is_the_end = matches!(error, BrokerError::LockLost { .. } | BrokerError::AnotherBroker { .. });
        if is_the_end { Self::Stop(error) } else { Self::GiveUp(error) }
    }
}

impl StepFailure {
    /// Reads the state again after such an error.
    fn again_if(self, is_it: impl Fn(&BrokerError) -> bool) -> Self {
        match self {
            Self::GiveUp(error) if is_it(&error) => Self::Again(error),
            Self::Again(_) | Self::GiveUp(_) | Self::Interrupted | Self::Stop(_) => self,
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
    /// Whether objects of the migration are, or may be, on the broker, from this run or an earlier one.
    is_begun: bool,
    /// Whether no action is left.
    is_over: bool,
    /// Whether the old queue exists, so that a rollback is possible.
    is_old: bool,
    /// The old queue as last seen, by this run or by the one that started the migration.
    old: Option<Queue>,
    /// Whether an application declared the old queue again before the new one existed.
    has_lost: bool,
    /// Since when the old queue has seemed to be empty.
    seems_empty: Option<Instant>,
    /// Since when the queue has not existed.
    gone_since: Option<Instant>,
    /// What leads to the queue again: bound as soon as next to nothing is held any more.
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
    means: ApplyResources<'_>,
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
        moving: Moving::new(broker, means),
        is_begun: !is_planned_whole(migration, planned),
        is_over: false,
        is_old: false,
        old: None,
        has_lost: false,
        seems_empty: None,
        gone_since: None,
        switch: None,
        consumers: None,
        done: Vec::new(),
        migrated: Migrated::new(migration.queue.clone()),
    };
    let failed = run.end().await;
    run.moving.stop().await;
    if failed.is_none() && run.migration.goal == Goal::Recreate {
        run.await_consumers().await;
    }
    let Run { migration: ended, moving, is_begun, is_over, done, mut migrated, .. } = run;
    let in_doubt = failed.as_ref().is_some_and(|(_, error)| error.leaves_doubt());
    (migrated.returned, migrated.possible_duplicates) = (moving.returned(), moving.possible_duplicates());
    migrated.reordered = moving.reordered();
    migrated.behind = moving.behind();
    migrated.fallback = moving.fallback().map(str::to_owned);
    migrated.missing = moving.missing().filter(|_| is_over);
    // An incomplete rollback does not restore the original state.
    migrated.is_rolled_back = is_over && ended.goal == Goal::PutBack;
    migrated.is_interrupted = !is_over;
    let is_rolled_back = migrated.is_rolled_back && migration.goal == Goal::Recreate;
    let is_told = is_over || is_begun || in_doubt || !done.is_empty();
    Ended { done, failed, is_rolled_back, migrated: is_told.then_some(migrated) }
}

/// Whether the plan begins it: one that goes on with what another run began makes no holding queue any more.
fn is_planned_whole(migration: &Migration, planned: &[Step]) -> bool {
    let hold = migration.names().hold;
    planned.iter().any(|step| matches!(&step.action, Action::DeclareQueue { name, .. } if name.as_str() == hold))
}

impl Run<'_> {
    /// Why the migration did not complete, if so.
    async fn end(&mut self) -> Option<(Step, BrokerError)> {
        let mut gave_up = None;
        let mut races = 0;
        let mut raced: Option<Instant> = None;
        let longest_race = self.broker.broker().intervals().scaled(LONGEST_RACE);
        loop {
            let (step, setback) = match self.pass().await {
                Ok(true) => {
                    self.is_over = true;
                    return gave_up;
                }
                // One pass does it all, as a rule; what an application undoes again and again is a race, too.
                Ok(false) if races < MOST_RACES => {
                    races += 1;
                    continue;
                }
                Ok(false) => {
                    let reason = "another client repeatedly reverts the steps of the migration".to_owned();
                    let error = BrokerError::NotMoved { queue: self.migration.queue.clone(), reason };
                    (self.step(Stage::Prepare, self.first_action()), StepFailure::GiveUp(error))
                }
                Err((step, StepFailure::Again(error)))
                    if races >= MOST_RACES || raced.is_some_and(|since| since.elapsed() > longest_race) =>
                {
                    (step, StepFailure::GiveUp(error))
                }
                Err(other) => other,
            };
            if matches!(setback, StepFailure::GiveUp(BrokerError::Inequivalent { .. })) {
                // What is there is what somebody else has made: the old one again, as a rule.
                let live = self.moving.live(&self.migration.queue).await;
                self.is_old = live.is_ok_and(|live| live.is_some());
            }
            let may_go_back = self.is_old && self.migration.goal == Goal::Recreate;
            match setback {
                StepFailure::Again(error) => {
                    // What failed for a reason that may go away was tried again already, with growing pauses.
                    raced.get_or_insert_with(Instant::now);
                    races += if error.is_transient() { MOST_RACES / 5 } else { 1 };
                    sleep(PAUSE).await;
                }
                StepFailure::Interrupted => self.go_back(None).await,
                StepFailure::GiveUp(error) if may_go_back => {
                    self.go_back(Some(&error)).await;
                    gave_up = Some((step, error));
                }
                StepFailure::GiveUp(error) | StepFailure::Stop(error) => {
                    // Why it was to be undone is the failure; why that failed, too, is told beside it.
                    if gave_up.is_some() {
                        self.migrated.rollback_error = Some(error.to_string());
                    }
                    return Some(gave_up.unwrap_or((step, error)));
                }
            }
        }
    }

    async fn go_back(&mut self, why: Option<&BrokerError>) {
        if self.is_begun || !self.done.is_empty() {
            (self.observe)(Event::GoingBack(&self.migration.queue, why));
        }
        self.migration = self.migration.put_back();
        self.moving.stop().await;
    }

    /// Executes the remaining actions; true if there were none.
    async fn pass(&mut self) -> Result<bool, (Step, StepFailure)> {
        let seen = self.look().await.map_err(|error| (self.step(Stage::Prepare, self.first_action()), error.into()))?;
        self.is_begun |= seen.topology.queues.contains_key(&QueueName::from(self.migration.names().hold.as_str()));
        if let Some(Unexpected { object, difference }) = self.migration.unexpected(&seen.topology) {
            let reason = format!("{object} differs from topo's declaration: {difference}");
            let error = BrokerError::NotMoved { queue: self.migration.queue.clone(), reason };
            return Err((self.step(Stage::Prepare, self.first_action()), StepFailure::Stop(error)));
        }
        let live = seen.topology.queues.get(&self.migration.queue);
        let is_desired = live.is_some_and(|live| self.migration.is_desired(live, &seen.profile));
        self.is_old = live.is_some() && !is_desired;
        if live.is_none() && self.migration.goal == Goal::PutBack {
            let reason =
                "the old queue is gone, and what was in it is held beside it. Apply makes the queue of the spec, and \
                          brings it back"
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
                if let Err(error) = self.with_keys(&mut todo, index, one.stage).await {
                    return Err((step, error.into()));
                }
                let Some(first) = todo.get(index).cloned() else { break };
                one = first;
                step = self.step(one.stage, one.action.clone());
                match self.turned(&todo[index..], one.stage).await {
                    Ok(false) => {}
                    // The keys by which this pass would unbind later on are not those of what is bound now.
                    Ok(true) => return Ok(false),
                    Err(setback) => return Err((step, setback)),
                }
            }
            match self.carry_out(&step, one.stage, &seen).await {
                Ok(performed) => {
                    (self.observe)(Event::Done(&step));
                    self.done.push((step, performed));
                }
                Err(setback) => return Err((step, setback)),
            }
            index += 1;
        }
        Ok(todo.is_empty())
    }

    async fn look(&self) -> Result<Snapshot, BrokerError> {
        let vhost = self.broker.vhost().clone();
        self.moving.remove_leftovers(&self.migration).await?;
        Ok(self.broker.broker().read(&[vhost]).await?.remove(0))
    }

    /// What a failure is blamed on where nothing was tried: the first of what was planned that is not done.
    fn first_action(&self) -> Action {
        let is_done = |step: &&Step| self.done.iter().any(|(done, _)| done.action == step.action);
        let first = self.planned.iter().find(|step| !is_done(step)).map(|step| step.action.clone());
        first.unwrap_or_else(|| Action::DeclareQueue {
            name: self.migration.queue.clone(),
            queue: self.migration.desired.clone(),
        })
    }

    /// As it was planned, or one that nobody could plan.
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
