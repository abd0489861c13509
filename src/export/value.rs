//! Writes argument values as a spec does: exactly, with units where they have one.

use super::yaml::{Entry, Tree, entry};
use crate::model::known_arguments::Unit;
use crate::model::units::{self, unit_of};
use crate::model::{ArgumentValue, Arguments};

/// The value of a known argument (`x-message-ttl`) or of a policy's key (`message-ttl`).
pub(super) fn with_unit(name: &str, value: &ArgumentValue) -> Tree {
    let written = value.as_integer().and_then(|number| match unit_of(name) {
        Unit::Milliseconds => (number > 0).then(|| duration(number)),
        Unit::Bytes => units::size(number),
        Unit::None => None,
    });
    written.map_or_else(|| as_it_stands(value), Tree::plain)
}

/// Milliseconds as a person would say them: `1h30m`, but `3723s`, and `86400001ms`.
pub(super) fn duration(milliseconds: i64) -> String {
    let exact = units::duration(milliseconds).unwrap_or_else(|| format!("{milliseconds}ms"));
    let units = exact.split(|c: char| c.is_ascii_digit()).filter(|unit| !unit.is_empty()).count();
    match milliseconds {
        _ if units <= 2 && !(units > 1 && exact.ends_with("ms")) => exact,
        number if number % 1000 == 0 => format!("{}s", number / 1000),
        number => format!("{number}ms"),
    }
}

/// Any value, with the type that it has.
pub(super) fn as_it_stands(value: &ArgumentValue) -> Tree {
    match value {
        ArgumentValue::Null => Tree::plain("null"),
        ArgumentValue::Boolean(value) => Tree::plain(value),
        ArgumentValue::Integer(value) => Tree::plain(value),
        // With a point or an exponent always: `1.0` is no integer to a broker.
        ArgumentValue::Float(value) => Tree::plain(format!("{:?}", value.0)),
        ArgumentValue::Text(value) => Tree::text(value),
        ArgumentValue::List(values) => Tree::list(values.iter().map(as_it_stands)),
        ArgumentValue::Table(table) => Tree::table(table.iter().map(|(key, value)| entry(key, as_it_stands(value)))),
    }
}

/// Arguments as they stand, if there are any.
pub(super) fn arguments<'a>(arguments: impl IntoIterator<Item = (&'a String, &'a ArgumentValue)>) -> Option<Entry> {
    let entries: Vec<Entry> = arguments.into_iter().map(|(name, value)| entry(name, as_it_stands(value))).collect();
    (!entries.is_empty()).then(|| entry("arguments", Tree::table(entries)))
}

/// What of arguments a spec has no key for.
pub(super) fn but(
    arguments: &Arguments,
    is_said: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&String, &ArgumentValue)> {
    arguments.iter().filter(move |(name, _)| !is_said(name))
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
