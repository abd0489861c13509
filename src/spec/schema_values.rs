//! Creates the JSON Schemas for single values, with the strings that editors show. Most alternatives have a title, and
//! most patterns have an error message that editors show instead of the pattern. No value has a description, because an
//! editor would show it instead of the description of the key. `schema` creates the schemas for mappings and lists.

use super::shape::Shape;
use super::shared_keys::EXCHANGE_TYPES;
use super::units::{DURATION_PATTERN, MAX_AGE_PATTERN, SIZE_PATTERN};
use serde_json::{Value, json};

/// The pattern for a string that starts with a variable or with a `forEach` placeholder. The schema accepts such a
/// string in place of any scalar, because an editor cannot check its value.
const VARIABLE: &str = r"^\$?\{";

/// The pattern for a user tag. The broker separates tags with commas.
const TAG_PATTERN: &str = r"^[^\s,]([^,]*[^\s,])?$";

/// The pattern for a zero duration, in any units.
const NO_TIME: &str = "(0+(ms|s|m|h|d|w))+$";

/// The descriptions of words that keys accept.
const WORDS: &[(&str, &str)] = &[
    ("classic", "Not replicated; supports priorities, and can be transient."),
    ("quorum", "Replicated with Raft and always durable; counts deliveries. For messages that must not be lost."),
    ("stream", "A replicated log with many consumers; consuming does not remove messages."),
    ("ladder", "The broker counts attempts and delays retries, with one delayed retry queue for each retry."),
    (
        "republish",
        "The worker counts attempts, and publishes the message to a delayed retry queue or to the back of the queue.",
    ),
    ("redeliver", "The broker counts attempts and redelivers messages immediately; only for quorum queues."),
    (
        "delayed",
        "The broker counts attempts and increases the delay with each redelivery; only for quorum queues on RabbitMQ 4.3 and \
         later.",
    ),
    ("refuse", "Show the conflict and change nothing."),
    ("ifEmpty", "Recreate the object if it is empty."),
    ("migrate", "Recreate the object and keep every message and binding."),
    ("discard", "Delete the object with its messages, and declare it again."),
    ("drop-head", "The oldest messages are dropped or dead-lettered."),
    ("reject-publish", "A new message is rejected. If the publisher uses confirms, it receives a basic.nack."),
    ("reject-publish-dlx", "A new message is rejected and dead-lettered; only for classic queues."),
    ("at-most-once", "Messages can be lost while they are being dead-lettered."),
    (
        "at-least-once",
        "The queue keeps a message until its dead-letter target confirms it; needs `overflow: reject-publish`.",
    ),
    ("direct", "Routes to bindings with the same routing key as the message."),
    ("fanout", "Routes to all bound queues and exchanges."),
    ("topic", "Routes by patterns: `*` matches one word, `#` matches zero or more words."),
    ("headers", "Routes by the headers of the message."),
    ("arguments", "With queue arguments, which cannot change on an existing queue."),
    ("policy", "With a policy, which can change without recreating the queue."),
];

pub(super) fn boolean() -> Value {
    or_variable(vec![json!({"title": "true or false", "type": "boolean"})])
}

pub(super) fn version() -> Value {
    or_variable(vec![json!({"title": "1", "const": 1})])
}

pub(super) fn duration(min: i64, max: i64) -> Value {
    let mut number = integer(min, max);
    number["title"] = "milliseconds".into();
    let mut text = with_unit();
    if min > 0 {
        text["pattern"] = format!("^(?!{NO_TIME}){}", DURATION_PATTERN.trim_start_matches('^')).into();
    }
    or_variable(vec![text, number])
}

/// Returns the schema for a duration with a required unit.
pub(super) fn delay() -> Value {
    or_variable(vec![with_unit()])
}

fn with_unit() -> Value {
    let message = "a duration needs a unit, such as 500ms, 30s, 5m, 1h30m or 7d";
    json!({
        "title": "duration with units",
        "type": "string",
        "pattern": DURATION_PATTERN,
        "patternErrorMessage": message,
    })
}

pub(super) fn size(max: i64) -> Value {
    let text = json!({
        "title": "size with a unit",
        "type": "string",
        "pattern": SIZE_PATTERN,
        "patternErrorMessage": "a size needs a unit, such as 64KiB, 1GiB or 10MB",
    });
    let mut number = integer(0, max);
    number["title"] = "bytes".into();
    or_variable(vec![text, number])
}

