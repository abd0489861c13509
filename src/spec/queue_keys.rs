//! The grammar of queues: their own keys, the defaults of a document, dead-letter queues and `deadLetter`. The keys of
//! arguments come from the model's table of known arguments.

use super::keys::{AUTO_DELETE, BINDINGS, CONFLICT, DURABLE, EXCHANGE_TYPES, EXTERNAL, QUEUE_TYPES};
use super::retry_keys::{MAX_RETRIES, RETRY};
use super::shape::{Key, Object, Shape, key};
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument, ValueKind};
use std::sync::LazyLock;

const DEAD_LETTER: Shape = Shape::Either(&Shape::Text, &[&DEAD_LETTER_QUEUE_REFERENCE, &DEAD_LETTER_EXCHANGE]);
const WIRING: Key = key(
    "wiring",
    Shape::OneOf(&["arguments", "policy"]),
    "Whether the queue's arguments or a policy says it; a policy can change later without recreating the queue.",
)
.or("arguments");

/// What a document says of all its queues.
pub(super) static DEFAULTS: Object = Object {
    what: "`defaults`",
    name: "Defaults",
    keys: || {
        static KEYS: &[Key] = &[
            key(
                "queue",
                Shape::Object(&QUEUE_DEFAULTS),
                "Keys of every queue and dead-letter queue, where its type takes them.",
            )
            .like("{type: quorum}"),
            key(
                "deadLetter",
                DEAD_LETTER,
                "Where every queue's dead letters go; not those of dead-letter queues and streams.",
            )
            .like("orders.dead"),
            MAX_RETRIES,
            RETRY,
        ];
        KEYS
    },
    external: &[],
    is_queue: false,
};

/// The typed keys of queues, one for each known argument that has a key of its own.
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
        "What kind of queue it is. It must be said here, in `defaults.queue` or by the vhost, \
         and can never change on a live queue.",
    )
}

fn queue_arguments() -> Key {
    key(
        "arguments",
        Shape::Arguments(true),
        "Other arguments, as they stand; known ones may be written here by their `x-` name.",
    )
}

fn queue_keys() -> &'static [Key] {
    static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
        let mut keys = vec![
            queue_type(),
            key("bindings", BINDINGS, "What it is bound to."),
            key(
                "deadLetter",
                DEAD_LETTER,
                "Where its dead letters go: an entry of `deadLetterQueues`, an exchange, or `none`, said on purpose.",
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
    keys: || {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            let mut keys = queue_keys().to_vec();
            let behind = keys.iter().position(|key| key.name == "deadLetter").map_or(0, |index| index + 1);
            keys.splice(behind..behind, [MAX_RETRIES, RETRY]);
            keys
        });
        &KEYS
    },
    external: &["bindings"],
    is_queue: true,
};

/// A dead-letter queue: a queue with an exchange of its own.
pub(crate) static DEAD_LETTER_QUEUE: Object = Object {
    what: "a dead-letter queue",
    name: "DeadLetterQueue",
    keys: || {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            let exchange = key(
                "exchange",
                Shape::Object(&DEAD_LETTER_QUEUE_EXCHANGE),
                "The exchange that leads to it; a fanout with the queue's name and `.dlx` unless this says otherwise.",
            );
            queue_keys().iter().copied().chain([exchange]).collect()
        });
        &KEYS
    },
    external: &["bindings", "exchange"],
    is_queue: true,
};

static QUEUE_DEFAULTS: Object = Object {
    what: "`defaults.queue`",
    name: "QueueDefaults",
    keys: || {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            let mut keys = vec![queue_type()];
            keys.extend(argument_keys());
            keys.extend([DURABLE, AUTO_DELETE, queue_arguments(), CONFLICT]);
            keys
        });
        &KEYS
    },
    external: &[],
    is_queue: false,
};

static DEAD_LETTER_QUEUE_EXCHANGE: Object = Object {
    what: "the exchange of a dead-letter queue",
    name: "DeadLetterQueueExchange",
    keys: || {
        static KEYS: &[Key] = &[
            key("name", Shape::Name, "Its name; the queue's with `.dlx` when it is not said.").like("orders.dlx"),
            key(
                "type",
                Shape::OneOf(EXCHANGE_TYPES),
                "Its type. A topic exchange is bound with `#`, a direct one with the queue's name.",
            )
            .or("fanout"),
            key("internal", Shape::Boolean, "Whether applications are kept from publishing to it.").or("false"),
            key("routingKey", Shape::RoutingKey, "The key of the binding, which the dead letters then get."),
        ];
        KEYS
    },
    external: &[],
    is_queue: false,
};

static DEAD_LETTER_QUEUE_REFERENCE: Object = Object {
    what: "`deadLetter`",
    name: "DeadLetterToQueue",
    keys: || {
        static KEYS: &[Key] =
            &[key("queue", Shape::Name, "An entry of `deadLetterQueues`.").required().like("orders.dead"), WIRING];
        KEYS
    },
    external: &[],
    is_queue: false,
};

static DEAD_LETTER_EXCHANGE: Object = Object {
    what: "`deadLetter`",
    name: "DeadLetterToExchange",
    keys: || {
        static KEYS: &[Key] = &[
            key("exchange", Shape::Text, "The exchange that dead letters go to; empty is the default exchange.")
                .required()
                .like("corp.dlx"),
            key(
                "routingKey",
                Shape::RoutingKey,
                "The routing key of the dead letters; without it they keep their own.",
            )
            .like("billing"),
            WIRING,
        ];
        KEYS
    },
    external: &[],
    is_queue: false,
};
