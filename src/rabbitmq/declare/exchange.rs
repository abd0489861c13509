//! Predicts refusals of exchanges and of bindings.

use super::refusal::{self, Refusal, null_refusal};
use crate::model::{
    ArgumentValue, Arguments, Binding, BrokerVersion, Destination, Exchange, ExchangeName, Queue, QueueType, encoding,
};
use crate::rabbitmq::profile::{BrokerProfile, predeclared_type};

/// The message properties that a consistent hash exchange can hash instead of a header.
const HASH_PROPERTIES: [&str; 3] = ["correlation_id", "message_id", "timestamp"];

/// The exchange types that RabbitMQ introduced after 3.8, each with the first version that supports it. The list does
/// not contain `x-modulus-hash`, which a plugin provided before 4.3.
const LATER_TYPES: [(&str, BrokerVersion); 1] = [("x-local-random", BrokerVersion::new(4, 0, 0))];

/// Returns true if the broker supports an exchange type. If the supported types are unknown, topo assumes that the
/// broker supports every type, except the types in [`LATER_TYPES`] that require a later version.
pub(crate) fn is_known_type(kind: &str, profile: &BrokerProfile) -> bool {
    if profile.exchange_types.is_empty() {
        added_in(kind, profile.version).is_none()
    } else {
        profile.exchange_types.contains(kind)
    }
}

/// Returns the version that introduced an exchange type; `None` if `version` already supports the type, or if the type
/// is not in [`LATER_TYPES`].
fn added_in(kind: &str, version: BrokerVersion) -> Option<BrokerVersion> {
    LATER_TYPES.iter().find(|(later, since)| *later == kind && version < *since).map(|(_, since)| *since)
}

/// Returns the refusals of an exchange, in the order of the broker's checks
/// (`rabbit_channel:handle_method(#'exchange.declare'{})`, the same from 3.8 to 4.3). The broker decodes the request,
/// then checks the type, the name, the alternate exchange, and the arguments of the type.
pub(super) fn refusals(exchange_name: &ExchangeName, exchange: &Exchange, profile: &BrokerProfile) -> Vec<Refusal> {
    let mut found: Vec<Refusal> = null_refusal(&exchange.arguments).into_iter().collect();
    if let Some(since) = added_in(&exchange.kind, profile.version) {
        let text = format!(
            "exchange type `{}` requires RabbitMQ {}; the broker is {}",
            exchange.kind,
            since.series(),
            profile.version
        );
        found.push(Refusal::new("type", text).hint("use a different type, or upgrade the broker"));
    } else if !is_known_type(&exchange.kind, profile) {
        let names: Vec<&str> = profile.exchange_types.iter().map(String::as_str).collect();
        let text = format!("the broker does not support exchange type `{}`", exchange.kind);
        let hint = format!("enable the plugin that provides it, or use one of {}", names.join(", "));
        found.push(Refusal::new("type", text).hint(hint));
    }
    found.extend(refusal::name_refusals(exchange_name.as_str(), "exchange"));
    let argument = |name: &str| exchange.arguments.get(name);
    if let Some(value) = argument("alternate-exchange").filter(|value| value.as_text().is_none()) {
        let text = format!(
            "alternate-exchange must be the name of an exchange, but {value} has the AMQP type {}",
            value.amqp_type()
        );
        found.push(Refusal::new("alternate-exchange", text));
    }
    match exchange.kind.as_str() {
        "x-consistent-hash" => found.extend(consistent_hash(argument("hash-header"), argument("hash-property"))),
        "x-recent-history" => {
            let is_wrong = |value: &&ArgumentValue| value.as_integer().is_none_or(|length| length < 1);
            if argument("x-recent-history-length").filter(is_wrong).is_some() {
                let text = "x-recent-history-length must be an integer of at least 1";
                found.push(Refusal::new("x-recent-history-length", text));
            }
        }
        _ => {}
    }
    found
}

/// Validates the arguments of a consistent hash exchange (`rabbit_exchange_type_consistent_hash:validate`). A value
/// that is not a string crashes the broker's validation, which also results in a 400 response.
fn consistent_hash(header: Option<&ArgumentValue>, property: Option<&ArgumentValue>) -> Option<Refusal> {
    let not_text = |name: &str, value: &ArgumentValue| {
        value.as_text().is_none().then(|| Refusal::new(name, format!("{name} must be a string, but {value} is not")))
    };
    let wrong = header.and_then(|value| not_text("hash-header", value));
    let wrong = wrong.or_else(|| property.and_then(|value| not_text("hash-property", value)));
    wrong.or_else(|| match (header, property.and_then(ArgumentValue::as_text)) {
        (Some(_), Some(_)) => Some(
            Refusal::new("hash-property", "an exchange can hash a header or a property, not both")
                .hint("keep hash-header or hash-property"),
        ),
        (None, Some(name)) if !HASH_PROPERTIES.contains(&name) => Some(
            Refusal::new("hash-property", format!("an exchange cannot hash the `{name}` property"))
                .hint(format!("use one of {}", HASH_PROPERTIES.join(", "))),
        ),
        (_, _) => None,
    })
}

