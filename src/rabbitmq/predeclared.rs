//! Exchanges that the broker declares itself. `tests/facts/exchanges.rs` lists them on real brokers.

use crate::model::ExchangeName;

/// Their names and types, and whether every vhost has them. Declared by `rabbit_vhost:add`; the last two by the log and by
/// the plugin `rabbitmq_event_exchange`, in one vhost.
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
