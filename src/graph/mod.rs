//! Builds the graph of a topology or of a plan, without coordinates. Boxes represent exchanges and queues, and arrows
//! represent message paths.
//!
//! Unless [`Options::all`] is set, the box of a queue includes its retries, and the box of a dead-letter queue includes
//! its exchange. A graph that is too large for one page is drawn in groups. [`layout`] computes positions.
//! [`render`](crate::render) adds colors and text.

mod groups;
pub mod layout;
mod parts;
mod raw;
mod retries;
mod stacks;
#[cfg(test)]
mod tests;

pub use parts::{Arrow, ArrowKind, DeadLetters, Graph, Kind, Label, Mark, Node, Retries, Tier, VhostGraph};

use crate::model::{ExchangeName, Object, ObjectId, QueueName, Topology};
use crate::plan::{Desired, PlannedChange, VhostPlan};
use crate::rabbitmq::BrokerProfile;
use raw::Raw;
use retries::Folds;
use std::collections::BTreeSet;

/// The part of a topology to draw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// True to draw every object, including generated objects, without stacks of similar queues.
    pub all: bool,
    /// The queue or exchange whose neighborhood is drawn, or `None` to draw the complete topology.
    pub focus: Option<Focus>,
}

/// A queue or an exchange, and the size of the neighborhood to draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Focus {
    /// The name of the queue or exchange. The name of a tier selects its queue. If a queue and an exchange have this
    /// name, both are selected.
    pub name: String,
    /// The maximum distance in arrows. A queue and its retries count as one box.
    pub depth: usize,
}

/// Builds the graph of a spec. Returns `None` if the object in focus does not exist.
pub fn of_spec(desired: &Desired, profile: &BrokerProfile, options: &Options) -> Option<VhostGraph> {
    let mut raw = Raw::of(desired, profile);
    retries::mark_retries(&mut raw, &retries::manual_retry_queues(desired, profile), &BTreeSet::new());
    draw(raw, desired, &[], options)
}

/// Builds the graph of a plan, with a mark on each object that the plan creates, changes, recreates or deletes, or that
/// is in conflict. Returns `None` if the object in focus does not exist.
pub fn of_plan(plan: &VhostPlan, profile: &BrokerProfile, options: &Options) -> Option<VhostGraph> {
    let before = Desired { topology: original_topology(plan), ..(*plan.desired).clone() };
    let mut raw =
        Raw::merge(&Raw::before(&before, &plan.desired, profile), Raw::of(&plan.desired, profile), &plan.changes);
    retries::mark_retries(
        &mut raw,
        &retries::manual_retry_queues(&plan.desired, profile),
        &retries::manual_retry_queues(&before, profile),
    );
    let mut graph = draw(raw, &plan.desired, &plan.changes, options)?;
    let of_vhost = plan.changes.iter().find(|change| change.id() == Some(ObjectId::Vhost));
    graph.mark = of_vhost.map(|change| Mark::of(change.kind));
    Some(graph)
}

fn draw(raw: Raw, desired: &Desired, changes: &[PlannedChange], options: &Options) -> Option<VhostGraph> {
    let folds = retries::find_folds(&raw, desired, changes);
    let folded = retries::fold(&raw, &folds, desired, changes);
    let near = match &options.focus {
        Some(focus) => Some(neighborhood(&folded, &folds, focus)?),
        None => None,
    };
    let is_near = |id: &ObjectId| near.as_ref().is_none_or(|near| near.contains(folds.get(id).unwrap_or(id)));
    let shown = if options.all { raw } else { folded };
    let shown = shown.retain(is_near);
    let shown = stacks::separate_groups(if options.all { shown } else { stacks::stack_similar(shown) });
    Some(shown.into_graph(desired.topology.vhost.clone()))
}

/// Returns the boxes in the neighborhood of the focus, or `None` if no box represents an object with the name of the
/// focus.
fn neighborhood(folded: &Raw, folds: &Folds, focus: &Focus) -> Option<BTreeSet<ObjectId>> {
    let named: [ObjectId; 2] =
        [ObjectId::Queue(QueueName::new(&focus.name)), ObjectId::Exchange(ExchangeName::new(&focus.name))];
    let drawn = named.iter().map(|id| folds.get(id).unwrap_or(id)).filter(|id| folded.nodes.contains_key(*id));
    let mut near: BTreeSet<&ObjectId> = drawn.collect();
    (!near.is_empty()).then_some(())?;
    let neighbors = folded.neighbors();
    let mut edge = near.clone();
    for _ in 0..focus.depth {
        let next: BTreeSet<&ObjectId> = edge.iter().filter_map(|id| neighbors.get(id)).flatten().copied().collect();
        edge = next.difference(&near).copied().collect();
        if edge.is_empty() {
            break;
        }
        near.extend(&edge);
    }
    Some(near.into_iter().cloned().collect())
}

/// Returns the topology before a plan: the desired topology with every change of the plan reverted.
fn original_topology(plan: &VhostPlan) -> Topology {
    let mut topology = plan.desired.topology.clone();
    for change in &plan.changes {
        if let Some(id) = change.after.as_ref().map(Object::id) {
            remove(&mut topology, &id);
        }
        match change.before.clone() {
            Some(Object::Exchange(name, exchange)) => drop(topology.exchanges.insert(name, exchange)),
            Some(Object::Policy(name, policy)) => drop(topology.policies.insert(name, policy)),
            Some(Object::Queue(name, queue)) => drop(topology.queues.insert(name, queue)),
            Some(Object::Binding(binding)) => drop(topology.bindings.insert(binding)),
            Some(Object::Record(record)) => drop(topology.records.insert(record.id.clone(), record)),
            Some(Object::Vhost(_)) | None => {}
        }
        topology.bindings.extend(change.unbound.iter().cloned());
    }
    topology
}

fn remove(topology: &mut Topology, id: &ObjectId) {
    match id {
        ObjectId::Vhost => {}
        ObjectId::Exchange(name) => drop(topology.exchanges.remove(name)),
        ObjectId::Policy(name) => drop(topology.policies.remove(name)),
        ObjectId::Queue(name) => drop(topology.queues.remove(name)),
        ObjectId::Binding(binding) => drop(topology.bindings.remove(binding)),
        ObjectId::Record(id) => drop(topology.records.remove(id)),
    }
}