pub(super) fn count(min: i64, max: i64) -> Value {
    or_variable(vec![integer(min, max)])
}

pub(super) fn factor() -> Value {
    or_variable(vec![json!({"title": "number", "type": "number", "minimum": 1})])
}

pub(super) fn number() -> Value {
    or_variable(vec![json!({"title": "number", "type": "number"})])
}

pub(super) fn max_age() -> Value {
    or_variable(vec![json!({
        "title": "age in RabbitMQ's units",
        "type": "string",
        "pattern": MAX_AGE_PATTERN,
        "patternErrorMessage": "an age has one number and one unit, such as 7D or 12h",
    })])
}

pub(super) fn one_of(words: &[&str]) -> Value {
    or_variable(vec![choice(words)])
}

pub(super) fn exchange_type() -> Value {
    let plugin = json!({
        "title": "plugin type",
        "type": "string",
        "pattern": "^x-",
    });
    or_variable(vec![choice(EXCHANGE_TYPES), plugin])
}

fn choice(words: &[&str]) -> Value {
    let meaning = |word: &&str| WORDS.iter().find(|(known, _)| known == word).map_or("", |(_, meaning)| meaning);
    let meanings: Vec<&str> = words.iter().map(meaning).collect();
    let mut choice = json!({"title": "one of these words", "enum": words});
    if meanings.iter().any(|meaning| !meaning.is_empty()) {
        choice["markdownEnumDescriptions"] = json!(meanings);
        // For editors without Markdown support, and for completion lists.
        choice["enumDescriptions"] = json!(meanings);
    }
    choice
}

pub(super) fn routing_key() -> Value {
    json!({
        "type": "string",
        "maxLength": 255,
        "not": {"enum": ["null", "undefined"]},
        "errorMessage": "a routing key is a string: put it in quotes, for example \"#\" or \"*.created\"",
    })
}

pub(super) fn tag() -> Value {
    json!({
        "type": "string",
        "pattern": TAG_PATTERN,
        "patternErrorMessage": "a tag must not be empty, contain commas, or start or end with a space",
        "examples": ["management", "policymaker", "monitoring", "administrator"],
    })
}

/// Returns the schema for a duration in whole seconds.
pub(super) fn seconds() -> Value {
    or_variable(vec![with_unit()])
}

/// Returns the schema for an AMQP URI without a password.
pub(super) fn uri() -> Value {
    or_variable(vec![json!({
        "title": "AMQP URI",
        "type": "string",
        "pattern": "^[Aa][Mm][Qq][Pp][Ss]?://([^:@/?#]*@)?[^@#]*$",
        "patternErrorMessage": "a URI must not contain a password: use the form amqps://user@host/vhost",
    })])
}

pub(super) fn name() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^\\r\\n\\u0000]+$"})
}

/// Returns an example value for a policy key with this shape, if there is one.
pub(super) fn example(shape: Shape) -> Option<&'static str> {
    match shape {
        Shape::Duration(..) | Shape::Delay | Shape::Seconds => Some("30s"),
        Shape::Size(_) => Some("1GiB"),
        Shape::MaxAge => Some("7D"),
        Shape::Text
        | Shape::Name
        | Shape::RoutingKey
        | Shape::Version
        | Shape::Boolean
        | Shape::Uri
        | Shape::Factor
        | Shape::Count(..)
        | Shape::Number
        | Shape::OneOf(_)
        | Shape::Tag
        | Shape::Secret(_)
        | Shape::ExchangeType
        | Shape::Arguments(_)
        | Shape::Definition
        | Shape::Any
        | Shape::List(_)
        | Shape::NonEmptyList(_)
        | Shape::Map(_)
        | Shape::FreeMap(_)
        | Shape::Object(_)
        | Shape::Either(..)
        | Shape::OneForm(_) => None,
    }
}

fn or_variable(schemas: Vec<Value>) -> Value {
    let mut alternatives = schemas;
    alternatives.push(json!({
        "title": "variable",
        "type": "string",
        "pattern": VARIABLE,
    }));
    json!({"anyOf": alternatives})
}

fn integer(min: i64, max: i64) -> Value {
    json!({"title": "integer", "type": "integer", "minimum": min, "maximum": max})
}
