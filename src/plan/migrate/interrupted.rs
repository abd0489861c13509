//! Detects interrupted migrations in the current state, and plans their completion or rollback. Also reconstructs the
//! topology as it was before the migration, when the bindings to the tap were bindings to the queue and the migration
//! objects did not exist.

use super::blockers::{MigrationBlocker, transport_blocker};
use super::names::unexpected_object;
use super::{BEFORE, Goal, MIGRATES, Migration, migrated_queue};
use crate::model::count::number;
use crate::model::naming::{MigrationNames, shovel};
use crate::model::{
    Address, ArgumentValue, Binding, Destination, ExchangeName, Object, ObjectId, Queue, QueueName, Topology,
};
use crate::plan::changes_by_kind::PlanBuilder;
use crate::plan::context::PlanContext;
use crate::plan::document::{ChangeKind, InterruptedMigration, Options, PlannedChange};
use std::collections::BTreeSet;

/// Returns the queues with an interrupted migration, each with its first holding queue. Any user who may declare a
/// queue can forge a mark, so topo ignores holding queues without the expected name.
pub fn interrupted_migrations(live: &Topology) -> impl Iterator<Item = (QueueName, &Queue)> {
    live.queues.iter().filter_map(|(name, holding)| {
        let queue = migrated_queue(&holding.arguments)?;
        (MigrationNames::of(&queue).hold == name.as_str()).then_some((queue, holding))
    })
}

/// Returns all queues from which the transports of interrupted migrations move messages.
pub fn interrupted_queues(live: &Topology) -> Vec<QueueName> {
    let queues = interrupted_migrations(live).flat_map(|(name, _)| queue_and_holding_queues(&name));
    queues.filter(|queue| live.queues.contains_key(queue)).collect()
}

fn queue_and_holding_queues(name: &QueueName) -> [QueueName; 3] {
    let MigrationNames { hold, drained, .. } = MigrationNames::of(name);
    [name.clone(), QueueName::new(hold), QueueName::new(drained)]
}

/// Blocks the plan while a shovel that the connected user is not allowed to delete is still moving messages. Until
/// the shovel is deleted, topo can neither prove that a queue is empty nor return its messages.
fn block_orphan_shovels(builder: &mut PlanBuilder, context: &PlanContext<'_>, name: &QueueName, address: &Address) {
    for queue in queue_and_holding_queues(name).into_iter().filter(|it| context.activity.unreachable.contains(it)) {
        let text = format!(
            "a shovel from the interrupted run is still moving messages from {queue}, and this user is not allowed to delete it"
        );
        let remedy =
            format!("apply as a user with the policymaker tag, or ask such a user to delete shovel {}", shovel(&queue));
        builder.block(address, text, Some(remedy));
    }
}

/// Blocks the plan if no transport can return the messages.
fn block_without_transport(builder: &mut PlanBuilder, context: &PlanContext<'_>, address: &Address) {
    if let Some(MigrationBlocker { text, remedy }) = transport_blocker(&context.activity.transports) {
        builder.block(address, text, remedy);
    }
}

/// Blocks the plan if existing migration objects differ from the objects that topo declares.
fn block_unexpected_objects(builder: &mut PlanBuilder, context: &PlanContext<'_>, migration: &Migration) {
    if let Some(MigrationBlocker { text, remedy }) = unexpected_object(migration, context) {
        let address = context.address(&ObjectId::Queue(migration.queue.clone()));
        builder.block(&address, text, remedy);
    }
}

/// Returns true if a migration of the queue was interrupted.
pub(in crate::plan) fn is_interrupted(live: &Topology, queue: &QueueName) -> bool {
    interrupted_migrations(live).any(|(name, _)| name == *queue)
}

/// Returns true if any migration was interrupted.
pub(in crate::plan) fn has_interrupted_migration(live: &Topology) -> bool {
    interrupted_migrations(live).next().is_some()
}

