//! What the broker would answer to a field that differs, and the sentence in which it would say so.
//!
//! Sources: `rabbit_amqqueue:assert_equivalent` (queues: durable, auto_delete, then arguments), `rabbit_exchange:
//! assert_equivalence` (exchanges: type, durable, auto_delete, internal, then `alternate-exchange` alone),
//! `rabbit_misc:assert_args_equivalence` (values), and live brokers.

use crate::diff::{Field, FieldChange};
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use crate::model::{ArgumentValue, BrokerVersion, Object, Queue, QueueType, VhostName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a field that differs means to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// The broker treats both as the same.
    Equal,
    /// It can be changed on the live object.
    InPlace,
    /// The broker would refuse: 400 over HTTP, `406 PRECONDITION_FAILED` over AMQP.
    Conflict,
    /// A known argument that the broker neither compares nor changes: it would answer 204 and do nothing.
    Drift,
    /// An argument that no broker knows: kept by the broker as it was, and of no effect.
    Unknown,
    /// The broker would refuse it on any queue of that type.
    Invalid,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Equal => "equal",
            Self::InPlace => "in place",
            Self::Conflict => "conflict",
            Self::Drift => "drift",
            Self::Unknown => "unknown",
            Self::Invalid => "invalid",
        })
    }
}

/// Arguments of exchanges that a bundled plugin reads when the exchange is created, and that no redeclare changes.
const EXCHANGE_ARGUMENTS: [&str; 2] = ["hash-header", "hash-property"];

/// The verdict on one field that differs between a live object and a wanted one.
pub fn verdict(change: &FieldChange, before: &Object, after: &Object, version: BrokerVersion) -> Verdict {
    match (before, after) {
        (Object::Queue(_, live), Object::Queue(_, wanted)) => queue_verdict(change, live, wanted, version),
        (Object::Exchange(..), _) => exchange_verdict(change),
        (Object::Vhost(_) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_), _) => Verdict::InPlace,
    }
}

fn exchange_verdict(change: &FieldChange) -> Verdict {
    match &change.field {
        Field::Argument(name) if name == "alternate-exchange" => Verdict::Conflict,
        Field::Argument(name) if EXCHANGE_ARGUMENTS.contains(&name.as_str()) => Verdict::Drift,
        Field::Argument(_) => Verdict::Unknown,
        Field::Type
        | Field::Durable
        | Field::AutoDelete
        | Field::Internal
        | Field::Pattern
        | Field::ApplyTo
        | Field::Priority
        | Field::Definition(_)
        | Field::Description
        | Field::DefaultQueueType => Verdict::Conflict,
    }
}

fn queue_verdict(change: &FieldChange, live: &Queue, wanted: &Queue, version: BrokerVersion) -> Verdict {
    let Field::Argument(name) = &change.field else { return Verdict::Conflict };
    if is_equal(name, change.before.as_ref(), change.after.as_ref(), version) {
        return Verdict::Equal;
    }
    let Some(known) = KnownArgument::named(name) else { return Verdict::Unknown };
    // A type of a plugin: topo does not know what it compares; asking for a recreate is the safe answer.
    let (Some(live_type), Some(wanted_type)) = (live.queue_type(), wanted.queue_type()) else {
        return Verdict::Conflict;
    };
    // The broker compares what the *existing* queue's type lists.
    if known.is_compared(live_type, version) {
        return Verdict::Conflict;
    }
    if change.after.is_some() && !known.is_taken(wanted_type, version) { Verdict::Invalid } else { Verdict::Drift }
}

/// Whether the broker takes the two values for the same.
fn is_equal(name: &str, before: Option<&ArgumentValue>, after: Option<&ArgumentValue>, version: BrokerVersion) -> bool {
    let classic = ArgumentValue::Text("classic".to_owned());
    match (before, after) {
        // The one default that the broker knows: absent is classic (`rabbit_misc`, all versions).
        (None, Some(value)) | (Some(value), None) => name == "x-queue-type" && *value == classic,
        // 4.3 compares ages, older versions text (4.0.5 refuses 168h for 7D, 4.3.6 takes it).
        (Some(ArgumentValue::Text(before)), Some(ArgumentValue::Text(after)))
            if name == "x-max-age" && version.is_at_least(4, 3) =>
        {
            before == after || age_in_seconds(before).is_some_and(|age| Some(age) == age_in_seconds(after))
        }
        (before, after) => before == after,
    }
}

/// `7D` in seconds, by RabbitMQ's own units (`rabbit_amqqueue:unit_value_in_ms`).
fn age_in_seconds(text: &str) -> Option<i64> {
    let unit = match text.chars().last()? {
        'Y' => 365 * 86_400,
        'M' => 30 * 86_400,
        'D' => 86_400,
        'h' => 3600,
        'm' => 60,
        's' => 1,
        _ => return None,
    };
    text.get(..text.len() - 1)?.parse::<i64>().ok()?.checked_mul(unit)
}

