//! Defines the grammar of queues: their own keys, the defaults of a document, dead-letter queues and `deadLetter`. The
//! keys that set arguments come from the model's table of known arguments.

use super::for_each::FOR_EACH;
use super::shape::{Key, Keys, Object, Shape, key};
use super::shared_keys::{
    AUTO_DELETE, BINDINGS, CONFLICT, DURABLE, EXCHANGE_TYPES, EXTERNAL, MAX_RETRIES, QUEUE_TYPES, RETRY,
};
use super::thresholds::{DEFAULT_THRESHOLDS, QUEUE_THRESHOLDS};
use crate::model::QueueType;
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument, ValueKind};
use std::sync::LazyLock;

const DEAD_LETTER: Shape = Shape::Either(&Shape::Text, &[&DEAD_LETTER_QUEUE_REFERENCE, &DEAD_LETTER_EXCHANGE]);
const WIRING: Key = key(
    "wiring",
    Shape::OneOf(&["arguments", "policy"]),
    "Whether topo sets the dead-letter target with queue arguments or with a policy. A policy can change later without \
     recreating the queue.",
)
.with_default("arguments");

/// The `defaults` in a document.
pub(super) static DEFAULTS: Object = Object {
    what: "`defaults`",
    name: "Defaults",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key(
                "queue",
                Shape::Object(&QUEUE_DEFAULTS),
                "Defaults for every queue and dead-letter queue whose type supports the key.",
            )
            .with_example("{type: quorum}"),
            key(
                "deadLetter",
                DEAD_LETTER,
                "The dead-letter target of every queue except dead-letter queues and streams.",
            )
            .with_example("orders.dead"),
            MAX_RETRIES,
            RETRY,
            DEFAULT_THRESHOLDS,
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

/// Returns the queue keys that set arguments: one key for each known argument, except the queue type and the
/// dead-letter target.
fn argument_keys() -> impl Iterator<Item = Key> {
    let arguments = KNOWN_ARGUMENTS.iter().filter(|known| known.key != "deadLetter" && known.key != "type");
    arguments.map(|known| Key { example: example(known), ..key(known.key, known.value.into(), known.doc) })
}

/// Returns the queue keys that set arguments and that streams support.
pub(super) fn stream_keys() -> impl Iterator<Item = Key> {
    let is_supported = |key: &Key| {
        let known = KNOWN_ARGUMENTS.iter().find(|known| known.key == key.name);
        known.is_some_and(|known| known.support_for(QueueType::Stream).is_some())
    };
    argument_keys().filter(is_supported)
}

fn example(known: &KnownArgument) -> &'static str {
    match known.value {
        ValueKind::Duration(..) => "30s",
        ValueKind::Size(_) => "1GiB",
        ValueKind::MaxAge => "7D",
        ValueKind::Count(..) | ValueKind::Boolean | ValueKind::Text | ValueKind::OneOf(_) => "",
    }
}

fn queue_type() -> Key {
    key(
        "type",
        QUEUE_TYPES,
        "The queue type. It must be set here, in `defaults.queue` or on the vhost, and cannot change on an \
         existing queue.",
    )
}

fn queue_arguments() -> Key {
    key(
        "arguments",
        Shape::Arguments(true),
        "Other arguments, which topo sends unchanged. Known arguments can be set here by their `x-` names.",
    )
}

fn queue_keys() -> &'static [Key] {
    static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
        let mut keys = vec![
            queue_type(),
            key("bindings", BINDINGS, "The bindings of the queue."),
            key(
                "deadLetter",
                DEAD_LETTER,
                "The target of dead-lettered messages: an entry in `deadLetterQueues`, an exchange, or `none` to drop them \
                 intentionally.",
            )
            .with_example("orders.dead"),
        ];
        keys.extend(argument_keys());
        keys.extend([DURABLE, AUTO_DELETE, queue_arguments(), CONFLICT, EXTERNAL, QUEUE_THRESHOLDS, FOR_EACH]);
        keys
    });
    &KEYS
}

/// A queue or stream.
pub(crate) static QUEUE: Object = Object {
    what: "a queue",
    name: "Queue",
    keys: Keys::Fixed(|| {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            let mut keys = queue_keys().to_vec();
            let after = keys.iter().position(|key| key.name == "deadLetter").map_or(0, |index| index + 1);
            keys.splice(after..after, [MAX_RETRIES, RETRY]);
            keys
        });
        &KEYS
    }),
    external: &["bindings", "thresholds", "forEach"],
    is_queue: true,
};

/// A dead-letter queue: a queue with its own exchange.
pub(crate) static DEAD_LETTER_QUEUE: Object = Object {
    what: "a dead-letter queue",
    name: "DeadLetterQueue",
    keys: Keys::Fixed(|| {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            let exchange = key(
                "exchange",
                Shape::Object(&DEAD_LETTER_QUEUE_EXCHANGE),
                "The exchange that routes to the queue. By default, it is a fanout exchange, and its name is the queue name with \
                 the `.dlx` suffix.",
            );
            queue_keys().iter().copied().chain([exchange]).collect()
        });
        &KEYS
    }),
    external: &["bindings", "exchange", "thresholds", "forEach"],
    is_queue: true,
};

static QUEUE_DEFAULTS: Object = Object {
    what: "`defaults.queue`",
    name: "QueueDefaults",
    keys: Keys::Fixed(|| {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            let mut keys = vec![queue_type()];
            keys.extend(argument_keys());
            keys.extend([DURABLE, AUTO_DELETE, queue_arguments(), CONFLICT]);
            keys
        });
        &KEYS
    }),
    external: &[],
    is_queue: false,
};

static DEAD_LETTER_QUEUE_EXCHANGE: Object = Object {
    what: "the exchange of a dead-letter queue",
    name: "DeadLetterQueueExchange",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("name", Shape::Name, "The exchange name. The default is the queue name with the `.dlx` suffix.")
                .with_example("orders.dlx"),
            key(
                "type",
                Shape::OneOf(EXCHANGE_TYPES),
                "The exchange type. Without `routingKey`, a topic exchange is bound with `#`, and a direct exchange with the \
                 queue name.",
            )
            .with_default("fanout"),
            key("internal", Shape::Boolean, "If true, clients cannot publish to the exchange. Other exchanges can route to it, and queues can dead-letter to it.")
                .with_default("false"),
            key(
                "routingKey",
                Shape::RoutingKey,
                "The routing key of the binding. It is also the routing key of dead-lettered messages.",
            ),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static DEAD_LETTER_QUEUE_REFERENCE: Object = Object {
    what: "`deadLetter`",
    name: "DeadLetterToQueue",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("queue", Shape::Name, "An entry in `deadLetterQueues`.").required().with_example("orders.dead"),
            WIRING,
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static DEAD_LETTER_EXCHANGE: Object = Object {
    what: "`deadLetter`",
    name: "DeadLetterToExchange",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key(
                "exchange",
                Shape::Text,
                "The exchange that receives dead-lettered messages; empty for the default exchange.",
            )
            .required()
            .with_example("corp.dlx"),
            key(
                "routingKey",
                Shape::RoutingKey,
                "The routing key of dead-lettered messages. Without it, messages keep their own routing key.",
            )
            .with_example("billing"),
            WIRING,
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};
