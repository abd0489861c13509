//! The grammar of test files: every key, with its shape and its documentation.

use crate::spec::{BINDINGS, Forms, Key, Keys, Object, QUEUE_TYPES, Shape, key};

/// The maximum time in a test file, in milliseconds. This is ten years.
const MAX_TIME: i64 = 10 * 366 * 24 * 60 * 60 * 1000;
/// The maximum number of messages or deliveries.
const MAX_COUNT: i64 = 10_000;

const NAMES: Shape = Shape::List(&Shape::Name);
const NON_EMPTY_NAMES: Shape = Shape::NonEmptyList(&Shape::Name);
const TIME: Shape = Shape::Duration(0, MAX_TIME);
const BEHAVIOR: Shape =
    Shape::OneOf(&["ack", "fail", "giveUp", "nack", "reject", "requeue", "nackRequeue", "crash", "hold"]);
const END: Shape =
    Shape::OneOf(&["waiting", "rejected", "expired", "maxlen", "delivery_limit", "acked", "held", "dropped", "loops"]);
const REASON: Shape = Shape::OneOf(&["rejected", "expired", "maxlen", "delivery_limit"]);

static SPECS: Forms = Forms {
    what: "a path or a list of paths",
    scalar: Some(Shape::Text),
    integer: None,
    list: Some(Shape::NonEmptyList(&Shape::Text)),
    map: None,
    tables: &[],
};

static TEST: Forms = Forms {
    what: "a case or a table of routes",
    scalar: None,
    integer: None,
    list: None,
    map: None,
    tables: &[&CASE, &ROUTES],
};

static WORKER: Forms = Forms {
    what: "a behavior or a list of behaviors",
    scalar: Some(BEHAVIOR),
    integer: None,
    list: Some(Shape::NonEmptyList(&BEHAVIOR)),
    map: None,
    tables: &[],
};

static ATTEMPTS: Forms = Forms {
    what: "a number or a list of times",
    scalar: Some(Shape::Count(0, MAX_COUNT)),
    integer: None,
    list: Some(Shape::List(&TIME)),
    map: None,
    tables: &[],
};

static ENDS: Forms = Forms {
    what: "a list of queues, or a mapping from queues to final states",
    scalar: None,
    integer: None,
    list: Some(NON_EMPTY_NAMES),
    map: Some(Shape::Map(&Shape::OneForm(&ENDS_OF_QUEUE))),
    tables: &[],
};

static ENDS_OF_QUEUE: Forms = Forms {
    what: "a final state, a number of messages, or a mapping from final states to numbers of messages",
    scalar: Some(END),
    integer: Some(Shape::Count(1, MAX_COUNT)),
    list: None,
    map: Some(Shape::Object(&END_COUNTS)),
    tables: &[],
};

static ROUTE_LIST: Forms = Forms {
    what: "a mapping from routing keys to queues, or a list of messages with their queues",
    scalar: None,
    integer: None,
    list: Some(Shape::NonEmptyList(&Shape::Object(&ROUTE))),
    map: Some(Shape::FreeMap(&NAMES)),
    tables: &[],
};

