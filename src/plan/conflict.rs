//! Objects that differ: changed in place where the broker can, recreated where the spec or a flag says so, else a conflict
//! that blocks the plan.

use super::document::{Block, ChangeKind, Conflict, FieldVerdict, Options, PlannedChange};
use super::draft::Draft;
use super::recreate::Refusal;
use super::situation::Situation;
use super::verdict::{self, Verdict, is_refused_again, rank, sentence, unknown_type};
use super::way_out::WayKind;
use super::{advice, migrate, recreate};
use crate::behaviour::{plugin_keys, refusals, vhost_change_refusals};
use crate::diff::{Field, FieldChange};
use crate::model::{Address, ArgumentValue, Object, ObjectId, OnConflict, QueueType, Scope};

/// A fresh declare that this broker would refuse is said now, not by a 400 in the middle of an apply.
pub(super) fn refuse_invalid(draft: &mut Draft, situation: &Situation<'_>, planned: &PlannedChange) {
    let Some(after) = &planned.after else { return };
    let refused = match (&planned.before, after) {
        (Some(Object::Vhost(before)), Object::Vhost(after)) => vhost_change_refusals(before, after, situation.dialect),
        (_, Object::Binding(binding)) => situation.binding_refusals(binding),
        (_, after) => refusals(after, situation.dialect),
    };
    for refusal in refused {
        draft.block(&planned.address, refusal.text, refusal.hint);
    }
    if let Object::Policy(_, policy) = after {
        for key in plugin_keys(&policy.definition) {
            let text = format!("{key} is a plugin's: the broker refuses the policy where that is not enabled");
            draft.note(&planned.address, text);
        }
    }
}

/// Plans what becomes of an object that differs.
pub(super) fn alter(
    draft: &mut Draft,
    situation: &Situation<'_>,
    options: &Options,
    (before, after): (Object, Object),
    fields: &[FieldChange],
) {
    let mut judged: Vec<(&FieldChange, Verdict)> = fields
        .iter()
        .map(|field| (field, verdict::verdict(field, &before, &after, situation.dialect)))
        .filter(|(_, verdict)| *verdict != Verdict::Equal)
        .collect();
    judged.sort_by_key(|(field, _)| rank(&field.field, &before, situation.dialect));
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
    let is_unknown_type =
        |(field, verdict): &(&FieldChange, Verdict)| field.field == Field::Type && *verdict == Verdict::Invalid;
    let is_refused = |judged: &&(&FieldChange, Verdict)| {
        is_unknown_type(judged) || is_refused_again(judged.0, &before, &after, situation.dialect)
    };
    let sentence = judged.iter().find(is_refused).map(|judged| match &judged.0.after {
        Some(kind) if is_unknown_type(judged) => unknown_type(kind),
        Some(_) | None => sentence(&situation.current.vhost, &after, judged.0, situation.dialect),
    });
    let mut planned = situation.change(ChangeKind::Change, Some(before), Some(after.clone()));
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
        refuse_invalid(draft, situation, &planned);
        draft.changes.push(planned);
        return;
    }
    let live = planned.before.as_ref();
    let conflict = Conflict {
        sentence,
        afterwards: live.and_then(|live| advice::afterwards(situation, live, &after)),
        without_type: live.and_then(|live| advice::without_type(situation, live, &after)),
        on_conflict: on_conflict(&situation.wanted.scope, options, &id, &address),
        ways_out: Vec::new(),
    };
    planned.live = situation.live(&id).cloned();
    resolve(draft, situation, planned, conflict);
}

/// The flag first, then the spec, then "refuse".
pub(super) fn on_conflict(scope: &Scope, options: &Options, id: &ObjectId, address: &Address) -> OnConflict {
    let in_spec = || scope.on_conflict.iter().find(|(known, _)| known == id).map(|(_, said)| *said);
    options.recreate.get(address).copied().or_else(in_spec).unwrap_or_default()
}

/// Makes a recreate of the change, or a conflict with a block that says why not.
fn resolve(draft: &mut Draft, situation: &Situation<'_>, mut planned: PlannedChange, mut conflict: Conflict) {
    match recreate::refusal(situation, &planned, conflict.on_conflict) {
        Some(Refusal { text, lift, may_recreate }) => {
            let instead = lift.clone().filter(|_| !may_recreate);
            conflict.ways_out = advice::ways_out(situation, &planned, instead);
            let last: Vec<&str> = conflict
                .ways_out
                .iter()
                .filter(|way| matches!(way.kind, WayKind::Rename | WayKind::Recreate))
                .map(|way| way.text.as_str())
                .collect();
            let lift = lift.or_else(|| (!last.is_empty()).then(|| last.join("; or ")));
            let blocks = draft.blocks.len();
            refuse_invalid(draft, situation, &planned);
            // What no broker would take is not made right by a recreate: then that is all there is to say.
            let is_invalid = draft.blocks.len() > blocks;
            if is_invalid {
                conflict.ways_out.retain(|way| way.kind == WayKind::Keep);
                (conflict.afterwards, conflict.without_type) = (None, None);
            } else {
                draft.blocks.push(Block {
                    address: planned.address.clone(),
                    text,
                    lift,
                    flag: may_recreate.then(|| gentle_flag(situation, &planned)).flatten(),
                });
            }
            planned.kind = ChangeKind::Conflict;
        }
        None => {
            planned.kind = ChangeKind::Recreate;
            refuse_invalid(draft, situation, &planned);
            planned.kept = Some(recreate::kept_bindings(situation, &planned));
            recreate::hazards(draft, situation, &planned, conflict.on_conflict);
        }
    }
    planned.conflict = Some(conflict);
    draft.changes.push(planned);
}

/// The recreate that loses nothing: of an empty queue, of one whose messages are kept, or of an exchange.
fn gentle_flag(situation: &Situation<'_>, planned: &PlannedChange) -> Option<String> {
    match &planned.before {
        Some(Object::Exchange(..)) => Some(format!("--recreate {}=discard", planned.address)),
        Some(Object::Queue(name, queue)) if queue.queue_type() != Some(QueueType::Stream) => {
            let is_held = migrate::is_unfinished(situation.current, name);
            let is_empty = planned.live.as_ref()?.messages == Some(0) && !is_held;
            let how = if is_empty { "ifEmpty" } else { "migrate" };
            Some(format!("--recreate {}={how}", planned.address))
        }
        Some(Object::Vhost(_) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_)) | None => None,
    }
}

fn shown(value: Option<&ArgumentValue>) -> String {
    value.map_or_else(|| "absent".to_owned(), ToString::to_string)
}
