//! Checks a plan before topo shows it: simulates its steps on a topology in memory, and verifies that the result is the
//! desired topology.

use super::action::Action;
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, Options, Step, VhostPlan};
use super::verdict::{Verdict, verdict};
use super::{auto_delete, deletions, keeps, lockout};
use crate::diff::{Change, DeleteReason, diff};
use crate::model::{Address, Binding, Destination, ExchangeName, ObjectId, Topology};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Returns the topology after these steps. The error describes the first step that is not possible.
pub(super) fn run<'a>(current: &'a Topology, steps: &[Step]) -> Result<Cow<'a, Topology>, String> {
    let mut state = Cow::Borrowed(current);
    for step in steps {
        perform(state.to_mut(), &step.action).map_err(|why| format!("step {} ({}): {why}", step.id, step.address))?;
    }
    Ok(state)
}

/// Returns the topology of a vhost after its plan.
///
/// # Errors
/// Returns the reason why topo cannot execute a step.
pub fn topology_after(current: &Topology, plan: &VhostPlan) -> Result<Topology, String> {
    run(current, &plan.steps).map(Cow::into_owned)
}

/// Changes the topology as the broker would. Returns the exchanges that the broker deletes because their last
/// binding is deleted, each with the bindings to that exchange. The error is the reason why the action is not possible.
pub(super) fn perform(state: &mut Topology, action: &Action) -> Result<Vec<(ExchangeName, BTreeSet<Binding>)>, String> {
    match action {
        Action::PutVhost { vhost } => state.settings = Some(vhost.clone()),
        // Ignores the bindings in the action: the broker creates them in the same request only for an administrator.
        // For other users, later steps create the bindings.
        Action::DeclareExchange { name, exchange, bindings: _ } => {
            if state.exchanges.insert(name.clone(), exchange.clone()).is_some() {
                return Err(format!("exchange {name} already exists"));
            }
        }
        Action::PutPolicy { name, policy } => {
            state.policies.insert(name.clone(), policy.clone());
        }
        Action::DeclareQueue { name, queue } => {
            if state.queues.insert(name.clone(), queue.clone()).is_some() {
                return Err(format!("queue {name} already exists"));
            }
        }
        Action::Bind { binding } => {
            state.bindings.insert(binding.clone());
        }
        Action::Unbind { binding, .. } => return Ok(unbind(state, vec![binding.clone()])),
        Action::DeleteQueue { name, .. } => {
            state.queues.remove(name).ok_or_else(|| format!("queue {name} does not exist"))?;
            let lost = auto_delete::matching_bindings(&state.bindings, |binding| binding.leads_to_queue(name));
            return Ok(unbind(state, lost));
        }
        Action::DeleteExchange { name } => {
            state.exchanges.remove(name).ok_or_else(|| format!("exchange {name} does not exist"))?;
            let lost = auto_delete::matching_bindings(&state.bindings, |binding| binding.touches_exchange(name));
            return Ok(unbind(state, lost));
        }
        Action::PutTopicPermission { .. } | Action::MoveMessages { .. } => {}
        Action::PutRecord { record, .. } => drop(state.records.insert(record.id.clone(), record.clone())),
        Action::DeleteRecord { id } => drop(state.records.remove(id).ok_or_else(|| format!("{id} does not exist"))?),
        Action::DeletePolicy { name } => {
            state.policies.remove(name).ok_or_else(|| format!("policy {name} does not exist"))?;
        }
    }
    Ok(Vec::new())
}

fn unbind(state: &mut Topology, lost: Vec<Binding>) -> Vec<(ExchangeName, BTreeSet<Binding>)> {
    let Topology { bindings, exchanges, .. } = state;
    let deleted =
        auto_delete::unbind(bindings, lost, |name| exchanges.get(name).is_some_and(|exchange| exchange.auto_delete));
    for (name, _) in &deleted {
        exchanges.remove(name);
    }
    deleted
}

