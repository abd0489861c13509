//! Declares a topology in a scratch vhost, and removes it from a scratch vhost that the user provided.

use super::error::LiveError;
use super::preparation::Preparation;
use crate::apply::{self, Interrupt, RunError, RunOptions, RunRequest};
use crate::broker::{Access, BrokerError};
use crate::model::{Binding, Desired, Destination, ExchangeName, Topology, VhostName};
use crate::plan::{Action, Allowance, Guard, HazardKind, Options, Plan, blockers_of};
use std::cell::Cell;
use std::sync::Arc;

/// Declares the topology. The vhost must exist and be empty. An interruption ends the declaration once the requests in
/// progress are complete. Sets `has_declared` if objects may have been declared.
///
/// # Errors
/// The broker refused an object or could not be reached, the plan is blocked, another run is using the vhost, or the
/// run was interrupted.
pub(super) async fn declare(
    access: &Access,
    vhost: &VhostName,
    template: &Desired,
    (interrupt, has_declared): (&Interrupt, &Cell<bool>),
) -> Result<(), LiveError> {
    let mut desired = template.clone();
    desired.topology.vhost = vhost.clone();
    let found = read(access, vhost).await?;
    // Another run may have declared its topology since the vhost was checked.
    if !is_empty(&found) {
        return Err(LiveError::InUse(vhost.clone()));
    }
    // Keeps the settings of the vhost.
    desired.topology.settings = found.settings;
    let desired = [Arc::new(desired)];
    let plan = apply::plan(access, &desired, &Options::default()).await?;
    // The vhost contains no messages, so all hazards are allowed.
    let allow = |hazard| Allowance { hazard, addresses: None, messages: None };
    let allowed: Vec<Allowance> = HazardKind::ALL.into_iter().map(allow).collect();
    let not_declared = |reasons| LiveError::NotDeclared { vhost: vhost.clone(), reasons };
    let blockers = blockers_of(&plan, &allowed);
    if !blockers.is_empty() {
        return Err(not_declared(blockers.blocks.iter().map(|block| block.text.clone()).collect()));
    }
    let options = RunOptions::default();
    let request = RunRequest {
        access,
        desired: &desired,
        reviewed: &plan,
        allowed: &allowed,
        backup: None,
        interrupt,
        options: &options,
    };
    let outcome = apply::run(&request, &|_| {}).await.map_err(|failure| match failure.error {
        RunError::Stale(_) | RunError::Broker(BrokerError::LockHeld { .. }) => LiveError::InUse(vhost.clone()),
        RunError::LockInterrupted(_) => LiveError::Interrupted,
        error @ (RunError::Broker(_)
        | RunError::LockRefused { .. }
        | RunError::Blocked(_)
        | RunError::Backup(_)
        | RunError::NoTransport(_)
        | RunError::UnsafeTransport(_)) => not_declared(vec![error.to_string()]),
    })?;
    // If the executed plan has fewer steps, another run has declared the same topology since this plan was created.
    let steps = |plan: &Plan| plan.parts().map(|part| part.steps.len()).sum::<usize>();
    if steps(outcome.plan.plan()) < steps(&plan) {
        return Err(LiveError::InUse(vhost.clone()));
    }
    has_declared.set(true);
    if interrupt.is_requested() {
        return Err(LiveError::Interrupted);
    }
    let failed = outcome.reports.iter().flat_map(|report| &report.failed);
    let reasons: Vec<String> = failed.map(|failed| failed.error.to_string()).collect();
    if reasons.is_empty() { Ok(()) } else { Err(not_declared(reasons)) }
}

/// Checks that a vhost that the user provided contains no objects except the predeclared exchanges.
///
/// # Errors
/// The vhost does not exist, contains objects, or could not be read.
pub async fn expect_empty(access: &Access, vhost: &VhostName) -> Result<(), LiveError> {
    let found = read(access, vhost).await?;
    if found.settings.is_none() && found.exchanges.is_empty() {
        return Err(LiveError::NoVhost(vhost.clone()));
    }
    if is_empty(&found) { Ok(()) } else { Err(LiveError::NotEmpty(vhost.clone())) }
}

async fn read(access: &Access, vhost: &VhostName) -> Result<Topology, LiveError> {
    let snapshots = access.broker.read(std::slice::from_ref(vhost)).await?;
    let found = snapshots.into_iter().next().map(|snapshot| snapshot.topology);
    Ok(found.unwrap_or_else(|| Topology::missing(vhost.clone())))
}

/// Returns true if the vhost contains no object that affects the cases.
fn is_empty(found: &Topology) -> bool {
    found.queues.is_empty()
        && found.bindings.is_empty()
        && found.policies.is_empty()
        && found.operator_policies().is_empty()
        && found.exchanges.keys().all(ExchangeName::is_predeclared)
}

/// Deletes the objects that a run declared in a vhost.
///
/// # Errors
/// The broker refused a request or could not be reached.
pub async fn clear(access: &Access, vhost: &VhostName, preparation: &Preparation) -> Result<(), LiveError> {
    let snapshots = access.broker.read(std::slice::from_ref(vhost)).await?;
    let Some(snapshot) = snapshots.into_iter().next() else { return Ok(()) };
    let (found, declared) = (snapshot.topology, &preparation.desired.topology);
    // Only bindings between predeclared exchanges need an unbind step. The broker deletes all other bindings together
    // with their exchange or queue.
    let needs_unbind = |binding: &&Binding| {
        let is_predeclared = |exchange: &ExchangeName| exchange.is_predeclared();
        let is_to_predeclared = match &binding.destination {
            Destination::Exchange(exchange) => is_predeclared(exchange),
            Destination::Queue(_) => false,
        };
        is_to_predeclared && is_predeclared(&binding.source) && declared.bindings.contains(*binding)
    };
    let unbind = found.bindings.iter().filter(needs_unbind).flat_map(|binding| {
        let keys = snapshot.properties_keys.get(binding).into_iter().flatten();
        keys.map(|key| Action::Unbind { binding: binding.clone(), properties_key: key.clone() })
    });
    let unbind: Vec<Action> = unbind.collect();
    let queues = found.queues.into_keys().filter(|name| declared.queues.contains_key(name));
    let queues = queues.map(|name| Action::DeleteQueue { name, guard: Guard::Nothing });
    let exchanges = found.exchanges.into_keys().filter(|name| declared.exchanges.contains_key(name));
    let exchanges = exchanges.filter(|name| !name.is_predeclared()).map(|name| Action::DeleteExchange { name });
    let policies = found.policies.into_keys().filter(|name| declared.policies.contains_key(name));
    let policies = policies.map(|name| Action::DeletePolicy { name });
    let records = found.records.into_keys().filter(|id| declared.records.contains_key(id));
    let records = records.map(|id| Action::DeleteRecord { id });
    for action in unbind.into_iter().chain(queues).chain(exchanges).chain(policies).chain(records) {
        access.broker.perform(vhost, &action).await?;
    }
    Ok(())
}
