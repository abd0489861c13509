//! Lists the message headers that brokers, workers and topo set.

/// The number of retries of a message so far, which a worker counts with the strategy `republish`.
pub const RETRY_COUNT: &str = "x-retry-count";
/// The exchange to which the message was first published, which a worker sets when it publishes the message again.
pub const ORIGINAL_EXCHANGE: &str = "x-original-exchange";
/// The routing key with which the message was first published.
pub const ORIGINAL_ROUTING_KEY: &str = "x-original-routing-key";
/// The queue in which the message failed, which a worker sets.
pub const SOURCE_QUEUE: &str = "x-source-queue";
/// The time of the last failure (RFC 3339), which a worker sets.
pub const LAST_FAILED_AT: &str = "x-last-failed-at";
/// The error of the last attempt, which a worker sets.
pub const LAST_ERROR: &str = "x-last-error";
/// The dead-lettering history, which the broker sets.
pub const DEATHS: &str = "x-death";
/// The number of deliveries after which a quorum queue received the message back.
pub const DELIVERY_COUNT: &str = "x-delivery-count";
/// The number of deliveries of a quorum queue, from 4.3 on.
pub const ACQUIRED_COUNT: &str = "x-acquired-count";
/// A list of further routing keys, which a publisher sets.
pub const CC: &str = "CC";
/// A list of further routing keys, which a publisher sets. The broker removes the header.
pub const BCC: &str = "BCC";
/// The number of replays of a message by topo.
pub const REPLAYS: &str = "x-topo-replay";
/// The identifier of the last run of `topo dlq replay` that published the message.
pub const REPLAY_RUN: &str = "x-topo-replay-run";

/// The headers that contain the error of a failed message: those of topo's contract, MassTransit, NServiceBus and
/// Spring AMQP.
pub const ERRORS: [&str; 6] = [
    LAST_ERROR,
    "MT-Fault-Message",
    "MT-Fault-ExceptionType",
    "NServiceBus.ExceptionInfo.Message",
    "NServiceBus.ExceptionInfo.ExceptionType",
    "x-exception-message",
];

/// The headers that a replay removes, so that all retries start again. They describe the failed deliveries, or would
/// route copies to other queues.
pub const REMOVED_FROM_REPLAYED: [&str; 14] = [
    DEATHS,
    DELIVERY_COUNT,
    ACQUIRED_COUNT,
    RETRY_COUNT,
    LAST_ERROR,
    SOURCE_QUEUE,
    LAST_FAILED_AT,
    "x-first-failed-at",
    "x-consumer-version",
    "x-stream-offset",
    CC,
    BCC,
    REPLAYS,
    REPLAY_RUN,
];
/// The prefixes of further headers that a replay removes. Up to 3.12, a broker never replaces `x-first-death-*`.
pub const REMOVED_PREFIXES: [&str; 2] = ["x-first-death-", "x-last-death-"];

/// Returns true if a replay removes the header.
pub fn is_removed_from_replayed(name: &str) -> bool {
    REMOVED_FROM_REPLAYED.contains(&name) || REMOVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns true if a quorum queue counts deliveries in the header.
pub fn is_delivery_count(name: &str) -> bool {
    [DELIVERY_COUNT, ACQUIRED_COUNT].contains(&name)
}
