//! From differences to planned changes: verdicts, conflicts, hazards, blocks. The order of steps is `order`'s.

use super::document::{
    Block, ChangeKind, Conflict, FieldVerdict, Note, Options, Plan, PlannedChange, Source, Target, Undeclared,
    VhostPlan, Wanted,
};
use super::hazard::{Hazard, HazardKind};
use super::recreate::Refusal;
use super::verdict::{self, Verdict, rank, sentence};
use super::{
    Activity, QueueActivity, advice, deletions, document, effects, fingerprint, order, recreate, simulate, target,
};
use crate::diff::{Change, Field, FieldChange, diff};
use crate::model::{
    Address, Binding, BrokerVersion, Object, ObjectId, OnConflict, Policy, PolicyName, QueueType, Topology,
};
use std::collections::{BTreeMap, BTreeSet};

/// All that a plan of one vhost is computed from.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// What is live; every object, also those that are not to be touched, but predeclared exchanges.
    pub current: &'a Topology,
    /// What the spec wants.
    pub wanted: &'a Wanted,
    /// What the live queues were doing.
    pub activity: &'a Activity,
    /// The broker's own keys of each live binding.
    pub properties_keys: &'a BTreeMap<Binding, Vec<String>>,
    /// Live objects that topo never touches: exclusive, auto-delete, server-named, a plugin's, topo's own.
    pub untouchable: &'a BTreeSet<ObjectId>,
    /// Policies of the operator: they bound what users' policies say.
    pub operator_policies: &'a BTreeMap<PolicyName, Policy>,
    /// The broker's version.
    pub version: BrokerVersion,
}

impl Situation<'_> {
    pub(super) fn address(&self, id: &ObjectId) -> Address {
        Address::of(&self.current.vhost, id)
    }

    pub(super) fn live(&self, id: &ObjectId) -> Option<&QueueActivity> {
        match id {
            ObjectId::Queue(name) => self.activity.queues.get(name),
            ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Binding(_) => None,
        }
    }

    fn source(&self, id: &ObjectId) -> Option<Source> {
        let sources = &self.wanted.sources;
        sources.binary_search_by(|(known, _)| known.cmp(id)).ok().map(|index| sources[index].1.clone())
    }
}

/// What a plan is collected into before its steps are ordered.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) changes: Vec<PlannedChange>,
    pub(super) undeclared: Vec<Undeclared>,
    pub(super) notes: Vec<Note>,
    pub(super) blocks: Vec<Block>,
    pub(super) hazards: Vec<Hazard>,
}

impl Draft {
    pub(super) fn hazard(&mut self, kind: HazardKind, address: &Address, text: String, messages: Option<u64>) {
        let must_be_allowed = kind != HazardKind::PolicyShift;
        self.hazards.push(Hazard { kind, address: address.clone(), text, messages, must_be_allowed });
    }

    pub(super) fn block(&mut self, address: &Address, text: String, lift: Option<String>) {
        self.blocks.push(Block { address: address.clone(), text, lift, flag: None });
    }

    pub(super) fn note(&mut self, address: &Address, text: String) {
        self.notes.push(Note { address: address.clone(), text });
    }
}

/// Whether counts of messages and consumers can matter to this spec on this vhost: only then are they worth reading.
pub fn needs_activity(current: &Topology, wanted: &Wanted) -> bool {
    diff(current, &wanted.topology, &wanted.scope).iter().any(|change| match change {
        Change::Create(object) => matches!(object, Object::Policy(..)),
        Change::Alter { .. } => true,
        Change::Delete { object, .. } => !matches!(object, Object::Binding(_)),
    })
}

/// The plan of one vhost.
pub fn plan_vhost(situation: &Situation<'_>, options: &Options) -> VhostPlan {
    let Situation { current, wanted, .. } = situation;
    let mut draft = Draft::default();
    let mut removals = Vec::new();
    for change in diff(current, &wanted.topology, &wanted.scope) {
        match change {
            Change::Create(object) => create(&mut draft, situation, object),
            Change::Alter { before, after, fields } => alter(&mut draft, situation, options, (before, after), &fields),
            Change::Delete { object, reason } => removals.push((object, reason)),
        }
    }
    deletions::plan(&mut draft, situation, options, removals);
    external_objects(&mut draft, situation);
    target::restrict(&mut draft, situation, options);
    recreate::keep_no_unwanted(&mut draft);
    effects::hazards(&mut draft, situation);
    deletions::last_bindings(&mut draft, situation);
    deletions::mass_delete(&mut draft, situation);
    let steps = order::steps(&mut draft, situation, options);
    simulate::check(&mut draft, situation, options, &steps);

    let Draft { changes, undeclared, notes, blocks, hazards } = draft;
    let desired = &wanted.topology;
    VhostPlan {
        vhost: current.vhost.clone(),
        changes,
        undeclared,
        notes,
        blocks,
        hazards,
        steps,
        compared_objects: 1 + desired.exchanges.len() + desired.queues.len() + desired.policies.len(),
        compared_bindings: desired.bindings.len(),
        wanted: (*wanted).clone(),
    }
}

