//! Carries out the migration of one queue: asks what is left to do, does it, and asks again, until nothing is.
//!
//! What is left is read off the broker each time ([`Migration::remaining`]). So what an application does meanwhile (binds
//! the queue again, declares the old one again) is only something more to do; a run that was killed is gone on with by the
//! next; and a migration that cannot be finished is undone by the same means, with another goal.

mod carry_out;
mod fault;
mod held;
mod migrated;
mod moving;
mod pace;
mod turn;

pub use migrated::{Consumers, Migrated, Missing};

use super::Interrupt;
use crate::broker::mover::Mover;
use crate::broker::{BrokerError, LockedBroker, Performed, Snapshot};
use crate::model::{Address, Binding, ObjectId, Queue, QueueName};
use crate::plan::{Action, Goal, Migration, Stage, Step, Unexpected, request};
use moving::Moving;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What an apply needs besides the plan.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// Requests under way at once.
    pub at_once: usize,
    /// What moves messages; `None` where no plan asked for it.
    pub mover: Option<&'a Mover>,
    /// How long may pass in which nothing gets less, before a migration is undone.
    pub patience: Duration,
}

/// Something to tell of a migration under way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event<'a> {
    /// A step was done.
    Done(&'a Step),
    /// Messages are moved, or taken by consumers: from where, how many so far, how many are there, and why it stalls.
    Moving(&'a Step, Option<u64>, Option<u64>, Option<&'a str>),
    /// It is undone from now on, and why; `None` where somebody asked to stop.
    GoingBack(&'a QueueName, Option<&'a BrokerError>),
}

/// Between the loss of a race and the next try.
const PAUSE: Duration = Duration::from_millis(20);
/// How often what was seen may turn out not to hold any more: an application that declares the old queue again and again
/// wins such a race now and then, and not every time.
const MOST_RACES: usize = 200;

/// And for how long.
const LONGEST_RACE: Duration = Duration::from_secs(90);

/// How a migration ended.
pub(super) struct Ended {
    /// What was done, in order.
    pub(super) done: Vec<(Step, Performed)>,
    /// What could not be done.
    pub(super) failed: Option<(Step, BrokerError)>,
    /// Whether all was put back as it was, which was not what was wanted.
    pub(super) is_undone: bool,
    /// What is worth telling of it; `None` where nothing of it is, or may be, on the broker.
    pub(super) migrated: Option<Migrated>,
}

/// What keeps a step from being done.
enum Setback {
    /// What was seen no longer holds: look again.
    Again(BrokerError),
    /// It cannot be done; what was done is to be undone, where that is possible.
    GiveUp(BrokerError),
    /// Somebody asked to stop, and what was done can be undone.
    Interrupted,
    /// Nothing more may be done.
    Stop(BrokerError),
}

impl From<BrokerError> for Setback {
    fn from(error: BrokerError) -> Self {
        // By a connection to another broker, nothing could be put back either.
        let is_the_end = matches!(error, BrokerError::LockLost { .. } | BrokerError::AnotherBroker { .. });
        if is_the_end { Self::Stop(error) } else { Self::GiveUp(error) }
    }
}

impl Setback {
    /// Looks again after such an error.
    fn again_if(self, is_it: impl Fn(&BrokerError) -> bool) -> Self {
        match self {
            Self::GiveUp(error) if is_it(&error) => Self::Again(error),
            Self::Again(_) | Self::GiveUp(_) | Self::Interrupted | Self::Stop(_) => self,
        }
    }
}

/// One migration under way.
struct Run<'a> {
    broker: &'a LockedBroker,
    interrupt: &'a Interrupt,
    observe: &'a dyn Fn(Event<'_>),
    planned: &'a [Step],
    migration: Migration,
    moving: Moving<'a>,
    /// Whether anything of it is on the broker, or may be: of this run, or of one before.
    is_begun: bool,
    /// Whether nothing is left to do.
    is_over: bool,
    /// Whether the old queue is there, so that all can be put back.
    is_old: bool,
    /// The old queue, as it was when it was last seen, by this run or by the one that began.
    old: Option<Queue>,
    /// Whether an application made the old queue again before the new one was there.
    has_lost: bool,
    /// Since when the old queue has seemed to be empty.
    seems_empty: Option<Instant>,
    /// Since when there has been no queue of that name.
    gone_since: Option<Instant>,
    /// What leads to the queue again: bound as soon as next to nothing is held any more.
    switch: Option<Binding>,
    /// How many consumed from it before.
    consumers: Option<usize>,
    done: Vec<(Step, Performed)>,
    migrated: Migrated,
}

