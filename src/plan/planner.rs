//! From differences to planned changes: verdicts, conflicts, hazards, blocks. The order of steps is `order`'s.

use super::document::{self, ChangeKind, Options, Plan, Target, VhostPlan, Wanted};
use super::draft::Draft;
use super::situation::Situation;
use super::{
    conflict, deletions, effects, externals, fingerprint, keeps, migrate, old_bindings, order, recreate, retries,
    shovels, simulate, target, topic_permissions, wiring,
};
use crate::behaviour::{Dialect, as_stored};
use crate::diff::{Change, diff};
use crate::model::{Address, Object, ObjectId, OnConflict, Topology};
use std::borrow::Cow;
use std::sync::Arc;

/// Whether counts of messages and consumers can matter to this spec on this vhost: only then are they worth reading.
pub fn needs_activity(current: &Topology, wanted: &Wanted, dialect: &Dialect, options: &Options) -> bool {
    let wanted = &*wiring::adapted(wanted, current, dialect, options);
    migrate::is_any_unfinished(current)
        || retries::is_any_left(current, wanted)
        || diff(current, &wanted.topology, &wanted.scope).iter().any(|change| match change {
            Change::Create(object) => matches!(object, Object::Policy(..)),
            Change::Alter { .. } => true,
            Change::Delete { object, .. } => !matches!(object, Object::Binding(_)),
        })
}

/// Whether messages are moved, as far as can be told without knowing what is in the queues: only then it matters what can
/// move them.
pub fn moves_messages(current: &Topology, wanted: &Wanted, dialect: &Dialect, options: &Options) -> bool {
    let wanted = &*wiring::adapted(wanted, current, dialect, options);
    let migrates = |change: &Change| match change {
        Change::Alter { after: after @ Object::Queue(..), .. } => {
            let id = after.id();
            let address = Address::of(&current.vhost, &id);
            conflict::on_conflict(&wanted.scope, options, &id, &address) == OnConflict::Migrate
        }
        Change::Alter { .. } | Change::Create(_) | Change::Delete { .. } => false,
    };
    migrate::is_any_unfinished(current) || diff(current, &wanted.topology, &wanted.scope).iter().any(migrates)
}

/// The plan of one vhost.
pub fn plan_vhost(situation: &Situation<'_>, options: &Options) -> VhostPlan {
    let adapted = retries::adapted(situation);
    let adapted = wiring::adapted(&adapted, situation.current, situation.dialect, options);
    let wanted = match &adapted {
        Cow::Borrowed(same) if std::ptr::eq(*same, &raw const **situation.wanted) => Arc::clone(situation.wanted),
        Cow::Borrowed(_) | Cow::Owned(_) => Arc::new(adapted.into_owned()),
    };
    let situation = &Situation { wanted: &wanted, ..*situation };
    let Situation { current, .. } = situation;
    let mut draft = Draft::default();
    if options.abort.is_empty() {
        changes(&mut draft, situation, options);
    } else {
        migrate::abort(&mut draft, situation, options);
    }
    let steps = order::steps(&mut draft, situation, options);
    topic_permissions::hazards(&mut draft, situation, &steps);
    if options.abort.is_empty() {
        simulate::check(&mut draft, situation, options, &steps);
    }
    let Draft { changes, undeclared, notes, blocks, mut hazards, migrations, unfinished } = draft;
    // Of one kind, the order in which they were met stays.
    hazards.sort_by_key(|hazard| hazard.kind.gravity());
    let desired = &wanted.topology;
    VhostPlan {
        vhost: current.vhost.clone(),
        changes,
        undeclared,
        notes,
        blocks,
        hazards,
        unfinished,
        migrations,
        steps,
        compared_objects: 1 + desired.exchanges.len() + desired.queues.len() + desired.policies.len(),
        compared_bindings: desired.bindings.len(),
        wanted,
    }
}

