//! The rows of the table of known clients. The reactions were measured with Celery 5.7.0, dramatiq 2.2.1,
//! FastStream 0.7.8, aio-pika 10.2.1, pika 1.4.4, rascal 21.0.1, amqplib 2.3.1, amqp-connection-manager 5.0,
//! @golevelup/nestjs-rabbitmq 9.0.2, Symfony Messenger 5.4, php-amqplib 3.5.3 and bunny 2.19 on RabbitMQ 3.10.8 and
//! 4.3.6.

use super::{KnownClient, Library, OnCancel, OnMissing, Reaction, TransientObject};

static PY_AMQP: Library = Library { name: "py-amqp", product: "py-amqp", integer_type: "signedint" };
static PIKA: Library = Library { name: "pika", product: "Pika Python Client Library", integer_type: "signedint" };
static AIORMQ: Library = Library { name: "aiormq", product: "aiormq", integer_type: "short" };
static AMQPLIB: Library = Library { name: "amqplib", product: "amqplib", integer_type: "short" };
static BUNNY: Library = Library { name: "bunny", product: "Bunny", integer_type: "long" };
static PHP_AMQPLIB: Library = Library { name: "php-amqplib", product: "AMQPLib", integer_type: "signedint" };
static RABBITMQ_C: Library = Library { name: "rabbitmq-c", product: "rabbitmq-c", integer_type: "long" };

/// The words after the last `_` in the names of Celery's objects for delayed delivery. The word is the number of the
/// level, or `delivery` for the exchange that delivers the messages (`kombu.transport.native_delayed_delivery`).
const DELAYED_DELIVERY: &[&str] = &[
    "delivery", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18",
    "19", "20", "21", "22", "23", "24", "25", "26", "27",
];

