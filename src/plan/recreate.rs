//! Decides whether topo may recreate an object that cannot change in place. Determines the hazards of recreating the
//! object and the bindings to restore.

use super::activity::QueueActivity;
use super::activity::{unlisted_consumers_text, unlisted_holder_text};
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{KeptBindings, PlannedChange};
use super::hazard::HazardKind;
use super::migrate::{self, MigrationBlocker};
use super::topic_permissions;
use super::verdict::Verdict;
use crate::model::count::number;
use crate::model::{
    Address, ArgumentValue, Binding, Object, ObjectId, OnConflict, Queue, QueueType, has_truncated_value,
};

/// The reason why topo does not recreate an object to resolve its conflict.
pub(super) struct Refusal {
    pub(super) text: String,
    /// The remedy. If `None`, the plan shows the rename and recreate resolutions instead.
    pub(super) remedy: Option<String>,
    /// True if the user can still request the recreation, for example with `--recreate`.
    pub(super) may_recreate: bool,
}

impl Refusal {
    fn never(text: String, remedy: &str) -> Option<Self> {
        Some(Self { text, remedy: Some(remedy.to_owned()), may_recreate: false })
    }

    fn unless_requested(text: String, remedy: Option<String>) -> Option<Self> {
        Some(Self { text, remedy, may_recreate: true })
    }
}

/// Returns true if the value may be or contain an AMQP void. The management API lists a void as the string `undefined`,
/// at any depth (all versions). For a headers exchange, a void matches any value of an existing header.
fn may_be_void(value: &ArgumentValue) -> bool {
    match value {
        ArgumentValue::Null => true,
        ArgumentValue::Text(text) => text == "undefined",
        ArgumentValue::List(values) => values.iter().any(may_be_void),
        ArgumentValue::Table(table) => table.values().any(may_be_void),
        ArgumentValue::Boolean(_) | ArgumentValue::Integer(_) | ArgumentValue::Float(_) => false,
    }
}

/// Returns the reason why topo must not recreate the object; `None` if topo may recreate the object.
pub(super) fn refusal(context: &PlanContext<'_>, planned: &PlannedChange, on_conflict: OnConflict) -> Option<Refusal> {
    let id = planned.id()?;
    let name = id.name()?;
    if context.desired.scope.protects(name) {
        let remedy = "remove it from `protect`, and plan again";
        return Refusal::never(format!("{id} is protected: it is never recreated"), remedy);
    }
    if context.untouchable.contains(&id) {
        let text = format!(
            "{id} is exclusive, auto-delete, server-named, or internal to a plugin or topo: topo never changes it"
        );
        return Refusal::never(text, "wait until it is deleted, or use a different name");
    }
    let is_complete = |object: &Object| match object {
        Object::Exchange(_, exchange) => !has_truncated_value(&exchange.arguments),
        Object::Queue(_, queue) => !has_truncated_value(&queue.arguments),
        Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) | Object::Record(_) => true,
    };
    if !planned.before.as_ref().is_none_or(is_complete) {
        let text = format!("topo cannot recreate {id}: one of its arguments has {}", ArgumentValue::too_large());
        return Refusal::never(text, "delete it manually, or use a different name");
    }
    if let Some(binding) = bindings_of(context, &id).find(|binding| has_truncated_value(&binding.arguments)) {
        let text = format!(
            "topo would not be able to restore {binding} after the recreation: one of its arguments has {}",
            ArgumentValue::too_large()
        );
        return Refusal::never(text, "remove that binding, or replace it with a different one");
    }
    // The broker may refuse to restore a current binding, because exchange types support different bindings.
    let refusal_of = |binding: &Binding| context.binding_refusals(binding).into_iter().next();
    if let Some((binding, why)) = bindings_of(context, &id).find_map(|one| Some((one, refusal_of(one)?))) {
        let text = format!("topo would not be able to restore {binding} after the recreation: {}", why.text);
        return Refusal::never(text, "remove that binding, or replace it with a different one");
    }
    let declared = &context.desired.topology.bindings;
    // A migration compares the restored bindings with the original bindings, and can bind over AMQP.
    let is_migration = on_conflict == OnConflict::Migrate && matches!(id, ObjectId::Queue(_));
    let has_unrestorable_void =
        |binding: &Binding| !is_migration && !declared.contains(binding) && binding.arguments.values().any(may_be_void);
    if let Some(binding) = bindings_of(context, &id).find(|binding| has_unrestorable_void(binding)) {
        let text = format!(
            "topo would not be able to restore {binding} after the recreation: `undefined` can represent an AMQP void value, \
             which the management API does not accept"
        );
        return Refusal::never(
            text,
            "if the value is a string, declare that binding in the spec; otherwise, ask the owner of the binding to \
             replace it",
        );
    }
    let queue = match &planned.before {
        Some(Object::Queue(_, queue)) => queue,
        Some(Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Binding(_) | Object::Record(_))
        | None => {
            return exchange_refusal(planned, on_conflict);
        }
    };
    if let (OnConflict::Migrate, ObjectId::Queue(name), Some(Object::Queue(_, desired))) =
        (on_conflict, &id, &planned.after)
    {
        let MigrationBlocker { text, remedy } = migrate::migration(context, name, queue, desired).err()?;
        return Refusal::unless_requested(text, remedy);
    }
    if let ObjectId::Queue(name) = &id
        && on_conflict != OnConflict::Refuse
        && migrate::is_interrupted(context.current, name)
    {
        // The queue's messages are in the holding queues, so its message count does not include them.
        let text = "a migration of the queue was interrupted: resume the migration or roll it back first".to_owned();
        return Refusal::unless_requested(text, None);
    }
    queue_refusal(planned, queue, on_conflict)
}

