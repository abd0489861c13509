//! Builds the graph of a topology or of a plan, without coordinates: boxes for exchanges and queues, arrows for the
//! paths of messages.
//!
//! Retries are part of the box of their queue, and the exchange of a dead-letter queue is part of that queue, unless
//! [`Options::all`] is set. A graph that is too large for one page is drawn in groups. [`layout`] computes positions;
//! [`render`](crate::render) adds colors and texts.

mod fold;
mod groups;
pub mod layout;
mod manual_retries;
mod original_topology;
mod parts;
mod raw;
mod stacks;
#[cfg(test)]
mod tests;

pub use fold::Focus;
pub use parts::{Arrow, ArrowKind, DeadLetters, Graph, Kind, Label, Mark, Node, Retries, Tier, VhostGraph};

use crate::model::ObjectId;
use crate::plan::{ChangeKind, Desired, VhostPlan};
use crate::rabbitmq::BrokerProfile;
use raw::Raw;
use std::collections::BTreeSet;

/// The part of a topology to draw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Draws every object, including the generated ones, and does not stack similar queues.
    pub all: bool,
    /// Draws only the neighborhood of a queue or an exchange.
    pub focus: Option<Focus>,
}

/// Builds the graph of a spec. Returns `None` if the object of the focus does not exist.
pub fn of_spec(desired: &Desired, profile: &BrokerProfile, options: &Options) -> Option<VhostGraph> {
    let mut raw = Raw::of(desired, profile);
    manual_retries::mark_retries(&mut raw, &manual_retries::queues(desired, profile), &BTreeSet::new());
    draw(raw, desired, &[], options)
}

/// Builds the graph of a plan, with marks on the objects that the plan creates, changes or deletes.
pub fn of_plan(plan: &VhostPlan, profile: &BrokerProfile, options: &Options) -> Option<VhostGraph> {
    let before = Desired { topology: original_topology::topology(plan), ..(*plan.desired).clone() };
    let mut raw =
        Raw::merge(&Raw::before(&before, &plan.desired, profile), Raw::of(&plan.desired, profile), &plan.changes);
    manual_retries::mark_retries(
        &mut raw,
        &manual_retries::queues(&plan.desired, profile),
        &manual_retries::queues(&before, profile),
    );
    let mut graph = draw(raw, &plan.desired, &plan.changes, options)?;
    let of_vhost = plan.changes.iter().find(|change| change.id() == Some(ObjectId::Vhost));
    graph.mark = of_vhost.map(|change| Mark::of(change.kind));
    Some(graph)
}

fn draw(raw: Raw, desired: &Desired, changes: &[crate::plan::PlannedChange], options: &Options) -> Option<VhostGraph> {
    let folds = fold::find_folds(&raw, desired, changes);
    let folded = fold::fold(&raw, &folds, desired, changes);
    let near = match &options.focus {
        Some(focus) => Some(fold::near(&folded, &folds, focus)?),
        None => None,
    };
    let is_near = |id: &ObjectId| near.as_ref().is_none_or(|near| near.contains(folds.get(id).unwrap_or(id)));
    let shown = if options.all { raw } else { folded };
    let shown = shown.only(is_near);
    let shown = stacks::separate_groups(if options.all { shown } else { stacks::stack_similar(shown) });
    Some(shown.into_graph(desired.topology.vhost.clone()))
}

impl Mark {
    /// Returns the mark for a change of this kind.
    fn of(kind: ChangeKind) -> Self {
        match kind {
            ChangeKind::Create => Self::Created,
            ChangeKind::Change => Self::Changed,
            ChangeKind::Recreate => Self::Recreated,
            ChangeKind::Delete => Self::Deleted,
            ChangeKind::Conflict => Self::Conflict,
        }
    }
}