/// What differs, with all that is to be said of it.
fn changes(draft: &mut Draft, situation: &Situation<'_>, options: &Options) {
    let Situation { current, wanted, .. } = situation;
    let mut removals = Vec::new();
    let changes = diff(current, &as_stored_all(&wanted.topology, situation.dialect), &wanted.scope);
    // A change is large, and a vector that grows is there twice.
    draft.changes.reserve(changes.len());
    for change in changes {
        match change {
            Change::Create(object) => create(draft, situation, object),
            Change::Alter { before, after, fields } => {
                conflict::alter(draft, situation, options, (before, after), &fields)
            }
            Change::Delete { object, reason } => removals.push((object, reason)),
        }
    }
    retries::retire(draft, situation, options, &mut removals);
    deletions::plan(draft, situation, options, removals);
    externals::missing(draft, situation);
    lacking(draft, situation);
    keeps::orphans(draft, situation);
    exclusive_queues(draft, situation);
    retries::hazards(draft, situation);
    retries::hazards_of_ends(draft, situation);
    target::restrict(draft, situation, options);
    migrate::keep_planned(draft);
    migrate::finish(draft, situation, options);
    recreate::keep_no_unwanted(draft);
    deletions::foreign_auto_delete(draft, situation);
    shovels::hazards(draft, situation);
    old_bindings::note(draft, situation);
    effects::hazards(draft, situation, options);
    deletions::last_bindings(draft, situation);
    deletions::mass_delete(draft, situation);
}

/// Joins the plans of all vhosts into one document, with its summary and fingerprint.
pub fn seal(target: Target, options: Options, vhosts: Vec<VhostPlan>) -> Plan {
    let summary = summary(&vhosts);
    let mut plan =
        Plan { format_version: document::FORMAT_VERSION, target, options, fingerprint: String::new(), summary, vhosts };
    plan.fingerprint = fingerprint::fingerprint(&plan);
    plan
}

/// Counts the changes of all vhosts.
pub(super) fn summary(vhosts: &[VhostPlan]) -> document::Summary {
    let mut summary = document::Summary::default();
    for change in vhosts.iter().flat_map(|part| &part.changes) {
        let binding = matches!(change.id(), Some(ObjectId::Binding(_)));
        let count = match change.kind {
            ChangeKind::Create if binding => &mut summary.bind,
            ChangeKind::Create => &mut summary.create,
            ChangeKind::Delete if binding => &mut summary.unbind,
            ChangeKind::Delete => &mut summary.delete,
            ChangeKind::Change => &mut summary.change,
            ChangeKind::Recreate => &mut summary.recreate,
            ChangeKind::Conflict => &mut summary.conflict,
        };
        *count += 1;
    }
    summary
}

/// With the types of queues that the broker would add: a spec says them all, but a definitions file or an application
/// may not.
fn as_stored_all<'a>(topology: &'a Topology, dialect: &Dialect) -> Cow<'a, Topology> {
    let mut stored = Cow::Borrowed(topology);
    for (name, queue) in &topology.queues {
        if let Cow::Owned(complete) = as_stored(queue, dialect) {
            stored.to_mut().queues.insert(name.clone(), complete);
        }
    }
    stored
}

fn create(draft: &mut Draft, situation: &Situation<'_>, object: Object) {
    let planned = situation.change(ChangeKind::Create, None, Some(object));
    conflict::refuse_invalid(draft, situation, &planned);
    draft.changes.push(planned);
}

/// What a queue of today would have, and a live one of an older broker has not: no reason to recreate it.
fn lacking(draft: &mut Draft, situation: &Situation<'_>) {
    for (name, arguments) in &situation.wanted.scope.optional {
        let Some(live) = situation.current.queues.get(name) else { continue };
        let lacks = |argument: &&String| !live.arguments.contains_key(*argument);
        let lacking: Vec<&str> = arguments.iter().filter(lacks).map(String::as_str).collect();
        if !lacking.is_empty() {
            let text =
                format!("it was made without {}, which it would get today; it stays as it is", lacking.join(" and "));
            draft.note(&situation.address(&ObjectId::Queue(name.clone())), text);
        }
    }
}

/// A queue that is exclusive to a connection refuses every declare but that connection's own, equal or not.
fn exclusive_queues(draft: &mut Draft, situation: &Situation<'_>) {
    for name in situation.wanted.topology.queues.keys() {
        let id = ObjectId::Queue(name.clone());
        let address = situation.address(&id);
        let is_exclusive = situation.current.queues.get(name).is_some_and(|queue| queue.exclusive);
        if is_exclusive && !draft.blocks.iter().any(|block| block.address == address) {
            let lift = "wait until that connection is closed, or use another name".to_owned();
            draft.block(&address, format!("{id} is live, and exclusive to a connection"), Some(lift));
        }
    }
}
