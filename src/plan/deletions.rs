//! Plans the deletion of current objects that the spec does not declare, or reports such objects without deleting them.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, Options, PlannedChange, Unmanaged};
use super::hazard::HazardKind;
use super::{auto_delete, lockout, recreate, retries};
use crate::diff::DeleteReason;
use crate::model::count::number;
use crate::model::{Address, Binding, Destination, ExchangeName, Object, ObjectId, QueueName, RecordId, RecordKind};
use std::collections::{BTreeMap, BTreeSet};

/// The minimum number of owned objects for a `mass-delete` hazard. With fewer objects, even an ordinary plan often
/// deletes a third of the objects.
const MIN_OWNED: usize = 10;
/// The percentage of owned objects above which deleting them is a `mass-delete` hazard.
const MAX_PERCENT: usize = 30;

/// Plans the deletions that the spec or `--prune` requests. Reports most other removals as unmanaged objects, notes or
/// blocks. Silently keeps untouchable objects that the spec does not list under `removed`, and the connected user's own
/// records.
pub(super) fn plan(
    builder: &mut PlanBuilder,
    context: &PlanContext<'_>,
    options: &Options,
    removals: Vec<(Object, DeleteReason)>,
) {
    for (object, reason) in removals {
        let id = object.id();
        let address = context.address(&id);
        if context.untouchable.contains(&id) {
            if reason == DeleteReason::Removed {
                let text = format!(
                    "{id} is exclusive, auto-delete, server-named, or internal to a plugin or topo: topo never changes it"
                );
                builder.block(&address, text, Some("remove it from `removed`".to_owned()));
            }
            continue;
        }
        if is_protected(context, &id) {
            match reason {
                DeleteReason::Removed => builder.block(
                    &address,
                    format!("{id} is both in `removed` and in `protect`"),
                    Some("remove it from one of them".to_owned()),
                ),
                DeleteReason::Unmanaged | DeleteReason::Unset | DeleteReason::Retired => {
                    builder.info(&address, format!("{id} is unmanaged, but protected: topo keeps it"))
                }
            }
            continue;
        }
        if reason == DeleteReason::Unmanaged && lockout::belongs_to_this_user(context, &id) {
            continue;
        }
        if reason == DeleteReason::Unmanaged && !options.prune.contains(&id.kind()) {
            builder.unmanaged.push(Unmanaged { address, object: id });
            continue;
        }
        if reason == DeleteReason::Unmanaged && has_declared_permissions(context, &id) {
            let text =
                format!("{id} is unmanaged, but a vhost document in this run grants it permissions: topo keeps it");
            builder.info(&address, text);
            continue;
        }
        if context.is_undeletable(&id) {
            let text = format!("{id} cannot be deleted over HTTP, because the API misinterprets its key");
            let remedy = match id {
                ObjectId::Record(_) => "delete it with rabbitmqctl",
                ObjectId::Vhost
                | ObjectId::Exchange(_)
                | ObjectId::Policy(_)
                | ObjectId::Queue(_)
                | ObjectId::Binding(_) => "unbind it with an AMQP client",
            };
            match reason {
                DeleteReason::Removed => builder.block(&address, text, Some(remedy.to_owned())),
                DeleteReason::Unmanaged | DeleteReason::Unset | DeleteReason::Retired => {
                    builder.info(&address, format!("{text}: topo keeps it; {remedy}"))
                }
            }
            continue;
        }
        hazards(builder, context, &address, &object);
        let mut planned = context.change(ChangeKind::Delete, Some(object), None);
        planned.live = context.live(&id).cloned();
        planned.reason = Some(reason);
        builder.changes.push(planned);
    }
    add_unbound(builder, context);
}

/// Adds the bindings of each deleted object to the change that deletes the object. The plan's graph shows these
/// bindings.
fn add_unbound(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let deleted = builder.changes.iter().enumerate().filter(|(_, change)| change.kind == ChangeKind::Delete);
    let deleted: BTreeMap<ObjectId, usize> =
        deleted.filter_map(|(index, change)| Some((change.id()?, index))).collect();
    if deleted.is_empty() {
        return;
    }
    for binding in &context.current.bindings {
        // Skips a binding that a separate change deletes.
        if deleted.contains_key(&ObjectId::Binding(binding.clone())) {
            continue;
        }
        let bound = [binding.destination.id(), ObjectId::Exchange(binding.source.clone())];
        if let Some(index) = bound.iter().find_map(|id| deleted.get(id)) {
            builder.changes[*index].unbound.push(binding.clone());
        }
    }
}