/// Drops the migrations of queues that `--target` excludes.
pub(in crate::plan) fn keep_planned(builder: &mut PlanBuilder) {
    let PlanBuilder { migrations, changes, .. } = builder;
    let is_planned = |queue: &QueueName| {
        let id = Some(ObjectId::Queue(queue.clone()));
        changes.iter().any(|change| change.kind == ChangeKind::Recreate && change.id() == id)
    };
    migrations.retain(|migration| is_planned(&migration.queue));
}

/// Describes each interrupted migration. Plans its remaining actions if the spec declares the queue, the queue is not
/// in conflict, and `--target` does not exclude the queue.
pub(in crate::plan) fn resume(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    for (name, holding) in interrupted_migrations(context.current) {
        let id = ObjectId::Queue(name.clone());
        let address = context.address(&id);
        let is_planned = builder.migrations.iter().any(|migration| migration.queue == name);
        let is_targeted = options.targets.is_empty() || options.targets.iter().any(|one| one.matches(address.as_str()));
        let desired = context.desired.topology.queues.get(&name);
        let conflict = builder
            .changes
            .iter()
            .any(|change| change.kind == ChangeKind::Conflict && change.id().as_ref() == Some(&id));
        let exists = context.current.queues.contains_key(&name);
        let is_deleted =
            builder.changes.iter().any(|change| change.kind == ChangeKind::Delete && change.id().as_ref() == Some(&id));
        // topo can roll back only to the queue that existed when the migration started.
        let is_old = context.current.queues.get(&name).is_some_and(|live| old_queue(holding).as_ref() == Some(live));
        let rollback =
            if is_old { format!(", or roll back with `topo apply --abort {address}`") } else { String::new() };
        let (text, is_resumed) = match desired {
            _ if !is_targeted => ("`--target` excludes it from this plan".to_owned(), false),
            None if exists => {
                (format!("this spec does not declare the queue. Apply the spec that does{rollback}"), false)
            }
            None => (
                "this spec does not declare the queue, and the queue was deleted. Apply the spec that does".to_owned(),
                false,
            ),
            Some(_) if conflict => (format!("to resume, use `--recreate {address}=migrate`{rollback}"), false),
            Some(_) if !exists => (
                "the old queue was deleted. `topo apply` will declare the new one and return the messages".to_owned(),
                true,
            ),
            Some(_) if is_planned && is_old => {
                (format!("the old queue still exists. Run `topo apply` to resume{rollback}"), true)
            }
            Some(_) if is_planned => {
                let text = "the current queue is neither the old one nor the one in this spec. `topo apply` will \
                            recreate it as specified and return the messages";
                (text.to_owned(), true)
            }
            Some(_) => ("the queue matches the spec. `topo apply` will return the messages".to_owned(), true),
        };
        // Drops the tapped bindings even if a target matches only one of them. While the queue is being drained, such a
        // binding and the tap together would route each message to two queues.
        drop_tapped_bindings(builder, context, &name);
        if is_targeted {
            block_orphan_shovels(builder, context, &name, &address);
        }
        if is_resumed && !is_planned {
            block_without_transport(builder, context, &address);
        }
        if is_deleted {
            // Otherwise, messages would remain in the holding queues, and new messages would still be routed to them.
            let held = held_messages_text(context, &name);
            let text = format!("a migration of the queue was interrupted; {held}, and this plan deletes the queue");
            let remedy = format!("complete the migration first with the spec that started it{rollback}");
            builder.block(&address, text, Some(remedy));
        }
        let text = match &context.activity.applying {
            Some(holder) => format!(
                "a migration of {id} is in progress: {holder} holds the lock of the vhost. Wait until that apply \
                 ends, then run the command again. If its process was killed, the lock expires within a minute"
            ),
            None => format!(
                "a migration of {id} was interrupted; {held}: {text}{nothing}",
                held = held_messages_text(context, &name),
                nothing = unrouted_note(context, &name)
            ),
        };
        builder.interrupted.push(InterruptedMigration { address, text, applying: context.activity.applying.clone() });
        if let (Some(desired), true, false) = (desired, is_resumed, is_planned) {
            let mut holding = holding.clone();
            holding.arguments.retain(|name, _| name != MIGRATES && name != BEFORE);
            let migration =
                Migration { queue: name, desired: desired.clone(), goal: Goal::Recreate, holding, shield: None };
            block_unexpected_objects(builder, context, &migration);
            builder.migrations.push(migration);
        }
    }
}

