//! Predicts refusals of queues.
//!
//! The refusals follow the order of the broker's checks:
//!
//! 1. values that the management API does not accept;
//! 2. the type of the dead-letter exchange argument (`rabbit_channel`);
//! 3. the queue type;
//! 4. argument values, and arguments for other queue types (`rabbit_amqqueue:check_declare_arguments`);
//! 5. checks that depend on the queue type, such as `rabbit_quorum_queue:declare`.

mod type_checks;
mod value;

pub use type_checks::with_default_type;

use super::refusal::{Refusal, contains_null};
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument, Versions, check_order};
use crate::model::{ArgumentValue, BrokerVersion, Queue, QueueType};
use crate::rabbitmq::profile::BrokerProfile;
use std::collections::BTreeSet;
use value::{format_value, hint, refusal};

/// The queue types other than classic, quorum and stream that the broker and bundled plugins have supported since 3.12
/// (`rabbit_registry`, class `queue`). The broker does not report whether these types are available.
const OTHER_TYPES: &[&str] = &["rabbit_mqtt_qos0_queue", "MQTT-QOS0", "mqtt-qos0"];

pub(super) fn refusals(queue: &Queue, profile: &BrokerProfile) -> Vec<Refusal> {
    let version = profile.version;
    let queue = &with_default_type(queue, profile);
    let mut found = Vec::new();
    for (name, value) in queue.arguments.iter().filter(|(_, value)| contains_null(value)) {
        found.push(refusal(
            name,
            format!("{name} is {value}: the management API does not accept null"),
            "remove the argument",
        ));
    }
    let dead_letter = "x-dead-letter-exchange";
    if let Some(value) = queue.arguments.get(dead_letter).filter(|value| value.as_text().is_none()) {
        let text = format!(
            "x-dead-letter-exchange must be a string, but {} is {}",
            format_value(value),
            value::type_name(value)
        );
        found.push(refusal(dead_letter, text, &hint(dead_letter)));
    }
    let kind = queue_type(queue, profile);
    // RabbitMQ 3.9 and later check the queue type before the other argument values, and stop if the type is wrong.
    // RabbitMQ 3.8 checks the type like any other argument.
    let is_first = version.is_at_least(3, 9);
    match (&kind, is_first) {
        (Err(refusal), true) => {
            found.push(refusal.clone());
            return found;
        }
        // The arguments of queue types from plugins are unknown.
        (Ok(None), _) => return found,
        (Ok(Some(_)), _) | (Err(_), false) => {}
    }
    // RabbitMQ 3.8 checks values in the same way for every queue type.
    let checked_as = kind.as_ref().ok().copied().flatten().unwrap_or(QueueType::Classic);
    for name in check_order() {
        if *name == "x-queue-type" {
            found.extend(kind.as_ref().err().cloned());
        } else if let Some(value) = queue.arguments.get(*name) {
            found.extend(value_refusal(queue, name, value, checked_as, version));
        }
    }
    if let Ok(Some(kind)) = kind {
        found.extend(unsupported_arguments(queue, kind, version));
        found.extend(type_checks::deprecated_features(queue, kind, profile));
        found.extend(type_checks::refusals(queue, kind, version));
    }
    let mut reported = BTreeSet::new();
    found.retain(|refusal| reported.insert(refusal.subject.clone()));
    found
}

/// Returns true if the broker treats a queue type as unset: `undefined` since 3.13.4, and the empty string since 4.2.8
/// and 4.3.2 (`rabbit_amqqueue:get_queue_type`). Some clients send these values for an option that is not set. The
/// broker stores and compares the value unchanged.
fn is_treated_as_unset(text: &str, version: BrokerVersion) -> bool {
    let empty = [Versions::since_patch(4, 2, 8).until(4, 3), Versions::since_patch(4, 3, 2)];
    text == "undefined" && Versions::since_patch(3, 13, 4).contains(version)
        || text.is_empty() && empty.iter().any(|versions| versions.contains(version))
}

