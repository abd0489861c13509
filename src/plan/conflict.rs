//! Plans the changes to objects that differ. topo changes an object in place if the broker supports the change, and
//! recreates the object if the spec or a flag allows recreating it. Otherwise, topo reports a conflict that blocks the
//! plan.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{Block, ChangeKind, Conflict, FieldVerdict, Options, PlannedChange};
use super::recreate::Refusal;
use super::resolution::ResolutionKind;
use super::verdict::{self, Verdict, broker_error, is_refused_again, rank, unknown_type};
use super::{advice, migrate, recreate};
use crate::diff::{Field, FieldChange};
use crate::model::{Address, ArgumentValue, Object, ObjectId, OnConflict, QueueType, Scope};
use crate::rabbitmq::{plugin_keys, refusals, vhost_change_refusals};

/// Blocks the plan if this broker would refuse the object, so that no apply fails halfway with a 400. Also adds notes
/// about policy keys that belong to plugins.
pub(super) fn refuse_invalid(builder: &mut PlanBuilder, context: &PlanContext<'_>, planned: &PlannedChange) {
    let Some(after) = &planned.after else { return };
    let reasons = match (&planned.before, after) {
        (Some(Object::Vhost(before)), Object::Vhost(after)) => vhost_change_refusals(before, after, context.profile),
        (_, Object::Binding(binding)) => context.binding_refusals(binding),
        (_, after) => refusals(after, context.profile),
    };
    for refusal in reasons {
        builder.block(&planned.address, refusal.text, refusal.hint);
    }
    if let Object::Policy(_, policy) = after {
        for key in plugin_keys(&policy.definition) {
            let text = format!("{key} belongs to a plugin: the broker refuses the policy if the plugin is not enabled");
            builder.info(&planned.address, text);
        }
    }
}

/// Plans the change to an object that differs.
pub(super) fn alter(
    builder: &mut PlanBuilder,
    context: &PlanContext<'_>,
    options: &Options,
    (before, after): (Object, Object),
    fields: &[FieldChange],
) {
    let mut verdicts: Vec<(&FieldChange, Verdict)> = fields
        .iter()
        .map(|field| (field, verdict::verdict(field, &before, &after, context.profile)))
        .filter(|(_, verdict)| *verdict != Verdict::Equal)
        .collect();
    verdicts.sort_by_key(|(field, _)| rank(&field.field, &before, context.profile));
    let id = after.id();
    let address = context.address(&id);
    for (field, _) in verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Unknown) {
        let text = format!(
            "argument {} differs ({} → {}); the broker does not use it, and topo will not change it",
            field.field,
            value_text(field.before.as_ref()),
            value_text(field.after.as_ref())
        );
        builder.info(&address, text);
    }
    if verdicts.iter().all(|(_, verdict)| *verdict == Verdict::Unknown) {
        return;
    }
    let is_unknown_type =
        |(field, verdict): &(&FieldChange, Verdict)| field.field == Field::Type && *verdict == Verdict::Invalid;
    let is_refused = |difference: &&(&FieldChange, Verdict)| {
        is_unknown_type(difference) || is_refused_again(difference.0, &before, &after, context.profile)
    };
    let broker_error = verdicts.iter().find(is_refused).map(|difference| match &difference.0.after {
        Some(kind) if is_unknown_type(difference) => unknown_type(kind, context.profile.version),
        Some(_) | None => broker_error(&context.current.vhost, &after, difference.0, context.profile),
    });
    let mut planned = context.change(ChangeKind::Change, Some(before), Some(after.clone()));
    planned.fields = verdicts
        .iter()
        .map(|(field, verdict)| FieldVerdict {
            field: field.field.to_string(),
            before: field.before.clone(),
            after: field.after.clone(),
            verdict: *verdict,
        })
        .collect();
    if verdicts.iter().all(|(_, verdict)| matches!(verdict, Verdict::InPlace | Verdict::Unknown)) {
        if verdicts.iter().any(|(field, _)| field.field == Field::DefaultQueueType) {
            builder.info(
                &address,
                "applications that declare existing queues without x-queue-type will be refused once the default type \
                 changes"
                    .to_owned(),
            );
        }
        refuse_invalid(builder, context, &planned);
        builder.changes.push(planned);
        return;
    }
    let live = planned.before.as_ref();
    let conflict = Conflict {
        broker_error,
        error_after_recreate: live.and_then(|live| advice::error_after_recreate(context, live, &after)),
        typeless_declare: live.and_then(|live| advice::typeless_declare(context, live, &after)),
        on_conflict: on_conflict(&context.desired.scope, options, &id, &address),
        resolutions: Vec::new(),
    };
    planned.live = context.live(&id).cloned();
    resolve(builder, context, planned, conflict);
}

