//! Checks scalars against the shapes of the grammar. Converts valid scalars to the expected type, and reports invalid
//! scalars. Also checks names and the values of arguments.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::hints::{self, closest, join_or};
use super::node::{Entry, Location, Node, Value};
use super::problem::{Problem, bad, wrong_type};
use super::shape::Shape;
use super::shared_keys::EXCHANGE_TYPES;
use super::{scalar, units, uris};
use crate::model::names::MAX_NAME_BYTES;
use crate::model::retry::MAX_DELAY;
use crate::model::units::{duration, size};

/// The exchange types with the `x-` prefix, for suggestions if the prefix is missing. Plugins provide these types,
/// except `x-local-random`, which RabbitMQ 4.0 and later include.
const PLUGIN_TYPES: &[&str] = &[
    "x-consistent-hash",
    "x-delayed-message",
    "x-jms-topic",
    "x-local-random",
    "x-modulus-hash",
    "x-random",
    "x-recent-history",
];

/// Reports a value of the wrong type at the position of the value, or at `key_at` if the value is missing.
pub(crate) fn report_wrong_type(
    node: &Node,
    subject: &str,
    expected: &str,
    hint: Option<String>,
    key_at: Location,
    diagnostics: &mut Diagnostics,
) {
    let hint = match node.value {
        Value::Null(why) => hints::of_null(why, hint, expected),
        Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) | Value::List(_) | Value::Table(_) => {
            hint
        }
    };
    // A description such as `a list of bindings` already contains the key.
    let of =
        if expected.ends_with(&format!(" of {}", subject.trim_matches('`'))) { "" } else { &format!(" for {subject}") };
    let message = format!("expected {expected}{of}, found {}", node.describe());
    report("wrong-type", message, node, &format!("expected {expected}"), hint, key_at, diagnostics);
}

fn report(
    code: &'static str,
    message: String,
    node: &Node,
    label: &str,
    hint: Option<String>,
    key_at: Location,
    diagnostics: &mut Diagnostics,
) {
    let at = if node.at.start == node.at.end { key_at } else { node.at };
    let message = match node.template() {
        Some(template) => format!("{message} (from `{template}`)"),
        None => message,
    };
    let mut diagnostic = Diagnostic::error(code, message, at).label(label).maybe_hint(hint);
    if let Some(used_at) = node.used_at {
        diagnostic = diagnostic.also(used_at, "used here");
    }
    diagnostics.push(diagnostic);
}

/// Checks a scalar against a scalar shape. Returns the node with the converted value. Returns `None` for an invalid
/// value, and reports it.
pub(crate) fn check(
    node: &Node,
    shape: Shape,
    subject: &str,
    key_at: Location,
    diagnostics: &mut Diagnostics,
) -> Option<Node> {
    let retyped;
    let node = match (&node.value, expects_text(shape)) {
        // A value that consists of a single variable is converted to the expected type.
        (Value::Text(text), false) if node.is_variable() => {
            retyped = node.with(scalar::resolve(text));
            &retyped
        }
        (_, _) => node,
    };
    match read(node, shape, subject) {
        Ok(value) => Some(node.with(value)),
        Err(Problem { code, message: Some(message), label, hint }) => {
            report(code, message, node, &label, hint, key_at, diagnostics);
            None
        }
        Err(Problem { message: None, label, hint, .. }) => {
            report_wrong_type(node, subject, &label, hint, key_at, diagnostics);
            None
        }
    }
}

fn expects_text(shape: Shape) -> bool {
    matches!(
        shape,
        Shape::Text | Shape::Name | Shape::RoutingKey | Shape::Tag | Shape::Uri | Shape::OneOf(_) | Shape::ExchangeType
    )
}

