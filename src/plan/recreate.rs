//! Recreating what cannot change in place: whether it may be done, what it costs, and which bindings it takes along.

use super::document::{KeptBindings, PlannedChange};
use super::draft::Draft;
use super::hazard::HazardKind;
use super::migrate::{self, Obstacle};
use super::situation::Situation;
use super::{QueueActivity, Verdict, topic_permissions};
use crate::model::count::number;
use crate::model::{Address, ArgumentValue, Arguments, Binding, Object, ObjectId, OnConflict, Queue, QueueType};

/// Why a conflict is not resolved by a recreate.
pub(super) struct Refusal {
    pub(super) text: String,
    /// What lifts it; without, the last way out does.
    pub(super) lift: Option<String>,
    /// Whether the object could be recreated, if it were asked for.
    pub(super) may_recreate: bool,
}

impl Refusal {
    fn never(text: String, lift: &str) -> Option<Self> {
        Some(Self { text, lift: Some(lift.to_owned()), may_recreate: false })
    }

    fn unless_asked(text: String, lift: Option<String>) -> Option<Self> {
        Some(Self { text, lift, may_recreate: true })
    }
}

/// The management API lists a void as the text `undefined`, at any depth (all versions): to a headers exchange a void means
/// that the header is there, whatever its value.
fn may_be_void(value: &ArgumentValue) -> bool {
    match value {
        ArgumentValue::Null => true,
        ArgumentValue::Text(text) => text == "undefined",
        ArgumentValue::List(values) => values.iter().any(may_be_void),
        ArgumentValue::Table(table) => table.values().any(may_be_void),
        ArgumentValue::Boolean(_) | ArgumentValue::Integer(_) | ArgumentValue::Float(_) => false,
    }
}

/// `None` when it may be recreated.
pub(super) fn refusal(situation: &Situation<'_>, planned: &PlannedChange, on_conflict: OnConflict) -> Option<Refusal> {
    let id = planned.id()?;
    let name = id.name()?;
    if situation.wanted.scope.protects(name) {
        let lift = "take it out of `protect`, and plan again";
        return Refusal::never(format!("{id} is protected: it is never recreated"), lift);
    }
    if situation.untouchable.contains(&id) {
        let text = format!("{id} is exclusive, auto-delete or somebody's own: topo never touches it");
        return Refusal::never(text, "wait until it is gone, or use another name");
    }
    let is_cut = |arguments: &Arguments| arguments.values().any(ArgumentValue::is_cut);
    let is_read = |object: &Object| match object {
        Object::Exchange(_, exchange) => !is_cut(&exchange.arguments),
        Object::Queue(_, queue) => !is_cut(&queue.arguments),
        Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) => true,
    };
    if !planned.before.as_ref().is_none_or(is_read) {
        let text = format!("an argument of {id} has {}: topo cannot recreate it", ArgumentValue::too_large());
        return Refusal::never(text, "delete it by hand, or use another name");
    }
    if let Some(binding) = bindings_of(situation, &id).find(|binding| is_cut(&binding.arguments)) {
        let text =
            format!("a recreate could not restore {binding}: an argument of it has {}", ArgumentValue::too_large());
        return Refusal::never(text, "remove that binding, or bind it in another way");
    }
    // Refused by the new object, too: an exchange of another type takes other bindings.
    let refused = |binding: &Binding| situation.binding_refusals(binding).into_iter().next();
    if let Some((binding, why)) = bindings_of(situation, &id).find_map(|one| Some((one, refused(one)?))) {
        let text = format!("a recreate could not restore {binding}: {}", why.text);
        return Refusal::never(text, "remove that binding, or bind it in another way");
    }
    let declared = &situation.wanted.topology.bindings;
    // A migration compares what it bound with what was there, and can bind over AMQP.
    let is_compared = on_conflict == OnConflict::Migrate && matches!(id, ObjectId::Queue(_));
    let void =
        |binding: &Binding| !is_compared && !declared.contains(binding) && binding.arguments.values().any(may_be_void);
    if let Some(binding) = bindings_of(situation, &id).find(|binding| void(binding)) {
        let text = format!(
            "a recreate could not restore {binding}: `undefined` may stand for an AMQP void, which cannot be sent over HTTP"
        );
        return Refusal::never(
            text,
            "declare that binding in the spec if it is text, or have its owner bind it in another way",
        );
    }
    let queue = match &planned.before {
        Some(Object::Queue(_, queue)) => queue,
        Some(Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Binding(_)) | None => {
            return exchange_refusal(planned, on_conflict);
        }
    };
    if let (OnConflict::Migrate, ObjectId::Queue(name), Some(Object::Queue(_, wanted))) =
        (on_conflict, &id, &planned.after)
    {
        let Obstacle { text, lift } = migrate::migration(situation, name, queue, wanted).err()?;
        return Refusal::unless_asked(text, lift);
    }
    if let ObjectId::Queue(name) = &id
        && on_conflict != OnConflict::Refuse
        && migrate::is_unfinished(situation.current, name)
    {
        // Its messages are beside it: whatever it holds itself says nothing of them.
        let text = "a migration of it was cut short: it is finished or undone, not recreated".to_owned();
        return Refusal::unless_asked(text, None);
    }
    queue_refusal(planned, queue, on_conflict)
}