fn exchange_refusal(planned: &PlannedChange, on_conflict: OnConflict) -> Option<Refusal> {
    match on_conflict {
        OnConflict::Refuse => Refusal::unless_requested(fields_text(planned, "exchange"), None),
        OnConflict::Migrate => {
            Refusal::unless_requested("`migrate` moves messages, but an exchange stores no messages".to_owned(), None)
        }
        OnConflict::IfEmpty | OnConflict::Discard => None,
    }
}

fn queue_refusal(planned: &PlannedChange, queue: &Queue, on_conflict: OnConflict) -> Option<Refusal> {
    let is_stream = queue.queue_type() == Some(QueueType::Stream);
    match on_conflict {
        OnConflict::Refuse => {
            Refusal::unless_requested(fields_text(planned, if is_stream { "stream" } else { "queue" }), None)
        }
        OnConflict::IfEmpty if is_stream => Refusal::unless_requested(
            "a stream cannot be proven empty: the broker ignores `if-empty` for streams".to_owned(),
            Some(format!("give the new stream a different name, or use --recreate {}=discard", planned.address)),
        ),
        OnConflict::IfEmpty => match planned.live.as_ref().and_then(|live| live.messages) {
            Some(0) => None,
            Some(1) => {
                Refusal::unless_requested("it contains 1 message, so `ifEmpty` does not recreate it".to_owned(), None)
            }
            Some(messages) => Refusal::unless_requested(
                format!("it contains {} messages, so `ifEmpty` does not recreate it", number(messages)),
                None,
            ),
            None => Refusal::unless_requested(
                "the broker does not report the queue's message count, so `ifEmpty` does not recreate the queue"
                    .to_owned(),
                None,
            ),
        },
        OnConflict::Discard | OnConflict::Migrate => None,
    }
}

fn fields_text(planned: &PlannedChange, kind: &str) -> String {
    let fields: Vec<&str> = planned
        .fields
        .iter()
        .filter(|field| matches!(field.verdict, Verdict::Conflict | Verdict::Drift | Verdict::Invalid))
        .map(|field| field.field.as_str())
        .collect();
    format!("{} cannot change on an existing {kind}", fields.join(", "))
}

/// Returns the current bindings that the broker deletes together with the object.
pub(super) fn bindings_of<'a>(context: &PlanContext<'a>, id: &'a ObjectId) -> impl Iterator<Item = &'a Binding> {
    context.current.bindings.iter().filter(move |binding| binding.involves(id))
}

/// Returns the bindings and topic permissions to restore after the object is recreated: all current bindings, including
/// unmanaged bindings, and all topic permissions.
pub(super) fn kept_bindings(context: &PlanContext<'_>, planned: &PlannedChange) -> KeptBindings {
    let mut kept = KeptBindings::default();
    let Some(id) = planned.id() else { return kept };
    kept.topic_permissions = topic_permissions::deleted_with(context, &id);
    for binding in bindings_of(context, &id) {
        if context.desired.topology.bindings.contains(binding) {
            kept.declared += 1;
        } else {
            kept.unmanaged.push(binding.clone());
        }
    }
    kept
}

/// Drops bindings that the plan deletes: topo does not restore them after a recreation. The broker deletes these
/// bindings together with the old object.
pub(super) fn drop_undesired_bindings(builder: &mut PlanBuilder) {
    let undesired = builder.undesired_bindings();
    for kept in builder.changes.iter_mut().filter_map(|change| change.kept.as_mut()) {
        kept.unmanaged.retain(|binding| !undesired.contains(binding));
    }
}

