//! Writes argument values for a spec, as exact values or with their units.

use super::{Entry, Tree, entry};
use crate::model::arguments::{ArgumentValue, Arguments};
use crate::model::known_arguments::{KnownArgument, Unit, ValueKind};
use crate::model::units::age;
use crate::model::units::{self, unit_of};

/// Writes the value of a known argument (`x-message-ttl`) or policy key (`message-ttl`) with its unit. Writes an exact
/// value if the key has no unit, or if the value cannot be written with the unit.
pub(crate) fn with_unit(name: &str, value: &ArgumentValue) -> Tree {
    let written = value.as_integer().and_then(|number| match unit_of(name) {
        Unit::Milliseconds => (number > 0).then(|| duration(number)),
        Unit::Bytes => units::size(number),
        Unit::None => None,
    });
    written.map_or_else(|| exact(value), Tree::plain)
}

/// Writes milliseconds as a duration of at most two units (`1h30m`). A duration that needs more units, or combines
/// milliseconds with other units, is written in seconds or milliseconds only (`3723s`, `1500ms`).
pub(crate) fn duration(milliseconds: i64) -> String {
    let exact = units::duration(milliseconds).unwrap_or_else(|| format!("{milliseconds}ms"));
    let units = exact.split(|c: char| c.is_ascii_digit()).filter(|unit| !unit.is_empty()).count();
    match milliseconds {
        _ if units <= 2 && !(units > 1 && exact.ends_with("ms")) => exact,
        number if number % 1000 == 0 => format!("{}s", number / 1000),
        number => format!("{number}ms"),
    }
}

/// Writes a value without units, so that the spec contains the same value with the same type.
pub(crate) fn exact(value: &ArgumentValue) -> Tree {
    match value {
        ArgumentValue::Null => Tree::plain("null"),
        ArgumentValue::Boolean(value) => Tree::plain(value),
        ArgumentValue::Integer(value) => Tree::plain(value),
        // A float always has a decimal point or an exponent, because the broker does not treat `1.0` as an integer.
        ArgumentValue::Float(value) => Tree::plain(format!("{:?}", value.0)),
        ArgumentValue::Text(value) => Tree::text(value),
        ArgumentValue::List(values) => Tree::list(values.iter().map(exact)),
        ArgumentValue::Table(table) => Tree::table(table.iter().map(|(key, value)| entry(key, exact(value)))),
    }
}

/// Returns the `arguments` entry with exact values; `None` if there are no arguments.
pub(crate) fn arguments<'a>(arguments: impl IntoIterator<Item = (&'a String, &'a ArgumentValue)>) -> Option<Entry> {
    let entries: Vec<Entry> = arguments.into_iter().map(|(name, value)| entry(name, exact(value))).collect();
    (!entries.is_empty()).then(|| entry("arguments", Tree::table(entries)))
}

/// Returns the arguments for which a spec has no dedicated key.
pub(crate) fn without_key(
    arguments: &Arguments,
    has_key: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&String, &ArgumentValue)> {
    arguments.iter().filter(move |(name, _)| !has_key(name))
}

/// Returns true if a spec can represent the value with the key of a known argument.
pub(crate) fn is_representable(known: &KnownArgument, value: &ArgumentValue) -> bool {
    match (known.value, value) {
        (ValueKind::Duration(min, max) | ValueKind::Count(min, max), ArgumentValue::Integer(number)) => {
            (min..=max).contains(number)
        }
        (ValueKind::Size(max), ArgumentValue::Integer(number)) => (0..=max).contains(number),
        (ValueKind::Boolean, ArgumentValue::Boolean(_)) | (ValueKind::Text, ArgumentValue::Text(_)) => true,
        (ValueKind::OneOf(words), ArgumentValue::Text(text)) => words.contains(&text.as_str()),
        // The broker accepts an age that is followed by a second line; a spec does not.
        (ValueKind::MaxAge, ArgumentValue::Text(text)) => age(text).is_some() && !text.contains('\n'),
        (
            ValueKind::Duration(..)
            | ValueKind::Size(_)
            | ValueKind::Count(..)
            | ValueKind::Boolean
            | ValueKind::Text
            | ValueKind::OneOf(_)
            | ValueKind::MaxAge,
            _,
        ) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact_and_short() {
        for (number, expected) in [
            (5000, "5s"),
            (604_800_000, "7d"),
            (5_400_000, "1h30m"),
            (3_723_000, "3723s"),
            (1500, "1500ms"),
            (86_400_001, "86400001ms"),
            (1, "1ms"),
        ] {
            assert_eq!(duration(number), expected);
        }
    }
}