/// The maximum size of a request body that creates a binding, in bytes (`rabbit_mgmt_wm_bindings`).
const MAX_BODY_BYTES: usize = 5000;
/// The first version with the limit [`MAX_BODY_BYTES`].
const BODY_LIMITED_SINCE: BrokerVersion = BrokerVersion::new(4, 0, 4);
/// The maximum weight of a binding from a consistent hash exchange (`rabbit_exchange_type_consistent_hash`).
const MAX_WEIGHT: u64 = 10_000;
/// The first version with the limit [`MAX_WEIGHT`].
const WEIGHT_LIMITED_SINCE: BrokerVersion = BrokerVersion::new(4, 2, 6);
/// The largest weight that topo accepts on versions without the limit [`MAX_WEIGHT`]. The weight is the number of
/// buckets, which the broker creates one by one: creating 99,999,999,999,999 buckets stopped a RabbitMQ 3.8.9 node, and
/// creating 1,000,000 buckets took a second.
const MAX_SAFE_WEIGHT: u64 = 1_000_000;

/// The maximum number of `#` words in the key of a topic binding.
const MAX_HASHES: usize = 2;
/// The first version with the limit [`MAX_HASHES`].
const HASHES_LIMITED_SINCE: BrokerVersion = BrokerVersion::new(4, 3, 5);

/// The type of a binding's source exchange, and the destination queue, if they are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends<'a> {
    /// The type of the source exchange; `None` if the type is unknown. Not required for predeclared exchanges.
    pub source: Option<&'a str>,
    /// The destination queue; `None` if the queue is unknown, or if the destination is an exchange.
    pub queue: Option<&'a Queue>,
}

/// Returns all refusals of a binding, in the order of the broker's checks.
///
/// Each exchange type validates its own bindings (`validate_binding`). Most types accept every binding.
pub fn binding_refusals(binding: &Binding, ends: Ends<'_>, profile: &BrokerProfile) -> Vec<Refusal> {
    let version = profile.version;
    let mut found: Vec<Refusal> = refusal::line_breaks(binding.source.as_str(), "exchange").into_iter().collect();
    found.extend(match &binding.destination {
        Destination::Queue(queue) => refusal::line_breaks(queue.as_str(), "queue"),
        Destination::Exchange(exchange) => refusal::line_breaks(exchange.as_str(), "exchange"),
    });
    if version >= BODY_LIMITED_SINCE && body_length(binding) > MAX_BODY_BYTES {
        let text = format!(
            "the key and the arguments of this binding require a request of {} bytes; the maximum is {MAX_BODY_BYTES}",
            body_length(binding)
        );
        found.push(Refusal::new("body", text).hint("create the binding with an AMQP client, or shorten its arguments"));
    }
    found.extend(null_refusal(&binding.arguments));
    if binding.breaks_bindings_list() {
        let text = "a binding with `~` in its key and with arguments makes the management API fail for the whole vhost";
        found.push(Refusal::new("routing_key", text).hint("use a key without `~`"));
    }
    found.extend(default_exchange(binding));
    if let Some(missing) = missing_predeclared(&binding.source) {
        found.push(missing);
    }
    let kind = ends.source.or_else(|| predeclared_type(&binding.source));
    match kind {
        Some("topic") => found.extend(topic(&binding.routing_key, version)),
        Some("headers") => found.extend(headers(&binding.arguments, version)),
        Some("x-consistent-hash") => found.extend(consistent_hash_weight(&binding.routing_key, version)),
        Some("x-local-random") => found.extend(local_random(binding, ends.queue)),
        Some(_) | None => {}
    }
    found
}

/// Returns the length of the request body that creates a binding, in bytes.
fn body_length(binding: &Binding) -> usize {
    encoding::binding(binding).to_string().len()
}

