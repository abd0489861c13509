//! Predicts which declarations of new objects a broker refuses, and why.
//!
//! A few refusals are topo's own: the broker would accept the declaration but create something else.

mod binding;
mod deprecated;
mod exchange;
mod policy;
mod policy_keys;
mod queue;
mod record;
mod vhost;

pub use binding::{Ends, binding_refusals};
pub(crate) use exchange::is_known_type;
pub use policy_keys::{plugin_keys, policy_keys};
pub use queue::with_default_type;
pub use record::operator_keys;
pub use vhost::vhost_change_refusals;

use super::BrokerProfile;
use crate::model::{ArgumentValue, Arguments, Object};

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
    fn new(subject: &str, text: impl Into<String>) -> Self {
        Self { subject: subject.to_owned(), text: text.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Returns all refusals of a new object, in the order of the broker's checks; the broker reports only the first one. If there
/// are none, the broker accepts the object.
///
/// A binding is checked alone; [`binding_refusals`] also considers its source and destination.
pub fn refusals(object: &Object, profile: &BrokerProfile) -> Vec<Refusal> {
    match object {
        Object::Queue(name, queue) => {
            let mut found = vhost::declared(name.as_str(), "queue");
            found.extend(queue::refusals(queue, profile));
            found
        }
        Object::Exchange(name, exchange) => exchange::refusals(name, exchange, profile),
        Object::Policy(name, policy) => policy::refusals(name, policy, profile),
        Object::Vhost(vhost) => vhost::refusals(vhost, profile),
        Object::Binding(binding) => binding_refusals(binding, Ends::default(), profile),
        Object::Record(record) => record::refusals(record, profile),
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

fn null_refusal(arguments: &Arguments) -> Option<Refusal> {
    null_in(arguments).map(|name| {
        Refusal::new(name, format!("argument {name} contains null, which cannot be sent over HTTP"))
            .hint("remove the argument")
    })
}
