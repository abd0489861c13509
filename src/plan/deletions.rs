//! Live objects that are not wanted: deleted, or only reported.

use super::auto_delete;
use super::document::{ChangeKind, Options, PlannedChange, Undeclared};
use super::draft::Draft;
use super::hazard::HazardKind;
use super::situation::Situation;
use super::{recreate, retries};
use crate::diff::DeleteReason;
use crate::model::count::number;
use crate::model::{Address, Binding, Destination, ExchangeName, Object, ObjectId, QueueName};
use std::collections::{BTreeMap, BTreeSet};

/// Below so many owned objects, deleting a third of them is daily life.
const FEW: usize = 10;
/// More than this part of the owned objects, in percent, is "mass".
const PERCENT: usize = 30;

/// Plans the deletions that `removed` and `--prune` ask for, and lists the rest.
pub(super) fn plan(
    draft: &mut Draft,
    situation: &Situation<'_>,
    options: &Options,
    removals: Vec<(Object, DeleteReason)>,
) {
    for (object, reason) in removals {
        let id = object.id();
        let address = situation.address(&id);
        if situation.untouchable.contains(&id) {
            if reason == DeleteReason::Removed {
                let text = format!("{id} is exclusive, auto-delete or somebody's own: topo never touches it");
                draft.block(&address, text, Some("take it out of `removed`".to_owned()));
            }
            continue;
        }
        if protected(situation, &id) {
            match reason {
                DeleteReason::Removed => draft.block(
                    &address,
                    format!("{id} is both `removed` and protected"),
                    Some("take it out of one of the two".to_owned()),
                ),
                DeleteReason::Undeclared | DeleteReason::Retired => {
                    draft.note(&address, format!("{id} is undeclared, and protected: it stays"))
                }
            }
            continue;
        }
        if reason == DeleteReason::Undeclared && !options.prune.contains(&id.kind()) {
            draft.undeclared.push(Undeclared { address, object: id });
            continue;
        }
        if situation.is_undeletable(&id) {
            let text = format!("{id} cannot be deleted over HTTP, which takes its key for something else");
            let lift = "unbind it with an AMQP client";
            match reason {
                DeleteReason::Removed => draft.block(&address, text, Some(lift.to_owned())),
                DeleteReason::Undeclared | DeleteReason::Retired => {
                    draft.note(&address, format!("{text}: it stays; {lift}"))
                }
            }
            continue;
        }
        hazards(draft, situation, &address, &object);
        let mut planned = situation.change(ChangeKind::Delete, Some(object), None);
        planned.live = situation.live(&id).cloned();
        planned.reason = Some(reason);
        draft.changes.push(planned);
    }
    unbound(draft, situation);
}

/// What is bound to what goes, with each change that takes it along: a picture of the plan shows it.
fn unbound(draft: &mut Draft, situation: &Situation<'_>) {
    let deleted = draft.changes.iter().enumerate().filter(|(_, change)| change.kind == ChangeKind::Delete);
    let deleted: BTreeMap<ObjectId, usize> =
        deleted.filter_map(|(place, change)| Some((change.id()?, place))).collect();
    if deleted.is_empty() {
        return;
    }
    for binding in &situation.current.bindings {
        // One with a deletion of its own goes by that.
        if deleted.contains_key(&ObjectId::Binding(binding.clone())) {
            continue;
        }
        let ends = [binding.destination.id(), ObjectId::Exchange(binding.source.clone())];
        if let Some(place) = ends.iter().find_map(|id| deleted.get(id)) {
            draft.changes[*place].unbound.push(binding.clone());
        }
    }
}

fn protected(situation: &Situation<'_>, id: &ObjectId) -> bool {
    id.name().is_some_and(|name| situation.wanted.scope.protects(name))
}

fn hazards(draft: &mut Draft, situation: &Situation<'_>, address: &Address, object: &Object) {
    match object {
        Object::Queue(name, queue) => {
            let live = situation.live(&ObjectId::Queue(name.clone()));
            recreate::contents(draft, address, queue, live);
            in_tiers(draft, situation, address, name);
        }
        Object::Exchange(name, _) => {
            let id = ObjectId::Exchange(name.clone());
            let count = recreate::bindings_of(situation, &id).count();
            if count > 0 {
                let text = match count {
                    1 => "its only binding goes with it".to_owned(),
                    _ => format!("it has {count} bindings, and all go with it"),
                };
                draft.hazard(HazardKind::RoutingGap, address, text, None);
            }
        }
        Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) => {}
    }
}

