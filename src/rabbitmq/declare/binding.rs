//! Predicts refusals of bindings.

use super::refusal::{Refusal, null_refusal};
use super::vhost;
use crate::model::{
    ArgumentValue, Arguments, Binding, BrokerVersion, Destination, ExchangeName, Queue, QueueType, encoding,
};
use crate::rabbitmq::{BrokerProfile, predeclared_type};

/// The maximum size of the request that creates a binding since [`BODY_LIMITED`], in bytes (`rabbit_mgmt_wm_bindings`).
const LARGEST_BODY: usize = 5000;
const BODY_LIMITED: BrokerVersion = BrokerVersion::new(4, 0, 4);
/// The maximum weight in a consistent hash since [`WEIGHT_LIMITED`] (`rabbit_exchange_type_consistent_hash`).
const LARGEST_WEIGHT: u64 = 10_000;
const WEIGHT_LIMITED: BrokerVersion = BrokerVersion::new(4, 2, 6);
/// The largest harmless weight before [`WEIGHT_LIMITED`]. A weight is a number of buckets that the broker creates one by one:
/// 99,999,999,999,999 buckets stopped a node of 3.8.9, and 1,000,000 needed a second.
const HARMFUL_WEIGHT: u64 = 1_000_000;

/// The maximum number of `#` in the key of a topic exchange since [`HASHES_LIMITED`].
const MOST_HASHES: usize = 2;
const HASHES_LIMITED: BrokerVersion = BrokerVersion::new(4, 3, 5);

/// The declarations of the source and the destination of a binding, if they are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends<'a> {
    /// The type of the source exchange. The types of predeclared exchanges are known without it.
    pub source: Option<&'a str>,
    /// The destination queue, if the destination is a queue.
    pub queue: Option<&'a Queue>,
}

/// Returns all refusals of a binding, in the order of the broker's checks.
///
/// Each exchange type validates its own bindings (`validate_binding`); most types accept every binding.
pub fn binding_refusals(binding: &Binding, ends: Ends<'_>, profile: &BrokerProfile) -> Vec<Refusal> {
    let version = profile.version;
    let mut found: Vec<Refusal> = vhost::line_breaks(binding.source.as_str(), "exchange").into_iter().collect();
    found.extend(match &binding.destination {
        Destination::Queue(queue) => vhost::line_breaks(queue.as_str(), "queue"),
        Destination::Exchange(exchange) => vhost::line_breaks(exchange.as_str(), "exchange"),
    });
    if version >= BODY_LIMITED && body_length(binding) > LARGEST_BODY {
        let text = format!(
            "key and arguments of this binding need a request of {} bytes; the maximum since RabbitMQ 4.0.4 is {LARGEST_BODY}",
            body_length(binding)
        );
        found.push(Refusal::new("body", text).hint("bind it with an AMQP client, or shorten the arguments"));
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
        Some("x-consistent-hash") => found.extend(consistent_hash(&binding.routing_key, version)),
        Some("x-local-random") => found.extend(local_random(binding, ends.queue)),
        Some(_) | None => {}
    }
    found
}

/// Returns the length of the request body, in bytes.
fn body_length(binding: &Binding) -> usize {
    encoding::binding(binding).to_string().len()
}

/// Refuses bindings of the default exchange: 401 "Access refused.", all versions.
fn default_exchange(binding: &Binding) -> Option<Refusal> {
    let is_default = binding.source.as_str().is_empty()
        || matches!(&binding.destination, Destination::Exchange(name) if name.as_str().is_empty());
    is_default.then(|| {
        Refusal::new("source", "the default exchange cannot be bound: it routes to every queue by its name")
            .hint("bind another exchange")
    })
}

/// Refuses unknown `amq.` sources, because they cannot be declared. Exchanges of plugins can start with `amq.rabbitmq.`.
fn missing_predeclared(name: &ExchangeName) -> Option<Refusal> {
    let is_predeclared = predeclared_type(name).is_some() || name.as_str().starts_with("amq.rabbitmq.");
    (name.as_str().starts_with("amq.") && !is_predeclared).then(|| {
        Refusal::new("source", format!("exchange {name} does not exist and cannot be declared"))
            .hint("use amq.direct, amq.fanout, amq.topic, amq.headers, or an exchange of your own")
    })
}

/// Validates the key of a topic binding: `rabbit_exchange_type_topic:validate_binding`, since 4.3.5 (measured on 4.3.6).
fn topic(key: &str, version: BrokerVersion) -> Option<Refusal> {
    let count = key.split('.').filter(|word| *word == "#").count();
    (version >= HASHES_LIMITED && count > MOST_HASHES).then(|| {
        let text = format!(
            "since RabbitMQ 4.3.5 the key of a topic binding can contain at most {MOST_HASHES} `#`, but {key} contains {count}"
        );
        Refusal::new("routing_key", text).hint("use fewer `#`: `#.a.#` is usually wide enough")
    })
}

/// Validates `x-match`: `rabbit_exchange_type_headers:validate_binding`.
fn headers(arguments: &Arguments, version: BrokerVersion) -> Option<Refusal> {
    let words: &[&str] =
        if version.is_at_least(3, 10) { &["all", "any", "all-with-x", "any-with-x"] } else { &["all", "any"] };
    let value = arguments.get("x-match")?;
    if value.as_text().is_some_and(|word| words.contains(&word)) || *value == ArgumentValue::Null {
        return None;
    }
    let text = match value.as_text() {
        Some("all-with-x" | "any-with-x") => {
            format!("x-match supports `{value}` since RabbitMQ 3.10; the broker is {version}")
        }
        _ => format!("x-match cannot be {value}"),
    };
    Some(Refusal::new("x-match", text).hint(format!("use one of {}", words.join(", "))))
}

/// Validates the routing key as a weight: `rabbit_exchange_type_consistent_hash:validate_binding`.
fn consistent_hash(key: &str, version: BrokerVersion) -> Option<Refusal> {
    let refusal = |text: String| {
        Some(Refusal::new("routing_key", text).hint("use a weight between 1 and 10, such as `routingKey: \"1\"`"))
    };
    // `list_to_integer`: an optional sign and any number of digits.
    let digits = key.strip_prefix(['+', '-']).unwrap_or(key);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return refusal(format!(
            "the key of a binding to a consistent hash exchange is its weight, but {key:?} is not a number"
        ));
    }
    let weight = digits.parse::<u64>().unwrap_or(u64::MAX);
    if weight == 0 || key.starts_with('-') {
        refusal(format!("the weight of a binding to a consistent hash exchange must be at least 1, not {key}"))
    } else if version >= WEIGHT_LIMITED && weight > LARGEST_WEIGHT {
        refusal(format!(
            "the weight of a binding to a consistent hash exchange must be at most {LARGEST_WEIGHT}, not {key}"
        ))
    } else if weight > HARMFUL_WEIGHT {
        refusal(format!("a weight of {key} creates as many buckets, which can crash the broker"))
    } else {
        None
    }
}

/// Refuses a key, and destinations other than classic queues: `rabbit_exchange_type_local_random:validate_binding`.
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