/// Joins the plans of all vhosts into one document, with its summary and fingerprint.
pub fn seal(target: Target, options: Options, vhosts: Vec<VhostPlan>) -> Plan {
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
    let mut plan =
        Plan { format_version: document::FORMAT_VERSION, target, options, fingerprint: String::new(), summary, vhosts };
    plan.fingerprint = fingerprint::fingerprint(&plan);
    plan
}

/// A change with nothing but its ends.
pub(super) fn change(
    situation: &Situation<'_>,
    kind: ChangeKind,
    before: Option<Object>,
    after: Option<Object>,
) -> PlannedChange {
    let id = after.as_ref().or(before.as_ref()).map_or(ObjectId::Vhost, Object::id);
    PlannedChange {
        address: situation.address(&id),
        kind,
        source: situation.source(&id),
        before,
        after,
        fields: Vec::new(),
        conflict: None,
        live: None,
        kept: None,
        reason: None,
    }
}

fn create(draft: &mut Draft, situation: &Situation<'_>, object: Object) {
    let planned = change(situation, ChangeKind::Create, None, Some(object));
    if matches!(planned.id().as_ref().and_then(ObjectId::name), Some("." | "..")) {
        let text = "no HTTP request can carry a name that is a dot segment of a path".to_owned();
        draft.block(&planned.address, text, Some("use another name".to_owned()));
    }
    if let Some(Object::Binding(binding)) = &planned.after
        && binding.breaks_the_list()
    {
        let text =
            "with a `~` in its key and arguments, this binding makes the management API fail for its whole vhost";
        draft.block(&planned.address, text.to_owned(), Some("use a key without `~`".to_owned()));
    }
    refuse_invalid(draft, situation, &planned);
    draft.changes.push(planned);
}

/// A fresh declare that this version would refuse is said now, not by a 400 in the middle of an apply.
fn refuse_invalid(draft: &mut Draft, situation: &Situation<'_>, planned: &PlannedChange) {
    let Some(Object::Queue(_, queue)) = &planned.after else { return };
    let version = situation.version;
    if queue.queue_type() == Some(QueueType::Stream) && !version.is_at_least(3, 9) {
        draft.block(&planned.address, format!("streams exist since RabbitMQ 3.9, this is {version}"), None);
        return;
    }
    for (known, queue_type) in verdict::refused_on_declare(queue, version) {
        let since = known.support_for(queue_type).map(|support| support.taken);
        let text = match since {
            Some((major, minor)) => {
                format!("{queue_type} queues take {} since RabbitMQ {major}.{minor}, this is {version}", known.name)
            }
            None => format!("{queue_type} queues do not take {}", known.name),
        };
        draft.block(&planned.address, text, Some(format!("take `{}` out of the spec", known.key)));
    }
}