/// Returns the refusal of an argument value; `None` if the broker accepts the value for this queue type. Also refuses a
/// dead-letter routing key without a dead-letter exchange.
fn value_refusal(
    queue: &Queue,
    name: &str,
    value: &ArgumentValue,
    kind: QueueType,
    version: BrokerVersion,
) -> Option<Refusal> {
    let desired = KnownArgument::named(name).and_then(|known| known.check_for(kind, version))?;
    if let Some(text) = value::problem(name, value, desired) {
        let key = KnownArgument::named(name).map_or(name, |known| known.key);
        let maximum =
            value::exceeded_maximum(value, desired).map(|maximum| format!("set `{key}` to {maximum} or less"));
        return Some(refusal(name, text, &maximum.unwrap_or_else(|| hint(name))));
    }
    let is_alone = name == "x-dead-letter-routing-key" && !queue.arguments.contains_key("x-dead-letter-exchange");
    is_alone.then(|| {
        let text = "x-dead-letter-routing-key is set without x-dead-letter-exchange: routing_key_but_no_dlx_defined";
        let hint =
            "set both with `deadLetter: {exchange: …, routingKey: …}`; an exchange set by a policy does not count";
        refusal(name, text.to_owned(), hint)
    })
}

/// Returns the queue type; `None` if a plugin provides the type. Returns the refusal if the broker does not support the
/// type.
fn queue_type(queue: &Queue, profile: &BrokerProfile) -> Result<Option<QueueType>, Refusal> {
    let version = profile.version;
    let name = "x-queue-type";
    let Some(value) = queue.arguments.get(name) else { return Ok(Some(QueueType::Classic)) };
    let hint = "use classic, quorum or stream";
    let Some(text) = value.as_text() else {
        let text = format!("x-queue-type must be a string, but {} is {}", format_value(value), value::type_name(value));
        return Err(refusal(name, text, hint));
    };
    let default = || profile.default_queue_type.as_deref().unwrap_or("classic");
    match QueueType::named(if is_treated_as_unset(text, version) { default() } else { text }) {
        Some(QueueType::Stream) if !version.is_at_least(3, 9) => {
            let text = format!("streams require RabbitMQ 3.9; the broker is {version}");
            Err(refusal(name, text, "use classic or quorum"))
        }
        Some(kind) => Ok(Some(kind)),
        None if version.is_at_least(3, 12) && OTHER_TYPES.contains(&text) => Ok(None),
        None => Err(refusal(name, format!("unknown queue type {text:?}"), hint)),
    }
}

/// Returns the refusals of arguments that the queue type does not support.
///
/// RabbitMQ 3.8 refuses only a few arguments, and only for quorum queues. RabbitMQ 3.9 and later refuse an argument
/// that only other queue types list as supported. The broker checks arguments in the order of the request, and the HTTP
/// API sorts them by name.
fn unsupported_arguments(queue: &Queue, kind: QueueType, version: BrokerVersion) -> Vec<Refusal> {
    if !version.is_at_least(3, 9) {
        let unsupported = if kind == QueueType::Quorum { type_checks::unsupported_by_quorum_3_8(version) } else { &[] };
        let present = unsupported.iter().filter(|name| queue.arguments.contains_key(**name));
        return present.map(|name| argument_refusal(name, kind, version)).collect();
    }
    queue
        .arguments
        .keys()
        .filter_map(|name| KNOWN_ARGUMENTS.iter().find(|known| known.name == name))
        .filter(|known| known.is_listed_by_any(version) && !known.is_listed(kind, version))
        .map(|known| argument_refusal(known.name, kind, version))
        .collect()
}

/// Creates the refusal of an argument that the queue type does not support on this version.
fn argument_refusal(name: &str, kind: QueueType, version: BrokerVersion) -> Refusal {
    let accepted = KnownArgument::named(name).and_then(|known| known.support_for(kind)).map(|support| support.accepted);
    let text = match accepted {
        Some(versions) if version < versions.since => {
            format!("{name} on {kind} queues requires RabbitMQ {}; the broker is {version}", versions.first())
        }
        Some(_) => format!("{kind} queues in RabbitMQ {version} no longer support {name}"),
        None => format!("{kind} queues do not support {name}"),
    };
    refusal(name, text, &hint(name))
}
