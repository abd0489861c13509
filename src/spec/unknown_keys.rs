//! Reports unknown keys, with a suggestion or the list of valid keys.

use super::cluster_keys::CLUSTER_DOCUMENT;
use super::diagnostic::{Diagnostic, Diagnostics};
use super::hints::closest;
use super::keys::{DOCUMENT, POLICY_KEYS};
use super::node::{Entry, Node};
use super::secrets::can_contain_secrets;
use super::shape::{Key, Object, Shape};
use crate::model::QueueType;
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};

/// Names from RabbitMQ, its clients or other parts of a spec, each with the corresponding key.
const FOREIGN_NAMES: &[(&str, &str)] = &[
    ("source", "exchange"),
    ("exchange", "source"),
    ("queue", "destination"),
    ("key", "routingKey"),
    ("vhost", "name"),
    ("ttl", "messageTtl"),
    ("dlx", "deadLetter"),
    ("dlq", "deadLetter"),
    ("priority", "maxPriority"),
    ("retries", "maxRetries"),
    ("kind", "type"),
    ("bind", "bindings"),
    ("maxlen", "maxLength"),
    ("maxlenbytes", "maxLengthBytes"),
    ("policy", "policies"),
];

/// Reports an unknown key, and returns the suggested key, if there is one. `is_listed` records whether an error has
/// already listed the keys of the mapping, so that only one error lists them.
pub(super) fn report_unknown_key(
    entry: &Entry,
    table: &Node,
    kind: &Object,
    is_listed: &mut bool,
    diagnostics: &mut Diagnostics,
) -> Option<&'static str> {
    let keys = kind.keys_of(queue_type(table, kind));
    let names = || keys.iter().map(|key| key.name);
    if let Some((name, _)) = entry.key.split_once(':').filter(|_| can_contain_secrets(kind)) {
        // The text after the colon may be a secret.
        let diagnostic =
            Diagnostic::error("unknown-key", format!("missing space after the colon of `{name}`"), entry.at);
        diagnostics.push(diagnostic.masking(entry.node.extent()).hint(format!("write `{name}: …`")));
        return names().find(|known| known == &name);
    }
    let by_argument =
        KnownArgument::named(&entry.key).map(|known| known.key).filter(|key| names().any(|name| name == *key));
    let misplaced = misplaced(&entry.key, kind).map(str::to_owned).or_else(|| of_other_document(&entry.key, kind));
    let suggestion = by_argument
        .filter(|_| misplaced.is_none())
        .or_else(|| if misplaced.is_none() { closest(&entry.key, names()) } else { None })
        .or_else(|| corresponding_key(&entry.key, &keys));
    let hint = match (misplaced, suggestion) {
        (Some(hint), _) => Some(hint),
        (None, Some(name)) => Some(format!("did you mean `{name}`?")),
        (None, None) if supports_arguments(&keys) && entry.key.starts_with("x-") => {
            Some("put other arguments under `arguments:`".to_owned())
        }
        (None, None) if *is_listed => None,
        (None, None) => {
            *is_listed = true;
            let of_type = queue_type(table, kind).map_or(String::new(), |it| format!(" of type `{it}`"));
            let names: Vec<String> = names().map(|name| format!("`{name}`")).collect();
            Some(format!("the keys of {}{of_type} are {}", kind.what, names.join(", ")))
        }
    };
    let diagnostic =
        Diagnostic::error("unknown-key", format!("unknown key `{}` in {}", entry.key, kind.what), entry.at);
    let diagnostic = match can_contain_secrets(kind) {
        true => diagnostic.masking(entry.node.extent()),
        false => diagnostic,
    };
    diagnostics.push(diagnostic.label("unknown key").maybe_hint(hint));
    suggestion
}

/// Returns the type that a queue itself sets. Returns `None` if the mapping is not a queue or sets no valid type.
fn queue_type(table: &Node, kind: &Object) -> Option<QueueType> {
    table.get("type").filter(|_| kind.is_queue).and_then(Node::text).and_then(QueueType::named)
}

fn supports_arguments(keys: &[Key]) -> bool {
    keys.iter().any(|key| matches!(key.shape, Shape::Arguments(true)))
}

