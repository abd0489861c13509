//! The grammar of queues: their own keys, the defaults of a document, dead-letter queues and `deadLetter`. The keys of
//! arguments come from the model's table of known arguments.

use super::shape::{Key, Keys, Object, Shape, key};
use super::shared_keys::{
    AUTO_DELETE, BINDINGS, CONFLICT, DURABLE, EXCHANGE_TYPES, EXTERNAL, MAX_RETRIES, QUEUE_TYPES, RETRY,
};
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument, ValueKind};
use std::sync::LazyLock;

const DEAD_LETTER: Shape = Shape::Either(&Shape::Text, &[&DEAD_LETTER_QUEUE_REFERENCE, &DEAD_LETTER_EXCHANGE]);
const WIRING: Key = key(
    "wiring",
    Shape::OneOf(&["arguments", "policy"]),
    "The way to set it: with arguments of the queue, or with a policy. A policy can change later without recreating \
     the queue.",
)
.or("arguments");

/// The `defaults` of a document.
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
            .like("{type: quorum}"),
            key(
                "deadLetter",
                DEAD_LETTER,
                "The target of dead-lettered messages of every queue, except dead-letter queues and streams.",
            )
            .like("orders.dead"),
            MAX_RETRIES,
            RETRY,
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

/// The keys of queues, one for each known argument with its own key.
fn argument_keys() -> impl Iterator<Item = Key> {
    let own = KNOWN_ARGUMENTS.iter().filter(|known| known.key != "deadLetter" && known.key != "type");
    own.map(|known| Key { example: example(known), ..key(known.key, known.value.into(), known.doc) })
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
        "Other arguments, sent unchanged. Known arguments can be set here by their `x-` name.",
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
                "The target of dead-lettered messages: an entry of `deadLetterQueues`, an exchange, or `none` to drop them on \
                 purpose.",
            )
            .like("orders.dead"),
        ];
        keys.extend(argument_keys());
        keys.extend([DURABLE, AUTO_DELETE, queue_arguments(), CONFLICT, EXTERNAL]);
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
            let behind = keys.iter().position(|key| key.name == "deadLetter").map_or(0, |index| index + 1);
            keys.splice(behind..behind, [MAX_RETRIES, RETRY]);
            keys
        });
        &KEYS
    }),
    external: &["bindings"],
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
                "The exchange that routes to it. By default a fanout exchange, named after the queue with the suffix `.dlx`.",
            );
            queue_keys().iter().copied().chain([exchange]).collect()
        });
        &KEYS
    }),
    external: &["bindings", "exchange"],
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
            key("name", Shape::Name, "Its name. By default the queue's name with the suffix `.dlx`.")
                .like("orders.dlx"),
            key(
                "type",
                Shape::OneOf(EXCHANGE_TYPES),
                "Its type. By default a topic exchange is bound with `#`, a direct exchange with the queue's name.",
            )
            .or("fanout"),
            key("internal", Shape::Boolean, "If true, only other exchanges, and no clients, can publish to it.")
                .or("false"),
            key(
                "routingKey",
                Shape::RoutingKey,
                "The routing key of the binding. Dead-lettered messages get it as their routing key.",
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
        static KEYS: &[Key] =
            &[key("queue", Shape::Name, "An entry of `deadLetterQueues`.").required().like("orders.dead"), WIRING];
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
            .like("corp.dlx"),
            key(
                "routingKey",
                Shape::RoutingKey,
                "The routing key of dead-lettered messages. Without it they keep their own.",
            )
            .like("billing"),
            WIRING,
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};