/// All known clients, sorted by name.
pub const KNOWN_CLIENTS: &[KnownClient] = &[
    KnownClient {
        name: "aio-pika",
        page: "aio-pika",
        library: &AIORMQ,
        sibling_queues: &[],
        consumed_suffixes: &[],
        on_cancel: OnCancel::Declares,
        redeclares_repeatedly: false,
        on_missing: OnMissing::Subscribes,
        on_mismatch: Reaction::Retries,
        at_start: Reaction::Exits,
        without_declaration: Some("`channel.get_queue(name)` instead of `channel.declare_queue(…)`"),
        per_consumer_prefetch: None,
        declares: "Only the objects that the application declares.",
        transient_objects: &[],
        advice: "A robust connection (`connect_robust`) declares its queues again before it subscribes again. If the \
                 broker refuses a declaration, the worker tries again every few seconds and logs nothing.",
    },
    KnownClient {
        name: "amqp-connection-manager",
        page: "amqp-connection-manager",
        library: &AMQPLIB,
        sibling_queues: &[],
        consumed_suffixes: &[],
        on_cancel: OnCancel::Subscribes,
        redeclares_repeatedly: false,
        on_missing: OnMissing::Declares,
        on_mismatch: Reaction::Retries,
        at_start: Reaction::Retries,
        without_declaration: Some("no `assertQueue` in the `setup` function"),
        per_consumer_prefetch: None,
        declares: "Only the objects that its `setup` functions declare. The client runs these functions each time it \
                   connects.",
        transient_objects: &[],
        advice: "If the broker refuses a declaration in a `setup` function, the client emits an `error` event and tries \
                 again when it reconnects. Without a listener for this event, the process exits.",
    },
    KnownClient {
        name: "amqplib",
        page: "amqplib",
        library: &AMQPLIB,
        sibling_queues: &[],
        consumed_suffixes: &[],
        on_cancel: OnCancel::Hangs,
        redeclares_repeatedly: false,
        on_missing: OnMissing::Exits,
        on_mismatch: Reaction::Exits,
        at_start: Reaction::Exits,
        without_declaration: Some("`channel.checkQueue(name)`, or omit the declaration"),
        per_consumer_prefetch: None,
        declares: "Only the objects that the application declares.",
        transient_objects: &[],
        advice: "A canceled consumer receives `null` instead of a message. A worker that ignores `null` hangs. Make the \
                 worker subscribe again, or exit so that its supervisor restarts it.",
    },
    KnownClient {
        name: "bunny",
        page: "bunny",
        library: &BUNNY,
        sibling_queues: &[],
        consumed_suffixes: &[],
        on_cancel: OnCancel::Hangs,
        redeclares_repeatedly: false,
        on_missing: OnMissing::Exits,
        on_mismatch: Reaction::Exits,
        at_start: Reaction::Exits,
        without_declaration: Some("`channel.queue(name, passive: true)`"),
        per_consumer_prefetch: None,
        declares: "Only the objects that the application declares.",
        transient_objects: &[],
        advice: "Bunny calls the consumer's `on_cancellation` callback. A worker without this callback hangs and logs nothing.",
    },
    KnownClient {
        name: "Celery",
        page: "celery",
        library: &PY_AMQP,
        sibling_queues: &[],
        consumed_suffixes: &[],
        on_cancel: OnCancel::Declares,
        redeclares_repeatedly: true,
        on_missing: OnMissing::Exits,
        on_mismatch: Reaction::Exits,
        at_start: Reaction::Exits,
        without_declaration: Some("`kombu.Queue(…, no_declare=True)`"),
        per_consumer_prefetch: Some("set `x-queue-type: quorum` in `queue_arguments` of the queue"),
        declares: "Celery declares the durable queue and direct exchange `celery`, the topic exchange `celeryev`, and \
                   transient queues: `celery@HOST.celery.pidbox`, `celeryev.ID`, and queues for replies. If it uses quorum \
                   queues, it also declares 28 `celery_delayed_N` queues and 29 exchanges.",
        transient_objects: &[
            TransientObject {
                glob: "*celery_delayed_*",
                last_words: DELAYED_DELIVERY,
                expires: false,
                purpose: "delayed delivery",
            },
            TransientObject { glob: "*.pidbox", last_words: &[], expires: false, purpose: "remote control" },
            TransientObject { glob: "celeryev.*", last_words: &[], expires: false, purpose: "events" },
        ],
        advice: "If the exchange of a queue in `task_queues` is a direct exchange, as it is by default, Celery publishes \
                 through the default exchange instead. During a migration, messages that are published through the default \
                 exchange can be lost. To publish to the direct exchange, set both `exchange` and `routing_key` in \
                 `task_routes`. Otherwise, pause the producers.\n\nA worker that has just subscribed can ignore a cancel \
                 (`_quick_drain` in `celery/worker/loops.py`). It then hangs until it is restarted.\n\nCelery supports `basic.reject`, but not `basic.nack`. For retries by the \
                 broker, set `acks_late=True`, and either set `acks_on_failure_or_timeout=False` or raise \
                 `Reject(requeue=False)`.\n\n\
                 A worker that does not declare its queue as a quorum queue uses a global prefetch count. Quorum queues \
                 accept a global prefetch count on RabbitMQ 4.3 and later. Earlier versions refuse the consumer, and the \
                 worker retries indefinitely.",
    },
    KnownClient {
        name: "dramatiq",
        page: "dramatiq",
        library: &PIKA,
        sibling_queues: &[".DQ", ".XQ"],
        consumed_suffixes: &[".DQ"],
        on_cancel: OnCancel::Subscribes,
        redeclares_repeatedly: false,
        on_missing: OnMissing::Subscribes,
        on_mismatch: Reaction::Retries,
        at_start: Reaction::Retries,
        without_declaration: None,
        per_consumer_prefetch: None,
        declares: "For a queue `Q`: `Q`, `Q.DQ` for delayed messages, and `Q.XQ` for dead letters, with a TTL of 7 days. `Q` \
                   and `Q.DQ` dead-letter to `Q.XQ` through the default exchange. `max_priority` sets `x-max-priority` on `Q` and `Q.DQ`.",
        transient_objects: &[],
        advice: "dramatiq publishes only through the default exchange. During a migration, messages that are published \
                 through the default exchange can be lost. Pause the producers.\n\nA running worker subscribes again after 3 s without declaring \
                 the queue. A new worker declares the queue. If the broker refuses the declaration, the worker tries again every 3 s.",
    },
    KnownClient {
        name: "FastStream",
        page: "faststream",
        library: &AIORMQ,
        sibling_queues: &[],
        consumed_suffixes: &[],
        on_cancel: OnCancel::Declares,
        redeclares_repeatedly: false,
        on_missing: OnMissing::Subscribes,
        on_mismatch: Reaction::Retries,
        at_start: Reaction::Exits,
        without_declaration: Some("`RabbitQueue(name, declare=False)`"),
        per_consumer_prefetch: None,
        declares: "The queues and exchanges of its subscribers and publishers.",
        transient_objects: &[],
        advice: "If the broker refuses a declaration after the migration, the worker tries again every 5 s and logs \
                 nothing. Only the broker's log shows the 406 error.\n\nFor retries by the broker, do not use \
                 `AckPolicy.NACK_ON_ERROR`, which requeues messages without a delay.",
    },
    KnownClient {
        name: "NestJS",
        page: "nestjs",
        library: &AMQPLIB,
        sibling_queues: &[],
        consumed_suffixes: &[],
        on_cancel: OnCancel::Hangs,
        redeclares_repeatedly: false,
        on_missing: OnMissing::Exits,
        on_mismatch: Reaction::Retries,
        at_start: Reaction::Exits,
        without_declaration: Some("`createQueueIfNotExists: false`"),
        per_consumer_prefetch: None,
        declares: "The exchanges of the module, and the queues and bindings of its subscribers.",
        transient_objects: &[],
        advice: "This page describes `@golevelup/nestjs-rabbitmq`. The library ignores the cancellation of a consumer. \
                 Restart the application after the migration.\n\nBy default, a handler that throws an exception \
                 requeues the message without a delay. For retries by the broker, set `errorBehavior: MessageHandlerErrorBehavior.NACK`.",
    },
    KnownClient {
        name: "php-amqplib",
        page: "php-amqplib",
        library: &PHP_AMQPLIB,
        sibling_queues: &[],
        consumed_suffixes: &[],
        on_cancel: OnCancel::Exits,
        redeclares_repeatedly: false,
        on_missing: OnMissing::Exits,
        on_mismatch: Reaction::Exits,
        at_start: Reaction::Exits,
        without_declaration: Some("`queue_declare` with `passive: true`, or omit the declaration"),
        per_consumer_prefetch: None,
        declares: "Only the objects that the application declares.",
        transient_objects: &[],
        advice: "`wait` throws an exception when the broker cancels the consumer. Run the worker under a supervisor that \
                 restarts it.",
    },
    KnownClient {
        name: "pika",
        page: "pika",
        library: &PIKA,
        sibling_queues: &[],
        consumed_suffixes: &[],
        on_cancel: OnCancel::Exits,
        redeclares_repeatedly: false,
        on_missing: OnMissing::Exits,
        on_mismatch: Reaction::Exits,
        at_start: Reaction::Exits,
        without_declaration: Some("`queue_declare(name, passive=True)`, or omit the declaration"),
        per_consumer_prefetch: None,
        declares: "Only the objects that the application declares.",
        transient_objects: &[],
        advice: "`start_consuming` returns when the broker cancels the last consumer. If the process then ends, its exit \
                 code is 0, so a supervisor may not restart it. Make the worker subscribe again, or exit with a nonzero code.",
    },
    KnownClient {
        name: "rascal",
        page: "rascal",
        library: &AMQPLIB,
        sibling_queues: &[],
        consumed_suffixes: &[],
        on_cancel: OnCancel::Subscribes,
        redeclares_repeatedly: false,
        on_missing: OnMissing::Subscribes,
        on_mismatch: Reaction::Retries,
        at_start: Reaction::Exits,
        without_declaration: Some("`assert: false, check: false` for the queue"),
        per_consumer_prefetch: None,
        declares: "The exchanges, queues and bindings in its configuration, on startup.",
        transient_objects: &[],
        advice: "rascal delays a republished message with the `CC` header and a waiting queue. The broker keeps this header \
                 when it dead-letters the message, so the message can also reach queues that do not match its routing key.",
    },
    KnownClient {
        name: "Symfony",
        page: "symfony",
        library: &RABBITMQ_C,
        sibling_queues: &[],
        consumed_suffixes: &[],
        on_cancel: OnCancel::NotCanceled,
        redeclares_repeatedly: false,
        on_missing: OnMissing::Exits,
        on_mismatch: Reaction::Exits,
        at_start: Reaction::Exits,
        without_declaration: Some("`auto_setup: false` in the transport options"),
        per_consumer_prefetch: None,
        declares: "The fanout exchange and queue `messages`, the direct exchange `delays`, and a waiting queue \
                   `delay_messages_…` for each delay. The waiting queues have `x-expires`, and are not part of a spec.",
        transient_objects: &[
            TransientObject { glob: "delay_*_delay", last_words: &[], expires: true, purpose: "delayed messages" },
            TransientObject { glob: "delay_*_retry", last_words: &[], expires: true, purpose: "retries" },
        ],
        advice: "The AMQP transport of Symfony Messenger fetches messages with `basic.get`. The broker \
                 therefore lists no consumer, and a plan cannot name the client.",
    },
];
