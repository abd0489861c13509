//! Labels of arrows: the condition for a message to follow the arrow.

use crate::model::binding::KeyAndArguments;
use crate::model::units::unmistakable;
use crate::model::{ArgumentValue, Binding};

/// The label of a binding that matches every message, next to bindings that do not.
pub(super) const EVERY_MESSAGE: &str = "every message";

/// Returns the label of a binding from an exchange of this type, or `None` if the binding matches every message.
pub(super) fn of_binding(binding: &Binding, kind: Option<&str>) -> Option<String> {
    match (kind, binding.arguments.is_empty()) {
        (Some("fanout"), true) if binding.routing_key.is_empty() => None,
        // A headers exchange ignores the routing key, and without arguments all messages match.
        (Some("headers"), true) => None,
        (Some("headers"), false) => Some(headers(binding)),
        (Some(_) | None, _) => Some(KeyAndArguments(binding).to_string()),
    }
}

/// Returns the label of dead-lettering with a routing key. An empty key is quoted, as for a binding.
pub(super) fn of_key(key: &str) -> String {
    if key.is_empty() { "\"\"".to_owned() } else { key.to_owned() }
}

/// Formats the arguments as `region: eu, heavy: true`, with `any of` before them if one match is enough.
fn headers(binding: &Binding) -> String {
    let how = binding.arguments.get("x-match").and_then(ArgumentValue::as_text).unwrap_or("all");
    let compared = binding.arguments.iter().filter(|(name, _)| *name != "x-match");
    let compared: Vec<String> = compared.map(|(name, value)| format!("{name}: {}", unmistakable(value))).collect();
    match (how, &compared[..]) {
        (_, []) => format!("x-match: {how}"),
        ("all" | "all-with-x", _) | (_, [_]) => compared.join(", "),
        (_, _) => format!("any of {}", compared.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Destination, QueueName};

    #[test]
    fn bindings_of_each_exchange_type_have_labels() {
        let of = |arguments: &[(&str, &str)], key: &str, kind: &str| {
            let binding = Binding {
                source: "x".into(),
                destination: Destination::Queue(QueueName::from("q")),
                routing_key: key.to_owned(),
                arguments: arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect(),
            };
            of_binding(&binding, Some(kind))
        };
        let eu = [("region", "eu"), ("tier", "2")];
        assert_eq!(of(&eu, "", "headers").as_deref(), Some("region: eu, tier: \"2\""));
        let any = [("region", "eu"), ("tier", "2"), ("x-match", "any")];
        assert_eq!(of(&any, "", "headers").as_deref(), Some("any of region: eu, tier: \"2\""));
        assert_eq!(of(&any[1..], "", "headers").as_deref(), Some("tier: \"2\""));
        assert_eq!(of(&[], "", "fanout"), None);
        assert_eq!((of(&[], "", "headers"), of(&[], "unread", "headers")), (None, None));
        assert_eq!(of(&[], "", "direct").as_deref(), Some("\"\""));
        assert_eq!(of(&[], "order.#", "topic").as_deref(), Some("order.#"));
        assert_eq!(of(&eu[..1], "k", "x-something").as_deref(), Some("k {region: eu}"));
    }
}
