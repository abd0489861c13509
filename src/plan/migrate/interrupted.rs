//! Detects interrupted migrations in the current state, and plans to resume them or to roll them back.

use super::names::{MigrationBlocker, forged, immovable_by};
use super::original_state::old;
use super::{BEFORE, Goal, MIGRATES, Migration, migrated};
use crate::model::count::number;
use crate::model::naming::{MigrationNames, shovel};
use crate::model::{Address, Binding, Destination, Object, ObjectId, Queue, QueueName, Topology};
use crate::plan::builder::PlanBuilder;
use crate::plan::context::PlanContext;
use crate::plan::document::{ChangeKind, InterruptedMigration, Options, PlannedChange};
use std::collections::BTreeSet;

/// The queues whose migration was begun and not finished, with the first holding queue. Whoever may declare a queue can
/// write what looks like one, so only one of the right name is believed.
pub(super) fn interrupted(live: &Topology) -> impl Iterator<Item = (QueueName, &Queue)> {
    live.queues.iter().filter_map(|(name, holding)| {
        let queue = migrated(&holding.arguments)?;
        (MigrationNames::of(&queue).hold == name.as_str()).then_some((queue, holding))
    })
}

/// All queues from which the transports of migrations that were cut short take messages.
pub fn left_behind(live: &Topology) -> Vec<QueueName> {
    let queues = interrupted(live).flat_map(|(name, _)| moved_from(&name));
    queues.filter(|queue| live.queues.contains_key(queue)).collect()
}

fn moved_from(name: &QueueName) -> [QueueName; 3] {
    let MigrationNames { hold, drained, .. } = MigrationNames::of(name);
    [name.clone(), QueueName::new(hold), QueueName::new(drained)]
}

/// Nothing can be proven, or brought back, while somebody moves the messages elsewhere.
fn out_of_reach(builder: &mut PlanBuilder, context: &PlanContext<'_>, name: &QueueName, address: &Address) {
    for queue in moved_from(name).into_iter().filter(|queue| context.activity.out_of_reach.contains(queue)) {
        let text =
            format!("a shovel of the interrupted run still moves messages of {queue}, and this user may not delete it");
        let remedy =
            format!("apply as a user with the tag policymaker, or ask such a user to delete shovel {}", shovel(&queue));
        builder.block(address, text, Some(remedy));
    }
}

/// What moves no message cannot bring any back.
fn immovable(builder: &mut PlanBuilder, context: &PlanContext<'_>, address: &Address) {
    if let Some(MigrationBlocker { text, remedy }) = immovable_by(&context.activity.transports) {
        builder.block(address, text, remedy);
    }
}

/// Blocks a migration whose holding objects differ from what topo declares.
fn expected(builder: &mut PlanBuilder, context: &PlanContext<'_>, migration: &Migration) {
    if let Some(MigrationBlocker { text, remedy }) = forged(migration, context) {
        let address = context.address(&ObjectId::Queue(migration.queue.clone()));
        builder.block(&address, text, remedy);
    }
}

/// Whether a migration of that queue was cut short.
pub(in crate::plan) fn is_interrupted(live: &Topology, queue: &QueueName) -> bool {
    interrupted(live).any(|(name, _)| name == *queue)
}

/// Whether any migration was cut short.
pub(in crate::plan) fn is_any_interrupted(live: &Topology) -> bool {
    interrupted(live).next().is_some()
}

/// Drops the migrations of queues that `--target` leaves out.
pub(in crate::plan) fn keep_planned(builder: &mut PlanBuilder) {
    let PlanBuilder { migrations, changes, .. } = builder;
    let is_planned = |queue: &QueueName| {
        let id = Some(ObjectId::Queue(queue.clone()));
        changes.iter().any(|change| change.kind == ChangeKind::Recreate && change.id() == id)
    };
    migrations.retain(|migration| is_planned(&migration.queue));
}

/// Says of each what is the matter, and plans what is left to do where the spec says what the queue shall be.
pub(in crate::plan) fn finish(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    for (name, holding) in interrupted(context.current) {
        let id = ObjectId::Queue(name.clone());
        let address = context.address(&id);
        let is_planned = builder.migrations.iter().any(|migration| migration.queue == name);
        let is_targeted = options.targets.is_empty() || options.targets.iter().any(|one| one.matches(address.as_str()));
        let desired = context.desired.topology.queues.get(&name);
        let conflict = builder
            .changes
            .iter()
            .any(|change| change.kind == ChangeKind::Conflict && change.id().as_ref() == Some(&id));
        let is_there = context.current.queues.contains_key(&name);
        let is_deleted =
            builder.changes.iter().any(|change| change.kind == ChangeKind::Delete && change.id().as_ref() == Some(&id));
        // Only what `--abort` would take: the very queue that it began with.
        let is_old = context.current.queues.get(&name).is_some_and(|live| old(holding).as_ref() == Some(live));
        let way_back =
            if is_old { format!(", or roll back with `topo apply --abort {address}`") } else { String::new() };
        let (text, goes_on) = match desired {
            _ if !is_targeted => ("`--target` excludes it from this plan".to_owned(), false),
            None if is_there => {
                (format!("this spec does not declare the queue. Apply the spec that does{way_back}"), false)
            }
            None => (
                "this spec does not declare the queue, and the queue is deleted. Apply the spec that does".to_owned(),
                false,
            ),
            Some(_) if conflict => (format!("to resume, use `--recreate {address}=migrate`{way_back}"), false),
            Some(_) if !is_there => {
                ("the old queue is deleted. Apply declares the new one and returns the messages".to_owned(), true)
            }
            Some(_) if is_planned && is_old => {
                (format!("the old queue still exists. Run apply to resume{way_back}"), true)
            }
            Some(_) if is_planned => {
                let text = "the current queue is neither the old one nor the one in this spec. Apply recreates it as \
                            specified and returns the messages";
                (text.to_owned(), true)
            }
            Some(_) => ("the queue matches the spec. Apply returns the messages".to_owned(), true),
        };
        // Also where only a binding of it is targeted: beside the tap, its messages would come twice.
        on_the_tap(builder, context, &name);
        if is_targeted {
            out_of_reach(builder, context, &name, &address);
        }
        if goes_on && !is_planned {
            immovable(builder, context, &address);
        }
        if is_deleted {
            // What is held beside it, and all that still comes to the tap, would be left there for ever.
            let text = format!("a migration of it was interrupted; {}, and this plan deletes it", held(context, &name));
            let remedy = format!("finish it first with the spec that started it{way_back}");
            builder.block(&address, text, Some(remedy));
        }
        let text = match &context.activity.applying {
            Some(holder) => format!(
                "a migration of {id} is in progress: {holder} holds the lock of the vhost. Wait until that apply \
                 ends, then run the command again. If its process was killed, the lock expires within a minute"
            ),
            None => format!(
                "a migration of {id} was interrupted; {held}: {text}{nothing}",
                held = held(context, &name),
                nothing = nothing_leads_to_it(context, &name)
            ),
        };
        builder.interrupted.push(InterruptedMigration { address, text, applying: context.activity.applying.clone() });
        if let (Some(desired), true, false) = (desired, goes_on, is_planned) {
            let mut holding = holding.clone();
            holding.arguments.retain(|name, _| name != MIGRATES && name != BEFORE);
            let migration =
                Migration { queue: name, desired: desired.clone(), goal: Goal::Recreate, holding, shield: None };
            expected(builder, context, &migration);
            builder.migrations.push(migration);
        }
    }
}

