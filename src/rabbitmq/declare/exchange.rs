//! Predicts refusals of exchanges.

use super::refusal::{Refusal, null_refusal};
use super::vhost;
use crate::model::{ArgumentValue, BrokerVersion, Exchange, ExchangeName};
use crate::rabbitmq::BrokerProfile;

/// The properties that a consistent hash exchange can hash instead of a header.
const HASH_PROPERTIES: [&str; 3] = ["correlation_id", "message_id", "timestamp"];

/// The exchange types that the broker added after 3.8, with the first version of each. (`x-modulus-hash` is built in since
/// 4.3; before, a plugin provides it.)
const LATER_TYPES: [(&str, BrokerVersion); 1] = [("x-local-random", BrokerVersion::new(4, 0, 0))];

/// Returns true if the broker supports an exchange type. A broker that does not list its types is assumed to support all types
/// of its version.
pub(crate) fn is_known_type(kind: &str, profile: &BrokerProfile) -> bool {
    if profile.exchange_types.is_empty() {
        added_in(kind, profile.version).is_none()
    } else {
        profile.exchange_types.contains(kind)
    }
}

/// Returns the version that adds an exchange type, if this version does not support it.
fn added_in(kind: &str, version: BrokerVersion) -> Option<BrokerVersion> {
    LATER_TYPES.iter().find(|(later, since)| *later == kind && version < *since).map(|(_, since)| *since)
}

/// Returns the refusals of an exchange, in the order of `rabbit_channel:handle_method(#'exchange.declare'{})`, which is the
/// same from 3.8 to 4.3. The broker decodes the request, then checks the type, the name, the alternate exchange, and the
/// arguments of the type.
pub(super) fn refusals(exchange_name: &ExchangeName, exchange: &Exchange, profile: &BrokerProfile) -> Vec<Refusal> {
    let mut found: Vec<Refusal> = null_refusal(&exchange.arguments).into_iter().collect();
    if let Some(since) = added_in(&exchange.kind, profile.version) {
        let text = format!(
            "exchanges of type `{}` exist since RabbitMQ {}; the broker is {}",
            exchange.kind,
            since.series(),
            profile.version
        );
        found.push(Refusal::new("type", text).hint("use another type until the broker is upgraded"));
    } else if !is_known_type(&exchange.kind, profile) {
        let names: Vec<&str> = profile.exchange_types.iter().map(String::as_str).collect();
        let text = format!("the broker does not support exchange type `{}`", exchange.kind);
        let hint = format!("enable the plugin that provides it, or use one of {}", names.join(", "));
        found.push(Refusal::new("type", text).hint(hint));
    }
    found.extend(vhost::declared(exchange_name.as_str(), "exchange"));
    let argument = |name: &str| exchange.arguments.get(name);
    if let Some(value) = argument("alternate-exchange").filter(|value| value.as_text().is_none()) {
        let text =
            format!("alternate-exchange must be the name of an exchange, but {value} is a {}", value.amqp_type());
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

/// Validates the arguments of a consistent hash exchange: `rabbit_exchange_type_consistent_hash:validate`. A value of another
/// type crashes it, which is a 400 too.
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
            Refusal::new("hash-property", format!("an exchange cannot hash the property `{name}`"))
                .hint(format!("use one of {}", HASH_PROPERTIES.join(", "))),
        ),
        (_, _) => None,
    })
}