fn read(node: &Node, shape: Shape, subject: &str) -> Result<Value, Problem> {
    match (shape, &node.value) {
        (Shape::Boolean, Value::Boolean(_)) => Ok(node.value.clone()),
        (Shape::Boolean, value) => Err(wrong_type("`true` or `false`", hints::boolean(value))),
        (Shape::Duration(min, max), _) => duration_value(node, min, max, subject),
        (Shape::Delay, Value::Integer(number)) => {
            let hint =
                format!("a number without a unit means milliseconds: write {number}s for seconds, or {number}ms");
            Err(wrong_type("a duration with a unit", Some(hint)))
        }
        (Shape::Delay, _) => duration_value(node, 1, MAX_DELAY, subject),
        (Shape::Seconds, _) => seconds_value(node, subject),
        (Shape::Uri, Value::Text(text)) => uris::check(text, subject).map(|()| node.value.clone()),
        (Shape::Uri, _) => Err(uris::not_a_uri()),
        (Shape::Factor, Value::Integer(number)) if *number < 1 => Err(small_factor(subject, number)),
        (Shape::Factor, Value::Float(number)) if *number < 1.0 => Err(small_factor(subject, number)),
        (Shape::Factor, Value::Integer(_) | Value::Float(_)) => Ok(node.value.clone()),
        (Shape::Factor, Value::Text(text)) => {
            Err(number_as_text(text, subject).unwrap_or_else(|| wrong_type("a number", None)))
        }
        (Shape::Factor, _) => Err(wrong_type("a number", None)),
        (Shape::Size(max), _) => size_value(node, max, subject),
        (Shape::Count(min, max), Value::Integer(number)) => {
            within(*number, min, max, subject, |number| number.to_string())
        }
        (Shape::Count(..), Value::Text(text)) => Err(number_as_text(text, subject).unwrap_or_else(|| {
            let has_unit = text.starts_with(|c: char| c.is_ascii_digit());
            wrong_type("an integer", has_unit.then(|| "a count is an integer without a unit".to_owned()))
        })),
        (Shape::Count(..), Value::Float(number)) => {
            let whole = (number.fract() == 0.0 && number.abs() < 1e15).then(|| format!("write {number}"));
            Err(wrong_type("an integer", whole.or(Some("a count is an integer".to_owned()))))
        }
        (Shape::Count(..), _) => Err(wrong_type("an integer", None)),
        (Shape::Number, Value::Integer(_) | Value::Float(_)) => Ok(node.value.clone()),
        (Shape::Number, Value::Text(text)) => {
            Err(number_as_text(text, subject).unwrap_or_else(|| wrong_type("a number", None)))
        }
        (Shape::Number, _) => Err(wrong_type("a number", None)),
        (Shape::Version, Value::Integer(1)) => Ok(node.value.clone()),
        (Shape::Version, Value::Integer(other)) => {
            let message = format!("unknown format version {other}");
            Err(bad(
                "version",
                message,
                "this version of topo supports version 1",
                Some("write `version: 1`".to_owned()),
            ))
        }
        (Shape::Version, _) => Err(wrong_type("the number 1", Some("write `version: 1`".to_owned()))),
        (Shape::MaxAge, Value::Text(text)) => units::max_age(text)
            .map(Value::Text)
            .map_err(|hint| number_as_text(text, subject).unwrap_or_else(|| wrong_type("an age such as `7D`", hint))),
        (Shape::MaxAge, Value::Integer(number)) => {
            let hint = format!("RabbitMQ's units are Y, M, D, h, m and s: write {number}D for days");
            Err(wrong_type("an age such as `7D`", Some(hint)))
        }
        (Shape::MaxAge, _) => Err(wrong_type("an age such as `7D`", None)),
        (Shape::Text, Value::Text(_)) => Ok(node.value.clone()),
        (Shape::Name, Value::Text(text)) if text.is_empty() && ["`exchange`", "`source`"].contains(&subject) => {
            let hint = "remove this binding: the default exchange already routes to every queue by name";
            let message = "the default exchange cannot be bound".to_owned();
            Err(bad("name", message, "the default exchange", Some(hint.to_owned())))
        }
        (Shape::Name, Value::Text(text)) => match name_problem(text) {
            Some(problem) => Err(bad("name", format!("{subject} is not a valid name: {problem}"), "", None)),
            None => Ok(node.value.clone()),
        },
        (Shape::RoutingKey, Value::Text(text)) => routing_key(text).map(|()| node.value.clone()),
        (Shape::OneOf(words), Value::Text(text)) => {
            if words.contains(&text.as_str()) {
                return Ok(node.value.clone());
            }
            let message =
                format!("{subject} cannot be {text:?}").replace('"', if text.contains('\n') { "\"" } else { "`" });
            let label = format!("expected {}", join_or(words.iter().copied()));
            Err(bad("wrong-value", message, &label, hints::other_word(text, words)))
        }
        (Shape::OneOf(words), value) => Err(wrong_type(&join_or(words.iter().copied()), hints::not_word(value, words))),
        (Shape::ExchangeType, Value::Text(text)) => {
            if EXCHANGE_TYPES.contains(&text.as_str()) || text.starts_with("x-") {
                return Ok(node.value.clone());
            }
            let plugins = PLUGIN_TYPES.iter().filter(|known| known.trim_start_matches("x-") == text);
            let suggestion = plugins.copied().next().or_else(|| closest(text, EXCHANGE_TYPES.iter().copied()));
            let hint = suggestion.map(|word| format!("did you mean `{word}`?"));
            let label = format!("expected {}, or an `x-…` plugin type", join_or(EXCHANGE_TYPES.iter().copied()));
            Err(bad("wrong-value", format!("unknown exchange type `{text}`"), &label, hint))
        }
        (Shape::Tag, Value::Text(text)) if text.is_empty() || text.contains(',') || text.trim() != text => {
            let hint = text.contains(',').then(|| "write each tag as a separate list item".to_owned());
            let label = "expected a tag without commas or surrounding spaces";
            Err(bad("wrong-value", format!("invalid tag `{text}`"), label, hint))
        }
        (Shape::Tag, Value::Text(_)) => Ok(node.value.clone()),
        (Shape::Text | Shape::Name | Shape::RoutingKey | Shape::ExchangeType | Shape::Tag, _) => {
            Err(wrong_type("a string", hints::text(node, shape)))
        }
        (
            Shape::Arguments(_)
            | Shape::Definition
            | Shape::Any
            | Shape::Secret(_)
            | Shape::List(_)
            | Shape::NonEmptyList(_)
            | Shape::Map(_)
            | Shape::FreeMap(_)
            | Shape::Object(_)
            | Shape::Either(..)
            | Shape::OneForm(_),
            _,
        ) => Err(wrong_type("a single value", None)),
    }
}

