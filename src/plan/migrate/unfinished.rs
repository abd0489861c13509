//! Migrations that were cut short: what is live says so, and what becomes of each.

use super::before::old;
use super::holding::{Obstacle, forged, immovable_by};
use super::{BEFORE, Goal, MIGRATES, Migration, migrated};
use crate::model::count::number;
use crate::model::naming::{Beside, shovel};
use crate::model::{Address, Binding, Destination, Object, ObjectId, Queue, QueueName, Topology};
use crate::plan::document::{ChangeKind, Note, Options, PlannedChange};
use crate::plan::draft::Draft;
use crate::plan::situation::Situation;
use std::collections::BTreeSet;

/// The queues whose migration was begun and not finished, with the first holding queue. Whoever may declare a queue can
/// write what looks like one, so only one of the right name is believed.
pub(super) fn unfinished(live: &Topology) -> impl Iterator<Item = (QueueName, &Queue)> {
    live.queues.iter().filter_map(|(name, holding)| {
        let queue = migrated(&holding.arguments)?;
        (Beside::of(&queue).hold == name.as_str()).then_some((queue, holding))
    })
}

/// All queues from which the movers of migrations that were cut short take messages.
pub fn left_behind(live: &Topology) -> Vec<QueueName> {
    let queues = unfinished(live).flat_map(|(name, _)| moved_from(&name));
    queues.filter(|queue| live.queues.contains_key(queue)).collect()
}

fn moved_from(name: &QueueName) -> [QueueName; 3] {
    let Beside { hold, drained, .. } = Beside::of(name);
    [name.clone(), QueueName::new(hold), QueueName::new(drained)]
}

/// Nothing can be proven, or brought back, while somebody moves the messages elsewhere.
fn out_of_reach(draft: &mut Draft, situation: &Situation<'_>, name: &QueueName, address: &Address) {
    for queue in moved_from(name).into_iter().filter(|queue| situation.activity.out_of_reach.contains(queue)) {
        let text = format!(
            "a shovel of the run that was cut short still moves what is in {queue}, and this user may not remove it"
        );
        let lift = format!("apply as a user with the tag policymaker, or have one remove shovel {}", shovel(&queue));
        draft.block(address, text, Some(lift));
    }
}

/// What moves no message cannot bring any back.
fn immovable(draft: &mut Draft, situation: &Situation<'_>, address: &Address) {
    if let Some(Obstacle { text, lift }) = immovable_by(&situation.activity.movers) {
        draft.block(address, text, lift);
    }
}

/// Blocks a migration whose holding objects differ from what topo declares.
fn expected(draft: &mut Draft, situation: &Situation<'_>, migration: &Migration) {
    if let Some(Obstacle { text, lift }) = forged(migration, situation) {
        let address = situation.address(&ObjectId::Queue(migration.queue.clone()));
        draft.block(&address, text, lift);
    }
}

/// Whether a migration of that queue was cut short.
pub(in crate::plan) fn is_unfinished(live: &Topology, queue: &QueueName) -> bool {
    unfinished(live).any(|(name, _)| name == *queue)
}

/// Whether any migration was cut short.
pub(in crate::plan) fn is_any_unfinished(live: &Topology) -> bool {
    unfinished(live).next().is_some()
}

/// Drops the migrations of queues that `--target` leaves out.
pub(in crate::plan) fn keep_planned(draft: &mut Draft) {
    let Draft { migrations, changes, .. } = draft;
    let is_planned = |queue: &QueueName| {
        let id = Some(ObjectId::Queue(queue.clone()));
        changes.iter().any(|change| change.kind == ChangeKind::Recreate && change.id() == id)
    };
    migrations.retain(|migration| is_planned(&migration.queue));
}

