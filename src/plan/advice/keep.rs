//! Builds the resolution that keeps the current settings, written as spec keys with units.

use super::current_keys::{DEAD_LETTER, belongs_to_retries, current_keys, set_without_arguments};
use super::origins::{self, Edits};
use super::recreate::Fragment;
use super::{Subject, current_keys, exchange_named};
use crate::model::known_arguments::KnownArgument;
use crate::model::names::MAX_NAME_BYTES;
use crate::model::yaml::value::{exact, is_representable};
use crate::model::yaml::{Tree, entry};
use crate::model::{Arguments, Exchange, Object, Queue, QueueName};
use crate::plan::document::FieldVerdict;
use crate::plan::resolution::{Applicability, FieldAdvice, Resolution, ResolutionKind};
use crate::plan::spec_keys::QueueKeys;

/// Returns the resolution that keeps the current settings.
pub(super) fn resolution(subject: &Subject<'_>) -> Resolution {
    if let Some(queue) = current_keys::needed_by(subject) {
        let text = format!(
            "the current settings cannot be kept: the retries of queue {queue} require an exchange of this name"
        );
        return Resolution::new(ResolutionKind::Keep, Applicability::No, text);
    }
    let edits = edits_for(subject, &subject.immutable);
    let mut fragment = Fragment::default();
    subject.write(&mut fragment, &edits);
    let mut parts: Vec<String> = edits.keys.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    if !edits.remove_keys.is_empty() {
        parts.push(format!("remove {}", edits.remove_keys.join(", ")));
    }
    parts.extend(edits.defaults.iter().map(origins::Default::sentence));
    let unrepresentable = format!("a spec cannot represent the current {}", edits.unrepresentable.join(", "));
    let (applicability, text) = match (parts.is_empty(), edits.unrepresentable.is_empty()) {
        (_, true) if edits.is_costly() => {
            (Applicability::Partly, format!("keep the current settings: {}", parts.join(", ")))
        }
        (_, true) => (Applicability::Yes, format!("keep the current settings: {}", parts.join(", "))),
        (false, false) => {
            (Applicability::Partly, format!("keep the current settings: {}; {unrepresentable}", parts.join(", ")))
        }
        (true, false) => (Applicability::No, format!("the current settings cannot be kept: {unrepresentable}")),
    };
    let fields = edits.unrepresentable.iter().map(|field| FieldAdvice {
        field: field.clone(),
        applies: false,
        why: "a spec cannot represent its current value".to_owned(),
    });
    Resolution {
        fields: fields.collect(),
        yaml: fragment.text(),
        remove_keys: edits.all_keys_to_remove(),
        ..Resolution::new(ResolutionKind::Keep, applicability, text)
    }
}

/// Returns the edits to the spec that set these fields to their current values.
pub(super) fn edits_for(subject: &Subject<'_>, fields: &[&FieldVerdict]) -> Edits {
    match subject.before {
        Object::Queue(name, queue) => {
            let (own, rest): (Vec<_>, Vec<_>) =
                fields.iter().copied().partition(|field| belongs_to_retries(subject, &field.field));
            let mut edits = queue_edits(subject, name, queue, &rest);
            if !own.is_empty() {
                current_keys::keep_retries(subject, &mut edits, name, queue, &own);
            }
            edits
        }
        Object::Exchange(_, exchange) if subject.dead_letter_queue().is_some() => {
            generated_exchange_edits(exchange, fields)
        }
        Object::Exchange(_, exchange) => {
            let desired = match &subject.planned.after {
                Some(Object::Exchange(_, desired)) => &desired.arguments,
                Some(
                    Object::Vhost(_) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_) | Object::Record(_),
                )
                | None => &exchange.arguments,
            };
            exchange_edits(subject, exchange, desired, fields)
        }
        Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) | Object::Record(_) => Edits::default(),
    }
}

fn queue_edits(subject: &Subject<'_>, queue_name: &QueueName, queue: &Queue, fields: &[&FieldVerdict]) -> Edits {
    let mut edits = Edits::default();
    let current = current_keys(subject, queue_name, queue, None);
    let supports =
        |known: &KnownArgument| queue.queue_type().is_none_or(|queue_type| known.support_for(queue_type).is_some());
    for field in fields {
        let name = field.field.as_str();
        match (name, KnownArgument::named(name)) {
            ("durable", _) => edits.set("durable", Tree::plain(queue.durable)),
            ("auto_delete", _) => edits.set("autoDelete", Tree::plain(queue.auto_delete)),
            ("x-dead-letter-exchange" | "x-dead-letter-routing-key", Some(known)) => {
                let has_edit = edits.keys.iter().any(|(key, _)| key == DEAD_LETTER)
                    || edits.remove_keys.contains(&DEAD_LETTER.to_owned());
                if !has_edit {
                    dead_letter(subject, &mut edits, &current, (queue_name, queue), (name, supports(known)));
                }
            }
            (_, Some(known)) => match &field.before {
                None => origins::remove_keys(subject, &mut edits, known, supports(known)),
                Some(value) => {
                    let is_valid = supports(known) && is_representable(known, value);
                    let key =
                        if name == "x-queue-type" { current.queue_type.as_ref() } else { current.keys.get(known.name) };
                    let key = key.filter(|_| is_valid).cloned();
                    if key.is_some() {
                        origins::move_out_of_arguments(subject, &mut edits, name);
                    }
                    edits.set_if_representable(known.key, key, name);
                }
            },
            (_, None) => edits.unrepresentable.push(name.to_owned()),
        }
    }
    edits
}

