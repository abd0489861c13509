//! Migrations that were cut short: what is live says so, and what becomes of each.

use super::{BEFORE, Goal, MIGRATES, Migration, migrated};
use crate::model::count::number;
use crate::model::naming::Beside;
use crate::model::{Address, ArgumentValue, Binding, Destination, Object, ObjectId, Queue, QueueName, Topology};
use crate::plan::document::{ChangeKind, Note, Options, PlannedChange};
use crate::plan::draft::Draft;
use crate::plan::situation::Situation;
use std::collections::BTreeSet;

/// The queues whose migration was begun and not finished, with the first holding queue. Whoever may declare a queue can
/// write what looks like one, so only one of the right name is believed.
fn holding_queues(live: &Topology) -> impl Iterator<Item = (QueueName, &Queue)> {
    live.queues.iter().filter_map(|(name, holding)| {
        let queue = migrated(&holding.arguments)?;
        (Beside::of(&queue).hold == name.as_str()).then_some((queue, holding))
    })
}

/// Whether any migration was cut short.
pub(in crate::plan) fn is_any_unfinished(live: &Topology) -> bool {
    holding_queues(live).next().is_some()
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
    for (name, holding) in holding_queues(situation.current) {
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
        let way_back = format!("or, to undo it: `topo apply --abort {address}`");
        let (text, goes_on) = match wanted {
            _ if !is_targeted => continue,
            None if is_there => {
                (format!("nothing in this spec says what it shall be. Apply the spec that does, {way_back}"), false)
            }
            None => (
                "nothing in this spec says what it shall be, and it is gone. Apply the spec that does".to_owned(),
                false,
            ),
            Some(_) if conflict => (format!("to go on: `--recreate {address}=migrate`; {way_back}"), false),
            Some(_) if !is_there => {
                ("the old queue is gone. Apply makes the new one and brings the messages back".to_owned(), true)
            }
            Some(_) if is_planned => (format!("the old queue is still there. Apply goes on, {way_back}"), true),
            Some(_) => ("the queue is as it shall be. Apply brings the messages back".to_owned(), true),
        };
        on_the_tap(draft, situation, &name);
        if is_deleted {
            // What is held beside it, and all that still comes to the tap, would be left there for ever.
            let text = format!("a migration of it was cut short; {}, and it is to be deleted", held(situation, &name));
            let lift = format!("first let it finish, with the spec that it was begun with; {way_back}");
            draft.block(&address, text, Some(lift));
        }
        draft.unfinished.push(Note {
            address,
            text: format!("a migration of {id} was cut short; {held}: {text}", held = held(situation, &name)),
        });
        if let (Some(wanted), true, false) = (wanted, goes_on, is_planned) {
            let mut holding = holding.clone();
            holding.arguments.retain(|name, _| name != MIGRATES && name != BEFORE);
            let migration =
                Migration { queue: name, wanted: wanted.clone(), goal: Goal::Recreate, holding, shield: None };
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
        let found = holding_queues(situation.current)
            .find(|(name, _)| situation.address(&ObjectId::Queue(name.clone())) == *address);
        let Some((name, holding)) = found else {
            if is_here(situation, address) {
                draft.block(address, "no migration of it is under way: there is nothing to undo".to_owned(), None);
            }
            continue;
        };
        let before = holding.arguments.get(BEFORE).and_then(ArgumentValue::as_text);
        let before: Option<Queue> = before.and_then(|text| serde_json::from_str(text).ok());
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
                let text =
                    format!("the migration of {} is undone; {}", ObjectId::Queue(name.clone()), held(situation, &name));
                draft.unfinished.push(Note { address: address.clone(), text });
                let (wanted, holding) = (live.clone(), holding.clone());
                draft.migrations.push(Migration { queue: name, wanted, goal: Goal::PutBack, holding, shield: None });
            }
        }
    }
}

/// Whether an address is in this vhost.
fn is_here(situation: &Situation<'_>, address: &Address) -> bool {
    let vhost = situation.address(&ObjectId::Queue(QueueName::new("")));
    address.as_str().starts_with(vhost.as_str())
}
