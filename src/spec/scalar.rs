//! The rules of scalars that both YAML readers share: the values of plain scalars, and the limits of a file.

use super::node::{Absent, Value};
pub(crate) use crate::model::yaml::plain::is_plain_text;
use crate::model::yaml::plain::{self, Plain};

/// Returns the value of a plain scalar.
pub(crate) fn resolve(text: &str) -> Value {
    match plain::resolve(text) {
        Plain::Null => Value::Null(Absent::Empty),
        Plain::Boolean(truth) => Value::Boolean(truth),
        Plain::Integer(number) => Value::Integer(number),
        Plain::Float(number) => Value::Float(number),
        Plain::Text => Value::Text(text.to_owned()),
    }
}

/// The maximum depth: more than any spec needs, and low enough for the stack.
pub(super) const DEEPEST: usize = 64;

/// The maximum number of nodes. It is enough for about 300,000 queues, in 2 GB of memory: a node needs 400 bytes. The
/// library's default is reached at 11,000 queues.
pub(super) const MOST_NODES: usize = 5_000_000;

/// The characters that begin a scalar that is not plain.
pub(super) const QUOTES: [char; 4] = ['"', '\'', '|', '>'];

/// Returns true if the source of a number or boolean differs from the way it is printed.
pub(super) fn differs_from_source(value: &Value, source: &str) -> bool {
    match value {
        Value::Boolean(value) => source != value.to_string(),
        Value::Integer(value) => source != value.to_string(),
        Value::Float(value) => source != value.to_string(),
        Value::Null(_) | Value::Text(_) | Value::List(_) | Value::Table(_) => false,
    }
}

/// Returns what follows a key without a value: YAML reads `routingKey: #.x` as null.
pub(super) fn absent_reason(text: &str, end: usize) -> Absent {
    let rest = text.get(end..).unwrap_or_default().trim_start_matches([' ', '\t', ':']);
    match rest.chars().next() {
        Some('#') => Absent::Comment,
        Some('&') => Absent::Anchor,
        Some('!') => Absent::Tag,
        Some(_) | None => Absent::Empty,
    }
}