/// Returns a hint for a known key that belongs elsewhere, or that specs do not support.
fn misplaced(key: &str, kind: &Object) -> Option<&'static str> {
    let plain = key.replace(['-', '_'], "").to_lowercase();
    match (kind.name, plain.as_str()) {
        ("QueueDefaults", "retry") => Some("write `retry` under `defaults:`, next to `queue`"),
        ("QueueDefaults", "maxretries") => Some("write `maxRetries` under `defaults:`, next to `queue`"),
        ("QueueDefaults", "deadletter" | "deadletterexchange" | "deadletterroutingkey") => {
            Some("write `deadLetter` under `defaults:`, next to `queue`")
        }
        ("DeadLetterQueue", "retry" | "maxretries") => {
            Some("remove the key: messages in a dead-letter queue are not retried")
        }
        ("Queue" | "DeadLetterQueue", "deadletterexchange") => Some("write `deadLetter: {exchange: …}`"),
        ("Queue" | "DeadLetterQueue", "deadletterroutingkey") => {
            Some("write `deadLetter: {exchange: …, routingKey: …}`")
        }
        ("Queue" | "DeadLetterQueue" | "QueueDefaults", "exclusive") => Some(
            "remove the key: an exclusive queue is deleted with the connection that declares it, so a spec cannot \
             declare it",
        ),
        ("Shovel" | "ShovelSource", "deleteafter" | "srcdeleteafter") => Some(
            "remove the key: a shovel that deletes itself is not part of the topology, because each apply would create \
             it again",
        ),
        (_, _) => None,
    }
}

/// Returns a hint for a vhost key in a cluster document, or for a cluster key in a vhost document.
fn of_other_document(key: &str, kind: &Object) -> Option<String> {
    let is_key_of = |other: &Object| other.keys().iter().any(|known| known.name == key);
    match kind.name {
        "Document" if key == "cluster" => {
            Some("describe the cluster in a separate document: move its keys below a `---` line".to_owned())
        }
        "Document" if is_key_of(&CLUSTER_DOCUMENT) => {
            Some(format!("`{key}` belongs to the cluster: write it in a document with `cluster: {{}}`"))
        }
        "ClusterDocument" if is_key_of(&DOCUMENT) => {
            Some(format!("`{key}` belongs to a vhost: write it in a document with `vhost: NAME`"))
        }
        _ => None,
    }
}

/// Returns the key that corresponds to a name in [`FOREIGN_NAMES`], if the mapping supports this key.
fn corresponding_key(word: &str, keys: &[Key]) -> Option<&'static str> {
    let plain = word.replace(['-', '_'], "").to_lowercase();
    let found = FOREIGN_NAMES.iter().filter(|(known, _)| *known == plain);
    found.map(|(_, key)| *key).find(|key| keys.iter().any(|known| known.name == *key))
}

/// Returns true, and reports an error, if a key in a policy definition is invalid. Invalid keys are arguments that a
/// policy cannot set, and unknown keys that do not follow RabbitMQ's spelling.
pub(super) fn refuse_policy_key(entry: &Entry, diagnostics: &mut Diagnostics) -> bool {
    let unsettable = KNOWN_ARGUMENTS.iter().find(|known| {
        known.policy_key.is_none() && (known.key == entry.key || known.name.trim_start_matches("x-") == entry.key)
    });
    if let Some(argument) = unsettable {
        let hint = format!("set `{}` on the queue instead", argument.key);
        let diagnostic = Diagnostic::error("unknown-key", format!("a policy cannot set `{}`", entry.key), entry.at);
        diagnostics.push(diagnostic.hint(hint));
        return true;
    }
    let is_known = POLICY_KEYS.iter().any(|known| known.key == entry.key || known.name == entry.key);
    let is_misspelled =
        !is_known && entry.key.contains(|c: char| c.is_uppercase() || c == '_') || entry.key.starts_with("x-");
    if is_misspelled {
        let hint = match closest(entry.key.trim_start_matches("x-"), POLICY_KEYS.iter().map(|known| known.key)) {
            Some(key) => format!("did you mean `{key}`?"),
            None => "use RabbitMQ's spelling for other keys, for example `shards-per-node`".to_owned(),
        };
        let diagnostic = Diagnostic::error("unknown-key", format!("unknown key `{}` in a policy", entry.key), entry.at);
        diagnostics.push(diagnostic.label("unknown key").hint(hint));
    }
    is_misspelled
}
