//! Defines the keys that several objects share: the common properties of queues and exchanges, their bindings, and the
//! retry keys of queues, `defaults` and `retryPolicies`.

use super::shape::{Key, Keys, Object, Shape, key};
use crate::model::Strategy;

pub(crate) const BINDINGS: Shape = Shape::List(&Shape::Object(&INCOMING_BINDING));

const ON_CONFLICT: Shape = Shape::OneOf(&["refuse", "ifEmpty", "migrate", "discard"]);

/// The standard exchange types. All other types start with `x-`.
pub(crate) const EXCHANGE_TYPES: &[&str] = &["direct", "fanout", "topic", "headers"];

pub(crate) const QUEUE_TYPES: Shape = Shape::OneOf(&["classic", "quorum", "stream"]);

pub(super) const ROUTING_KEY: Key =
    key("routingKey", Shape::RoutingKey, "The routing key, or the pattern of a topic binding.")
        .with_default("\"\"")
        .with_example("\"order.#\"");

pub(super) const BINDING_ARGUMENTS: Key = key(
    "arguments",
    Shape::Arguments(false),
    "The arguments of the binding. A headers exchange compares them with the message headers.",
)
.with_example("{x-match: all, region: eu}");

pub(super) const DURABLE: Key =
    key("durable", Shape::Boolean, "If true, the object survives a broker restart.").with_default("true");

pub(super) const AUTO_DELETE: Key =
    key("autoDelete", Shape::Boolean, "If true, the broker deletes the object when it is no longer used.")
        .with_default("false");

pub(super) const CONFLICT: Key = key(
    "onConflict",
    ON_CONFLICT,
    "How to resolve a conflict, which is a change that the broker refuses to make to an existing object: `refuse` shows \
     the conflict, `ifEmpty` recreates the object if it is empty, `migrate` recreates it and keeps every message, and \
     `discard` recreates it without its messages.",
)
.with_default("refuse");

pub(super) const EXTERNAL: Key = key(
    "external",
    Shape::Boolean,
    "If true, the object is managed elsewhere: it must exist, and topo never changes it. Only a few other keys are valid, \
     such as `bindings`.",
)
.with_default("false");

static INCOMING_BINDING: Object = Object {
    what: "a binding",
    name: "IncomingBinding",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("exchange", Shape::Name, "The exchange that messages come from.").required().with_example("orders"),
            ROUTING_KEY,
            BINDING_ARGUMENTS,
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};

/// The value of `retry` that disables the default retries.
pub(super) const NO_RETRY: &str = "none";

const STRATEGIES: Shape = Shape::OneOf(&[
    Strategy::Ladder.as_str(),
    Strategy::Republish.as_str(),
    Strategy::Redeliver.as_str(),
    Strategy::Delayed.as_str(),
]);

/// The number of retries.
pub(super) const MAX_RETRIES: Key = key(
    "maxRetries",
    Shape::Count(0, MAX_RETRY_COUNT),
    "The number of retries of a failed message after the first attempt: N retries mean N + 1 deliveries. 0 means that \
     the first failure is final. The default is the number of `delays`.",
)
.with_example("5")
.excludes_streams();

/// The maximum number of retries. It is more than any queue needs, and it does not overflow a 32-bit integer in a
/// broker or a worker.
const MAX_RETRY_COUNT: i64 = 1_000_000;

const NAME_OR_TABLE: Shape = Shape::Either(&Shape::Name, &[&RETRY_TABLE]);

/// The strategy and delays for retries.
pub(super) const RETRY: Key = key(
    "retry",
    NAME_OR_TABLE,
    "The retries of a failed message: an entry in `retryPolicies`, a mapping, or `none` to disable the default.",
)
.with_example("{delays: [5s, 30s, 5m]}")
.excludes_streams();

static RETRY_TABLE: Object =
    Object { what: "`retry`", name: "Retry", keys: Keys::Fixed(|| &RETRY_KEYS), external: &[], is_queue: false };

/// An entry in `retryPolicies`.
pub(super) static RETRY_POLICY: Object = Object {
    what: "a retry policy",
    name: "RetryPolicy",
    keys: Keys::Fixed(|| &RETRY_KEYS),
    external: &[],
    is_queue: false,
};

static RETRY_KEYS: [Key; 5] = [
    MAX_RETRIES,
    key(
        "strategy",
        STRATEGIES,
        "The component that counts the attempts and delays the retries. `ladder`: the broker, with one delayed retry \
         queue for each retry; the worker only rejects the message. `republish`: the worker, which publishes the \
         message to a delayed retry queue or to the back of the queue. `redeliver`: the broker, without delay (quorum \
         queues). `delayed`: the broker, with a delay that grows linearly (quorum queues, RabbitMQ 4.3 and \
         later). The default is `ladder` with delays, and `redeliver` without delays.",
    )
    .with_example("ladder"),
    key(
        "delays",
        Shape::NonEmptyList(&Shape::Delay),
        "The delay before each retry, with its unit. If there are fewer delays than retries, the last delay repeats.",
    )
    .with_example("[5s, 30s, 5m]"),
    key(
        "backoff",
        Shape::Object(&BACKOFF),
        "Computed delays: each delay is the previous delay multiplied by `factor`.",
    )
    .with_example("{initial: 2s, factor: 2, max: 60s}"),
    key(
        "jitter",
        Shape::Delay,
        "The maximum time by which a worker may shorten a delay with a per-message `expiration`. Only for `republish` \
         with delays.",
    )
    .with_example("500ms"),
];

static BACKOFF: Object = Object {
    what: "`backoff`",
    name: "Backoff",
    keys: Keys::Fixed(|| {
        static KEYS: &[Key] = &[
            key("initial", Shape::Delay, "The first delay.").required().with_example("2s"),
            key("factor", Shape::Factor, "The factor by which each delay is multiplied to get the next.")
                .with_default("2"),
            key("max", Shape::Delay, "The longest delay.").with_example("60s"),
        ];
        KEYS
    }),
    external: &[],
    is_queue: false,
};