/// Refuses bindings from and to the default exchange. All versions respond with 401 "Access refused.".
fn default_exchange(binding: &Binding) -> Option<Refusal> {
    let is_default = binding.source.as_str().is_empty()
        || matches!(&binding.destination, Destination::Exchange(name) if name.as_str().is_empty());
    is_default.then(|| {
        Refusal::new("source", "the default exchange cannot be bound: it routes to every queue by queue name")
            .hint("bind a different exchange")
    })
}

/// Refuses unknown source exchanges with the `amq.` prefix, because applications cannot declare them. Accepts all names
/// with the `amq.rabbitmq.` prefix, because plugins can declare exchanges with these names.
fn missing_predeclared(name: &ExchangeName) -> Option<Refusal> {
    let is_predeclared = predeclared_type(name).is_some() || name.as_str().starts_with("amq.rabbitmq.");
    (name.as_str().starts_with("amq.") && !is_predeclared).then(|| {
        Refusal::new("source", format!("exchange {name} does not exist and cannot be declared"))
            .hint("use amq.direct, amq.fanout, amq.topic, amq.headers, or an exchange of your own")
    })
}

/// Validates the key of a topic binding (`rabbit_exchange_type_topic:validate_binding`, since 4.3.5; measured on
/// 4.3.6).
fn topic(key: &str, version: BrokerVersion) -> Option<Refusal> {
    let count = key.split('.').filter(|word| *word == "#").count();
    (version >= HASHES_LIMITED_SINCE && count > MAX_HASHES).then(|| {
        let text = format!(
            "RabbitMQ {version} accepts at most {MAX_HASHES} `#` in a topic binding's key, but {key} contains {count}"
        );
        Refusal::new("routing_key", text).hint("use fewer `#`: `#.a.#` is usually wide enough")
    })
}

/// Validates `x-match` (`rabbit_exchange_type_headers:validate_binding`).
fn headers(arguments: &Arguments, version: BrokerVersion) -> Option<Refusal> {
    let words: &[&str] =
        if version.is_at_least(3, 10) { &["all", "any", "all-with-x", "any-with-x"] } else { &["all", "any"] };
    let value = arguments.get("x-match")?;
    if value.as_text().is_some_and(|word| words.contains(&word)) || *value == ArgumentValue::Null {
        return None;
    }
    let text = match value.as_text() {
        Some("all-with-x" | "any-with-x") => {
            format!("x-match {value} requires RabbitMQ 3.10; the broker is {version}")
        }
        _ => format!("x-match cannot be {value}"),
    };
    Some(Refusal::new("x-match", text).hint(format!("use one of {}", words.join(", "))))
}

/// Validates the routing key, which is the weight of the binding
/// (`rabbit_exchange_type_consistent_hash:validate_binding`).
fn consistent_hash_weight(key: &str, version: BrokerVersion) -> Option<Refusal> {
    let refusal = |text: String| {
        Some(Refusal::new("routing_key", text).hint("use a weight between 1 and 10, such as `routingKey: \"1\"`"))
    };
    // `list_to_integer` accepts an optional sign and any number of digits.
    let digits = key.strip_prefix(['+', '-']).unwrap_or(key);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return refusal(format!(
            "the key of a binding to a consistent hash exchange is its weight, but {key:?} is not a number"
        ));
    }
    let weight = digits.parse::<u64>().unwrap_or(u64::MAX);
    if weight == 0 || key.starts_with('-') {
        refusal(format!("the weight of a binding to a consistent hash exchange must be at least 1, not {key}"))
    } else if version >= WEIGHT_LIMITED_SINCE && weight > MAX_WEIGHT {
        refusal(format!(
            "the weight of a binding to a consistent hash exchange must be at most {MAX_WEIGHT}, not {key}"
        ))
    } else if weight > MAX_SAFE_WEIGHT {
        refusal(format!("a weight of {key} creates that many buckets, which can crash the broker"))
    } else {
        None
    }
}

/// Refuses a non-empty routing key, and every destination that is known not to be a classic queue
/// (`rabbit_exchange_type_local_random:validate_binding`).
fn local_random(binding: &Binding, queue: Option<&Queue>) -> Option<Refusal> {
    if !binding.routing_key.is_empty() {
        let text = format!("a binding to a local random exchange cannot have a key, found {:?}", binding.routing_key);
        return Some(Refusal::new("routing_key", text).hint("remove the routing key"));
    }
    let is_wrong = match (&binding.destination, queue) {
        (Destination::Exchange(_), _) => true,
        (Destination::Queue(_), Some(queue)) => queue.queue_type() != Some(QueueType::Classic),
        (Destination::Queue(_), None) => false,
    };
    is_wrong.then(|| Refusal::new("destination", "a local random exchange can only be bound to classic queues"))
}
