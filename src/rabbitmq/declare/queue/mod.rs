//! Predicts refusals of queues.
//!
//! The order is that of the broker:
//!
//! 1. values that HTTP does not support;
//! 2. the type of the dead-letter exchange argument (`rabbit_channel`);
//! 3. the queue type;
//! 4. the values of arguments, and arguments of other types (`rabbit_amqqueue:check_declare_arguments`);
//! 5. the checks of the queue type (`rabbit_quorum_queue:declare` and those of the other types).

mod own;
mod value;

pub use own::with_default_type;

use super::refusal::{Refusal, contains_null};
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument, Versions, checked};
use crate::model::{ArgumentValue, BrokerVersion, Queue, QueueType};
use crate::rabbitmq::profile::BrokerProfile;
use std::collections::BTreeSet;
use value::{hint, refusal, shown};

/// The queue types that the broker and bundled plugins add to the three known ones, since 3.12 (`rabbit_registry`,
/// class `queue`). The broker does not report if they are available.
const OTHER_TYPES: &[&str] = &["rabbit_mqtt_qos0_queue", "MQTT-QOS0", "mqtt-qos0"];

pub(super) fn refusals(queue: &Queue, profile: &BrokerProfile) -> Vec<Refusal> {
    let version = profile.version;
    let queue = &with_default_type(queue, profile);
    let mut found = Vec::new();
    for (name, value) in queue.arguments.iter().filter(|(_, value)| contains_null(value)) {
        found.push(refusal(name, format!("{name} is {value}: null cannot be sent over HTTP"), "remove the argument"));
    }
    let dead_letter = "x-dead-letter-exchange";
    if let Some(value) = queue.arguments.get(dead_letter).filter(|value| value.as_text().is_none()) {
        let text =
            format!("x-dead-letter-exchange must be a string, but {} is {}", shown(value), value::described(value));
        found.push(refusal(dead_letter, text, &hint(dead_letter)));
    }
    let kind = queue_type(queue, profile);
    // From 3.9 on, the broker checks the type first and stops if it is wrong. 3.8 checks it like any other argument.
    let is_first = version.is_at_least(3, 9);
    match (&kind, is_first) {
        (Err(refusal), true) => {
            found.push(refusal.clone());
            return found;
        }
        // The arguments of a plugin type are unknown.
        (Ok(None), _) => return found,
        (Ok(Some(_)), _) | (Err(_), false) => {}
    }
    // 3.8 checks values in the same way for every type.
    let checked_as = kind.as_ref().ok().copied().flatten().unwrap_or(QueueType::Classic);
    for name in checked() {
        if *name == "x-queue-type" {
            found.extend(kind.as_ref().err().cloned());
        } else if let Some(value) = queue.arguments.get(*name) {
            found.extend(checked_value(queue, name, value, checked_as, version));
        }
    }
    if let Ok(Some(kind)) = kind {
        found.extend(of_other_types(queue, kind, version));
        found.extend(own::deprecated_features(queue, kind, profile));
        found.extend(own::refusals(queue, kind, version));
    }
    let mut reported = BTreeSet::new();
    found.retain(|refusal| reported.insert(refusal.subject.clone()));
    found
}

/// Returns true if a queue type means "not set", which results from an atom of a client: `undefined` since 3.13.4, and
/// the empty string since 4.2.8 and 4.3.2 (`rabbit_amqqueue:get_queue_type`). The broker stores and compares it
/// unchanged.
fn means_the_default(text: &str, version: BrokerVersion) -> bool {
    let empty = [Versions::since_patch(4, 2, 8).until(4, 3), Versions::since_patch(4, 3, 2)];
    text == "undefined" && Versions::since_patch(3, 13, 4).contains(version)
        || text.is_empty() && empty.iter().any(|versions| versions.contains(version))
}

