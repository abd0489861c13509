//! The orders in which brokers check and compare arguments. The order matters, because a broker reports only the first
//! problem.

use crate::model::queue::QueueType;
use crate::model::version::BrokerVersion;

/// The order of `rabbit_amqqueue:declare_args()`, merged from all versions. RabbitMQ 3.8 compares arguments in this
/// order, and every version checks their values in this order.
const DECLARE_ARGS: &[&str] = &[
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
    "x-max-priority",
    "x-overflow",
    "x-queue-mode",
    "x-queue-version",
    "x-single-active-consumer",
    "x-consumer-timeout",
    "x-consumer-disconnected-timeout",
    "x-queue-type",
    "x-quorum-initial-group-size",
    "x-max-age",
    "x-stream-max-segment-size-bytes",
    "x-stream-filter-size-bytes",
    "x-initial-cluster-size",
    "x-queue-leader-locator",
];

/// The order of `rabbit_classic_queue:capabilities()`, 3.9 to 4.3.
const CLASSIC: &[&str] = &[
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
    "x-max-priority",
    "x-overflow",
    "x-queue-mode",
    "x-queue-version",
    "x-single-active-consumer",
    "x-queue-type",
    "x-queue-master-locator",
    "x-queue-leader-locator",
];

/// The order of `rabbit_quorum_queue:capabilities()`, 3.9.
const QUORUM_OF_3_9: &[&str] = &[
    "x-expires",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
    "x-overflow",
    "x-single-active-consumer",
    "x-queue-type",
    "x-quorum-initial-group-size",
    "x-delivery-limit",
];

/// The order of `rabbit_quorum_queue:capabilities()`, 3.10 to 4.3.
const QUORUM: &[&str] = &[
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
    "x-overflow",
    "x-single-active-consumer",
    "x-queue-type",
    "x-quorum-initial-group-size",
    "x-delivery-limit",
    "x-message-ttl",
    "x-queue-leader-locator",
    "x-consumer-disconnected-timeout",
    "x-consumer-timeout",
    "x-delayed-retry-type",
    "x-delayed-retry-min",
    "x-delayed-retry-max",
];

/// The order of `rabbit_stream_queue:capabilities()`, 3.9 to 4.3. The arguments that only 3.9 lists come first.
const STREAM: &[&str] = &[
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-single-active-consumer",
    "x-queue-type",
    "x-max-age",
    "x-stream-max-segment-size-bytes",
    "x-stream-filter-size-bytes",
    "x-initial-cluster-size",
    "x-queue-leader-locator",
];

/// Returns the order in which the broker checks the argument values of a new queue.
pub fn check_order() -> &'static [&'static str] {
    DECLARE_ARGS
}

/// Returns the order in which the broker compares arguments when an existing queue of this type is redeclared. Some
/// versions compare only some of these arguments; see
/// [`KnownArgument::is_compared`](super::KnownArgument::is_compared).
pub fn comparison_order(queue_type: QueueType, version: BrokerVersion) -> &'static [&'static str] {
    if !version.is_at_least(3, 9) {
        return DECLARE_ARGS;
    }
    match queue_type {
        QueueType::Classic => CLASSIC,
        QueueType::Quorum if version.is_at_least(3, 10) => QUORUM,
        QueueType::Quorum => QUORUM_OF_3_9,
        QueueType::Stream => STREAM,
    }
}

#[cfg(test)]
mod tests {
    use super::super::KNOWN_ARGUMENTS;
    use super::*;

    #[test]
    fn compared_and_checked_arguments_are_ordered() {
        for version in ["3.8.9", "3.9.29", "3.10.8", "3.13.7", "4.0.5", "4.2.9", "4.3.6"] {
            let version = version.parse().unwrap();
            for known in KNOWN_ARGUMENTS {
                for queue_type in QueueType::ALL {
                    let order = comparison_order(queue_type, version);
                    assert!(
                        !known.is_compared(queue_type, version) || order.contains(&known.name),
                        "{} is missing in the order of {queue_type} queues on {version}",
                        known.name
                    );
                    assert!(
                        known.check_for(queue_type, version).is_none() || check_order().contains(&known.name),
                        "{} is missing in DECLARE_ARGS",
                        known.name
                    );
                }
            }
        }
    }
}