fn alter(
    draft: &mut Draft,
    situation: &Situation<'_>,
    options: &Options,
    (before, after): (Object, Object),
    fields: &[FieldChange],
) {
    let mut judged: Vec<(&FieldChange, Verdict)> = fields
        .iter()
        .map(|field| (field, verdict::verdict(field, &before, &after, situation.version)))
        .filter(|(_, verdict)| *verdict != Verdict::Equal)
        .collect();
    judged.sort_by_key(|(field, _)| rank(&field.field));
    let id = after.id();
    let address = situation.address(&id);
    for (field, _) in judged.iter().filter(|(_, verdict)| *verdict == Verdict::Unknown) {
        let text = format!(
            "argument {} differs ({} → {}); no broker knows it, and it stays as it is",
            field.field,
            shown(field.before.as_ref()),
            shown(field.after.as_ref())
        );
        draft.note(&address, text);
    }
    if judged.iter().all(|(_, verdict)| *verdict == Verdict::Unknown) {
        return;
    }
    let mut planned = change(situation, ChangeKind::Change, Some(before), Some(after.clone()));
    planned.fields = judged
        .iter()
        .map(|(field, verdict)| FieldVerdict {
            field: field.field.to_string(),
            before: field.before.clone(),
            after: field.after.clone(),
            verdict: *verdict,
        })
        .collect();
    if judged.iter().all(|(_, verdict)| matches!(verdict, Verdict::InPlace | Verdict::Unknown)) {
        if judged.iter().any(|(field, _)| field.field == Field::DefaultQueueType) {
            draft.note(
                &address,
                "applications that declare existing queues without x-queue-type are refused once the default type changes"
                    .to_owned(),
            );
        }
        draft.changes.push(planned);
        return;
    }
    let first = judged.iter().find(|(_, verdict)| *verdict == Verdict::Conflict);
    let conflict = Conflict {
        sentence: first.map(|(field, _)| sentence(&situation.current.vhost, &after, field)),
        on_conflict: on_conflict(situation, options, &id, &address),
        ways_out: Vec::new(),
    };
    planned.live = situation.live(&id).cloned();
    resolve(draft, situation, planned, conflict);
}

/// The flag first, then the spec, then "refuse".
fn on_conflict(situation: &Situation<'_>, options: &Options, id: &ObjectId, address: &Address) -> OnConflict {
    let in_spec = || situation.wanted.scope.on_conflict.iter().find(|(known, _)| known == id).map(|(_, said)| *said);
    options.recreate.get(address).copied().or_else(in_spec).unwrap_or_default()
}

/// Makes a recreate of the change, or a conflict with a block that says why not.
fn resolve(draft: &mut Draft, situation: &Situation<'_>, mut planned: PlannedChange, mut conflict: Conflict) {
    match recreate::refusal(situation, &planned, conflict.on_conflict) {
        Some(Refusal { text, lift, may_recreate }) => {
            if let Some(before) = &planned.before {
                let instead = lift.clone().filter(|_| !may_recreate);
                let (fields, live) = (&planned.fields, planned.live.as_ref());
                conflict.ways_out = advice::ways_out(&planned.address, before, fields, live, instead);
            }
            let lift = lift.or_else(|| conflict.ways_out.last().cloned());
            draft.blocks.push(Block {
                address: planned.address.clone(),
                text,
                lift,
                flag: may_recreate.then(|| gentle_flag(&planned)).flatten(),
            });
            planned.kind = ChangeKind::Conflict;
        }
        None => {
            planned.kind = ChangeKind::Recreate;
            refuse_invalid(draft, situation, &planned);
            planned.kept = Some(recreate::kept_bindings(situation, &planned));
            recreate::hazards(draft, situation, &planned);
        }
    }
    planned.conflict = Some(conflict);
    draft.changes.push(planned);
}

/// The recreate that loses nothing: of an empty queue, or of an exchange.
fn gentle_flag(planned: &PlannedChange) -> Option<String> {
    match &planned.before {
        Some(Object::Exchange(..)) => Some(format!("--recreate {}=discard", planned.address)),
        Some(Object::Queue(_, queue)) if queue.queue_type() != Some(QueueType::Stream) => {
            let empty = planned.live.as_ref()?.messages == Some(0);
            empty.then(|| format!("--recreate {}=ifEmpty", planned.address))
        }
        Some(Object::Vhost(_) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_)) | None => None,
    }
}

/// What belongs to somebody else must be there, or bindings to it could not be made.
fn external_objects(draft: &mut Draft, situation: &Situation<'_>) {
    for id in &situation.wanted.scope.external {
        let exists = match id {
            ObjectId::Exchange(name) => name.is_predeclared() || situation.current.exchanges.contains_key(name),
            ObjectId::Queue(name) => situation.current.queues.contains_key(name),
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) => true,
        };
        if !exists {
            draft.block(
                &situation.address(id),
                format!("{id} is marked `external: true`, and it does not exist"),
                Some("have its owner create it first, or declare it here without `external`".to_owned()),
            );
        }
    }
}

fn shown(value: Option<&crate::model::ArgumentValue>) -> String {
    value.map_or_else(|| "absent".to_owned(), ToString::to_string)
}