/// Returns the refusal of a value that this version checks for this queue type.
fn checked_value(
    queue: &Queue,
    name: &str,
    value: &ArgumentValue,
    kind: QueueType,
    version: BrokerVersion,
) -> Option<Refusal> {
    let desired = KnownArgument::named(name).and_then(|known| known.check_for(kind, version))?;
    if let Some(text) = value::problem(name, value, desired) {
        let key = KnownArgument::named(name).map_or(name, |known| known.key);
        let maximum = value::exceeded(value, desired).map(|maximum| format!("write `{key}: {maximum}` or less"));
        return Some(refusal(name, text, &maximum.unwrap_or_else(|| hint(name))));
    }
    let is_alone = name == "x-dead-letter-routing-key" && !queue.arguments.contains_key("x-dead-letter-exchange");
    is_alone.then(|| {
        let text = "x-dead-letter-routing-key without x-dead-letter-exchange: routing_key_but_no_dlx_defined";
        let hint =
            "set both with `deadLetter: {exchange: …, routingKey: …}`; an exchange set by a policy does not count";
        refusal(name, text.to_owned(), hint)
    })
}

/// Returns the queue type; `None` if a plugin provides the type.
fn queue_type(queue: &Queue, profile: &BrokerProfile) -> Result<Option<QueueType>, Refusal> {
    let version = profile.version;
    let name = "x-queue-type";
    let Some(value) = queue.arguments.get(name) else { return Ok(Some(QueueType::Classic)) };
    let hint = "use classic, quorum or stream";
    let Some(text) = value.as_text() else {
        let text = format!("x-queue-type must be a string, but {} is {}", shown(value), value::described(value));
        return Err(refusal(name, text, hint));
    };
    let default = || profile.default_queue_type.as_deref().unwrap_or("classic");
    match QueueType::named(if means_the_default(text, version) { default() } else { text }) {
        Some(QueueType::Stream) if !version.is_at_least(3, 9) => {
            let text = format!("streams exist since RabbitMQ 3.9; the broker is {version}");
            Err(refusal(name, text, "use classic or quorum"))
        }
        Some(kind) => Ok(Some(kind)),
        None if version.is_at_least(3, 12) && OTHER_TYPES.contains(&text) => Ok(None),
        None => Err(refusal(name, format!("unknown queue type {text:?}"), hint)),
    }
}

/// Returns the refusals of arguments of other queue types. 3.8 accepts every argument for any type, except those that
/// its quorum queues refuse. From 3.9 on, an argument that only other types list is refused, in the order of the
/// request; over HTTP they are sorted by name.
fn of_other_types(queue: &Queue, kind: QueueType, version: BrokerVersion) -> Vec<Refusal> {
    if !version.is_at_least(3, 9) {
        let refused = if kind == QueueType::Quorum { own::refused_by_quorum_3_8(version) } else { &[] };
        let present = refused.iter().filter(|name| queue.arguments.contains_key(**name));
        return present.map(|name| unsupported(name, kind, version)).collect();
    }
    queue
        .arguments
        .keys()
        .filter_map(|name| KNOWN_ARGUMENTS.iter().find(|known| known.name == name))
        .filter(|known| known.is_listed_by_any(version) && !known.is_listed(kind, version))
        .map(|known| unsupported(known.name, kind, version))
        .collect()
}

/// Creates the refusal of an argument that the queue type does not support on this version.
fn unsupported(name: &str, kind: QueueType, version: BrokerVersion) -> Refusal {
    let taken = KnownArgument::named(name).and_then(|known| known.support_for(kind)).map(|support| support.taken);
    let text = match taken {
        Some(taken) if version < taken.since => {
            format!("{kind} queues support {name} since RabbitMQ {}; the broker is {version}", taken.first())
        }
        Some(_) => format!("{kind} queues of RabbitMQ {version} no longer support {name}"),
        None => format!("{kind} queues do not support {name}"),
    };
    refusal(name, text, &hint(name))
}