/// A test file.
pub(super) static TEST_DOCUMENT: Object = Object {
    what: "a test file",
    name: "TestDocument",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("version", Shape::Version, "The version of this format.").required().with_example("1"),
            key(
                "spec",
                Shape::OneForm(&SPECS),
                "The spec that this file tests, relative to this file: a file, a folder, or a list of files. Without this key, \
                 `NAME.test.yaml` tests `NAME.yaml`.",
            )
            .with_example("topology.yaml"),
            key("vhost", Shape::Name, "The vhost that this file tests. Required if the specs declare several vhosts."),
            key(
                "brokers",
                Shape::NonEmptyList(&Shape::Text),
                "The RabbitMQ versions to simulate. Each case runs once for each version.",
            )
            .with_example("[\"3.13\", \"4.3\"]"),
            key(
                "snapshot",
                Shape::Boolean,
                "True for files that `topo test --init` writes. `topo test --update` rewrites only these files.",
            )
            .with_default("false"),
            key(
                "standIns",
                Shape::Object(&STAND_INS),
                "Stand-ins: exchanges and queues that replace the spec's external objects during tests. Without a stand-in, topo does not know the settings \
                 and bindings of an external object.",
            )
            .with_example("{exchanges: {events: {type: topic}}}"),
            key("tests", Shape::FreeMap(&Shape::OneForm(&TEST)), "The cases and tables of routes, by name.").required(),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static STAND_INS: Object = Object {
    what: "`standIns`",
    name: "StandIns",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("exchanges", Shape::Map(&Shape::Object(&STAND_IN_EXCHANGE)), "The exchanges, by name."),
            key("queues", Shape::Map(&Shape::Object(&STAND_IN_QUEUE)), "The queues, by name."),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static STAND_IN_EXCHANGE: Object = Object {
    what: "an exchange",
    name: "StandInExchange",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("type", Shape::ExchangeType, "The exchange type.").required().with_example("topic"),
            key(
                "alternateExchange",
                Shape::Name,
                "The exchange that receives messages that this exchange cannot route.",
            ),
            key("bindings", BINDINGS, "Bindings from other exchanges to this exchange."),
            key("arguments", Shape::Arguments(false), "Other arguments."),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static STAND_IN_QUEUE: Object = Object {
    what: "a queue",
    name: "StandInQueue",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("type", QUEUE_TYPES, "The queue type.").required().with_example("quorum"),
            key("bindings", BINDINGS, "The bindings of the queue."),
            key("arguments", Shape::Arguments(true), "The arguments, with the names that RabbitMQ uses.")
                .with_example("{x-message-ttl: 5000}"),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

const ONLY: Key = key(
    "only",
    Shape::Text,
    "The RabbitMQ versions to which the case applies. topo skips the case for other versions.",
)
.with_example("\">= 3.13\"");

static CASE: Object = Object {
    what: "a case",
    name: "Case",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("publish", Shape::Object(&PUBLISH), "The published messages.")
                .required()
                .with_example("{exchange: orders, routingKey: order.created}"),
            key(
                "workers",
                Shape::Map(&Shape::OneForm(&WORKER)),
                "The behavior of the workers of each queue: one behavior for all deliveries, or a list with one behavior for \
                 each delivery. Queues without an entry have no worker.",
            )
            .with_example("{orders.work: fail}"),
            key("to", NAMES, "The queues to which the message is routed when it is published. An empty list means that the message is unroutable."),
            key("reaches", NON_EMPTY_NAMES, "Queues that must receive a copy of the message."),
            key("never", NON_EMPTY_NAMES, "Queues that must not receive a copy of the message."),
            key(
                "attempts",
                Shape::Map(&Shape::OneForm(&ATTEMPTS)),
                "For each queue, the number of deliveries to its worker, or the time of each delivery, measured from when the message was published.",
            )
            .with_example("{orders.work: [0s, 5s, 35s]}"),
            key(
                "ends",
                Shape::OneForm(&ENDS),
                "All queues in which copies of the messages end up, optionally with the final state and the number of messages.",
            )
            .with_example("{orders.dead: rejected}"),
            key("within", TIME, "The maximum time from the first publish to the last event.").with_example("1m"),
            key("publisher", Shape::OneOf(&["confirmed", "returned", "refused"]), "The outcome for the publisher."),
            key("refused", Shape::Count(0, MAX_COUNT), "The number of messages that a full queue rejects."),
            key(
                "deadLettered",
                Shape::Object(&DEAD_LETTERED),
                "The exchange, routing key, headers and `x-death` entries of the dead-lettered messages.",
            ),
            ONLY,
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static ROUTES: Object = Object {
    what: "a table of routes",
    name: "Routes",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("routes", Shape::OneForm(&ROUTE_LIST), "The queues to which messages are routed, by routing key.")
                .required()
                .with_example("{order.paid: [orders.work]}"),
            key("exchange", Shape::Text, "The exchange to which the messages are published.")
                .required()
                .with_example("orders"),
            ONLY,
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static ROUTE: Object = Object {
    what: "a route",
    name: "Route",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("to", NAMES, "The queues to which the message is routed.").required().with_example("[orders.work]"),
            key("routingKey", Shape::RoutingKey, "The routing key.").with_default("\"\""),
            key(
                "headers",
                Shape::Arguments(false),
                "The headers. `CC` and `BCC` are lists of additional routing keys.",
            ),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static PUBLISH: Object = Object {
    what: "a message to publish",
    name: "Publish",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("exchange", Shape::Text, "The exchange to which the messages are published.").with_example("orders"),
            key("queue", Shape::Name, "The queue to which the messages are published, through the default exchange."),
            key("routingKey", Shape::RoutingKey, "The routing key.").with_default("\"\""),
            key(
                "headers",
                Shape::Arguments(false),
                "The headers. `CC` and `BCC` are lists of additional routing keys.",
            ),
            key("expiration", TIME, "The per-message TTL (the `expiration` property)."),
            key("count", Shape::Count(1, MAX_COUNT), "The number of messages.").with_default("1"),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static END_COUNTS: Object = Object {
    what: "final states of the messages in a queue",
    name: "EndCounts",
    keys: Keys::Fixed(|| {
        const NUMBER: Shape = Shape::Count(1, MAX_COUNT);
        static KEYS: &[Key] = &[
            key("waiting", NUMBER, "Messages in this queue that were never dead-lettered."),
            key("rejected", NUMBER, "Messages in this queue that were last dead-lettered with the reason `rejected`."),
            key("expired", NUMBER, "Messages in this queue that were last dead-lettered with the reason `expired`."),
            key("maxlen", NUMBER, "Messages in this queue that were last dead-lettered with the reason `maxlen`."),
            key(
                "delivery_limit",
                NUMBER,
                "Messages in this queue that were last dead-lettered with the reason `delivery_limit`.",
            ),
            key("acked", NUMBER, "Messages that a worker acknowledged."),
            key("held", NUMBER, "Messages that remain unacknowledged."),
            key("dropped", NUMBER, "Messages that the broker dropped."),
            key("loops", NUMBER, "Messages that circulate indefinitely."),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static DEAD_LETTERED: Object = Object {
    what: "a dead-lettered message",
    name: "DeadLettered",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key(
                "exchange",
                Shape::Text,
                "The exchange of the message in the dead-letter queue, usually the dead-letter exchange.",
            ),
            key("routingKey", Shape::RoutingKey, "The routing key of the message in the dead-letter queue."),
            key("headers", Shape::Arguments(false), "Headers of the message in the dead-letter queue."),
            key("xDeath", Shape::NonEmptyList(&Shape::Object(&DEATH)), "Entries of the `x-death` header."),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

static DEATH: Object = Object {
    what: "an entry in x-death",
    name: "Death",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("queue", Shape::Name, "The queue that dead-lettered the message.")
                .required()
                .with_example("orders.work"),
            key("reason", REASON, "The dead-letter reason.").required().with_example("rejected"),
            key("count", Shape::Count(1, MAX_COUNT), "The `count` of the entry."),
            key(
                "exchange",
                Shape::Text,
                "The exchange to which the message was published before this queue dead-lettered it.",
            ),
            key(
                "routingKeys",
                Shape::NonEmptyList(&Shape::RoutingKey),
                "The routing keys of the message before this queue dead-lettered it: its routing key, and the keys in the `CC` header.",
            ),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};
