//! Runs a reviewed plan: acquires the locks, plans again, checks the new plan, executes its steps and verifies the
//! result. The steps for several vhosts run concurrently.

use super::backup::Backup;
use super::execute::{CONCURRENCY, apply};
use super::locks::Locks;
use super::outcome::{Outcome, Report};
use super::planning::plan;
use super::request::Progress;
use super::request::{ApplyResources, RunError, RunEvent, RunFailure, RunRequest};
use super::returned_consumers::add_returned_consumers;
use super::started_shovels::stopped_shovels;
use crate::broker::transport::Transport;
use crate::broker::{Access, BrokerError};
use crate::model::{Address, BrokerVersion, VhostName};
use crate::plan::fingerprint::{Staleness, staleness};
use crate::plan::{ApprovedPlan, ClusterPlan, Options, Plan, PlannedChange, Step, VhostPlan, gate};
use futures_util::stream::{self, StreamExt};
use std::cell::Cell;
use std::collections::BTreeSet;

/// The maximum number of vhosts that are changed concurrently. With few objects per vhost, a run mostly waits for
/// responses from the broker.
const CONCURRENT_VHOSTS: usize = 4;

/// Runs a reviewed plan under the locks of its vhosts, and reports every event to `observe`.
///
/// Must run inside a tokio runtime. The future is not `Send`. If the future is dropped, steps in progress may or may
/// not complete, and the locks expire within a minute.
///
/// # Errors
/// Returns an error if the run ends before it executes the plan. The run may already have created vhosts
/// ([`RunFailure::created`]). Later failures are part of the [`Outcome`].
pub async fn run(request: &RunRequest<'_>, observe: &dyn Fn(RunEvent<'_>)) -> Result<Outcome, RunFailure> {
    let mut locks = Locks::default();
    observe(RunEvent::Locking);
    let result = match locks.acquire(request, observe).await {
        Ok(()) => run_under_locks(request, &locks, observe).await,
        Err(error) => Err(error),
    };
    let created = || locks.creation_steps().iter().map(|(vhost, _)| vhost.clone()).collect();
    let result = result.map_err(|error| RunFailure { error, created: created() });
    locks.release(observe).await;
    result
}

