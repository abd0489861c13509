//! Checks shovels and federation upstreams.

use super::convert::value_of;
use super::diagnostic::{Diagnostic, Diagnostics};
use super::node::{Entry, Node};
use crate::model::record_kinds::{AMQP_1_0, DESTINATION, RecordField, RecordRow, SOURCE};
use crate::model::{AmqpUri, ArgumentValue, SecretRef, VhostName};

/// Reports conflicting and missing keys of a shovel.
pub(super) fn check_shovel(shovel: &Node, diagnostics: &mut Diagnostics) {
    for group in [SOURCE, DESTINATION] {
        let Some(endpoint) = shovel.entry(group) else { continue };
        check_endpoint(endpoint, diagnostics);
        check_password(&endpoint.node, diagnostics);
    }
}

/// The keys of a shovel's source or destination that AMQP 1.0 does not support.
const NOT_AMQP_1_0: [&str; 5] = ["queue", "exchange", "routingKey", "queueArguments", "publishProperties"];
/// The keys of a shovel's source or destination that only AMQP 1.0 supports.
const ONLY_AMQP_1_0: [&str; 4] = ["address", "properties", "applicationProperties", "messageAnnotations"];

fn check_endpoint(endpoint: &Entry, diagnostics: &mut Diagnostics) {
    let node = &endpoint.node;
    let protocol = node.get("protocol").and_then(Node::text).unwrap_or("amqp091");
    let is_amqp_1_0 = protocol == AMQP_1_0;
    let unsupported = if is_amqp_1_0 { &NOT_AMQP_1_0[..] } else { &ONLY_AMQP_1_0[..] };
    for entry in unsupported.iter().filter_map(|key| node.entry(key)) {
        let message = format!("the `{protocol}` protocol does not support `{}`", entry.key);
        let hint = match is_amqp_1_0 {
            true => "use `address`, for example `address: /queues/NAME`",
            false => "use `queue` or `exchange`, or set `protocol: amqp10`",
        };
        diagnostics.push(Diagnostic::error("conflicting-keys", message, entry.at).hint(hint));
    }
    let targets: &[&str] = if is_amqp_1_0 { &["address"] } else { &["queue", "exchange"] };
    let found: Vec<&Entry> = targets.iter().filter_map(|key| node.entry(key)).collect();
    match (&found[..], is_amqp_1_0) {
        ([_], _) => {}
        ([first, second, ..], _) => {
            let message = format!("`{}` and `{}` are mutually exclusive", first.key, second.key);
            let diagnostic = Diagnostic::error("conflicting-keys", message, second.at)
                .also(first.at, format!("`{}` is set here", first.key));
            diagnostics.push(diagnostic.hint("keep one of them"));
        }
        // The error about an unsupported key already contains the hint.
        ([], _) if unsupported.iter().any(|key| node.entry(key).is_some()) => {}
        ([], true) => {
            let message = format!("`{}` has no `address`", endpoint.key);
            let diagnostic = Diagnostic::error("missing-key", message, endpoint.at);
            diagnostics.push(diagnostic.hint("add `address: /queues/NAME`"));
        }
        ([], false) => {
            let message = format!("`{}` has neither `queue` nor `exchange`", endpoint.key);
            diagnostics.push(Diagnostic::error("missing-key", message, endpoint.at).hint("add one of them"));
        }
    }
    if let (Some(key), None) = (node.entry("routingKey"), node.entry("exchange"))
        && !is_amqp_1_0
    {
        let message = "`routingKey` requires `exchange`";
        let hint = "remove `routingKey`, or use `exchange` instead of `queue`";
        if endpoint.key == DESTINATION || node.entry("queue").is_some() {
            diagnostics.push(Diagnostic::error("missing-key", message, key.at).hint(hint));
        }
    }
}

/// Reports a `password` key if no URI contains a user name.
pub(super) fn check_password(table: &Node, diagnostics: &mut Diagnostics) {
    let Some(password) = table.entry("password") else { return };
    let uris: Vec<&Node> = match table.get("uri") {
        Some(list) if !list.items().is_empty() => list.items().iter().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    };
    let has_user =
        |uri: &&Node| uri.text().and_then(|text| AmqpUri::parse(text).ok()).is_some_and(|uri| uri.user().is_some());
    // An invalid URI has already been reported.
    let is_invalid = |uri: &&Node| uri.text().is_none() && SecretRef::of(&value_of(uri)).is_none();
    if !uris.iter().any(|uri| has_user(uri) || is_invalid(uri)) {
        let message = "`password` requires a `uri` with a user name";
        let hint = "add a user name: `uri: amqps://USER@HOST`; remove `password` if `uri` is a reference";
        diagnostics.push(Diagnostic::error("missing-key", message, password.at).hint(hint));
    }
}

/// Returns the default URI of a shovel's source or destination, which refers to this vhost on this broker.
pub(super) fn default_uri(vhost: &VhostName) -> ArgumentValue {
    AmqpUri::of_local_vhost(vhost.as_str()).to_string().into()
}

/// Returns true if [`default_uri`] is the default for a field.
pub(super) fn has_default_uri(row: &RecordRow, field: &RecordField) -> bool {
    row.has_uris() && !field.group.is_empty() && field.key == "uri"
}