/// Adds the edits to `deadLetter`, the key for both dead-letter arguments.
fn dead_letter(
    subject: &Subject<'_>,
    edits: &mut Edits,
    current: &QueueKeys,
    (name, queue): (&QueueName, &Queue),
    (field, is_supported): (&str, bool),
) {
    let exchange = queue.arguments.get("x-dead-letter-exchange");
    let key = queue.arguments.get("x-dead-letter-routing-key");
    match (exchange, key) {
        (None, None) if is_supported => set_without_arguments(subject, edits, current, (name, queue)),
        // A default that the current type does not support is removed together with the desired type.
        (None, None) if origins::is_default(subject, "x-dead-letter-exchange") => {}
        (None, None) if origins::move_dead_letter(subject, edits) => {}
        (None, None) => edits.remove_keys.push(DEAD_LETTER.to_owned()),
        (Some(_), _) if !is_supported => edits.unrepresentable.push(field.to_owned()),
        (exchange, key) => {
            let is_key = key.is_none_or(|key| key.as_text().is_some_and(|key| key.len() <= MAX_NAME_BYTES));
            let value = current.dead_letter.clone().filter(|_| is_key && exchange.is_some());
            if value.is_some() {
                origins::move_dead_letter(subject, edits);
                edits.exchanges.extend(exchange_named(exchange));
            }
            edits.set_if_representable(DEAD_LETTER, value, field);
        }
    }
}

fn exchange_edits(subject: &Subject<'_>, exchange: &Exchange, desired: &Arguments, fields: &[&FieldVerdict]) -> Edits {
    let mut edits = Edits::default();
    let mut arguments = desired.clone();
    arguments.remove("alternate-exchange");
    let mut is_argument_changed = false;
    for field in fields {
        let name = field.field.as_str();
        match name {
            "type" => edits.set("type", Tree::text(&exchange.kind)),
            "durable" => edits.set("durable", Tree::plain(exchange.durable)),
            "auto_delete" => edits.set("autoDelete", Tree::plain(exchange.auto_delete)),
            "internal" => edits.set("internal", Tree::plain(exchange.internal)),
            "alternate-exchange" => match &field.before {
                None if origins::move_out_of_arguments(subject, &mut edits, name) => {}
                None => edits.remove_keys.push("alternateExchange".to_owned()),
                value => {
                    let named = exchange_named(value.as_ref())
                        .filter(|name| (1..=MAX_NAME_BYTES).contains(&name.as_str().len()));
                    let value = named.as_ref().map(|name| Tree::text(name.as_str()));
                    edits.exchanges.extend(named);
                    if value.is_some() {
                        origins::move_out_of_arguments(subject, &mut edits, name);
                    }
                    edits.set_if_representable("alternateExchange", value, name);
                }
            },
            argument => {
                is_argument_changed = true;
                match &field.before {
                    Some(value) => arguments.insert(argument.to_owned(), value.clone()),
                    None => arguments.remove(argument),
                };
            }
        }
    }
    // One mapping contains all arguments, so the edit writes all of them.
    if is_argument_changed {
        edits.remove_keys.retain(|key| !key.starts_with("arguments."));
    }
    if is_argument_changed && arguments.is_empty() {
        edits.remove_keys.push("arguments".to_owned());
    } else if is_argument_changed {
        let entries = arguments.iter().map(|(name, value)| entry(name, exact(value)));
        edits.set("arguments", Tree::table(entries));
    }
    edits
}

/// Returns the edits for the exchange of a dead-letter queue. A spec can set only the type and `internal` for such an
/// exchange.
fn generated_exchange_edits(exchange: &Exchange, fields: &[&FieldVerdict]) -> Edits {
    let mut edits = Edits::default();
    for field in fields {
        match field.field.as_str() {
            "type" => edits.set("type", Tree::text(&exchange.kind)),
            "internal" => edits.set("internal", Tree::plain(exchange.internal)),
            other => edits.unrepresentable.push(other.to_owned()),
        }
    }
    edits
}
