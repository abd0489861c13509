//! Declares a topology in a scratch vhost, and removes it from a scratch vhost that the user provided.

use super::error::LiveError;
use crate::apply::{self, Interrupt, RunOptions, RunRequest};
use crate::broker::Access;
use crate::model::{Desired, ExchangeName, VhostName};
use crate::plan::{Action, Allowance, Guard, HazardKind, Options, blockers_of};
use std::sync::Arc;

/// Declares the topology. The vhost must exist and be empty.
///
/// # Errors
/// The broker refuses an object, or could not be reached.
pub(super) async fn declare(access: &Access, vhost: &VhostName, template: &Desired) -> Result<(), LiveError> {
    let mut desired = template.clone();
    desired.topology.vhost = vhost.clone();
    // The settings of the vhost stay as they are.
    let snapshots = access.broker.read(std::slice::from_ref(vhost)).await?;
    desired.topology.settings = snapshots.into_iter().next().and_then(|snapshot| snapshot.topology.settings);
    let desired = [Arc::new(desired)];
    let plan = apply::plan(access, &desired, &Options::default()).await?;
    // The vhost contains no messages.
    let allow = |hazard| Allowance { hazard, addresses: None, messages: None };
    let allowed: Vec<Allowance> = HazardKind::ALL.into_iter().map(allow).collect();
    let blockers = blockers_of(&plan, &allowed);
    if !blockers.is_empty() {
        let reasons = blockers.blocks.iter().map(|block| block.text.clone()).collect();
        return Err(LiveError::NotDeclared { vhost: vhost.clone(), reasons });
    }
    let request = RunRequest {
        access,
        desired: &desired,
        reviewed: &plan,
        allowed: &allowed,
        backup: None,
        interrupt: &Interrupt::default(),
        options: &RunOptions::default(),
    };
    let outcome = apply::run(&request, &|_| {})
        .await
        .map_err(|failure| LiveError::NotDeclared { vhost: vhost.clone(), reasons: vec![failure.error.to_string()] })?;
    let failed = outcome.reports.iter().flat_map(|report| &report.failed);
    let reasons: Vec<String> = failed.map(|failed| failed.error.to_string()).collect();
    if reasons.is_empty() { Ok(()) } else { Err(LiveError::NotDeclared { vhost: vhost.clone(), reasons }) }
}

/// Checks that the vhost contains no objects except the predeclared exchanges.
///
/// # Errors
/// The vhost does not exist, contains objects, or could not be read.
pub async fn expect_empty(access: &Access, vhost: &VhostName) -> Result<(), LiveError> {
    let snapshots = access.broker.read(std::slice::from_ref(vhost)).await?;
    let Some(topology) = snapshots.first().map(|snapshot| &snapshot.topology) else {
        return Err(LiveError::NoVhost(vhost.clone()));
    };
    if topology.settings.is_none() && topology.exchanges.is_empty() {
        return Err(LiveError::NoVhost(vhost.clone()));
    }
    let is_empty = topology.queues.is_empty()
        && topology.bindings.is_empty()
        && topology.policies.is_empty()
        && topology.exchanges.keys().all(ExchangeName::is_predeclared);
    if is_empty { Ok(()) } else { Err(LiveError::NotEmpty(vhost.clone())) }
}

/// Deletes all objects of a vhost that was empty before the run.
///
/// # Errors
/// The broker could not be reached.
pub async fn clear(access: &Access, vhost: &VhostName) -> Result<(), LiveError> {
    let snapshots = access.broker.read(std::slice::from_ref(vhost)).await?;
    for topology in snapshots.into_iter().map(|snapshot| snapshot.topology) {
        let queues = topology.queues.into_keys().map(|name| Action::DeleteQueue { name, guard: Guard::Nothing });
        let exchanges = topology.exchanges.into_keys().filter(|name| !name.is_predeclared());
        let exchanges = exchanges.map(|name| Action::DeleteExchange { name });
        let policies = topology.policies.into_keys().map(|name| Action::DeletePolicy { name });
        let records = topology.records.into_keys().map(|id| Action::DeleteRecord { id });
        for action in queues.chain(exchanges).chain(policies).chain(records) {
            access.broker.perform(vhost, &action).await?;
        }
    }
    Ok(())
}
