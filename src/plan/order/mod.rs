//! Orders the steps of a plan: exchanges (alternates first), policies, queues, the bindings of dead-letter exchanges,
//! recreates, the other bindings, deletions. Queues come after policies and dead-letter exchanges, so that a new queue
//! is governed and can dead-letter from the start. A changed binding is added before the old one is deleted.
//!
//! The layout tracks bindings, because a deletion also deletes bindings.

mod deletions;
mod layout;
mod recreates;

use super::Action;
use super::changes_by_kind::{ChangesByKind, PlanBuilder};
use super::context::PlanContext;
use super::document::{Options, Step};
use super::retries;
use super::wiring::dead_letter_exchanges;
use crate::model::{Binding, Object, ObjectId, PolicyName, naming};
use deletions::Moment;
use layout::Layout;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the steps of all changes that are not conflicts.
pub(super) fn steps(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) -> Vec<Step> {
    let mut changes = ChangesByKind::sort(&builder.changes);
    let is_abort = !options.abort.is_empty();
    let mut layout = Layout {
        context,
        steps: Vec::with_capacity(builder.changes.len()),
        wave: 0,
        created_by: BTreeMap::new(),
        bound_to: BTreeMap::new(),
        bound: context.current.bindings.clone(),
        exchanges: context.current.exchanges.iter().map(|(name, it)| (name.clone(), it.auto_delete)).collect(),
        auto_deleted: Vec::new(),
        queues: context.current.queues.keys().cloned().collect(),
        undesired: deletions::unbound(builder),
    };
    if is_abort {
        layout.migrate(builder);
        return layout.steps;
    }
    if let Some(vhost) = changes.vhost {
        layout.wave(|layout| layout.push(Action::PutVhost { vhost }, None));
    }
    layout.records(&builder.changes, Moment::WithVhost);
    layout.exchanges(&changes.exchanges);
    let recreated: BTreeSet<ObjectId> = changes.recreates.iter().map(Object::id).collect();
    let wires_live = |name: &PolicyName| {
        let queue = naming::queue_of_dead_letter_policy(name);
        queue.is_some_and(|queue| layout.queues.contains(&queue) && !recreated.contains(&ObjectId::Queue(queue)))
    };
    let (rewiring, policies): (BTreeMap<_, _>, BTreeMap<_, _>) =
        std::mem::take(&mut changes.policies).into_iter().partition(|(name, _)| wires_live(name));
    layout.policies(policies);
    layout.records(&builder.changes, Moment::WithPolicies);
    // The migration of a queue that no longer exists declares it.
    changes.queues.retain(|name, _| !builder.migrations.iter().any(|migration| migration.queue == *name));
    layout.wave(|layout| {
        for (name, queue) in &changes.queues {
            layout.push(Action::DeclareQueue { name: name.clone(), queue: queue.clone() }, None);
        }
    });
    layout.interrupted(builder, options);
    // The bindings of dead-letter exchanges come first: a message can be rejected as soon as a queue is bound, or wired
    // to them.
    let switches = retries::switches(builder);
    let ends = retries::ends(builder, context);
    let dead_letter_exchanges = dead_letter_exchanges(&context.desired.topology, &context.desired.scope.families);
    layout.wave(|layout| {
        let is_first = |binding: &&Binding| {
            dead_letter_exchanges.contains(&binding.source)
                && !recreated.iter().any(|id| binding.involves(id))
                && !switches.iter().any(|switch| switch.new == **binding)
                && !ends.after_wiring.contains(*binding)
        };
        for binding in changes.bindings.iter().filter(is_first) {
            layout.bind(binding, None);
        }
    });
    layout.switches(&switches);
    layout.wave(|layout| ends.before_wiring.iter().for_each(|binding| layout.unbind_one(binding)));
    layout.policies(rewiring);
    layout.migrate(builder);
    let is_migrated = |object: &Object| {
        builder.migrations.iter().any(|migration| object.id() == ObjectId::Queue(migration.queue.clone()))
    };
    changes.recreates.retain(|object| !is_migrated(object));
    for object in &changes.recreates {
        layout.recreate(object, &mut changes.bindings);
    }
    layout.wave(|layout| {
        for binding in &changes.bindings {
            layout.bind(binding, None);
        }
    });
    layout.wave(|layout| ends.instead_of_tiers.iter().for_each(|binding| layout.bind(binding, None)));
    layout.wave(Layout::unbind);
    layout.deletions(&changes.deletions, &deletions::retiring(builder));
    layout.records(&builder.changes, Moment::Last);
    layout.restore_auto_deleted();
    layout.steps
}
