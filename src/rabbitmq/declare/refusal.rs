//! A reason why a broker refuses an object, and the refusal of null, which applies to every argument.

use crate::model::{ArgumentValue, Arguments};

/// A reason why a broker refuses an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The refused setting: an argument, a property, or a key of a policy, in RabbitMQ's spelling.
    pub subject: String,
    /// The message for users.
    pub text: String,
    /// A hint how to resolve it.
    pub hint: Option<String>,
}

impl Refusal {
    pub(super) fn new(subject: &str, text: impl Into<String>) -> Self {
        Self { subject: subject.to_owned(), text: text.into(), hint: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Returns the first argument that contains null at any depth. HTTP does not support null: 400 `null_not_allowed` on queues
/// and exchanges, 500 on bindings, all versions.
fn null_in(arguments: &Arguments) -> Option<&str> {
    arguments.iter().find(|(_, value)| contains_null(value)).map(|(name, _)| name.as_str())
}

/// Returns true if a value contains null at any depth.
pub(crate) fn contains_null(value: &ArgumentValue) -> bool {
    match value {
        ArgumentValue::Null => true,
        ArgumentValue::List(values) => values.iter().any(contains_null),
        ArgumentValue::Table(table) => table.values().any(contains_null),
        ArgumentValue::Boolean(_) | ArgumentValue::Integer(_) | ArgumentValue::Float(_) | ArgumentValue::Text(_) => {
            false
        }
    }
}

pub(super) fn null_refusal(arguments: &Arguments) -> Option<Refusal> {
    null_in(arguments).map(|name| {
        Refusal::new(name, format!("argument {name} contains null, which cannot be sent over HTTP"))
            .hint("remove the argument")
    })
}