/// Blocks the plan if its steps would not produce the desired topology, which would be a defect in topo. Does not check
/// plans with targets or conflicts.
pub(super) fn check(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options, steps: &[Step]) {
    if !options.targets.is_empty() || builder.changes.iter().any(|change| change.kind == ChangeKind::Conflict) {
        return;
    }
    let blocked: BTreeSet<Address> = builder.blocks.iter().map(|block| block.address.clone()).collect();
    let left = match run(context.current, steps) {
        Ok(after) => remaining_differences(&after, context, options, &builder.undesired_bindings())
            .into_iter()
            .filter(|id| !is_blocked(context, &blocked, id))
            .map(|id| context.address(&id).to_string())
            .collect::<Vec<_>>(),
        Err(why) => vec![why],
    };
    if !left.is_empty() {
        let address = context.address(&ObjectId::Vhost);
        let text =
            format!("defect in topo: this plan would not produce the topology in the spec ({})", left.join(", "));
        builder.block(
            &address,
            text,
            Some("report this defect with the output of `topo plan --format json`".to_owned()),
        );
    }
}

/// Returns true if the plan already contains a block for the object or, if the object is a binding, for its source or
/// destination.
fn is_blocked(context: &PlanContext<'_>, blocked: &BTreeSet<Address>, id: &ObjectId) -> bool {
    let is_blocked = |id: &ObjectId| blocked.contains(&context.address(id));
    is_blocked(id)
        || match id {
            ObjectId::Binding(binding) => {
                is_blocked(&ObjectId::Exchange(binding.source.clone()))
                    || is_blocked(&match &binding.destination {
                        Destination::Queue(name) => ObjectId::Queue(name.clone()),
                        Destination::Exchange(name) => ObjectId::Exchange(name.clone()),
                    })
            }
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Queue(_)
            | ObjectId::Record(_) => false,
        }
}

/// Returns the objects that would still differ after the steps, the bindings that would be lost, and the keeps that
/// would be left behind. Does not include differences that a plan only reports.
fn remaining_differences(
    after: &Topology,
    context: &PlanContext<'_>,
    options: &Options,
    undesired: &BTreeSet<Binding>,
) -> Vec<ObjectId> {
    let desired = context.desired;
    let mut left: Vec<ObjectId> = diff(after, &desired.topology, &desired.scope)
        .into_iter()
        .filter(|change| match change {
            Change::Create(_) => true,
            Change::Alter { before, after, fields } => fields.iter().any(|field| {
                !matches!(verdict(field, before, after, context.profile), Verdict::Equal | Verdict::Unknown)
            }),
            Change::Delete { object, reason } => {
                let id = object.id();
                let is_kept =
                    lockout::belongs_to_this_user(context, &id) || deletions::has_declared_permissions(context, &id);
                let is_pruned = options.prune.contains(&id.kind()) && !is_kept;
                !desired.scope.protects_object(&id)
                    && !context.is_untouchable(&id)
                    && !context.is_undeletable(&id)
                    && (matches!(reason, DeleteReason::Removed | DeleteReason::Unset) || is_pruned)
            }
        })
        .map(|change| change.id())
        .collect();
    // A binding must remain unless its deletion was requested.
    let lost = context.current.bindings.iter().filter(|binding| {
        let is_requested =
            undesired.contains(*binding) || spec_removes(context, binding) || !ends_exist(after, binding);
        !is_requested && !after.bindings.contains(*binding)
    });
    left.extend(lost.cloned().map(ObjectId::Binding));
    left.extend(
        after
            .exchanges
            .iter()
            .filter(|(_, exchange)| keeps::read_keep(exchange).is_some())
            .filter(|(name, _)| !context.current.exchanges.contains_key(*name))
            .map(|(name, _)| ObjectId::Exchange(name.clone())),
    );
    left
}

fn spec_removes(context: &PlanContext<'_>, binding: &Binding) -> bool {
    let desired = context.desired;
    let id = ObjectId::Binding(binding.clone());
    desired.scope.removed.contains(&id)
        || desired.scope.owns(binding.destination.name()) && !desired.topology.bindings.contains(binding)
}

fn ends_exist(after: &Topology, binding: &Binding) -> bool {
    let exchange = |name: &ExchangeName| name.is_predeclared() || after.exchanges.contains_key(name);
    exchange(&binding.source)
        && match &binding.destination {
            Destination::Queue(name) => after.queues.contains_key(name),
            Destination::Exchange(name) => exchange(name),
        }
}
