//! Reports passwords and keys where other users can read them: in the spec, in plans, and in the broker's lists of
//! objects.

use crate::lint::{Finding, Rule, Subject};
use crate::model::record_kinds::FieldShape;
use crate::model::{ArgumentValue, ObjectId};
use crate::spec::{Location, Severity};

pub(super) static RULE: Rule = Rule {
    name: "secret-in-spec",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "a value that other users can read looks like a password",
    check,
    page: include_str!("secret_in_spec.md"),
};

/// Words in the name of an argument that suggest a secret value.
const WORDS: [&str; 7] = ["password", "passwd", "secret", "api-key", "apikey", "private-key", "credential"];

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let spec = subject.spec;
    let mut findings = Vec::new();
    let mut check_value = |id: &ObjectId, name: Option<&str>, value: &ArgumentValue, at: Location| {
        if let Some(secret) = secret(name.unwrap_or_default(), value) {
            let text = format!("{secret}: it is visible in the repository, in plans, and to every user of the broker");
            let hint =
                "configure it in the client that needs it, and change it wherever it is used: it has been exposed";
            findings.push(RULE.finding_at(id.clone(), at, text).hint(hint));
        }
    };
    if let Some(text) = &spec.description {
        check_value(&ObjectId::Vhost, None, &ArgumentValue::Text(text.value.clone()), text.at);
    }
    let dead_letter_queues = spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
    for (name, queue) in spec.queues.iter().chain(dead_letter_queues) {
        for (argument, setting) in &queue.arguments {
            check_value(&ObjectId::Queue(name.clone()), Some(argument), &setting.value, setting.at);
        }
    }
    for (name, exchange) in &spec.exchanges {
        for (argument, setting) in &exchange.arguments {
            check_value(&ObjectId::Exchange(name.clone()), Some(argument), &setting.value, setting.key_at);
        }
    }
    for (name, policy) in &spec.policies {
        for (key, setting) in &policy.definition {
            check_value(&ObjectId::Policy(name.clone()), Some(key), &setting.value, setting.key_at);
        }
    }
    for (id, declaration) in &spec.records {
        let fields = id.fields();
        // These fields contain references to secrets, never the secrets themselves.
        let is_reference = |name: &str| {
            let mut of_name = fields.iter().filter(|field| field.name == name);
            of_name.any(|field| matches!(field.shape, FieldShape::Secret { .. }))
        };
        for (field, value) in declaration.record.fields.iter().filter(|(name, _)| !is_reference(name)) {
            let name = if field == "value" { id.name() } else { Some(field.as_str()) };
            check_value(&ObjectId::Record(id.clone()), name, value, declaration.at);
        }
    }
    for (binding, declaration) in &spec.bindings {
        for value in binding.arguments.values() {
            // The rule does not check the name, because it is the name of a message header. The broker compares that
            // header with the value.
            check_value(&ObjectId::Binding(binding.clone()), None, value, declaration.at);
        }
    }
    findings
}

/// Describes the secret that a value seems to contain, without revealing the value; `None` if the value does not look
/// like a secret.
fn secret(name: &str, value: &ArgumentValue) -> Option<String> {
    match value {
        ArgumentValue::Text(text) if has_password(text) => Some("this URI contains a password".to_owned()),
        ArgumentValue::Text(text) => {
            let plain = name.to_lowercase().replace('_', "-");
            let word = WORDS.iter().find(|word| plain.contains(*word)).filter(|_| !text.is_empty());
            word.map(|_| format!("`{name}` looks like a password"))
        }
        ArgumentValue::List(items) => items.iter().find_map(|item| secret(name, item)),
        ArgumentValue::Table(entries) => entries.iter().find_map(|(name, value)| secret(name, value)),
        ArgumentValue::Null | ArgumentValue::Boolean(_) | ArgumentValue::Integer(_) | ArgumentValue::Float(_) => None,
    }
}

/// Returns true if a string contains a URI with a password, such as `amqp://user:password@host`.
fn has_password(text: &str) -> bool {
    text.match_indices("://").any(|(at, _)| {
        let authority = text[at + 3..].split(['/', '?', '#', ' ']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_precede_the_host() {
        for (text, expected) in [
            ("amqp://guest:guest@broker:5672/%2f", true),
            ("see amqps://a:b@c for more", true),
            ("amqp://broker:5672", false),
            ("amqp://user@broker", false),
            ("amqp://user:@broker", false),
            ("https://wiki/page?x=a:b@c", false),
            ("a:b@c", false),
        ] {
            assert_eq!(has_password(text), expected, "{text}");
        }
    }
}