/// Returns the `onConflict` setting of an object, as set by `--recreate` or the spec. The default is `refuse`.
pub(super) fn on_conflict(scope: &Scope, options: &Options, id: &ObjectId, address: &Address) -> OnConflict {
    let in_spec = || scope.on_conflict.iter().find(|(known, _)| known == id).map(|(_, setting)| *setting);
    options.recreate.get(address).copied().or_else(in_spec).unwrap_or_default()
}

/// Plans the recreation of an object if topo may recreate it. Otherwise, adds a conflict, and a block that contains the
/// reason.
fn resolve(builder: &mut PlanBuilder, context: &PlanContext<'_>, mut planned: PlannedChange, mut conflict: Conflict) {
    match recreate::refusal(context, &planned, conflict.on_conflict) {
        Some(Refusal { text, remedy, may_recreate }) => {
            let instead = remedy.clone().filter(|_| !may_recreate);
            conflict.resolutions = advice::resolutions(context, &planned, instead);
            let last: Vec<&str> = conflict
                .resolutions
                .iter()
                .filter(|resolution| matches!(resolution.kind, ResolutionKind::Rename | ResolutionKind::Recreate))
                .map(|resolution| resolution.text.as_str())
                .collect();
            let remedy = remedy.or_else(|| (!last.is_empty()).then(|| last.join("; or ")));
            let blocks = builder.blocks.len();
            refuse_invalid(builder, context, &planned);
            // Recreating an object that this broker refuses does not help. In that case, topo reports only the refusal.
            let is_invalid = builder.blocks.len() > blocks;
            if is_invalid {
                conflict.resolutions.retain(|resolution| resolution.kind == ResolutionKind::Keep);
                (conflict.error_after_recreate, conflict.typeless_declare) = (None, None);
            } else {
                builder.blocks.push(Block {
                    address: planned.address.clone(),
                    text,
                    remedy,
                    flag: may_recreate.then(|| lossless_flag(context, &planned)).flatten(),
                });
            }
            planned.kind = ChangeKind::Conflict;
        }
        None => {
            planned.kind = ChangeKind::Recreate;
            refuse_invalid(builder, context, &planned);
            planned.kept = Some(recreate::kept_bindings(context, &planned));
            recreate::hazards(builder, context, &planned, conflict.on_conflict);
        }
    }
    planned.conflict = Some(conflict);
    builder.changes.push(planned);
}

/// Returns the flag that recreates an exchange, or that recreates a queue without losing its messages. Returns `None`
/// for a stream, for a queue whose activity is unknown, and for other objects.
fn lossless_flag(context: &PlanContext<'_>, planned: &PlannedChange) -> Option<String> {
    match &planned.before {
        Some(Object::Exchange(..)) => Some(format!("--recreate {}=discard", planned.address)),
        Some(Object::Queue(name, queue)) if queue.queue_type() != Some(QueueType::Stream) => {
            let is_interrupted = migrate::is_interrupted(context.current, name);
            let is_empty = planned.live.as_ref()?.messages == Some(0) && !is_interrupted;
            let how = if is_empty { "ifEmpty" } else { "migrate" };
            Some(format!("--recreate {}={how}", planned.address))
        }
        Some(Object::Vhost(_) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_) | Object::Record(_))
        | None => None,
    }
}

fn value_text(value: Option<&ArgumentValue>) -> String {
    value.map_or_else(|| "absent".to_owned(), ToString::to_string)
}

/// Repairs exchanges that the broker stores without a value for `auto_delete`, for example after a definitions import
/// before RabbitMQ 4.2.2. Plans to recreate such an exchange if the spec or a flag allows recreating it, and
/// otherwise adds a note.
///
/// Such an exchange routes messages and is never deleted automatically. The broker rejects every declaration of such an
/// exchange, with either value (`rabbit_exchange:assert_equivalence`, 3.8 to 4.2). The only repair is to recreate the
/// exchange.
pub(super) fn restore_auto_delete(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    for name in context.lacks_auto_delete {
        let id = ObjectId::Exchange(name.clone());
        let (Some(before), Some(after)) = (context.current.object(&id), context.desired.topology.object(&id)) else {
            continue;
        };
        let address = context.address(&id);
        // Another field of the exchange is already in conflict. Recreating the exchange resolves both differences.
        if builder.changes.iter().any(|change| change.address == address && change.conflict.is_some()) {
            continue;
        }
        let Object::Exchange(_, exchange) = &after else { continue };
        let field = FieldChange { field: Field::AutoDelete, before: None, after: Some(exchange.auto_delete.into()) };
        if on_conflict(&context.desired.scope, options, &id, &address) == OnConflict::Refuse {
            let error = broker_error(&context.current.vhost, &after, &field, context.profile);
            let text = format!(
                "it was imported without auto_delete: it routes messages, but the broker refuses every declaration of \
                 this exchange ({error}); --recreate {address}=discard repairs the exchange"
            );
            builder.info(&address, text);
        } else {
            alter(builder, context, options, (before, after), &[field]);
        }
    }
}