/// Runs a reviewed plan after the locks have been acquired.
async fn run_under_locks(
    request: &RunRequest<'_>,
    locks: &Locks,
    observe: &dyn Fn(RunEvent<'_>),
) -> Result<Outcome, RunError> {
    observe(RunEvent::Planning);
    let approved = approve(request).await?;
    observe(RunEvent::Approved(&approved));
    if let Some(write) = request.backup
        && let Some(backup) = Backup::read(&request.access.broker, approved.plan()).await?
    {
        write(&backup)?;
    }
    let transports = transports(request.access, approved.plan()).await?;
    observe(RunEvent::Executing(&approved, locks.creation_steps()));
    let mut reports = execute(request, &approved, locks, &transports, observe).await;
    locks.add_creation_steps(&mut reports);
    add_returned_consumers(request, approved.plan(), &mut reports, observe).await;
    let is_complete = reports.iter().all(Report::is_complete);
    // Also reports a signal that arrived after the last step.
    for report in reports.iter_mut().filter(|_| is_complete && request.interrupt.is_requested()) {
        report.is_interrupted = true;
    }
    if is_complete {
        observe(RunEvent::Verifying);
    }
    let left = if is_complete { remaining_differences(request, &reports).await } else { Ok(Vec::new()) };
    let stopped_shovels =
        if is_complete { stopped_shovels(&request.access.broker, &reports).await } else { Vec::new() };
    let requires_consumers = request.options.requires_consumers;
    let outcome = Outcome { plan: approved, reports, left, stopped_shovels, requires_consumers };
    observe(RunEvent::Ended(&outcome));
    Ok(outcome)
}

/// Plans again under the locks. Approves the new plan if it differs from the reviewed plan only in completed steps, and
/// if no blockers remain.
async fn approve(request: &RunRequest<'_>) -> Result<ApprovedPlan, RunError> {
    let now = plan(request.access, request.desired, &request.reviewed.options).await?;
    match staleness(request.reviewed, &now) {
        Staleness::Same | Staleness::Rest => gate(now, request.allowed).map_err(RunError::Blocked),
        Staleness::Stale(news) => Err(RunError::Stale(news)),
    }
}

/// Returns the transport for each vhost in which a plan moves messages. For AMQP transports, verifies that the AMQP and
/// HTTP connections reach the same broker.
async fn transports(access: &Access, plan: &Plan) -> Result<Vec<(VhostName, Transport)>, RunError> {
    let mut transports = Vec::new();
    for part in plan.vhosts.iter().filter(|part| !part.migrations.is_empty()) {
        let version = plan.target.version.parse().unwrap_or(BrokerVersion::NEWEST_KNOWN);
        let transport = access.transport(&part.vhost, version).await.map_err(RunError::NoTransport)?;
        if let (Some(amqp), Some(first)) = (transport.amqp(), part.migrations.first()) {
            let is_same = amqp.expect_same_broker(&access.broker, &first.queue).await;
            is_same.map_err(RunError::UnsafeTransport)?;
        }
        transports.push((part.vhost.clone(), transport));
    }
    Ok(transports)
}

/// Executes the cluster steps, then the steps for all vhosts, and then the deferred cluster steps. After a failure or
/// an interruption, executes no steps for further vhosts and no deferred steps.
async fn execute(
    request: &RunRequest<'_>,
    approved: &ApprovedPlan,
    locks: &Locks,
    transports: &[(VhostName, Transport)],
    observe: &dyn Fn(RunEvent<'_>),
) -> Vec<Report> {
    let RunRequest { interrupt, options, .. } = request;
    let stopped = Cell::new(false);
    let parts: Vec<&VhostPlan> = approved.plan().vhosts.iter().filter(|part| !part.steps.is_empty()).collect();
    // Migrations keep messages in memory, and several migrations of one vhost already run concurrently.
    let has_migrations = parts.iter().any(|part| !part.migrations.is_empty());
    let concurrent_vhosts = if has_migrations { 1 } else { parts.len().clamp(1, CONCURRENT_VHOSTS) };
    let concurrency = CONCURRENCY / concurrent_vhosts;
    let notify = |progress: Progress<'_>| observe(RunEvent::Step(progress));
    let execute_steps = async |part: &VhostPlan, steps: &[Step]| {
        let lock = locks.of(&part.vhost);
        let report = match lock.filter(|_| !stopped.get() && !interrupt.is_requested()) {
            Some(lock) => {
                let transport =
                    transports.iter().find(|(vhost, _)| *vhost == part.vhost).map(|(_, transport)| transport);
                let resources = ApplyResources { concurrency, transport, drain_timeout: options.drain_timeout };
                apply((part, steps), lock, interrupt, resources, notify).await
            }
            None => {
                let mut report = Report::new(part.vhost.clone());
                report.not_attempted = steps.to_vec();
                report.is_interrupted = interrupt.is_requested();
                report
            }
        };
        // After a failure, topo executes no steps for further vhosts. Vhosts in progress continue, because they are
        // independent.
        stopped.set(stopped.get() || !report.is_complete());
        report
    };
    let mut reports = Vec::new();
    let cluster = approved.plan().cluster.as_ref().map(ClusterPlan::part).filter(|part| !part.steps.is_empty());
    let cluster_steps = cluster.map(|cluster| {
        let early = cluster.steps.iter().take_while(|step| !step.is_deferred).count();
        (cluster, cluster.steps.split_at(early))
    });
    if let Some((cluster, (early, _))) = cluster_steps {
        reports.push(execute_steps(cluster, early).await);
    }
    let execute_part = async |part: &VhostPlan| execute_steps(part, &part.steps).await;
    let of_vhosts: Vec<Report> =
        stream::iter(parts.into_iter().map(execute_part)).buffered(concurrent_vhosts).collect().await;
    reports.extend(of_vhosts);
    if let (Some((cluster, (_, deferred @ [_, ..]))), true) = (cluster_steps, !reports.is_empty()) {
        let report = execute_steps(cluster, deferred).await;
        reports[0].merge(report);
    }
    reports
}

/// Returns the objects that still differ after a complete run, except objects whose steps wait for the next run. Reads
/// the broker again, because a 204 response does not prove that the broker executed a request.
async fn remaining_differences(request: &RunRequest<'_>, reports: &[Report]) -> Result<Vec<Address>, BrokerError> {
    let reviewed = &request.reviewed.options;
    // A migration that was rolled back must not be rolled back again.
    let options = Options { abort: BTreeSet::new(), ..reviewed.clone() };
    let after = plan(request.access, request.desired, &options).await?;
    let waiting: Vec<(&VhostName, &Address)> = reports
        .iter()
        .flat_map(|report| report.waiting.iter().map(|waiting| (&report.vhost, &waiting.step.address)))
        .collect();
    let is_unexpected = |vhost: &VhostName, change: &PlannedChange| {
        let mut in_vhost = waiting.iter().filter(|(of, _)| *of == vhost);
        // Retired objects are deleted together with their tiers.
        !in_vhost.any(|(_, address)| change.retires.is_some() || **address == change.address)
    };
    let changes = after.parts().flat_map(|part| part.changes.iter().map(move |change| (&part.vhost, change)));
    let mut left: Vec<Address> = changes
        .filter(|(vhost, change)| is_unexpected(vhost, change))
        .map(|(_, change)| change.address.clone())
        .collect();
    // The executed plan had no blockers, so these blockers are new.
    for block in after.blocks() {
        if !left.contains(&block.address) {
            left.push(block.address.clone());
        }
    }
    let interrupted = after.parts().flat_map(|part| &part.interrupted).map(|note| &note.address);
    left.extend(interrupted.filter(|address| reviewed.abort.contains(address)).cloned());
    Ok(left)
}
