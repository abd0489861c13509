//! Executes the waves of a plan, one after another. The steps in a wave run concurrently.

use super::migrate::{Event, MigrationResult, migrate};
use super::outcome::{FailedStep, Report, StepDone, WaitingStep};
use super::recreations::{
    Recreations, expect_no_new_bindings, expect_same_topic_permissions, prepares_keep, rehearse_bindings, verify,
};
use super::request::Interrupt;
use super::request::{ApplyResources, Progress};
use crate::broker::{BrokerError, LockedBroker, Performed};
use crate::model::{Object, ObjectId, QueueName};
use crate::plan::{Action, Guard, Step, VhostPlan};
use futures_util::{StreamExt, stream};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The maximum number of steps that run concurrently. RabbitMQ 3.10 processes 1,059 PUT requests per second with 4
/// concurrent requests, 1,100 with 8, and 1,259 with 16.
pub const CONCURRENCY: usize = 16;

/// The maximum number of concurrent migrations. A migration holds its in-transit messages in memory, and spends most of
/// its time waiting.
const CONCURRENT_MIGRATIONS: usize = 4;

/// The outcome of a step.
enum StepOutcome {
    Done(Step, Performed),
    Failed(Step, BrokerError),
    NotAttempted(Step),
    /// The object to delete is still in use. Contains the guard's error, if any.
    Waiting(Step, Option<BrokerError>),
}