fn exchange_refusal(planned: &PlannedChange, on_conflict: OnConflict) -> Option<Refusal> {
    match on_conflict {
        OnConflict::Refuse => Refusal::unless_asked(fields_text(planned, "exchange"), None),
        OnConflict::Migrate => {
            Refusal::unless_asked("`migrate` moves messages, and an exchange holds none".to_owned(), None)
        }
        OnConflict::IfEmpty | OnConflict::Discard => None,
    }
}

fn queue_refusal(planned: &PlannedChange, queue: &Queue, on_conflict: OnConflict) -> Option<Refusal> {
    let stream = queue.queue_type() == Some(QueueType::Stream);
    match on_conflict {
        OnConflict::Refuse => {
            Refusal::unless_asked(fields_text(planned, if stream { "stream" } else { "queue" }), None)
        }
        OnConflict::IfEmpty if stream => Refusal::unless_asked(
            "a stream cannot be proven empty: the broker ignores that condition for streams".to_owned(),
            Some(format!("give the new stream another name, or --recreate {}=discard", planned.address)),
        ),
        OnConflict::IfEmpty => match planned.live.as_ref().and_then(|live| live.messages) {
            Some(0) => None,
            Some(1) => Refusal::unless_asked("it holds 1 message, so `ifEmpty` leaves it alone".to_owned(), None),
            Some(messages) => Refusal::unless_asked(
                format!("it holds {} messages, so `ifEmpty` leaves it alone", number(messages)),
                None,
            ),
            None => Refusal::unless_asked(
                "the broker does not say how many messages it holds, so `ifEmpty` leaves it alone".to_owned(),
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
    format!("{} cannot change on a live {kind}", fields.join(", "))
}

/// The live bindings that go when the object goes.
pub(super) fn bindings_of<'a>(situation: &Situation<'a>, id: &'a ObjectId) -> impl Iterator<Item = &'a Binding> {
    situation.current.bindings.iter().filter(move |binding| binding.touches(id))
}

/// Returns the bindings and topic permissions that a recreate restores: all current ones, declared or not.
pub(super) fn kept_bindings(situation: &Situation<'_>, planned: &PlannedChange) -> KeptBindings {
    let mut kept = KeptBindings::default();
    let Some(id) = planned.id() else { return kept };
    kept.topic_permissions = topic_permissions::kept(situation, &id);
    for binding in bindings_of(situation, &id) {
        if situation.wanted.topology.bindings.contains(binding) {
            kept.declared += 1;
        } else {
            kept.undeclared.push(binding.clone());
        }
    }
    kept
}

/// What is pruned or removed is not restored first: it goes with the old object.
pub(super) fn keep_no_unwanted(draft: &mut Draft) {
    let unwanted = draft.unwanted_bindings();
    for kept in draft.changes.iter_mut().filter_map(|change| change.kept.as_mut()) {
        kept.undeclared.retain(|binding| !unwanted.contains(binding));
    }
}

/// What a recreate can lose and disturb.
pub(super) fn hazards(draft: &mut Draft, situation: &Situation<'_>, planned: &PlannedChange, on_conflict: OnConflict) {
    let (Some(before), Some(after)) = (&planned.before, &planned.after) else { return };
    let address = &planned.address;
    match (before, after) {
        (Object::Queue(name, before), Object::Queue(_, after)) => {
            let migration = match on_conflict {
                OnConflict::Migrate => migrate::migration(situation, name, before, after).ok(),
                OnConflict::Refuse | OnConflict::IfEmpty | OnConflict::Discard => None,
            };
            if let Some(migration) = migration {
                migrate::hazards(draft, situation, address, &migration, (before, planned.live.as_ref()));
                draft.migrations.push(migration);
            } else {
                contents(draft, address, before, planned.live.as_ref());
                let gap = "messages that arrive while it is recreated reach nobody, and publishers are not told";
                draft.hazard(HazardKind::RoutingGap, address, gap.to_owned(), None);
            }
            if before.durable && !after.durable {
                draft.hazard(
                    HazardKind::DurabilityDown,
                    address,
                    "durable → transient: it goes with a restart".to_owned(),
                    None,
                );
            }
            let replicated = |queue: &Queue| queue.queue_type() != Some(QueueType::Classic);
            if replicated(before) && !replicated(after) {
                let text = format!("{} → classic: one copy, on one node", before.type_name());
                draft.hazard(HazardKind::DurabilityDown, address, text, None);
            }
        }
        (Object::Exchange(name, before), Object::Exchange(_, after)) => {
            let id = ObjectId::Exchange(name.clone());
            let count = bindings_of(situation, &id).count();
            let text = format!("messages to it reach nobody until its {} restored", bindings(count));
            draft.hazard(HazardKind::RoutingGap, address, text, None);
            if before.durable && !after.durable {
                draft.hazard(
                    HazardKind::DurabilityDown,
                    address,
                    "durable → transient: it goes with a restart".to_owned(),
                    None,
                );
            }
        }
        (
            Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_),
            Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_),
        ) => {}
    }
}

fn bindings(count: usize) -> String {
    if count == 1 { "binding is".to_owned() } else { format!("{count} bindings are") }
}

/// The hazards of deleting a queue with what is in it and on it. A number that is not known is "some".
pub(super) fn contents(draft: &mut Draft, address: &Address, queue: &Queue, live: Option<&QueueActivity>) {
    let messages = live.and_then(|live| live.messages);
    let stream = queue.queue_type() == Some(QueueType::Stream);
    let held = live.and_then(|live| live.unacknowledged).unwrap_or(0);
    let text = match messages {
        Some(0) if stream => Some("a stream: whatever was written to it is deleted".to_owned()),
        Some(0) => None,
        Some(1) => Some(format!("1 message is deleted{}", if held > 0 { " (it is unacknowledged)" } else { "" })),
        Some(count) if held > 0 => {
            Some(format!("{} messages are deleted ({} of them unacknowledged)", number(count), number(held)))
        }
        Some(count) => Some(format!("{} messages are deleted", number(count))),
        None => Some("the broker does not say how many messages it holds: all are deleted".to_owned()),
    };
    if let Some(text) = text {
        // The count of a stream says nothing of what somebody may still want to read.
        let bounded = if stream { None } else { messages };
        draft.hazard(HazardKind::MessageLoss, address, text, bounded);
    }
    let text = match live.map(|live| (live.held_by_unlisted(), live.consumers.as_deref())) {
        Some((Some(held), _)) => format!("{}; whoever holds it is cut off", held_by_unlisted(held)),
        Some((None, Some([]))) => match live.and_then(|live| live.unlisted_consumers) {
            Some(count) => format!("{} and must subscribe again", unlisted_are_cancelled(count)),
            None => return,
        },
        Some((None, Some([one]))) => format!("1 consumer is cancelled and must subscribe again ({one})"),
        Some((None, Some(several))) => format!("{} consumers are cancelled and must subscribe again", several.len()),
        Some((None, None)) | None => "whether anybody consumes from it is not known".to_owned(),
    };
    draft.hazard(HazardKind::ConsumerDisruption, address, text, None);
}

/// Consumers that only the queue itself knows are cancelled.
pub(super) fn unlisted_are_cancelled(count: u64) -> String {
    let (consumers, are) =
        if count == 1 { ("1 consumer".to_owned(), "is") } else { (format!("{count} consumers"), "are") };
    format!("{consumers} {are} cancelled (not in the statistics of the broker yet)")
}

/// Who holds so many messages, though the broker lists no consumer.
pub(super) fn held_by_unlisted(held: u64) -> String {
    let messages = if held == 1 { "1 message is".to_owned() } else { format!("{} messages are", number(held)) };
    format!(
        "{messages} unacknowledged, and no consumer is listed: who holds them subscribed in the last seconds, or took them by basic.get"
    )
}
