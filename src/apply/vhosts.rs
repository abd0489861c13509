//! Executes an approved plan in its vhosts, several concurrently, and selects the transports for their messages.

use super::execute::{CONCURRENCY, Progress, apply};
use super::locks::Locks;
use super::migrate::ApplyResources;
use super::{Report, RunError, RunEvent, RunRequest};
use crate::broker::Access;
use crate::broker::transport::Transport;
use crate::model::{BrokerVersion, VhostName};
use crate::plan::{ApprovedPlan, Plan, VhostPlan};
use futures_util::stream::{self, StreamExt};
use std::cell::Cell;

/// The number of vhosts that are changed concurrently. A vhost with few objects spends most of the time waiting.
const CONCURRENT_VHOSTS: usize = 4;

/// Returns the transports of all vhosts in which a plan moves messages.
pub(super) async fn transports(access: &Access, plan: &Plan) -> Result<Vec<(VhostName, Transport)>, RunError> {
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

/// Executes the steps of all vhosts. After a failure, no further vhost is started.
pub(super) async fn execute(
    request: &RunRequest<'_>,
    approved: &ApprovedPlan,
    locks: &Locks,
    transports: &[(VhostName, Transport)],
    observe: &dyn Fn(RunEvent<'_>),
) -> Vec<Report> {
    let RunRequest { interrupt, options, .. } = request;
    let stopped = Cell::new(false);
    let parts: Vec<&VhostPlan> = approved.plan().vhosts.iter().filter(|part| !part.steps.is_empty()).collect();
    // A migration keeps messages in memory, and several of one vhost already run concurrently.
    let has_migrations = parts.iter().any(|part| !part.migrations.is_empty());
    let concurrent_vhosts = if has_migrations { 1 } else { parts.len().clamp(1, CONCURRENT_VHOSTS) };
    let concurrency = CONCURRENCY / concurrent_vhosts;
    let notify = |progress: Progress<'_>| observe(RunEvent::Step(progress));
    let one = async |part: &VhostPlan| {
        let lock = locks.of(&part.vhost);
        let report = match lock.filter(|_| !stopped.get() && !interrupt.is_requested()) {
            Some(lock) => {
                let transport =
                    transports.iter().find(|(vhost, _)| *vhost == part.vhost).map(|(_, transport)| transport);
                let resources = ApplyResources { concurrency, transport, drain_timeout: options.drain_timeout };
                apply(part, lock, interrupt, resources, notify).await
            }
            None => {
                let mut report = Report::new(part.vhost.clone());
                report.not_attempted.clone_from(&part.steps);
                report.interrupted = interrupt.is_requested();
                report
            }
        };
        // Vhosts that have started are completed, because each vhost is independent.
        stopped.set(stopped.get() || !report.is_complete());
        report
    };
    stream::iter(parts.into_iter().map(one)).buffered(concurrent_vhosts).collect().await
}
