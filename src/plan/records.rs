//! Blocks plans that require records that the connected user is not allowed to read, or records whose owner does not
//! exist.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{Block, ChangeKind, Desired, Info, Options, VhostPlan};
use crate::model::count::count;
use crate::model::{Address, ObjectId, ObjectKind, Record, RecordId, RecordKind};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Returns the desired state without the records that the connected user is not allowed to read. A plan cannot compare
/// such records.
pub(super) fn without_unreadable<'a>(context: &PlanContext<'a>) -> Cow<'a, Arc<Desired>> {
    let unreadable = &context.records.unreadable;
    if unreadable.is_empty() {
        return Cow::Borrowed(context.desired);
    }
    let mut desired = Desired::clone(context.desired);
    desired.topology.records.retain(|id, _| !unreadable.contains(&id.kind));
    desired.scope.sections.retain(|kind, _| !unreadable.contains(kind));
    Cow::Owned(Arc::new(desired))
}

/// Blocks the plan if it requires records that the connected user is not allowed to read. Adds a note for other record
/// kinds that are not compared. `context` contains the whole desired state.
pub(super) fn block_unreadable(part: &mut VhostPlan, context: &PlanContext<'_>, options: &Options) {
    let is_reported = |address: &Address| {
        options.targets.is_empty() || options.targets.iter().any(|target| target.matches(address.as_str()))
    };
    let whole = context.address(&ObjectId::Vhost);
    let is_declared = |kind: &RecordKind| context.desired.topology.records.keys().any(|id| id.kind == *kind);
    for kind in &context.records.unreadable {
        let row = kind.row();
        // A record without fields states only that its object, such as a user with limits, exists.
        let has_fields = |record: &&Record| record.id.kind == *kind && !record.fields.is_empty();
        let declared = context.desired.topology.records.values().filter(has_fields).map(|record| &record.id);
        let scope = &context.desired.scope;
        let removed = scope.removed.iter().filter(|id| id.kind() == ObjectKind::Record(*kind)).cloned();
        let named = declared.map(|id| ObjectId::Record(id.clone())).chain(removed);
        let named = named.map(|id| context.address(&id)).filter(is_reported).count();
        let block = |text| Block {
            address: whole.clone(),
            text,
            remedy: Some(format!("connect as a user with the {} tag", row.writer.as_str())),
            flag: None,
        };
        if named > 0 {
            let (records, tag) = (row.format_count(named), row.writer.as_str());
            part.blocks
                .push(block(format!("{records} cannot be compared: reading {} requires the {tag} tag", row.plural)));
        } else if options.prune.contains(&ObjectKind::Record(*kind)) {
            let (plural, tag) = (row.plural, row.writer.as_str());
            part.blocks.push(block(format!("{plural} cannot be pruned: reading them requires the {tag} tag")));
        } else if scope.sections.contains_key(kind) && !is_declared(kind) {
            let text =
                format!("{} are not compared: reading them requires the {} tag", row.plural, row.writer.as_str());
            part.infos.push(Info { address: whole.clone(), text });
        }
    }
}

/// Blocks the plan if it creates records that belong to an object that does not exist. Adds one block for each missing
/// object, and a note if topo did not read the existing objects.
pub(super) fn block_missing_owners(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    let mut seen: BTreeSet<(&'static str, String)> = BTreeSet::new();
    let mut missing: Vec<(Address, String, String)> = Vec::new();
    // The number of unknown objects and the first record kind that requires them, keyed by the noun for one object.
    let mut unknown: BTreeMap<&'static str, (u64, RecordKind)> = BTreeMap::new();
    for change in builder.changes.iter().filter(|change| change.kind == ChangeKind::Create) {
        let Some(ObjectId::Record(id)) = change.id() else { continue };
        let row = id.kind.row();
        let (Some(owners), Some(name)) = (row.owners, id.name()) else { continue };
        let is_unsupported = row.since.is_some_and(|since| context.profile.version < since);
        if is_unsupported || !seen.insert((owners.word, name.to_owned())) {
            continue;
        }
        match context.records.owners.get(&id.kind) {
            // With targets, the plan does not create every declared user.
            _ if options.targets.is_empty() && is_declared_user(context, name) => {}
            Some(Some(known)) if known.contains(name) => {}
            Some(Some(_)) => {
                let text = format!("{} `{name}` does not exist", owners.word);
                missing.push((change.address.clone(), text, owners.remedy.replace("NAME", name)));
            }
            Some(None) | None => unknown.entry(owners.word).or_insert((0, id.kind)).0 += 1,
        }
    }
    for (address, text, remedy) in missing {
        builder.block(&address, text, Some(remedy));
    }
    for (word, (many, kind)) in unknown {
        let is_unreadable = context.records.unreadable.contains(&RecordKind::User);
        let required_tag = match is_unreadable || context.records.owners.contains_key(&kind) {
            true => format!(": reading {word}s requires the {} tag", kind.row().writer.as_str()),
            false => String::new(),
        };
        let exist = if many == 1 { "exists" } else { "exist" };
        let text =
            format!("topo did not check whether {} in the spec {exist} on the broker{required_tag}", count(many, word));
        builder.info(&context.address(&ObjectId::Vhost), text);
    }
}

/// Returns true if a cluster document declares this user. In this case, the run creates the user or verifies that it
/// exists.
fn is_declared_user(context: &PlanContext<'_>, name: &str) -> bool {
    let Desired { topology, scope, .. } = &**context.desired;
    scope.users.declared.contains(name) || topology.records.contains_key(&RecordId::named(RecordKind::User, name))
}
