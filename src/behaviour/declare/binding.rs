//! Bindings that are refused.

use super::{Refusal, name, null_refusal};
use crate::behaviour::Dialect;
use crate::model::{ArgumentValue, Arguments, Binding, BrokerVersion, Destination, ExchangeName, Queue, QueueType};
use serde::Serialize;

/// The largest body that a binding may be made with since [`BODY_LIMITED`], in bytes (`rabbit_mgmt_wm_bindings`).
const LARGEST_BODY: usize = 5000;
const BODY_LIMITED: BrokerVersion = BrokerVersion::new(4, 0, 4);
/// The largest weight in a consistent hash since [`WEIGHT_LIMITED`] (`rabbit_exchange_type_consistent_hash`).
const LARGEST_WEIGHT: u64 = 10_000;
const WEIGHT_LIMITED: BrokerVersion = BrokerVersion::new(4, 2, 6);
/// Before, a weight is a number of buckets that the broker makes one by one: 99,999,999,999,999 of them took a node of
/// 3.8.9 down, and 1,000,000 took it a second.
const HARMFUL_WEIGHT: u64 = 1_000_000;

/// The most `#` in the key of a topic exchange since [`HASHES_LIMITED`].
const MOST_HASHES: usize = 2;
const HASHES_LIMITED: BrokerVersion = BrokerVersion::new(4, 3, 5);

/// What is at the ends of a binding, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends<'a> {
    /// The type of the exchange that messages come from; those that the broker makes itself are known without.
    pub source: Option<&'a str>,
    /// The queue that they go to, when it is one.
    pub queue: Option<&'a Queue>,
}

/// All that stands against a binding, in the order in which the broker looks.
///
/// Each type of exchange validates its bindings itself (`validate_binding`): most take any.
pub fn binding_refusals(binding: &Binding, ends: Ends<'_>, dialect: &Dialect) -> Vec<Refusal> {
    let version = dialect.version;
    let mut found: Vec<Refusal> = name::stripped(binding.source.as_str(), "exchange").into_iter().collect();
    found.extend(match &binding.destination {
        Destination::Queue(queue) => name::stripped(queue.as_str(), "queue"),
        Destination::Exchange(exchange) => name::stripped(exchange.as_str(), "exchange"),
    });
    if version >= BODY_LIMITED && body_length(binding) > LARGEST_BODY {
        let text = format!(
            "key and arguments of this binding make a request of {} bytes, and {LARGEST_BODY} is the most since RabbitMQ 4.0.4",
            body_length(binding)
        );
        found.push(Refusal::new("body", text).hint("bind it with an AMQP client, or with shorter arguments"));
    }
    found.extend(null_refusal(&binding.arguments));
    if binding.breaks_the_list() {
        let text =
            "with a `~` in its key and arguments, this binding makes the management API fail for its whole vhost";
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

/// The body that [`plan::request`](crate::plan::request) makes, in bytes.
fn body_length(binding: &Binding) -> usize {
    #[derive(Serialize)]
    struct Body<'a> {
        routing_key: &'a str,
        arguments: &'a Arguments,
    }
    let body = Body { routing_key: &binding.routing_key, arguments: &binding.arguments };
    serde_json::to_string(&body).map_or(0, |text| text.len())
}

/// 401 "Access refused.", all versions.
fn default_exchange(binding: &Binding) -> Option<Refusal> {
    let is_default = binding.source.as_str().is_empty()
        || matches!(&binding.destination, Destination::Exchange(name) if name.as_str().is_empty());
    is_default.then(|| {
        Refusal::new("source", "the default exchange routes to every queue by its name, and cannot be bound")
            .hint("bind another exchange")
    })
}

/// The type of an exchange that every vhost has.
fn predeclared_type(name: &ExchangeName) -> Option<&'static str> {
    match name.as_str() {
        "amq.direct" => Some("direct"),
        "amq.fanout" => Some("fanout"),
        "amq.topic" => Some("topic"),
        "amq.headers" | "amq.match" => Some("headers"),
        _ => None,
    }
}

