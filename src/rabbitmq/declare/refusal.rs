//! A reason why a broker refuses an object, and the refusals that apply to every kind of object: of null in arguments, and
//! of names, including names that the broker would change.

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

/// The prefix of names that are reserved for the broker.
const RESERVED: &str = "amq.";

/// Returns the refusals of a queue or exchange with this name.
pub(super) fn name_refusals(name: &str, kind: &str) -> Vec<Refusal> {
    let mut found: Vec<Refusal> = dot_segment(name).into_iter().collect();
    found.extend(line_breaks(name, kind));
    if name.is_empty() {
        found.push(Refusal::new("name", format!("{} {kind} needs a name", article(kind))));
    } else if name.starts_with(RESERVED) {
        // `rabbit_channel:check_name`, all versions: 401 over HTTP, 403 over AMQP.
        let text = format!("names that start with `{RESERVED}` are reserved for the broker");
        found.push(Refusal::new("name", text).hint("use a different name"));
    }
    found
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with('e') { "an" } else { "a" }
}

/// Refuses names that HTTP cannot transmit. cowboy decodes a path and then removes dot segments
/// (`cowboy_router:split_path`), as HTTP clients do.
pub(super) fn dot_segment(name: &str) -> Option<Refusal> {
    matches!(name, "." | "..").then(|| {
        Refusal::new("name", "an HTTP request cannot contain a name that is a dot segment of a path")
            .hint("use a different name")
    })
}

/// Refuses names with line breaks. `rabbit_channel:strip_cr_lf` silently removes line breaks from the names of queues
/// and exchanges (all versions, also at the ends of a binding, but not in the names of policies).
pub(super) fn line_breaks(name: &str, kind: &str) -> Option<Refusal> {
    name.contains(['\r', '\n']).then(|| {
        let text = format!(
            "the broker removes line breaks from the name of {} {kind}, so another object would be created",
            article(kind)
        );
        Refusal::new("name", text).hint("use a name without line breaks")
    })
}