/// Arguments of a queue that the broker would refuse on a fresh declare, by name, with the types that take them.
pub fn refused_on_declare(queue: &Queue, version: BrokerVersion) -> Vec<(&'static KnownArgument, QueueType)> {
    let Some(queue_type) = queue.queue_type() else { return Vec::new() };
    // 3.8 looks at the value only, and takes any known argument on any type but these (`declare_args`, 3.8.35).
    KNOWN_ARGUMENTS
        .iter()
        .filter(|known| queue.arguments.contains_key(known.name) && !known.is_taken(queue_type, version))
        .filter(|_| version.is_at_least(3, 9))
        .map(|known| (known, queue_type))
        .collect()
}

/// The order in which the broker looks at fields: it names the first mismatch only.
pub fn rank(field: &Field) -> (usize, usize) {
    let position = |name: &str| KNOWN_ARGUMENTS.iter().position(|known| known.name == name);
    match field {
        Field::Type => (0, 0),
        Field::Durable => (1, 0),
        Field::AutoDelete => (2, 0),
        Field::Internal => (3, 0),
        Field::Argument(name) => (4, position(name).unwrap_or(KNOWN_ARGUMENTS.len())),
        Field::Pattern => (5, 0),
        Field::ApplyTo => (6, 0),
        Field::Priority => (7, 0),
        Field::Definition(_) => (8, 0),
        Field::Description => (9, 0),
        Field::DefaultQueueType => (10, 0),
    }
}

/// The sentence that an application gets which declares the object as `after` says: the broker's own, word for word.
pub fn sentence(vhost: &VhostName, object: &Object, change: &FieldChange) -> String {
    let (kind, name) = match object {
        Object::Queue(name, _) => ("queue", name.as_str()),
        Object::Exchange(name, _) => ("exchange", name.as_str()),
        Object::Policy(name, _) => ("policy", name.as_str()),
        Object::Vhost(_) | Object::Binding(_) => ("vhost", vhost.as_str()),
    };
    let typed = |value: &ArgumentValue| format!("the value '{value}' of type '{}'", value.amqp_type());
    let tail = match (&change.after, &change.before) {
        (Some(received), Some(current)) => format!("received '{received}' but current is '{current}'"),
        (Some(received), None) => format!("received {} but current is none", typed(received)),
        (None, Some(current)) => format!("received none but current is {}", typed(current)),
        (None, None) => "received none but current is none".to_owned(),
    };
    format!("PRECONDITION_FAILED - inequivalent arg '{}' for {kind} '{name}' in vhost '{vhost}': {tail}", change.field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::fields;
    use crate::model::QueueName;
    use std::collections::BTreeMap;

    fn queue(arguments: &[(&str, ArgumentValue)]) -> Object {
        let arguments: BTreeMap<_, _> =
            arguments.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        Object::Queue(QueueName::from("q"), Queue { durable: true, auto_delete: false, exclusive: false, arguments })
    }

    fn verdicts(before: &[(&str, ArgumentValue)], after: &[(&str, ArgumentValue)], version: &str) -> Vec<Verdict> {
        let (before, after) = (queue(before), queue(after));
        let version = version.parse().unwrap();
        fields(&before, &after).iter().map(|change| verdict(change, &before, &after, version)).collect()
    }

    #[test]
    fn an_injected_queue_type_is_equal() {
        assert_eq!(verdicts(&[], &[("x-queue-type", "classic".into())], "4.0.5"), [Verdict::Equal]);
        assert_eq!(verdicts(&[], &[("x-queue-type", "quorum".into())], "4.0.5"), [Verdict::Conflict]);
    }

    #[test]
    fn numbers_and_texts_are_never_equal() {
        let ttl = |value: ArgumentValue| [("x-message-ttl", value)];
        assert_eq!(verdicts(&ttl(1.into()), &ttl("1".into()), "3.10.8"), [Verdict::Conflict]);
        let float = ArgumentValue::Float(crate::model::Float(1.0));
        assert_eq!(verdicts(&ttl(1.into()), &ttl(float), "3.10.8"), [Verdict::Conflict]);
        assert_eq!(verdicts(&[("x-foo", 1.into())], &[], "3.10.8"), [Verdict::Unknown]);
    }

    #[test]
    fn ages_are_compared_by_duration_from_4_3() {
        let age = |text: &str| [("x-queue-type", "stream".into()), ("x-max-age", text.into())];
        assert_eq!(verdicts(&age("7D"), &age("168h"), "4.3.6"), [Verdict::Equal]);
        assert_eq!(verdicts(&age("7D"), &age("168h"), "4.0.5"), [Verdict::Conflict]);
    }

    #[test]
    fn the_sentence_is_the_brokers() {
        let (before, after) = (queue(&[("x-message-ttl", 60_000.into())]), queue(&[("x-message-ttl", 30_000.into())]));
        let text = sentence(&VhostName::from("t1"), &after, &fields(&before, &after)[0]);
        assert_eq!(
            text,
            "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost 't1': received '30000' but current is '60000'"
        );
    }
}
