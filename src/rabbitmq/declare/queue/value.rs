//! Checks argument values as the broker does, and describes them in refusals.

use crate::model::known_arguments::{KnownArgument, Unit, ValueKind};
use crate::model::units::{duration, size, value_text};
use crate::model::{ArgumentValue, age};
use crate::rabbitmq::declare::refusal::Refusal;

/// Describes why the broker refuses a value; `None` if the broker accepts the value.
pub(super) fn problem(name: &str, value: &ArgumentValue, desired: ValueKind) -> Option<String> {
    let must_be = |expected: &str| {
        Some(format!("{name} must be {expected}, but {} is {}", format_value(value), type_name(value)))
    };
    match desired {
        ValueKind::Duration(min, max) => number(name, value, (min, max), Unit::Milliseconds),
        ValueKind::Size(max) => number(name, value, (0, max), Unit::Bytes),
        ValueKind::Count(min, max) => number(name, value, (min, max), Unit::None),
        ValueKind::Boolean => match value {
            ArgumentValue::Boolean(_) => None,
            ArgumentValue::Null
            | ArgumentValue::Integer(_)
            | ArgumentValue::Float(_)
            | ArgumentValue::Text(_)
            | ArgumentValue::List(_)
            | ArgumentValue::Table(_) => must_be("true or false"),
        },
        ValueKind::Text => value.as_text().is_none().then(|| must_be("a string")).flatten(),
        ValueKind::OneOf(words) => match value.as_text() {
            Some(text) if words.contains(&text) => None,
            Some(text) => Some(format!("{name} cannot be {text:?}: this version accepts {}", words.join(", "))),
            None => must_be("a string"),
        },
        ValueKind::MaxAge => match value.as_text() {
            Some(text) if age(text).is_some() => None,
            Some(text) => Some(format!(
                "{name} cannot be {text:?}: use an integer of at least 1, followed by Y, M, D, h, m or s, such as 7D"
            )),
            None => must_be("a string such as 7D"),
        },
    }
}

/// Returns the maximum that the broker accepts; `None` unless the value is an integer that exceeds the maximum.
pub(super) fn exceeded_maximum(value: &ArgumentValue, desired: ValueKind) -> Option<String> {
    let number = value.as_integer()?;
    let (max, format): (i64, fn(i64) -> Option<String>) = match desired {
        ValueKind::Duration(_, max) => (max, duration),
        ValueKind::Size(max) => (max, size),
        ValueKind::Count(_, max) => (max, |_| None),
        ValueKind::Boolean | ValueKind::Text | ValueKind::OneOf(_) | ValueKind::MaxAge => return None,
    };
    (number > max).then(|| format(max).unwrap_or_else(|| max.to_string()))
}

/// Checks an integer argument. The broker refuses floats and strings, even a string that contains a number
/// (`check_int_arg`).
fn number(name: &str, value: &ArgumentValue, (min, max): (i64, i64), unit: Unit) -> Option<String> {
    let Some(number) = value.as_integer() else {
        return Some(format!("{name} must be an integer, but {} is {}", format_value(value), type_name(value)));
    };
    let show = |number: i64| {
        let meaning = match unit {
            Unit::Milliseconds => duration(number),
            Unit::Bytes => size(number),
            Unit::None => None,
        };
        meaning.map_or_else(|| number.to_string(), |meaning| format!("{number} ({meaning})"))
    };
    if min == max && number != min {
        Some(format!("{name} cannot be {number}: this version accepts only {}", show(min)))
    } else if number < min {
        Some(format!("{name} cannot be {number}: this version accepts {} or more", show(min)))
    } else if number > max {
        Some(format!("{name} cannot be {}: this version accepts at most {}", show(number), show(max)))
    } else {
        None
    }
}

/// Returns the name of a value's type with its article, such as `a string`.
pub(super) fn type_name(value: &ArgumentValue) -> &'static str {
    match value {
        ArgumentValue::Null => "null",
        ArgumentValue::Boolean(_) => "a boolean",
        ArgumentValue::Integer(_) => "an integer",
        ArgumentValue::Float(_) => "a number with a fraction",
        ArgumentValue::Text(_) => "a string",
        ArgumentValue::List(_) => "a list",
        ArgumentValue::Table(_) => "a mapping",
    }
}

/// Returns the hint to remove an argument from the spec.
pub(super) fn hint(name: &str) -> String {
    match KnownArgument::named(name) {
        Some(known) => format!("remove `{}` from the spec", known.key),
        None => format!("remove `{name}` from the spec"),
    }
}

pub(super) fn refusal(subject: &str, text: String, hint: &str) -> Refusal {
    Refusal { subject: subject.to_owned(), text, hint: Some(hint.to_owned()) }
}

/// Formats a value for a refusal.
pub(super) fn format_value(value: &ArgumentValue) -> String {
    value_text(value)
}
