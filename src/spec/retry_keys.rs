//! The grammar of retries: `maxRetries` and `retry` of a queue and of `defaults`, and the entries of `retryPolicies`.

use super::shape::{Key, Object, Shape, key};
use crate::model::Strategy;

/// The word that takes a default retry away.
pub(super) const NO_RETRY: &str = "none";

const STRATEGIES: Shape = Shape::OneOf(&[
    Strategy::Ladder.as_str(),
    Strategy::Republish.as_str(),
    Strategy::Redeliver.as_str(),
    Strategy::Delayed.as_str(),
]);

/// How often a failed message is tried again.
pub(super) const MAX_RETRIES: Key = key(
    "maxRetries",
    Shape::Count(0, MOST_RETRIES),
    "How often a failed message is tried again after the first attempt: N retries are N + 1 deliveries. 0 means that \
     the first failure is final. Without it, there are as many retries as `delays`.",
)
.like("5")
.not_of_streams();

/// More than anybody counts to; it fits into every integer that a broker or a worker may use.
const MOST_RETRIES: i64 = 1_000_000;

const NAME_OR_TABLE: Shape = Shape::Either(&Shape::Name, &[&RETRY_TABLE]);

/// How it is tried again.
pub(super) const RETRY: Key = key(
    "retry",
    NAME_OR_TABLE,
    "How a failed message is tried again: an entry of `retryPolicies`, a table, or `none`, which takes the default away.",
)
.like("{delays: [5s, 30s, 5m]}")
.not_of_streams();

static RETRY_TABLE: Object =
    Object { what: "`retry`", name: "Retry", keys: || &RETRY_KEYS, external: &[], is_queue: false };

/// An entry of `retryPolicies`.
pub(super) static RETRY_POLICY: Object =
    Object { what: "a retry policy", name: "RetryPolicy", keys: || &RETRY_KEYS, external: &[], is_queue: false };

static RETRY_KEYS: [Key; 5] = [
    MAX_RETRIES,
    key(
        "strategy",
        STRATEGIES,
        "Who counts and who waits. `ladder`: the broker, with a tier queue for each retry; the worker only rejects. \
         `republish`: the worker counts, and publishes to a tier queue, or to the back of the queue. `redeliver`: the \
         broker, at once (quorum queues). `delayed`: the broker, with a delay that grows evenly (quorum queues, \
         RabbitMQ 4.3). Without it: `ladder` where there are delays, else `redeliver`.",
    )
    .like("ladder"),
    key(
        "delays",
        Shape::Filled(&Shape::Delay),
        "How long each retry waits, each with its unit. Where there are fewer than retries, the last one repeats.",
    )
    .like("[5s, 30s, 5m]"),
    key("backoff", Shape::Object(&BACKOFF), "Delays that are worked out: each is the one before times `factor`.")
        .like("{initial: 2s, factor: 2, max: 60s}"),
    key(
        "jitter",
        Shape::Delay,
        "By how much a worker may shorten a wait with a per-message `expiration`; for `republish` with delays.",
    )
    .like("500ms"),
];

static BACKOFF: Object = Object {
    what: "`backoff`",
    name: "Backoff",
    keys: || {
        static KEYS: &[Key] = &[
            key("initial", Shape::Delay, "The first delay.").required().like("2s"),
            key("factor", Shape::Factor, "What each delay is multiplied with for the next.").or("2"),
            key("max", Shape::Delay, "The longest delay.").like("60s"),
        ];
        KEYS
    },
    external: &[],
    is_queue: false,
};