/// Returns true for a user to whom a vhost document in the run grants permissions.
pub(super) fn has_declared_permissions(context: &PlanContext<'_>, id: &ObjectId) -> bool {
    let ObjectId::Record(record) = id else { return false };
    let with_permissions = &context.desired.scope.users.with_permissions;
    record.kind == RecordKind::User && record.name().is_some_and(|name| with_permissions.contains(name))
}

fn is_protected(context: &PlanContext<'_>, id: &ObjectId) -> bool {
    context.desired.scope.protects_object(id)
}

fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>, address: &Address, object: &Object) {
    match object {
        Object::Queue(name, queue) => {
            let live = context.live(&ObjectId::Queue(name.clone()));
            recreate::deletion_hazards(builder, address, queue, live);
            tier_hazard(builder, context, address, name);
        }
        Object::Exchange(name, _) => {
            let id = ObjectId::Exchange(name.clone());
            let count = recreate::bindings_of(context, &id).count();
            if count > 0 {
                let text = match count {
                    1 => "its only binding will be deleted with it".to_owned(),
                    _ => format!("its {count} bindings will be deleted with it"),
                };
                builder.hazard(HazardKind::RoutingGap, address, text, None);
            }
        }
        Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) | Object::Record(_) => {}
    }
}

/// Adds a hazard for the messages in a queue's tiers. These messages return to the queue before topo deletes the queue.
fn tier_hazard(builder: &mut PlanBuilder, context: &PlanContext<'_>, address: &Address, name: &QueueName) {
    let own = context.live(&ObjectId::Queue(name.clone())).and_then(|live| live.messages);
    let text = match retries::messages_in_tiers(context, name) {
        Some(0) => return,
        Some(1) => "1 message that is waiting for a retry will return to the queue, and will be deleted with \
                    it"
        .to_owned(),
        Some(waiting) => {
            format!(
                "{} messages that are waiting for a retry will return to the queue, and will be deleted with it",
                number(waiting)
            )
        }
        None => "the broker does not report how many messages are waiting for a retry: all will be deleted with \
                 it"
        .to_owned(),
    };
    let all = retries::messages_in_tiers(context, name).zip(own).map(|(waiting, own)| waiting + own);
    builder.hazard(HazardKind::MessageLoss, address, text, all);
}

/// Adds a hazard for each queue whose last binding the plan deletes, unless the plan also binds the queue again.
pub(super) fn last_binding_hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let queue = |binding: &Binding| match &binding.destination {
        Destination::Queue(name) => Some(name.clone()),
        Destination::Exchange(_) => None,
    };
    // Ignores the bindings of retired retries, which only return messages to the queue or route messages to a tier.
    let retired = builder.changes.iter().filter(|change| change.retires.is_some()).filter_map(PlannedChange::id);
    let retired: BTreeSet<ObjectId> = retired.collect();
    let mut undesired = builder.undesired_bindings();
    undesired.retain(|binding| !retired.contains(&ObjectId::Binding(binding.clone())));
    let new = builder.changes.iter().filter_map(|change| match (change.kind, &change.after) {
        (ChangeKind::Create, Some(Object::Binding(binding))) => Some(binding),
        (_, _) => None,
    });
    let stay = context.current.bindings.difference(&undesired).chain(new);
    let bound: BTreeSet<_> = stay.filter_map(queue).collect();
    let unbound: BTreeSet<_> = undesired.iter().filter_map(queue).filter(|name| !bound.contains(name)).collect();
    for name in unbound {
        let address = context.address(&ObjectId::Queue(name));
        let text = "its last binding will be deleted: no more messages will be routed to it".to_owned();
        builder.hazard(HazardKind::RoutingGap, &address, text, None);
    }
}

