//! Acquires and releases the locks of an apply: one in each vhost that is changed.

use super::arguments::ApplyArguments;
use super::exit::Exit;
use super::failure::Failure;
use super::progress::Progress;
use super::shell::quoted;
use super::{connection, output, rights};
use crate::apply::{Interrupt, Report, StepDone};
use crate::broker::lock::holder_in;
use crate::broker::{Broker, BrokerError, Holder, LockedBroker, Performed};
use crate::model::names::LOCK_QUEUE;
use crate::model::printable::clean;
use crate::model::{BrokerVersion, QueueName, Topology, VhostName};
use crate::plan::rights::Needs;
use crate::plan::{Action, Plan, Step};
use futures_util::stream::{self, StreamExt};
use std::cell::Cell;
use std::path::Path;

/// The number of locks that are released concurrently. They are acquired one after another, by name, to avoid deadlocks.
const RELEASES_AT_ONCE: usize = 8;

/// The acquired locks, and the vhosts that had to be created for them.
#[derive(Default)]
pub(super) struct Locks {
    held: Vec<LockedBroker>,
    /// Vhosts that were created before anything could be locked in them.
    created: Vec<(VhostName, Step)>,
}

impl Locks {
    /// The lock of a vhost.
    pub(super) fn of(&self, vhost: &VhostName) -> Option<&LockedBroker> {
        self.held.iter().find(|lock| lock.vhost() == vhost)
    }

    /// The steps that were done before the others.
    pub(super) fn done(&self) -> impl ExactSizeIterator<Item = &Step> {
        self.created.iter().map(|(_, step)| step)
    }

    /// Adds the steps that were done before the others to the reports.
    pub(super) fn complete(&self, reports: &mut Vec<Report>) {
        for (vhost, step) in &self.created {
            let done = StepDone { step: step.clone(), performed: Performed::Done };
            match reports.iter_mut().find(|report| report.vhost == *vhost) {
                Some(report) => report.done.insert(0, done),
                None => {
                    let mut report = Report::new(vhost.clone());
                    report.done.push(done);
                    reports.push(report);
                }
            }
        }
    }

    /// Adds the created vhosts to a failure.
    pub(super) fn explain(&self, failure: Failure) -> Failure {
        self.created.iter().fold(failure, |failure, (vhost, _)| {
            failure
                .exit(Exit::Partial)
                .because(format!("vhost {vhost} was created before that; nothing else was changed"))
        })
    }

    /// Releases all locks.
    pub(super) async fn release(self) {
        let release = async |lock: LockedBroker| {
            // The lease of an unreleased lock expires; the report is more important.
            if let Err(error) = lock.release().await {
                let text = format!("warning: the lock was not released; it expires within a minute: {error}\n");
                output::tell(&text);
            }
        };
        stream::iter(self.held).for_each_concurrent(RELEASES_AT_ONCE, release).await;
    }
}

/// Returns the holder of a lock in a vhost, if it is another apply. Neither this run nor an ended process of this machine counts,
/// even if its lock has not expired yet.
pub(super) fn applying(topology: &Topology) -> Option<String> {
    let words = holder_in(topology)?;
    let own = connection::holder();
    // `me@host, pid 4711, since …`
    let process = |words: &str| {
        let (machine, rest) = words.split_once(", pid ")?;
        let (_, machine) = machine.split_once('@')?;
        Some((machine.to_owned(), rest.split(',').next()?.parse::<u32>().ok()?))
    };
    let (Some((machine, pid)), Some((here, own_pid))) = (process(words), process(&own)) else {
        return Some(clean(words));
    };
    let has_ended = || Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists();
    let is_over = machine == here && (pid == own_pid || has_ended());
    (!is_over).then(|| clean(words))
}

/// Locks every vhost that is changed, in the order of their names. A missing vhost is created first, because the lock is a
/// queue in it.
pub(super) async fn lock(
    arguments: &ApplyArguments,
    broker: &Broker,
    plan: &Plan,
    interrupt: &Interrupt,
    locks: &mut Locks,
    progress: Progress,
) -> Result<(), Failure> {
    let queue = QueueName::new(arguments.lock_name.as_str());
    let version = plan.target.version.parse().unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let waiting = progress.spin("waiting for the lock".to_owned());
    for part in plan.vhosts.iter().filter(|part| !part.steps.is_empty()) {
        let missing = part.creates_vhost();
        if let Some(step) = part.steps.first().filter(|step| missing && matches!(step.action, Action::PutVhost { .. }))
        {
            broker.perform(&part.vhost, &step.action).await?;
            locks.created.push((part.vhost.clone(), step.clone()));
        }
        let holder = Holder::new(connection::holder());
        let is_told = Cell::new(false);
        let wait = |holder: &str| {
            if !is_told.replace(true) {
                waiting.update(&format!("waiting for the lock of vhost {}, held by {holder}", part.vhost));
            }
            interrupt.is_requested()
        };
        let locked = broker.lock(&part.vhost, &queue, (holder, version), arguments.lock_timeout, wait).await;
        locks.held.push(locked.map_err(|error| not_locked(error, &part.vhost, &queue, interrupt))?);
    }
    drop(waiting);
    Ok(())
}

fn not_locked(error: BrokerError, vhost: &VhostName, queue: &QueueName, interrupt: &Interrupt) -> Failure {
    if let BrokerError::AccessRefused { username, .. } = &error {
        let failure = Failure::failed(error.to_string())
            .because(format!("the lock of an apply is the queue {queue}, which this user may not declare"));
        return rights::permit(vhost.as_str(), username, &Needs::configure(queue.as_str()))
            .into_iter()
            .fold(failure, Failure::hint)
            .hint("or use a name that the user may configure: --lock-name NAME; all applies to this vhost must use the same name");
    }
    let held = matches!(error, BrokerError::LockHeld { .. });
    let failure = Failure::from(error);
    if held && interrupt.is_requested() {
        failure.exit(Exit::Interrupted).because("interrupted while waiting for it; nothing was changed")
    } else {
        failure
    }
}

/// `--lock-name`, unless it is the default.
pub(super) fn name_flag(name: &str) -> String {
    if name == LOCK_QUEUE { String::new() } else { format!(" --lock-name {}", quoted(name)) }
}