/// What waits in the tiers of a queue comes back to it before it is deleted.
fn in_tiers(draft: &mut Draft, situation: &Situation<'_>, address: &Address, name: &QueueName) {
    let own = situation.live(&ObjectId::Queue(name.clone())).and_then(|live| live.messages);
    let text = match retries::waiting(situation, name) {
        Some(0) => return,
        Some(1) => "1 message waits for a retry, comes back, and is deleted with it".to_owned(),
        Some(waiting) => format!("{} messages wait for a retry, come back, and are deleted with it", number(waiting)),
        None => "the broker does not say how many messages wait for a retry: all are deleted with it".to_owned(),
    };
    let all = retries::waiting(situation, name).zip(own).map(|(waiting, own)| waiting + own);
    draft.hazard(HazardKind::MessageLoss, address, text, all);
}

/// A queue that loses its last binding gets nothing any more.
pub(super) fn last_bindings(draft: &mut Draft, situation: &Situation<'_>) {
    let queue = |binding: &Binding| match &binding.destination {
        Destination::Queue(name) => Some(name.clone()),
        Destination::Exchange(_) => None,
    };
    // What retries hand back through is no way to a queue, and what led into a tier is meant to end.
    let retired = draft.changes.iter().filter(|change| change.retires.is_some()).filter_map(PlannedChange::id);
    let retired: BTreeSet<ObjectId> = retired.collect();
    let mut unwanted = draft.unwanted_bindings();
    unwanted.retain(|binding| !retired.contains(&ObjectId::Binding(binding.clone())));
    let new = draft.changes.iter().filter_map(|change| match (change.kind, &change.after) {
        (ChangeKind::Create, Some(Object::Binding(binding))) => Some(binding),
        (_, _) => None,
    });
    let stay = situation.current.bindings.difference(&unwanted).chain(new);
    let bound: BTreeSet<_> = stay.filter_map(queue).collect();
    let unbound: BTreeSet<_> = unwanted.iter().filter_map(queue).filter(|name| !bound.contains(name)).collect();
    for name in unbound {
        let address = situation.address(&ObjectId::Queue(name));
        let text = "its last binding goes: nothing is routed to it any more".to_owned();
        draft.hazard(HazardKind::RoutingGap, &address, text, None);
    }
}

/// The broker deletes an auto-delete exchange with its last binding. One that is somebody else's is not topo's to end.
pub(super) fn foreign_auto_delete(draft: &mut Draft, situation: &Situation<'_>) {
    let gone: BTreeSet<ObjectId> =
        draft.changes.iter().filter(|change| change.kind == ChangeKind::Delete).filter_map(PlannedChange::id).collect();
    if gone.is_empty() {
        return;
    }
    let live = &situation.current.exchanges;
    let end = |name: &ExchangeName| ObjectId::Exchange(name.clone());
    let goes = |binding: &Binding| {
        gone.contains(&ObjectId::Binding(binding.clone()))
            || gone.contains(&end(&binding.source))
            || gone.contains(&binding.destination.id())
    };
    let mut bound = situation.current.bindings.clone();
    let is_auto_delete = |name: &ExchangeName| live.get(name).is_some_and(|exchange| exchange.auto_delete);
    let desired = &situation.wanted.topology;
    let lost = auto_delete::going(&bound, goes);
    for (name, _) in auto_delete::unbind(&mut bound, lost, is_auto_delete) {
        let bound_anew = desired.bindings.iter().any(|binding| binding.source == name);
        if desired.exchanges.contains_key(&name) || gone.contains(&end(&name)) || bound_anew {
            continue;
        }
        draft.block(
            &situation.address(&end(&name)),
            format!("exchange {name} is auto-delete and somebody else's, and this would take its last binding"),
            Some("have its owner bind it elsewhere first, or leave what it is bound to".to_owned()),
        );
    }
}

/// Deleting a large part of what is owned is more often a wrong file than a wish.
pub(super) fn mass_delete(draft: &mut Draft, situation: &Situation<'_>) {
    let not_binding = |id: &ObjectId| !matches!(id, ObjectId::Binding(_));
    let deleted = draft
        .changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Delete && change.retires.is_none())
        .filter(|change| change.id().is_some_and(|id| not_binding(&id)))
        .count();
    if deleted == 0 {
        return;
    }
    let desired = &situation.wanted.topology;
    let declared = desired.exchanges.len() + desired.queues.len() + desired.policies.len();
    let owned = situation.current.exchanges.keys().filter(|name| situation.wanted.scope.owns(name.as_str())).count()
        + situation.current.queues.keys().filter(|name| situation.wanted.scope.owns(name.as_str())).count()
        + situation.current.policies.keys().filter(|name| situation.wanted.scope.owns(name.as_str())).count();
    let all = owned.max(deleted);
    let address = situation.address(&ObjectId::Vhost);
    if declared == 0 {
        let objects = if deleted == 1 { "1 object is".to_owned() } else { format!("{deleted} objects are") };
        let text = format!("the spec declares nothing, and {objects} deleted");
        draft.hazard(HazardKind::MassDelete, &address, text, None);
    } else if all >= FEW && deleted * 100 > all * PERCENT {
        let text = format!("{deleted} of {all} owned objects are deleted");
        draft.hazard(HazardKind::MassDelete, &address, text, None);
    }
}
