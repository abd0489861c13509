//! A topology, or what a plan makes of one, as a picture without coordinates: boxes for exchanges and queues, arrows for
//! the ways that messages take. A queue's retries are part of its box, and a dead-letter queue's exchange is part of the
//! queue, unless all is asked for. What is too much for one page is drawn in groups. [`layout`] says where things are; colours and letters are [`render`](crate::render)'s.

mod alike;
mod by_hand;
mod copies;
mod focus;
mod fold;
mod groups;
mod label;
pub mod layout;
mod original_topology;
mod parts;
mod raw;
#[cfg(test)]
mod tests;

pub use focus::Focus;
pub use parts::{Arrow, ArrowKind, DeadLetters, Graph, Kind, Label, Mark, Node, Retries, Tier, VhostGraph};

use crate::model::ObjectId;
use crate::plan::{ChangeKind, Desired, VhostPlan};
use crate::rabbitmq::BrokerProfile;
use raw::Raw;
use std::collections::BTreeSet;

/// What is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Every object, also those that are made for retries and dead letters, and each of many that are alike.
    pub all: bool,
    /// Only what is near a queue or an exchange.
    pub focus: Option<Focus>,
}

/// The picture of what a spec stands for; `None` where there is a focus, and what it names is not here.
pub fn of_spec(desired: &Desired, profile: &BrokerProfile, options: &Options) -> Option<VhostGraph> {
    let mut raw = Raw::of(desired, profile);
    by_hand::tell_apart(&mut raw, &by_hand::queues(desired, profile), &BTreeSet::new());
    drawn(raw, desired, &[], options)
}

/// The picture of what a plan does: what it makes and deletes is in it, each marked.
pub fn of_plan(plan: &VhostPlan, profile: &BrokerProfile, options: &Options) -> Option<VhostGraph> {
    let before = Desired { topology: original_topology::topology(plan), ..(*plan.desired).clone() };
    let mut raw =
        Raw::changed(&Raw::before(&before, &plan.desired, profile), Raw::of(&plan.desired, profile), &plan.changes);
    by_hand::tell_apart(&mut raw, &by_hand::queues(&plan.desired, profile), &by_hand::queues(&before, profile));
    let mut picture = drawn(raw, &plan.desired, &plan.changes, options)?;
    let of_vhost = plan.changes.iter().find(|change| change.id() == Some(ObjectId::Vhost));
    picture.mark = of_vhost.map(|change| Mark::of(change.kind));
    Some(picture)
}

fn drawn(raw: Raw, desired: &Desired, changes: &[crate::plan::PlannedChange], options: &Options) -> Option<VhostGraph> {
    let folds = fold::folds(&raw, desired, changes);
    let folded = fold::folded(&raw, &folds, desired, changes);
    let near = match &options.focus {
        Some(focus) => Some(focus::near(&folded, &folds, focus)?),
        None => None,
    };
    let is_near = |id: &ObjectId| near.as_ref().is_none_or(|near| near.contains(folds.get(id).unwrap_or(id)));
    let shown = if options.all { raw } else { folded };
    let shown = shown.only(is_near);
    let shown = copies::apart(if options.all { shown } else { alike::stacked(shown) });
    Some(shown.picture(desired.topology.vhost.clone()))
}

impl Mark {
    /// For what shall happen to an object.
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
