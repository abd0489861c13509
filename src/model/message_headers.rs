//! Lists the message headers that brokers, publishers, workers and topo set.

/// The number of retries so far. With the `republish` strategy, the worker increments this header.
pub const RETRY_COUNT: &str = "x-retry-count";
/// The exchange to which the message was first published. The worker sets this header when it republishes the message.
pub const ORIGINAL_EXCHANGE: &str = "x-original-exchange";
/// The routing key with which the message was first published.
pub const ORIGINAL_ROUTING_KEY: &str = "x-original-routing-key";
/// The queue in which the message failed; set by the worker.
pub const SOURCE_QUEUE: &str = "x-source-queue";
/// The time of the last failure (RFC 3339); set by the worker.
pub const LAST_FAILED_AT: &str = "x-last-failed-at";
/// The error from the last attempt; set by the worker.
pub const LAST_ERROR: &str = "x-last-error";
/// The dead-lettering history; set by the broker.
pub const DEATHS: &str = "x-death";
/// The number of unsuccessful deliveries that a quorum queue has counted.
pub const DELIVERY_COUNT: &str = "x-delivery-count";
/// The number of times that a quorum queue has delivered the message; on RabbitMQ 4.3 and later.
pub const ACQUIRED_COUNT: &str = "x-acquired-count";
/// A list of additional routing keys; set by the publisher.
pub const CC: &str = "CC";
/// A list of additional routing keys; set by the publisher. The broker removes this header from the message.
pub const BCC: &str = "BCC";
/// The number of times that topo has replayed the message.
pub const REPLAYS: &str = "x-topo-replay";
/// The identifier of the last run of `topo dlq replay` that published the message.
pub const REPLAY_RUN: &str = "x-topo-replay-run";

/// The headers that contain the error of a failed message in topo's contracts, MassTransit, NServiceBus and Spring
/// AMQP.
pub const ERRORS: [&str; 6] = [
    LAST_ERROR,
    "MT-Fault-Message",
    "MT-Fault-ExceptionType",
    "NServiceBus.ExceptionInfo.Message",
    "NServiceBus.ExceptionInfo.ExceptionType",
    "x-exception-message",
];

/// The headers that a replay removes, so that the retries start over. They describe failed deliveries or earlier
/// replays, or would route copies to other queues.
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
/// The prefixes of additional headers that a replay removes. On RabbitMQ 3.12 and earlier, the broker never replaces
/// existing `x-first-death-*` headers.
pub const REMOVED_PREFIXES: [&str; 2] = ["x-first-death-", "x-last-death-"];

/// Returns true if a replay removes the header.
pub fn is_removed_from_replayed(name: &str) -> bool {
    REMOVED_FROM_REPLAYED.contains(&name) || REMOVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns true if the header is a delivery counter of a quorum queue.
pub fn is_delivery_count(name: &str) -> bool {
    [DELIVERY_COUNT, ACQUIRED_COUNT].contains(&name)
}