/// Migrates a queue, or puts everything back. `planned` are the steps that the plan has for it.
pub(super) async fn migrate(
    broker: &LockedBroker,
    interrupt: &Interrupt,
    means: Means<'_>,
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
    (migrated.returned, migrated.maybe_twice) = (moving.returned(), moving.maybe_twice());
    migrated.overtaken = moving.overtaken();
    migrated.behind = moving.behind();
    migrated.fallback = moving.fallback().map(str::to_owned);
    migrated.missing = moving.missing().filter(|_| is_over);
    // A way back that was not gone to its end is none: then it is not as it was.
    migrated.is_undone = is_over && ended.goal == Goal::PutBack;
    migrated.is_cut_short = !is_over;
    let is_undone = migrated.is_undone && migration.goal == Goal::Recreate;
    let is_told = is_over || is_begun || in_doubt || !done.is_empty();
    Ended { done, failed, is_undone, migrated: is_told.then_some(migrated) }
}

/// Whether the plan begins it: one that goes on with what another run began makes no holding queue any more.
fn is_planned_whole(migration: &Migration, planned: &[Step]) -> bool {
    let hold = migration.beside().hold;
    planned.iter().any(|step| matches!(&step.action, Action::DeclareQueue { name, .. } if name.as_str() == hold))
}

impl Run<'_> {
    /// Why it did not come to the end that it was begun for, if it did not.
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
                    let reason = "something changes what is done here again and again".to_owned();
                    let error = BrokerError::NotMoved { queue: self.migration.queue.clone(), reason };
                    (self.step(Stage::Prepare, self.first_action()), Setback::GiveUp(error))
                }
                Err((step, Setback::Again(error)))
                    if races >= MOST_RACES || raced.is_some_and(|since| since.elapsed() > longest_race) =>
                {
                    (step, Setback::GiveUp(error))
                }
                Err(other) => other,
            };
            if matches!(setback, Setback::GiveUp(BrokerError::Inequivalent { .. })) {
                // What is there is what somebody else has made: the old one again, as a rule.
                let live = self.moving.live(&self.migration.queue).await;
                self.is_old = live.is_ok_and(|live| live.is_some());
            }
            let may_go_back = self.is_old && self.migration.goal == Goal::Recreate;
            match setback {
                Setback::Again(error) => {
                    // What failed for a reason that may go away was tried again already, with growing pauses.
                    raced.get_or_insert_with(Instant::now);
                    races += if error.is_transient() { MOST_RACES / 5 } else { 1 };
                    sleep(PAUSE).await;
                }
                Setback::Interrupted => self.go_back(None).await,
                Setback::GiveUp(error) if may_go_back => {
                    self.go_back(Some(&error)).await;
                    gave_up = Some((step, error));
                }
                Setback::GiveUp(error) | Setback::Stop(error) => {
                    // Why it was to be undone is the failure; why that failed, too, is told beside it.
                    if gave_up.is_some() {
                        self.migrated.not_undone = Some(error.to_string());
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

    /// Does what is left to do; true when nothing was.
    async fn pass(&mut self) -> Result<bool, (Step, Setback)> {
        let seen = self.look().await.map_err(|error| (self.step(Stage::Prepare, self.first_action()), error.into()))?;
        self.is_begun |= seen.topology.queues.contains_key(&QueueName::from(self.migration.beside().hold.as_str()));
        if let Some(Unexpected { object, difference }) = self.migration.unexpected(&seen.topology) {
            let reason = format!("{object} is not as topo declares it: {difference}");
            let error = BrokerError::NotMoved { queue: self.migration.queue.clone(), reason };
            return Err((self.step(Stage::Prepare, self.first_action()), Setback::Stop(error)));
        }
        let live = seen.topology.queues.get(&self.migration.queue);
        let is_wanted = live.is_some_and(|live| self.migration.is_wanted(live, &seen.dialect));
        self.is_old = live.is_some() && !is_wanted;
        if live.is_none() && self.migration.goal == Goal::PutBack {
            let reason =
                "the old queue is gone, and what was in it is held beside it. Apply makes the queue of the spec, and \
                          brings it back"
                    .to_owned();
            let error = BrokerError::NotMoved { queue: self.migration.queue.clone(), reason };
            return Err((self.step(Stage::Return, self.first_action()), Setback::Stop(error)));
        }
        let old = live.filter(|_| !is_wanted).or(self.old.as_ref()).cloned();
        self.old = old.or_else(|| self.migration.old(&seen.topology));
        let mut todo = self.migration.remaining(&seen.topology, &seen.properties_keys, is_wanted);
        let tap = self.migration.beside().tap;
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
            queue: self.migration.wanted.clone(),
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
