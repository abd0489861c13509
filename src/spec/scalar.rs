//! Resolves plain scalars of a spec.

use super::node::{Absent, Value};
use crate::model::yaml::plain::{self, Plain};

pub(crate) use plain::is_plain_text;

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