/// Says of each what is the matter, and plans what is left to do where the spec says what the queue shall be.
pub(in crate::plan) fn finish(draft: &mut Draft, situation: &Situation<'_>, options: &Options) {
    for (name, holding) in unfinished(situation.current) {
        let id = ObjectId::Queue(name.clone());
        let address = situation.address(&id);
        let is_planned = draft.migrations.iter().any(|migration| migration.queue == name);
        let is_targeted = options.targets.is_empty() || options.targets.iter().any(|one| one.matches(address.as_str()));
        let wanted = situation.wanted.topology.queues.get(&name);
        let conflict =
            draft.changes.iter().any(|change| change.kind == ChangeKind::Conflict && change.id().as_ref() == Some(&id));
        let is_there = situation.current.queues.contains_key(&name);
        let is_deleted =
            draft.changes.iter().any(|change| change.kind == ChangeKind::Delete && change.id().as_ref() == Some(&id));
        // Only what `--abort` would take: the very queue that it began with.
        let is_old = situation.current.queues.get(&name).is_some_and(|live| old(holding).as_ref() == Some(live));
        let way_back = if is_old { format!(", or, to undo it: `topo apply --abort {address}`") } else { String::new() };
        let (text, goes_on) = match wanted {
            _ if !is_targeted => ("`--target` leaves it out of this plan".to_owned(), false),
            None if is_there => {
                (format!("nothing in this spec says what it shall be. Apply the spec that does{way_back}"), false)
            }
            None => (
                "nothing in this spec says what it shall be, and it is gone. Apply the spec that does".to_owned(),
                false,
            ),
            Some(_) if conflict => (format!("to go on: `--recreate {address}=migrate`{way_back}"), false),
            Some(_) if !is_there => {
                ("the old queue is gone. Apply makes the new one and brings the messages back".to_owned(), true)
            }
            Some(_) if is_planned && is_old => (format!("the old queue is still there. Apply goes on{way_back}"), true),
            Some(_) if is_planned => {
                let text = "what is there is neither the old queue nor what this spec says. Apply makes it that, and brings \
                            the messages back";
                (text.to_owned(), true)
            }
            Some(_) => ("the queue is as it shall be. Apply brings the messages back".to_owned(), true),
        };
        // Also where only a binding of it is targeted: beside the tap, its messages would come twice.
        on_the_tap(draft, situation, &name);
        if is_targeted {
            out_of_reach(draft, situation, &name, &address);
        }
        if goes_on && !is_planned {
            immovable(draft, situation, &address);
        }
        if is_deleted {
            // What is held beside it, and all that still comes to the tap, would be left there for ever.
            let text = format!("a migration of it was cut short; {}, and it is to be deleted", held(situation, &name));
            let lift = format!("first let it finish, with the spec that it was begun with{way_back}");
            draft.block(&address, text, Some(lift));
        }
        let text = match &situation.activity.applying {
            Some(holder) => format!(
                "a migration of {id} is under way: {holder} holds the lock of the vhost. Wait for the end of that apply, \
                 then plan again. If its process was killed, the lock expires within a minute"
            ),
            None => format!(
                "a migration of {id} was cut short; {held}: {text}{nothing}",
                held = held(situation, &name),
                nothing = nothing_leads_to_it(situation, &name)
            ),
        };
        draft.unfinished.push(Note { address, text });
        if let (Some(wanted), true, false) = (wanted, goes_on, is_planned) {
            let mut holding = holding.clone();
            holding.arguments.retain(|name, _| name != MIGRATES && name != BEFORE);
            let migration =
                Migration { queue: name, wanted: wanted.clone(), goal: Goal::Recreate, holding, shield: None };
            expected(draft, situation, &migration);
            draft.migrations.push(migration);
        }
    }
}

