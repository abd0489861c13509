//! Exchanges that the broker declares itself. `tests/facts/exchanges.rs` lists them on real brokers.

use crate::model::ExchangeName;

/// Their names and types, and true if every vhost has them. `rabbit_vhost:add` declares them, except the last two: the plugin
/// `rabbitmq_event_exchange` and the log declare these in one vhost.
const PREDECLARED: [(&str, &str, bool); 9] = [
    ("", "direct", true),
    ("amq.direct", "direct", true),
    ("amq.fanout", "fanout", true),
    ("amq.headers", "headers", true),
    ("amq.match", "headers", true),
    ("amq.rabbitmq.trace", "topic", true),
    ("amq.topic", "topic", true),
    ("amq.rabbitmq.event", "topic", false),
    ("amq.rabbitmq.log", "topic", false),
];

/// Returns the type of a predeclared exchange. The default exchange is a direct one.
pub fn predeclared_type(name: &ExchangeName) -> Option<&'static str> {
    PREDECLARED.iter().find(|(known, ..)| *known == name.as_str()).map(|(_, kind, _)| *kind)
}

/// Returns the predeclared exchanges of every vhost that policies govern: all but the default exchange.
pub fn in_every_vhost() -> impl Iterator<Item = ExchangeName> {
    let governed = |(name, _, everywhere): &&(&str, &str, bool)| *everywhere && !name.is_empty();
    PREDECLARED.iter().filter(governed).map(|(name, ..)| ExchangeName::from(*name))
}