/// Drops the creation of bindings whose destination is currently the tap, because the migration binds the queue again.
/// If the plan recreates the queue, adds these bindings to the bindings to restore.
fn drop_tapped_bindings(builder: &mut PlanBuilder, context: &PlanContext<'_>, name: &QueueName) {
    let tap = Destination::Exchange(MigrationNames::of(name).tap);
    let tapped: BTreeSet<Binding> = context
        .current
        .bindings
        .iter()
        .filter(|binding| binding.destination == tap)
        .map(|binding| Binding { destination: Destination::Queue(name.clone()), ..binding.clone() })
        .collect();
    let is_tapped = |change: &PlannedChange| {
        change.kind == ChangeKind::Create
            && matches!(&change.after, Some(Object::Binding(binding)) if tapped.contains(binding))
    };
    builder.changes.retain(|change| !is_tapped(change));
    let id = Some(ObjectId::Queue(name.clone()));
    let Some(kept) = builder.changes.iter_mut().find(|change| change.id() == id).and_then(|it| it.kept.as_mut()) else {
        return;
    };
    let (declared, unmanaged): (Vec<_>, Vec<_>) = tapped
        .into_iter()
        .filter(|binding| !context.current.bindings.contains(binding))
        .partition(|binding| context.desired.topology.bindings.contains(binding));
    kept.declared += declared.len();
    kept.unmanaged.extend(unmanaged);
}

/// Describes the state if the tap does not exist and no binding routes to the queue. Otherwise, returns an empty
/// string. If the tap was deleted, the broker also deleted the bindings to the tap. The plan recreates the bindings in
/// the spec. The unmanaged bindings are only in the backup, if the interrupted run wrote one.
fn unrouted_note(context: &PlanContext<'_>, name: &QueueName) -> String {
    let tap = MigrationNames::of(name).tap;
    let topology = context.current;
    let leads_to_queue = |binding: &Binding| binding.destination == Destination::Queue(name.clone());
    if topology.exchanges.contains_key(&tap) || topology.bindings.iter().any(leads_to_queue) {
        return String::new();
    }
    format!(
        ". No messages are routed to the queue now: if exchange {tap} was deleted, its bindings were deleted with it; \
         unmanaged bindings are in the backup of the interrupted run, if that run wrote one"
    )
}

/// Describes the messages in the holding queues: `1,204 messages are in its holding queues`.
fn held_messages_text(context: &PlanContext<'_>, name: &QueueName) -> String {
    let names = MigrationNames::of(name);
    let count = |name: &str| context.activity.queues.get(&QueueName::new(name)).and_then(|live| live.messages);
    let drained = context.current.queues.contains_key(&QueueName::new(&names.drained));
    match (count(&names.hold), if drained { count(&names.drained) } else { Some(0) }) {
        (Some(hold), Some(drained)) => match hold + drained {
            1 => "1 message is in its holding queues".to_owned(),
            messages => format!("{} messages are in its holding queues", number(messages)),
        },
        (_, _) => "its messages are in its holding queues".to_owned(),
    }
}