/// Nobody can declare another `amq.` exchange; those of plugins and of the log start with `amq.rabbitmq.`.
fn missing_predeclared(name: &ExchangeName) -> Option<Refusal> {
    let is_made_by_broker = predeclared_type(name).is_some() || name.as_str().starts_with("amq.rabbitmq.");
    (name.as_str().starts_with("amq.") && !is_made_by_broker).then(|| {
        Refusal::new("source", format!("there is no exchange {name}, and nobody can declare one"))
            .hint("use amq.direct, amq.fanout, amq.topic, amq.headers, or an exchange of your own")
    })
}

/// `rabbit_exchange_type_topic:validate_binding`, since 4.3.5 (measured on 4.3.6).
fn topic(key: &str, version: BrokerVersion) -> Option<Refusal> {
    let count = key.split('.').filter(|word| *word == "#").count();
    (version >= HASHES_LIMITED && count > MOST_HASHES).then(|| {
        let text = format!(
            "since RabbitMQ 4.3.5 a key of a topic exchange has at most {MOST_HASHES} `#`, and {key} has {count}"
        );
        Refusal::new("routing_key", text).hint("`#.a.#` is as wide as most such keys are meant to be")
    })
}

/// `rabbit_exchange_type_headers:validate_binding`.
fn headers(arguments: &Arguments, version: BrokerVersion) -> Option<Refusal> {
    let words: &[&str] =
        if version.is_at_least(3, 10) { &["all", "any", "all-with-x", "any-with-x"] } else { &["all", "any"] };
    let value = arguments.get("x-match")?;
    if value.as_text().is_some_and(|word| words.contains(&word)) || *value == ArgumentValue::Null {
        return None;
    }
    let text = match value.as_text() {
        Some("all-with-x" | "any-with-x") => {
            format!("x-match takes `{value}` since RabbitMQ 3.10, this is {version}")
        }
        _ => format!("x-match cannot be {value}"),
    };
    Some(Refusal::new("x-match", text).hint(format!("use one of {}", words.join(", "))))
}

/// `rabbit_exchange_type_consistent_hash:validate_binding`: the routing key is a weight.
fn consistent_hash(key: &str, version: BrokerVersion) -> Option<Refusal> {
    let refusal = |text: String| {
        Some(Refusal::new("routing_key", text).hint("a weight between 1 and 10 is plenty: write `routingKey: \"1\"`"))
    };
    // `list_to_integer`: a sign, digits, and nothing else; as long as one likes.
    let digits = key.strip_prefix(['+', '-']).unwrap_or(key);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return refusal(format!("the key of a binding to a consistent hash is its weight, and {key:?} is no number"));
    }
    let weight = digits.parse::<u64>().unwrap_or(u64::MAX);
    if weight == 0 || key.starts_with('-') {
        refusal(format!("the key of a binding to a consistent hash is its weight, at least 1, and not {key}"))
    } else if version >= WEIGHT_LIMITED && weight > LARGEST_WEIGHT {
        refusal(format!("the weight of a binding to a consistent hash is at most {LARGEST_WEIGHT}, and not {key}"))
    } else if weight > HARMFUL_WEIGHT {
        refusal(format!("a weight of {key} would have the broker make as many buckets, and may take it down"))
    } else {
        None
    }
}

/// `rabbit_exchange_type_local_random:validate_binding`: no key, and classic queues only.
fn local_random(binding: &Binding, queue: Option<&Queue>) -> Option<Refusal> {
    if !binding.routing_key.is_empty() {
        let text = format!("a binding to a local random exchange has no key, and not {:?}", binding.routing_key);
        return Some(Refusal::new("routing_key", text).hint("leave the routing key out"));
    }
    let is_wrong = match (&binding.destination, queue) {
        (Destination::Exchange(_), _) => true,
        (Destination::Queue(_), Some(queue)) => queue.queue_type() != Some(QueueType::Classic),
        (Destination::Queue(_), None) => false,
    };
    is_wrong.then(|| Refusal::new("destination", "a local random exchange can be bound to classic queues only"))
}
