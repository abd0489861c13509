//! Orders the steps of a plan. [`steps`] documents the complete order, with the reason for each edge.
//!
//! A wave is a set of steps that may run concurrently, except that the steps of one migration run in sequence. Each
//! wave starts after the previous wave is complete. The layout simulates each step ([`super::simulate::perform`]),
//! because the deletion of an object also deletes its bindings.

mod deletions;
mod layout;
mod recreates;

use super::action::Action;
use super::changes_by_kind::{ChangesByKind, PlanBuilder};
use super::context::PlanContext;
use super::document::{Options, Step};
use super::retries;
use super::wiring::dead_letter_exchanges;
use crate::model::{Binding, Object, ObjectId, Policy, PolicyName, naming};
use deletions::Moment;
use layout::Layout;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the steps of all changes that are not conflicts.
///
/// | stage | comes after | because |
/// |---|---|---|
/// | 1. vhost | | the vhost contains all other objects |
/// | 2. users, raised limits | vhost | later steps may require them |
/// | 3. exchanges, alternates first | vhost | an exchange without its alternate drops unroutable messages |
/// | 4. upstreams, policies, other records | exchanges | a policy may reference an exchange or an upstream |
/// | 5. queues | policies, exchanges | policies and dead-lettering apply to a new queue from the start |
/// | 6. interrupted recreations | queues | restored bindings may route to new queues |
/// | 7. bindings of dead-letter exchanges | queues | a message may be rejected as soon as a queue is bound or wired |
/// | 8. tier switches | stage 7 | a retry key routes to its new tier before the old tier is retired |
/// | 9. deletions of bindings that match messages after their first failure | stage 8 | such bindings would divert messages |
/// | 10. policies that wire existing queues | stages 7 to 9 | the first dead-lettered message requires a route |
/// | 11. migrations and recreations | policies, stage 7 | the new queue has its final settings and dead-letter routes |
/// | 12. other bindings | recreations | a recreated queue receives messages only when it is complete |
/// | 13. replacements of retired tiers | other bindings | without the tiers, rejected messages need a complete route |
/// | 14. permissions, shovels | creations, changes | all objects exist; a deleted shovel cannot redeclare its queue |
/// | 15. deletions of bindings | other bindings | messages have a route at all times |
/// | 16. deletions of objects | deletions of bindings | no messages are routed to an object when it is deleted |
/// | 17. lowered limits, deleted records, password of the connected user | deletions of objects | usage must be below a lowered limit |
/// | 18. restored exchanges | all deletions | deleting the last binding of an auto-delete exchange also deletes the exchange |
///
/// A rollback (`--abort`) contains only stage 11.
pub(super) fn steps(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) -> Vec<Step> {
    let mut changes = ChangesByKind::group(&builder.changes);
    let mut layout = Layout {
        context,
        steps: Vec::with_capacity(builder.changes.len()),
        wave: 0,
        created_by: BTreeMap::new(),
        bound_to: BTreeMap::new(),
        state: Cow::Borrowed(context.current),
        auto_deleted: Vec::new(),
        undesired: deletions::bindings_to_delete(builder),
    };
    if !options.abort.is_empty() {
        layout.migrate(builder);
        return layout.steps;
    }
    let recreated: BTreeSet<ObjectId> = changes.recreates.iter().map(Object::id).collect();
    let (wiring, policies) = split_policies(std::mem::take(&mut changes.policies), context, &recreated);
    let switches = retries::switches(builder);
    let final_bindings = retries::final_bindings(builder, context);

    // 1 and 2
    if let Some(vhost) = changes.vhost {
        layout.wave(|layout| layout.push(Action::PutVhost { vhost }, None));
    }
    layout.records(&builder.changes, Moment::WithVhost);
    // 3 and 4
    layout.exchanges(&changes.exchanges);
    layout.records(&builder.changes, Moment::BeforePolicies);
    layout.policies(policies);
    layout.records(&builder.changes, Moment::WithPolicies);
    // 5. If a migrated queue no longer exists, its migration declares the queue.
    changes.queues.retain(|name, _| !builder.migrations.iter().any(|migration| migration.queue == *name));
    layout.queues(changes.queues);
    // 6
    layout.complete_interrupted_recreations(builder, options);
    // 7
    let dead_letter_exchanges = dead_letter_exchanges(&context.desired.topology, &context.desired.scope.families);
    let is_first = |binding: &&Binding| {
        dead_letter_exchanges.contains(&binding.source)
            && !recreated.iter().any(|id| binding.involves(id))
            && !switches.iter().any(|switch| switch.new == **binding)
            && !final_bindings.after_wiring.contains(*binding)
    };
    layout.bindings(changes.bindings.iter().filter(is_first));
    // 8, 9 and 10
    layout.switches(&switches);
    layout.wave(|layout| final_bindings.before_wiring.iter().for_each(|binding| layout.unbind_one(binding)));
    layout.policies(wiring);
    // 11
    layout.migrate(builder);
    let is_migrated = |object: &Object| {
        builder.migrations.iter().any(|migration| object.id() == ObjectId::Queue(migration.queue.clone()))
    };
    changes.recreates.retain(|object| !is_migrated(object));
    for object in &changes.recreates {
        layout.recreate(object, &mut changes.bindings);
    }
    // 12 and 13
    layout.bindings(&changes.bindings);
    layout.bindings(&final_bindings.instead_of_tiers);
    // 14
    layout.records(&builder.changes, Moment::AfterObjects);
    // 15, 16 and 17
    layout.wave(Layout::unbind);
    layout.deletions(&changes.deletions, &deletions::retired_objects(builder));
    layout.records(&builder.changes, Moment::Last);
    // 18
    layout.restore_auto_deleted();
    layout.steps
}

type NewPolicies = BTreeMap<PolicyName, Policy>;

/// Splits policies into policies that wire existing queues and all other policies. A policy that wires an existing
/// queue takes effect immediately.
fn split_policies(
    policies: NewPolicies,
    context: &PlanContext<'_>,
    recreated: &BTreeSet<ObjectId>,
) -> (NewPolicies, NewPolicies) {
    policies.into_iter().partition(|(name, _)| {
        let queue = naming::queue_of_dead_letter_policy(name);
        queue.is_some_and(|queue| {
            context.current.queues.contains_key(&queue) && !recreated.contains(&ObjectId::Queue(queue))
        })
    })
}
