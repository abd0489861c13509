//! Defines the refusal of an object, and the checks that several kinds of objects share: null in arguments, and names
//! that the broker refuses or changes.

use crate::model::{ArgumentValue, Arguments};

/// A reason why a broker refuses an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The refused setting, in RabbitMQ's spelling: an argument, a property, or a policy key.
    pub subject: String,
    /// The message for users.
    pub text: String,
    /// A hint for resolving the refusal, if there is one.
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

/// Returns the first argument that contains null at any depth. All versions refuse null over HTTP: with 400
/// `null_not_allowed` for queues and exchanges, and with 500 for bindings.
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
        Refusal::new(name, format!("argument {name} contains null, which the management API does not accept"))
            .hint("remove the argument")
    })
}

/// The name prefix that is reserved for the broker.
const RESERVED: &str = "amq.";

/// Returns the refusals of the name of a queue or an exchange.
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

/// Refuses names that cannot be sent in an HTTP path. Cowboy decodes the path and then removes dot segments
/// (`cowboy_router:split_path`), and HTTP clients also remove them.
pub(super) fn dot_segment(name: &str) -> Option<Refusal> {
    matches!(name, "." | "..").then(|| {
        Refusal::new("name", "an HTTP request cannot address a name that is a dot segment (`.` or `..`)")
            .hint("use a different name")
    })
}

/// Refuses names with line breaks. All versions silently remove line breaks from queue and exchange names, including
/// those in bindings, but not from policy names (`rabbit_channel:strip_cr_lf`).
pub(super) fn line_breaks(name: &str, kind: &str) -> Option<Refusal> {
    name.contains(['\r', '\n']).then(|| {
        let text = format!(
            "the broker removes line breaks from the name of {} {kind}, so the object would have a different name",
            article(kind)
        );
        Refusal::new("name", text).hint("use a name without line breaks")
    })
}