/// Adds the hazards of recreating an object. If the queue is migrated, also adds the migration.
pub(super) fn hazards(
    builder: &mut PlanBuilder,
    context: &PlanContext<'_>,
    planned: &PlannedChange,
    on_conflict: OnConflict,
) {
    let (Some(before), Some(after)) = (&planned.before, &planned.after) else { return };
    let address = &planned.address;
    match (before, after) {
        (Object::Queue(name, before), Object::Queue(_, after)) => {
            let migration = match on_conflict {
                OnConflict::Migrate => migrate::migration(context, name, before, after).ok(),
                OnConflict::Refuse | OnConflict::IfEmpty | OnConflict::Discard => None,
            };
            if let Some(migration) = migration {
                migrate::add_hazards(builder, context, address, &migration, (before, planned.live.as_ref()));
                builder.migrations.push(migration);
            } else {
                deletion_hazards(builder, address, before, planned.live.as_ref());
                let gap = "messages published while the queue is being recreated will be unroutable, and publishers will not \
                           be notified";
                builder.hazard(HazardKind::RoutingGap, address, gap.to_owned(), None);
            }
            if before.durable && !after.durable {
                builder.hazard(
                    HazardKind::DurabilityDown,
                    address,
                    "durable → transient: it will be lost when the broker restarts".to_owned(),
                    None,
                );
            }
            let replicated = |queue: &Queue| queue.queue_type() != Some(QueueType::Classic);
            if replicated(before) && !replicated(after) {
                let text = format!("{} → classic: one copy, on one node", before.type_name());
                builder.hazard(HazardKind::DurabilityDown, address, text, None);
            }
        }
        (Object::Exchange(name, before), Object::Exchange(_, after)) => {
            let id = ObjectId::Exchange(name.clone());
            // An exchange without bindings may route to its alternate exchange.
            let text = match bindings_of(context, &id).count() {
                0 => {
                    "until it is declared again, publishing to it fails with NOT_FOUND, and messages dead-lettered to \
                      it are lost"
                        .to_owned()
                }
                count => format!("messages published to it will be unroutable until its {} restored", bindings(count)),
            };
            builder.hazard(HazardKind::RoutingGap, address, text, None);
            if before.durable && !after.durable {
                builder.hazard(
                    HazardKind::DurabilityDown,
                    address,
                    "durable → transient: it will be lost when the broker restarts".to_owned(),
                    None,
                );
            }
        }
        (
            Object::Vhost(_)
            | Object::Exchange(..)
            | Object::Policy(..)
            | Object::Queue(..)
            | Object::Binding(_)
            | Object::Record(_),
            _,
        ) => {}
    }
}

fn bindings(count: usize) -> String {
    if count == 1 { "binding is".to_owned() } else { format!("{count} bindings are") }
}

/// Adds the hazards of deleting a queue with its messages and consumers. An unknown count is treated as nonzero.
pub(super) fn deletion_hazards(
    builder: &mut PlanBuilder,
    address: &Address,
    queue: &Queue,
    live: Option<&QueueActivity>,
) {
    let messages = live.and_then(|live| live.messages);
    let is_stream = queue.queue_type() == Some(QueueType::Stream);
    let held = live.and_then(|live| live.unacknowledged).unwrap_or(0);
    let text = match messages {
        Some(0) if is_stream => Some("all messages in the stream will be deleted (the broker may report 0)".to_owned()),
        Some(0) => None,
        Some(1) => Some(format!("1 message will be deleted{}", if held > 0 { " (it is unacknowledged)" } else { "" })),
        Some(count) if held > 0 => {
            Some(format!("{} messages will be deleted ({} of them unacknowledged)", number(count), number(held)))
        }
        Some(count) => Some(format!("{} messages will be deleted", number(count))),
        None => Some("the broker does not report the queue's message count; all messages will be deleted".to_owned()),
    };
    if let Some(text) = text {
        // The message count of a stream does not show how many messages are still unread.
        let bounded = if is_stream { None } else { messages };
        builder.hazard(HazardKind::MessageLoss, address, text, bounded);
    }
    let text = match live.map(|live| (live.held_by_unlisted(), live.consumers.as_deref())) {
        Some((Some(held), _)) => format!("{}; this client will lose the queue", unlisted_holder_text(held)),
        Some((None, Some([]))) => match live.and_then(|live| live.unlisted_consumers) {
            Some(count) => format!("{} and must subscribe again", unlisted_consumers_text(count)),
            None => return,
        },
        // The broker does not report the address of every consumer.
        Some((None, Some([one]))) if one.is_empty() => "1 consumer will lose the queue".to_owned(),
        Some((None, Some([one]))) => format!("1 consumer ({one}) will lose the queue"),
        Some((None, Some(several))) => format!("{} consumers will lose the queue", several.len()),
        Some((None, None)) | None => "the broker does not report whether the queue has consumers".to_owned(),
    };
    builder.hazard(HazardKind::ConsumerDisruption, address, text, None);
}
