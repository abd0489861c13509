//! Whether a broker takes a value for an argument that it checks.

use crate::model::known_arguments::{Unit, ValueKind};
use crate::model::units::{duration, size, unmistakable};
use crate::model::{ArgumentValue, age};

/// What is wrong with the value, in words; `None` when the broker takes it.
pub(super) fn problem(name: &str, value: &ArgumentValue, desired: ValueKind) -> Option<String> {
    let not = |what: &str| Some(format!("{name} must be {what}, but {} is {}", unmistakable(value), described(value)));
    match desired {
        ValueKind::Duration(least, most) => number(name, value, (least, most), Unit::Milliseconds),
        ValueKind::Size(most) => number(name, value, (0, most), Unit::Bytes),
        ValueKind::Count(least, most) => number(name, value, (least, most), Unit::None),
        ValueKind::Boolean => match value {
            ArgumentValue::Boolean(_) => None,
            ArgumentValue::Null
            | ArgumentValue::Integer(_)
            | ArgumentValue::Float(_)
            | ArgumentValue::Text(_)
            | ArgumentValue::List(_)
            | ArgumentValue::Table(_) => not("true or false"),
        },
        ValueKind::Text => value.as_text().is_none().then(|| not("text")).flatten(),
        ValueKind::OneOf(words) => match value.as_text() {
            Some(text) if words.contains(&text) => None,
            Some(text) => Some(format!("{name} cannot be {text:?}: this version accepts {}", words.join(", "))),
            None => not("text"),
        },
        ValueKind::MaxAge => match value.as_text() {
            Some(text) if age(text).is_some() => None,
            Some(text) => Some(format!(
                "{name} cannot be {text:?}: use an integer of at least 1 and one of Y, M, D, h, m and s, such as 7D"
            )),
            None => not("a string such as 7D"),
        },
    }
}

/// The most that a version takes, where the value is a number and more than that.
pub(super) fn exceeded(value: &ArgumentValue, desired: ValueKind) -> Option<String> {
    let number = value.as_integer()?;
    let (most, shown): (i64, fn(i64) -> Option<String>) = match desired {
        ValueKind::Duration(_, most) => (most, duration),
        ValueKind::Size(most) => (most, size),
        ValueKind::Count(_, most) => (most, |_| None),
        ValueKind::Boolean | ValueKind::Text | ValueKind::OneOf(_) | ValueKind::MaxAge => return None,
    };
    (number > most).then(|| shown(most).unwrap_or_else(|| most.to_string()))
}

/// The broker tells integers, floats and texts apart, whatever is in them (`check_int_arg`).
fn number(name: &str, value: &ArgumentValue, (least, most): (i64, i64), unit: Unit) -> Option<String> {
    let Some(number) = value.as_integer() else {
        return Some(format!("{name} must be an integer, but {} is {}", unmistakable(value), described(value)));
    };
    let show = |number: i64| {
        let meaning = match unit {
            Unit::Milliseconds => duration(number),
            Unit::Bytes => size(number),
            Unit::None => None,
        };
        meaning.map_or_else(|| number.to_string(), |meaning| format!("{number} ({meaning})"))
    };
    if least == most && number != least {
        Some(format!("{name} cannot be {number}: this version accepts only {}", show(least)))
    } else if number < least {
        Some(format!("{name} cannot be {number}: this version accepts {} or more", show(least)))
    } else if number > most {
        Some(format!("{name} cannot be {}: this version accepts {} or less", show(number), show(most)))
    } else {
        None
    }
}

/// What kind of value it is.
pub(super) fn described(value: &ArgumentValue) -> &'static str {
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