/// What leads to the tap leads to the queue, or will: it is not to be bound, and is kept by a recreate.
fn on_the_tap(builder: &mut PlanBuilder, context: &PlanContext<'_>, name: &QueueName) {
    let tap = Destination::Exchange(MigrationNames::of(name).tap);
    let tapped: BTreeSet<Binding> = context
        .current
        .bindings
        .iter()
        .filter(|binding| binding.destination == tap)
        .map(|binding| Binding { destination: Destination::Queue(name.clone()), ..binding.clone() })
        .collect();
    let is_tapped = |change: &PlannedChange| matches!(&change.after, Some(Object::Binding(binding)) if change.kind == ChangeKind::Create && tapped.contains(binding));
    builder.changes.retain(|change| !is_tapped(change));
    let id = Some(ObjectId::Queue(name.clone()));
    let Some(kept) = builder.changes.iter_mut().find(|change| change.id() == id).and_then(|it| it.kept.as_mut()) else {
        return;
    };
    let (declared, others): (Vec<_>, Vec<_>) = tapped
        .into_iter()
        .filter(|binding| !context.current.bindings.contains(binding))
        .partition(|binding| context.desired.topology.bindings.contains(binding));
    kept.declared += declared.len();
    kept.unmanaged.extend(others);
}

/// The bindings of a tap go with it, where somebody deletes it. Those that the spec has are made again; the others are in the
/// backup only, if one was written.
fn nothing_leads_to_it(context: &PlanContext<'_>, name: &QueueName) -> String {
    let tap = MigrationNames::of(name).tap;
    let topology = context.current;
    let is_to_it = |binding: &Binding| binding.destination == Destination::Queue(name.clone());
    if topology.exchanges.contains_key(&tap) || topology.bindings.iter().any(is_to_it) {
        return String::new();
    }
    format!(
        ". Nothing is routed to it now: if exchange {tap} was deleted, its bindings were deleted with it; bindings \
         that the spec does not declare are in the backup of the run that started, if it wrote one"
    )
}

/// `1,204 messages are held beside it`.
fn held(context: &PlanContext<'_>, name: &QueueName) -> String {
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

/// Plans what `--abort` asks for, and nothing else.
pub(in crate::plan) fn abort(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    for address in &options.abort {
        let found =
            interrupted(context.current).find(|(name, _)| context.address(&ObjectId::Queue(name.clone())) == *address);
        let Some((name, holding)) = found else {
            if is_here(context, address) {
                builder.block(
                    address,
                    "no migration of it is in progress: there is nothing to roll back".to_owned(),
                    None,
                );
            }
            continue;
        };
        let before = old(holding);
        let live = context.current.queues.get(&name);
        let remedy = Some("finish it: run topo apply with the spec that started it".to_owned());
        match live {
            None => builder.block(
                address,
                "the old queue is already deleted: its migration cannot be rolled back".to_owned(),
                remedy,
            ),
            Some(live) if before.as_ref() != Some(live) => {
                builder.block(
                    address,
                    "the new queue already exists: its migration cannot be rolled back".to_owned(),
                    remedy,
                );
            }
            Some(live) => {
                out_of_reach(builder, context, &name, address);
                immovable(builder, context, address);
                let text = format!(
                    "the migration of {} is rolled back; {}{}",
                    ObjectId::Queue(name.clone()),
                    held(context, &name),
                    nothing_leads_to_it(context, &name)
                );
                builder.interrupted.push(InterruptedMigration { address: address.clone(), text, applying: None });
                let (desired, holding) = (live.clone(), holding.clone());
                let migration = Migration { queue: name, desired, goal: Goal::PutBack, holding, shield: None };
                expected(builder, context, &migration);
                builder.migrations.push(migration);
            }
        }
    }
}

/// Whether an address is in this vhost.
fn is_here(context: &PlanContext<'_>, address: &Address) -> bool {
    let vhost = context.address(&ObjectId::Queue(QueueName::new("")));
    address.as_str().starts_with(vhost.as_str())
}