/// What leads to the tap leads to the queue, or will: it is not to be bound, and is kept by a recreate.
fn on_the_tap(draft: &mut Draft, situation: &Situation<'_>, name: &QueueName) {
    let tap = Destination::Exchange(Beside::of(name).tap);
    let tapped: BTreeSet<Binding> = situation
        .current
        .bindings
        .iter()
        .filter(|binding| binding.destination == tap)
        .map(|binding| Binding { destination: Destination::Queue(name.clone()), ..binding.clone() })
        .collect();
    let is_tapped = |change: &PlannedChange| matches!(&change.after, Some(Object::Binding(binding)) if change.kind == ChangeKind::Create && tapped.contains(binding));
    draft.changes.retain(|change| !is_tapped(change));
    let id = Some(ObjectId::Queue(name.clone()));
    let Some(kept) = draft.changes.iter_mut().find(|change| change.id() == id).and_then(|it| it.kept.as_mut()) else {
        return;
    };
    let (declared, others): (Vec<_>, Vec<_>) = tapped
        .into_iter()
        .filter(|binding| !situation.current.bindings.contains(binding))
        .partition(|binding| situation.wanted.topology.bindings.contains(binding));
    kept.declared += declared.len();
    kept.undeclared.extend(others);
}

/// The bindings of a tap go with it, where somebody deletes it. Those that the spec has are made again; the others are in the
/// backup only, if one was written.
fn nothing_leads_to_it(situation: &Situation<'_>, name: &QueueName) -> String {
    let tap = Beside::of(name).tap;
    let topology = situation.current;
    let is_to_it = |binding: &Binding| binding.destination == Destination::Queue(name.clone());
    if topology.exchanges.contains_key(&tap) || topology.bindings.iter().any(is_to_it) {
        return String::new();
    }
    format!(
        ". Nothing leads to it now: if somebody deleted exchange {tap}, its bindings went with it; those that the spec does \
         not have are in the backup of the run that began, if it wrote one"
    )
}

/// `1,204 messages are held beside it`.
fn held(situation: &Situation<'_>, name: &QueueName) -> String {
    let beside = Beside::of(name);
    let count = |name: &str| situation.activity.queues.get(&QueueName::new(name)).and_then(|live| live.messages);
    let drained = situation.current.queues.contains_key(&QueueName::new(&beside.drained));
    match (count(&beside.hold), if drained { count(&beside.drained) } else { Some(0) }) {
        (Some(hold), Some(drained)) => match hold + drained {
            1 => "1 message is held beside it".to_owned(),
            messages => format!("{} messages are held beside it", number(messages)),
        },
        (_, _) => "its messages are held beside it".to_owned(),
    }
}

/// Plans what `--abort` asks for, and nothing else.
pub(in crate::plan) fn abort(draft: &mut Draft, situation: &Situation<'_>, options: &Options) {
    for address in &options.abort {
        let found = unfinished(situation.current)
            .find(|(name, _)| situation.address(&ObjectId::Queue(name.clone())) == *address);
        let Some((name, holding)) = found else {
            if is_here(situation, address) {
                draft.block(address, "no migration of it is under way: there is nothing to undo".to_owned(), None);
            }
            continue;
        };
        let before = old(holding);
        let live = situation.current.queues.get(&name);
        let lift = Some("let it finish: topo apply, with the spec that it was begun with".to_owned());
        match live {
            None => draft.block(
                address,
                "the old queue is deleted already: its migration cannot be undone".to_owned(),
                lift,
            ),
            Some(live) if before.as_ref() != Some(live) => {
                draft.block(address, "the new queue is there already: its migration cannot be undone".to_owned(), lift);
            }
            Some(live) => {
                out_of_reach(draft, situation, &name, address);
                immovable(draft, situation, address);
                let text = format!(
                    "the migration of {} is undone; {}{}",
                    ObjectId::Queue(name.clone()),
                    held(situation, &name),
                    nothing_leads_to_it(situation, &name)
                );
                draft.unfinished.push(Note { address: address.clone(), text });
                let (wanted, holding) = (live.clone(), holding.clone());
                let migration = Migration { queue: name, wanted, goal: Goal::PutBack, holding, shield: None };
                expected(draft, situation, &migration);
                draft.migrations.push(migration);
            }
        }
    }
}

/// Whether an address is in this vhost.
fn is_here(situation: &Situation<'_>, address: &Address) -> bool {
    let vhost = situation.address(&ObjectId::Queue(QueueName::new("")));
    address.as_str().starts_with(vhost.as_str())
}
