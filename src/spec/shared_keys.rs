//! The keys that queues and exchanges share, and those of the bindings under both.

use super::shape::{Key, Keys, Object, Shape, key};

pub(super) const BINDINGS: Shape = Shape::List(&Shape::Object(&INCOMING_BINDING));

const ON_CONFLICT: Shape = Shape::OneOf(&["refuse", "ifEmpty", "migrate", "discard"]);

/// The exchange types of every broker; plugins add others, which start with `x-`.
pub(crate) const EXCHANGE_TYPES: &[&str] = &["direct", "fanout", "topic", "headers"];

pub(super) const QUEUE_TYPES: Shape = Shape::OneOf(&["classic", "quorum", "stream"]);

pub(super) const ROUTING_KEY: Key =
    key("routingKey", Shape::RoutingKey, "The routing key, or the pattern of a topic binding.")
        .or("\"\"")
        .like("\"order.#\"");

pub(super) const BINDING_ARGUMENTS: Key = key(
    "arguments",
    Shape::Arguments(false),
    "The arguments of the binding. A headers exchange compares them with the message headers.",
)
.like("{x-match: all, region: eu}");

pub(super) const DURABLE: Key =
    key("durable", Shape::Boolean, "If true, the object survives a restart of the broker.").or("true");

pub(super) const AUTO_DELETE: Key =
    key("autoDelete", Shape::Boolean, "If true, the broker deletes the object when it is no longer used.").or("false");

pub(super) const CONFLICT: Key = key(
    "onConflict",
    ON_CONFLICT,
    "The resolution of a difference that the broker cannot change in place: `refuse` shows the conflict, \
     `ifEmpty` recreates the object if it is empty, `migrate` recreates it and keeps every message, \
     `discard` deletes and recreates it.",
)
.or("refuse");

pub(super) const EXTERNAL: Key = key(
    "external",
    Shape::Boolean,
    "The object is managed elsewhere: it must exist, and topo never changes it. It may have bindings, but no other keys.",
)
.or("false");

static INCOMING_BINDING: Object = Object {
    what: "a binding",
    name: "IncomingBinding",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("exchange", Shape::Name, "The exchange that messages come from.").required().like("orders"),
            ROUTING_KEY,
            BINDING_ARGUMENTS,
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};