/// Blocks the plan if it deletes the last binding from an unmanaged auto-delete exchange, because the broker would then
/// delete the exchange.
pub(super) fn block_unmanaged_auto_delete(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let deleted = builder.deleted_ids();
    if deleted.is_empty() {
        return;
    }
    let live = &context.current.exchanges;
    let exchange_id = |name: &ExchangeName| ObjectId::Exchange(name.clone());
    let is_lost = |binding: &Binding| {
        deleted.contains(&ObjectId::Binding(binding.clone()))
            || deleted.contains(&exchange_id(&binding.source))
            || deleted.contains(&binding.destination.id())
    };
    let mut bound = context.current.bindings.clone();
    let is_auto_delete = |name: &ExchangeName| live.get(name).is_some_and(|exchange| exchange.auto_delete);
    let desired = &context.desired.topology;
    let lost = auto_delete::matching_bindings(&bound, is_lost);
    for (name, _) in auto_delete::unbind(&mut bound, lost, is_auto_delete) {
        let is_bound_again = desired.bindings.iter().any(|binding| binding.source == name);
        if desired.exchanges.contains_key(&name) || deleted.contains(&exchange_id(&name)) || is_bound_again {
            continue;
        }
        builder.block(
            &context.address(&exchange_id(&name)),
            format!("exchange {name} is auto-delete and unmanaged, and this plan would delete its last binding"),
            Some("ask its owner to bind another queue to it first, or keep the object that is bound to it".to_owned()),
        );
    }
}

/// Adds a hazard if the plan deletes a large share of the owned objects, or any object even though the spec declares
/// none. In both cases, the spec may be the wrong file.
pub(super) fn mass_delete_hazard(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let is_object = |id: &ObjectId| !matches!(id, ObjectId::Binding(_));
    let deleted = builder
        .changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Delete && change.retires.is_none())
        // A setting that the spec leaves out belongs to an object that the spec declares.
        .filter(|change| change.reason != Some(DeleteReason::Unset))
        .filter(|change| change.id().is_some_and(|id| is_object(&id)))
        .count();
    if deleted == 0 {
        return;
    }
    let desired = &context.desired.topology;
    let declared = desired.exchanges.len() + desired.queues.len() + desired.policies.len() + desired.records.len();
    let scope = &context.desired.scope;
    let is_owned =
        |id: &&RecordId| scope.sections.contains_key(&id.kind) && scope.owns_object(&ObjectId::Record((*id).clone()));
    let owned = context.current.exchanges.keys().filter(|name| context.desired.scope.owns(name.as_str())).count()
        + context.current.queues.keys().filter(|name| context.desired.scope.owns(name.as_str())).count()
        + context.current.policies.keys().filter(|name| context.desired.scope.owns(name.as_str())).count()
        + context.current.records.keys().filter(is_owned).count();
    let all = owned.max(deleted);
    let address = context.address(&ObjectId::Vhost);
    if declared == 0 {
        let objects = if deleted == 1 { "1 object".to_owned() } else { format!("{deleted} objects") };
        let text = format!("the spec declares nothing, and {objects} will be deleted");
        builder.hazard(HazardKind::MassDelete, &address, text, None);
    } else if is_mass_delete(deleted, all) {
        let text = format!("{deleted} of {all} owned objects will be deleted");
        builder.hazard(HazardKind::MassDelete, &address, text, None);
    } else {
        mass_delete_of_kind(builder, context);
    }
}

fn is_mass_delete(deleted: usize, all: usize) -> bool {
    all >= MIN_OWNED && deleted * 100 > all * MAX_PERCENT
}

/// Adds a hazard for each kind of record, such as permissions, if the plan deletes a large share of the owned records.
fn mass_delete_of_kind(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let mut deleted: BTreeMap<RecordKind, usize> = BTreeMap::new();
    for change in builder.changes.iter().filter(|change| change.kind == ChangeKind::Delete) {
        if let (Some(ObjectId::Record(id)), Some(DeleteReason::Unmanaged | DeleteReason::Removed)) =
            (change.id(), change.reason)
        {
            *deleted.entry(id.kind).or_default() += 1;
        }
    }
    for (kind, deleted) in deleted {
        let scope = &context.desired.scope;
        let is_owned = |id: &&RecordId| id.kind == kind && scope.owns_object(&ObjectId::Record((*id).clone()));
        let all = context.current.records.keys().filter(is_owned).count().max(deleted);
        if is_mass_delete(deleted, all) {
            let text = format!("{deleted} of {all} owned {} will be deleted", kind.row().plural);
            builder.hazard(HazardKind::MassDelete, &context.address(&ObjectId::Vhost), text, None);
        }
    }
}
