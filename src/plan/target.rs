//! `--target`: keeps only what the addresses match, and what that needs to exist.

use super::document::{ChangeKind, Options, PlannedChange};
use super::draft::Draft;
use super::situation::Situation;
use crate::model::{Address, ExchangeName, Object, ObjectId};
use std::collections::BTreeSet;

/// Drops every change that no target asks for. A queue or an exchange brings the bindings into it; what is created
/// brings what it needs: the vhost, both ends of a binding, and its alternate or dead-letter exchange with the bindings from
/// there: without these, what comes there would be dropped in silence.
pub(super) fn restrict(draft: &mut Draft, situation: &Situation<'_>, options: &Options) {
    if options.targets.is_empty() {
        return;
    }
    let matches = |address: &Address| options.targets.iter().any(|target| target.matches(address.as_str()));
    let mut kept: BTreeSet<ObjectId> =
        draft.changes.iter().filter(|change| matches(&change.address)).filter_map(PlannedChange::id).collect();
    for change in &draft.changes {
        if let Some(ObjectId::Binding(binding)) = change.id()
            && matches(&situation.address(&binding.destination.id()))
        {
            kept.insert(ObjectId::Binding(binding));
        }
    }
    loop {
        let needed: Vec<ObjectId> = draft
            .changes
            .iter()
            .filter(|change| change.id().is_some_and(|id| kept.contains(&id)) && change.kind != ChangeKind::Delete)
            .flat_map(|change| needs(change, &draft.changes))
            .filter(|id| !kept.contains(id))
            .filter(|id| {
                draft.changes.iter().any(|change| change.id().as_ref() == Some(id) && change.kind == ChangeKind::Create)
            })
            .collect();
        if needed.is_empty() {
            break;
        }
        kept.extend(needed);
    }
    let dropped: Vec<PlannedChange> = {
        let (keep, drop) = std::mem::take(&mut draft.changes)
            .into_iter()
            .partition(|change| change.id().is_some_and(|id| kept.contains(&id)));
        draft.changes = keep;
        drop
    };
    let addresses: BTreeSet<Address> = draft.changes.iter().map(|change| change.address.clone()).collect();
    let wanted = |address: &Address| addresses.contains(address) || matches(address);
    draft.blocks.retain(|block| wanted(&block.address));
    draft.hazards.retain(|hazard| wanted(&hazard.address));
    draft.notes.retain(|note| wanted(&note.address));
    draft.undeclared.retain(|undeclared| wanted(&undeclared.address));
    if !dropped.is_empty() {
        let address = situation.address(&ObjectId::Vhost);
        draft.note(&address, format!("--target leaves out {} of the changes", dropped.len()));
    }
}

fn needs(change: &PlannedChange, all: &[PlannedChange]) -> Vec<ObjectId> {
    let mut needed = vec![ObjectId::Vhost];
    let fallback = match &change.after {
        Some(Object::Exchange(_, made)) => made.alternate_exchange(),
        Some(Object::Queue(_, queue)) => {
            queue.arguments.get("x-dead-letter-exchange").and_then(|value| value.as_text())
        }
        Some(Object::Binding(binding)) => {
            needed.push(ObjectId::Exchange(binding.source.clone()));
            needed.push(binding.destination.id());
            None
        }
        Some(Object::Vhost(_) | Object::Policy(..)) | None => None,
    };
    if let Some(fallback) = fallback {
        let from_there = |id: &ObjectId| match id {
            ObjectId::Binding(binding) => binding.source.as_str() == fallback,
            ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Queue(_) | ObjectId::Policy(_) => false,
        };
        needed.push(ObjectId::Exchange(ExchangeName::from(fallback)));
        needed.extend(all.iter().filter_map(PlannedChange::id).filter(from_there));
    }
    needed
}