fn duration_value(node: &Node, min: i64, max: i64, subject: &str) -> Result<Value, Problem> {
    let milliseconds = match &node.value {
        Value::Integer(number) => *number,
        Value::Text(text) => units::duration(text).map_err(|hint| {
            number_as_text(text, subject).unwrap_or_else(|| wrong_type("a duration such as `30s`", hint))
        })?,
        Value::Float(_) => {
            let hint = "a number without a unit means whole milliseconds; write a duration with units such as 1h30m"
                .to_owned();
            return Err(wrong_type("a duration such as `30s`", Some(hint)));
        }
        Value::Null(_) | Value::Boolean(_) | Value::List(_) | Value::Table(_) => {
            return Err(wrong_type("a duration such as `30s`", None));
        }
    };
    within(milliseconds, min, max, subject, |number| {
        duration(number).unwrap_or_else(|| format!("{number} milliseconds"))
    })
}

/// Returns a duration in seconds. Refuses a number without a unit, which could mean milliseconds, as it does in other
/// durations.
fn seconds_value(node: &Node, subject: &str) -> Result<Value, Problem> {
    if let Value::Integer(number) = &node.value {
        let hint = format!("write {number}s for seconds");
        return Err(wrong_type("a duration with a unit", Some(hint)));
    }
    let value = duration_value(node, 0, MAX_DELAY, subject)?;
    if let Value::Integer(milliseconds) = value
        && milliseconds % 1000 == 0
    {
        return Ok(Value::Integer(milliseconds / 1000));
    }
    Err(bad("wrong-value", format!("{subject} is not a whole number of seconds"), "", None))
}

fn size_value(node: &Node, max: i64, subject: &str) -> Result<Value, Problem> {
    let bytes = match &node.value {
        Value::Integer(number) => *number,
        Value::Text(text) => units::size(text).map_err(|hint| {
            number_as_text(text, subject).unwrap_or_else(|| wrong_type("a size such as `64KiB`", hint))
        })?,
        Value::Null(_) | Value::Boolean(_) | Value::Float(_) | Value::List(_) | Value::Table(_) => {
            return Err(wrong_type("a size such as `64KiB`", None));
        }
    };
    within(bytes, 0, max, subject, |number| size(number).unwrap_or_else(|| format!("{number} bytes")))
}