/// Executes steps from one vhost's plan: all steps, or a slice that starts and ends at a wave boundary.
///
/// The plan must come from an [`ApprovedPlan`](crate::plan::ApprovedPlan). The caller must hold the lock for the whole
/// run. Losing the lock stops the run in the same way as a failed step.
///
/// The run waits up to `drain_timeout` in total for retired tiers to drain. After this time, tiers that are not empty
/// are left for the next run, together with the steps that depend on them. This is not a failure.
pub async fn apply(
    (part, steps): (&VhostPlan, &[Step]),
    broker: &LockedBroker,
    interrupt: &Interrupt,
    resources: ApplyResources<'_>,
    observe: impl FnMut(Progress<'_>),
) -> Report {
    let observe = RefCell::new(observe);
    let mut notify = |progress: Progress<'_>| (observe.borrow_mut())(progress);
    let mut report = Report::new(part.vhost.clone());
    let draining = Draining { drain_timeout: resources.drain_timeout, until: Cell::new(None) };
    let mut waiting = BTreeSet::new();
    let mut recreations = Recreations::default();
    let mut stopped = false;
    for wave in steps.chunk_by(|one, other| one.wave == other.wave) {
        if let [step] = wave
            && step.after.iter().any(|before| waiting.contains(before))
        {
            waiting.insert(step.id);
            notify(Progress::Waiting(step));
            report.waiting.push(WaitingStep { step: step.clone(), why: None });
            continue;
        }
        if wave.iter().any(|step| step.stage.is_some()) {
            if stopped {
                report.not_attempted.extend(wave.iter().cloned());
            } else {
                stopped = run_migrations(part, broker, interrupt, resources, wave, &mut report, &mut notify).await;
            }
            continue;
        }
        let must_finish = wave.iter().any(|step| recreations.must_run(step));
        let halt = Cell::new(stopped && !must_finish);
        // Checks the lock before each wave, because the next renewal may be 15 s away. A recreation that has started
        // continues without the lock.
        let lock = match wave.iter().any(|step| recreations.has_started(step)) {
            true => LockRequirement::Optional,
            false => LockRequirement::Required,
        };
        let is_checked = !halt.get() && lock == LockRequirement::Required;
        let lock_error = Cell::new(if is_checked { broker.confirm().await.err() } else { None });
        let notify_step = |progress: Progress<'_>| (observe.borrow_mut())(progress);
        let outcomes = stream::iter(wave)
            .map(|step| {
                let stops = (&halt, must_finish);
                run_step(part, broker, interrupt, (&draining, &notify_step), stops, (lock, &lock_error), step)
            })
            .buffer_unordered(resources.concurrency);
        let mut outcomes = std::pin::pin!(outcomes);
        while let Some(outcome) = outcomes.next().await {
            match outcome {
                StepOutcome::Done(step, performed) => {
                    notify(Progress::Done(&step));
                    if recreations.record_done(&step) {
                        let is_preparation = |done: &StepDone| prepares_keep(&done.step.action, &step.action.object());
                        let (reverted, kept) = std::mem::take(&mut report.done).into_iter().partition(is_preparation);
                        report.done = kept;
                        report.rolled_back.extend::<Vec<_>>(reverted);
                        report.rolled_back.push(StepDone { step, performed });
                    } else {
                        report.done.push(StepDone { step, performed });
                    }
                }
                StepOutcome::Failed(step, error) => {
                    notify(Progress::Failed(&step, &error));
                    stopped = true;
                    if error.is_after_processing() {
                        // After a deletion, the old object no longer exists, even if a client has declared an object
                        // with the same name. The recreation continues and restores the bindings.
                        recreations.record_done(&step);
                    } else {
                        recreations.record_failed(&step, &error);
                    }
                    report.failed.push(FailedStep { step, error });
                }
                StepOutcome::NotAttempted(step) => {
                    report.not_attempted.push(step);
                }
                StepOutcome::Waiting(step, why) => {
                    notify(Progress::Waiting(&step));
                    waiting.insert(step.id);
                    report.waiting.push(WaitingStep { step, why });
                }
            }
        }
        stopped = stopped || interrupt.is_requested();
    }
    report.is_interrupted = interrupt.is_requested();
    report
}

/// Runs the migrations of a wave, up to [`CONCURRENT_MIGRATIONS`] concurrently. Returns true if a migration failed or
/// was rolled back, or if the run was interrupted.
async fn run_migrations(
    part: &VhostPlan,
    broker: &LockedBroker,
    interrupt: &Interrupt,
    resources: ApplyResources<'_>,
    wave: &[Step],
    report: &mut Report,
    observe: &mut impl FnMut(Progress<'_>),
) -> bool {
    let observe = RefCell::new(observe);
    let notify = |event: Event<'_>| {
        (observe.borrow_mut())(match event {
            Event::Done(step) => Progress::Done(step),
            Event::Moving(step, moved, left, why) => Progress::Moving(step, moved, left, why),
            Event::Confirming(step, time) => Progress::Confirming(step, time),
            Event::RollingBack(queue, why) => Progress::RollingBack(queue, why),
        });
    };
    let steps_of = |queue: &ObjectId| -> Vec<Step> {
        wave.iter().filter(|step| step.recreate.as_ref() == Some(queue)).cloned().collect()
    };
    let live_of = |queue: &QueueName| {
        let is_of_queue = |object: &Object| matches!(object, Object::Queue(name, _) if name == queue);
        part.changes.iter().find(|it| it.before.as_ref().is_some_and(is_of_queue)).and_then(|it| it.live.as_ref())
    };
    let running = stream::iter(&part.migrations)
        .map(async |migration| {
            let planned = steps_of(&ObjectId::Queue(migration.queue.clone()));
            let ended = match interrupt.is_requested() {
                true => None,
                false => {
                    let planned = (&planned[..], live_of(&migration.queue));
                    Some(migrate(broker, interrupt, resources, migration, planned, &notify).await)
                }
            };
            (planned, ended)
        })
        .buffer_unordered(CONCURRENT_MIGRATIONS);
    let mut running = std::pin::pin!(running);
    let mut stopped = false;
    while let Some((planned, ended)) = running.next().await {
        let Some(MigrationResult { done, failed, is_rolled_back, migrated }) = ended else {
            report.not_attempted.extend(planned);
            stopped = true;
            continue;
        };
        let is_done = |step: &Step| done.iter().any(|(done, _)| done.action == step.action);
        let is_failed = |step: &Step| failed.as_ref().is_some_and(|(failed, _)| failed.action == step.action);
        if failed.is_some() || is_rolled_back {
            let rest = planned.iter().filter(|step| !is_done(step) && !is_failed(step));
            report.not_attempted.extend(rest.cloned());
        }
        stopped |= failed.is_some() || is_rolled_back;
        let target = if is_rolled_back { &mut report.rolled_back } else { &mut report.done };
        target.extend(done.into_iter().map(|(step, performed)| StepDone { step, performed }));
        if let Some((step, error)) = failed {
            (observe.borrow_mut())(Progress::Failed(&step, &error));
            report.failed.push(FailedStep { step, error });
        }
        report.migrated.extend(migrated);
    }
    stopped || interrupt.is_requested()
}

/// The deadline for draining retired tiers. The first tier that is not empty sets the deadline.
struct Draining {
    drain_timeout: Duration,
    until: Cell<Option<Instant>>,
}

impl Draining {
    /// The pause between two attempts to delete a tier.
    const POLL: Duration = Duration::from_secs(1);

    /// Waits for the next attempt. Returns false if the deadline has passed or the run was interrupted. All tiers share
    /// one deadline, because they drain concurrently.
    async fn wait_for_retry(&self, interrupt: &Interrupt) -> bool {
        let now = Instant::now();
        let until = self.until.get().unwrap_or(now + self.drain_timeout);
        self.until.set(Some(until));
        let may_retry = now < until && !interrupt.is_requested();
        if may_retry {
            sleep(Self::POLL.min(until - now)).await;
        }
        may_retry
    }
}

/// Returns true if an action deletes a queue that must drain first.
fn needs_drained_queue(action: &Action) -> bool {
    matches!(action, Action::DeleteQueue { guard: Guard::Drained, .. })
}

/// Runs one step. If the step deletes a queue that must drain first, retries until the deadline.
async fn run_step(
    part: &VhostPlan,
    broker: &LockedBroker,
    interrupt: &Interrupt,
    (draining, notify): (&Draining, &impl Fn(Progress<'_>)),
    (halt, must_finish): (&Cell<bool>, bool),
    (lock, lock_error): (LockRequirement, &Cell<Option<BrokerError>>),
    step: &Step,
) -> StepOutcome {
    if halt.get() || (interrupt.is_requested() && !must_finish) {
        return StepOutcome::NotAttempted(step.clone());
    }
    let first = match lock_error.take() {
        None => perform(part, broker, step, lock, notify).await,
        Some(error) => Err(error),
    };
    let mut performed = first;
    while needs_drained_queue(&step.action)
        && let Err(error) = &performed
        && error.is_guard_failure()
    {
        notify(Progress::Stalled(step, error));
        if !draining.wait_for_retry(interrupt).await {
            return StepOutcome::Waiting(step.clone(), performed.err());
        }
        performed = perform(part, broker, step, LockRequirement::Required, notify).await;
    }
    match performed {
        Ok(performed) => StepOutcome::Done(step.clone(), performed),
        Err(error) => {
            // In a recreation that has started, a binding that cannot be restored does not stop the other steps.
            if !must_finish {
                halt.set(true);
            }
            StepOutcome::Failed(step.clone(), error)
        }
    }
}

/// Whether a step requires the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LockRequirement {
    Required,
    Optional,
}

/// Performs the action of a step. Checks the object before a deletion. Verifies deletions and the steps of a recreation
/// afterward.
async fn perform(
    part: &VhostPlan,
    broker: &LockedBroker,
    step: &Step,
    lock: LockRequirement,
    notify: &impl Fn(Progress<'_>),
) -> Result<Performed, BrokerError> {
    if let LockRequirement::Required = lock {
        broker.check()?;
    }
    let deletes = is_deletion(&step.action);
    let id = step.action.object();
    if deletes && step.recreate.as_ref() == Some(&id) {
        expect_no_new_bindings(part, broker, &id).await?;
        expect_same_topic_permissions(part, broker, &step.address, &id).await?;
        rehearse_bindings(part, broker, &id).await?;
    } else if deletes && step.recreate.is_none() && !part.may_be_bound(&step.address) {
        expect_no_new_bindings(part, broker, &id).await?;
    }
    let observe = |time| notify(Progress::Confirming(step, time));
    let performed = broker.broker().perform_observed(broker.vhost(), &step.action, &observe).await?;
    if deletes || step.recreate.is_some() {
        verify(broker, &step.action).await?;
    }
    Ok(performed)
}

fn is_deletion(action: &Action) -> bool {
    matches!(action, Action::DeleteQueue { .. } | Action::DeleteExchange { .. })
}