/// Plans the rollbacks that `--abort` requests, and nothing else.
pub(in crate::plan) fn abort(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    for address in &options.abort {
        let found = interrupted_migrations(context.current)
            .find(|(name, _)| context.address(&ObjectId::Queue(name.clone())) == *address);
        let Some((name, holding)) = found else {
            if is_in_vhost(context, address) {
                builder.block(
                    address,
                    "no migration of the queue is in progress: there is nothing to roll back".to_owned(),
                    None,
                );
            }
            continue;
        };
        let before = old_queue(holding);
        let live = context.current.queues.get(&name);
        let remedy = Some("complete the migration: run topo apply with the spec that started it".to_owned());
        match live {
            None => builder.block(
                address,
                "the old queue was already deleted: its migration cannot be rolled back".to_owned(),
                remedy,
            ),
            Some(live) if before.as_ref() != Some(live) => {
                builder.block(
                    address,
                    "the old queue was already replaced: its migration cannot be rolled back".to_owned(),
                    remedy,
                );
            }
            Some(live) => {
                block_orphan_shovels(builder, context, &name, address);
                block_without_transport(builder, context, address);
                let text = format!(
                    "the migration of {} will be rolled back; {}{}",
                    ObjectId::Queue(name.clone()),
                    held_messages_text(context, &name),
                    unrouted_note(context, &name)
                );
                builder.interrupted.push(InterruptedMigration { address: address.clone(), text, applying: None });
                let (desired, holding) = (live.clone(), holding.clone());
                let migration = Migration { queue: name, desired, goal: Goal::RollBack, holding, shield: None };
                block_unexpected_objects(builder, context, &migration);
                builder.migrations.push(migration);
            }
        }
    }
}

/// Returns true if this is the address of a queue in the plan's vhost.
fn is_in_vhost(context: &PlanContext<'_>, address: &Address) -> bool {
    let vhost = context.address(&ObjectId::Queue(QueueName::new("")));
    address.as_str().starts_with(vhost.as_str())
}

/// Returns the current topology as if the interrupted migrations had not been started; `None` if no migration was
/// interrupted. The queue is bound to the sources of its tap. If the queue does not exist, the old queue is restored.
pub fn before_migrations(live: &Topology) -> Option<Topology> {
    let mut before: Option<Topology> = None;
    for (queue, holding) in interrupted_migrations(live) {
        let before = before.get_or_insert_with(|| live.clone());
        remove_migration_objects(before, &queue);
        if let (false, Some(old)) = (live.queues.contains_key(&queue), old_queue(holding)) {
            before.queues.insert(queue, old);
        }
    }
    before
}

/// Removes the objects of a migration, and binds the queue to the sources of the tap.
pub(in crate::plan) fn remove_migration_objects(topology: &mut Topology, queue: &QueueName) {
    let names = MigrationNames::of(queue);
    let tap = Destination::Exchange(names.tap.clone());
    let own = [ExchangeName::new(&names.hold), ExchangeName::new(&names.drained), names.tap, names.back];
    topology.bindings = std::mem::take(&mut topology.bindings)
        .into_iter()
        .filter(|binding| !own.contains(&binding.source))
        .map(|binding| match binding.destination == tap {
            true => Binding { destination: Destination::Queue(queue.clone()), ..binding },
            false => binding,
        })
        .collect();
    own.iter().for_each(|name| drop(topology.exchanges.remove(name)));
    for name in [names.hold, names.drained, names.probe] {
        topology.queues.remove(&QueueName::new(name));
    }
    topology.policies.remove(&names.shield);
}

/// Returns the old queue, whose definition the first holding queue stores. Returns `None` if the stored definition is
/// missing or invalid.
pub(super) fn old_queue(holding: &Queue) -> Option<Queue> {
    let text = holding.arguments.get(BEFORE).and_then(ArgumentValue::as_text)?;
    serde_json::from_str(text).ok()
}

impl Migration {
    /// Returns the old queue as it was when the interrupted migration started; `None` if no migration of the queue was
    /// interrupted. The first holding queue stores the definition of the old queue, so the old queue need not exist.
    pub fn old_queue(&self, live: &Topology) -> Option<Queue> {
        interrupted_migrations(live).find(|(name, _)| *name == self.queue).and_then(|(_, holding)| old_queue(holding))
    }
}