fn within(number: i64, min: i64, max: i64, subject: &str, show: impl Fn(i64) -> String) -> Result<Value, Problem> {
    if (min..=max).contains(&number) {
        return Ok(Value::Integer(number));
    }
    let label = if number < min { format!("at least {}", show(min)) } else { format!("at most {}", show(max)) };
    Err(bad("out-of-range", format!("{subject} cannot be {}", show(number)), &label, None))
}

fn small_factor(subject: &str, number: impl std::fmt::Display) -> Problem {
    let hint = "1 keeps the delay constant; 2 doubles it each time".to_owned();
    bad("out-of-range", format!("{subject} cannot be {number}"), "at least 1", Some(hint))
}

fn number_as_text(text: &str, subject: &str) -> Option<Problem> {
    let digits = text.replace('_', "");
    digits.parse::<i64>().ok()?;
    if digits != text {
        let hint = format!("write {digits}");
        return Some(bad(
            "number-as-text",
            format!("expected a number for {subject}, found the string \"{text}\""),
            "contains `_`",
            Some(hint),
        ));
    }
    let hint = hints::number_as_text(text, subject);
    Some(bad(
        "number-as-text",
        format!("expected a number for {subject}, found the string \"{text}\""),
        "a string",
        Some(hint),
    ))
}

fn routing_key(text: &str) -> Result<(), Problem> {
    if text.len() > MAX_NAME_BYTES {
        let message = format!("this routing key is {} bytes long", text.len());
        return Err(bad("routing-key", message, "at most 255", None));
    }
    if text == "null" || text == "undefined" {
        let hint = "the management API reads this word as \"no key\", so a binding with this key could not be deleted";
        let message = format!("the routing key cannot be `{text}`");
        return Err(bad("routing-key", message, "", Some(hint.to_owned())));
    }
    Ok(())
}

/// Returns the reason why a string is not a valid name. Returns `None` for a valid name.
pub(crate) fn name_problem(name: &str) -> Option<String> {
    if name.is_empty() {
        Some("it is empty".to_owned())
    } else if name.len() > MAX_NAME_BYTES {
        Some(format!("it is {} bytes long; the maximum is 255", name.len()))
    } else if name.contains(['\r', '\n', '\0']) {
        // The broker silently removes CR and LF, so a different object would be declared.
        Some("it contains a line break or a NUL character".to_owned())
    } else {
        None
    }
}

/// Returns true if topo represents all numbers in a node exactly. Returns false if the node contains an infinite float,
/// NaN, or a whole float whose absolute value is 2^53 or more, such as an integer that does not fit into 64 bits.
pub(crate) fn are_numbers_exact(node: &Node) -> bool {
    match &node.value {
        Value::Float(float) => float.is_finite() && (float.fract() != 0.0 || float.abs() < 9_007_199_254_740_992.0),
        Value::List(items) => items.iter().all(are_numbers_exact),
        Value::Table(entries) => entries.iter().all(|entry| are_numbers_exact(&entry.node)),
        Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Text(_) => true,
    }
}

/// Checks the value of an argument, which can be any value except null.
pub(crate) fn argument(node: &Node, subject: &str, key_at: Location, diagnostics: &mut Diagnostics) -> Option<Node> {
    match &node.value {
        Value::Null(_) => {
            let hint = "topo does not support null values: remove the value".to_owned();
            report_wrong_type(node, subject, "a value", Some(hint), key_at, diagnostics);
            None
        }
        Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => Some(node.clone()),
        Value::List(items) => {
            let checked = items.iter().filter_map(|item| argument(item, subject, item.at, diagnostics)).collect();
            Some(node.with(Value::List(checked)))
        }
        Value::Table(entries) => {
            let mut checked = Vec::new();
            for entry in entries {
                let node = argument(&entry.node, subject, entry.at, diagnostics);
                checked.extend(node.map(|node| Entry { key: entry.key.clone(), at: entry.at, node }));
            }
            Some(node.with(Value::Table(checked)))
        }
    }
}
