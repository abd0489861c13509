//! Which keys a type of queue does not take in a policy: one of them, and the broker skips the whole policy for the queue.

use crate::model::{BrokerVersion, QueueType};

/// A range of versions, the first included, the last not.
#[derive(Clone, Copy)]
struct Versions(BrokerVersion, BrokerVersion);

const fn v(major: u16, minor: u16, patch: u16) -> BrokerVersion {
    BrokerVersion::new(major, minor, patch)
}

/// Streams, and with them the lists of all types, exist since then.
const LISTS: BrokerVersion = v(3, 9, 0);
/// Nothing is later.
const NEVER: BrokerVersion = v(u16::MAX, 0, 0);

const SINCE_LISTS: Versions = Versions(LISTS, NEVER);
const SINCE_3_10: Versions = Versions(v(3, 10, 0), NEVER);
// Not in 3.12.0 to 3.12.6.
const SINCE_3_12_7: Versions = Versions(v(3, 12, 7), NEVER);
const SINCE_4_3: Versions = Versions(v(4, 3, 0), NEVER);
const ALWAYS: Versions = Versions(v(0, 0, 0), NEVER);
const BEFORE_4_2: Versions = Versions(v(0, 0, 0), v(4, 2, 0));

/// `unsupported_policies` in `rabbit_classic_queue:capabilities`, 3.9 to 4.3. Up to 3.8 a classic queue takes all keys.
const CLASSIC: &[(&str, Versions)] = &[
    ("max-age", SINCE_LISTS),
    ("stream-max-segment-size-bytes", SINCE_LISTS),
    ("initial-cluster-size", SINCE_LISTS),
    ("queue-leader-locator", Versions(LISTS, v(4, 0, 0))),
    ("delivery-limit", SINCE_3_10),
    ("dead-letter-strategy", SINCE_3_10),
    ("max-in-memory-length", SINCE_3_12_7),
    ("max-in-memory-bytes", SINCE_3_12_7),
    ("target-group-size", SINCE_3_12_7),
    ("selector-fields", SINCE_4_3),
    ("selector-field-max-bytes", SINCE_4_3),
];

/// The same of `rabbit_quorum_queue`; in 3.8.13 to 3.8.35 a list of its own (`is_policy_applicable`).
const QUORUM: &[(&str, Versions)] = &[
    ("max-priority", ALWAYS),
    ("queue-mode", ALWAYS),
    ("single-active-consumer", BEFORE_4_2),
    ("ha-mode", ALWAYS),
    ("ha-params", ALWAYS),
    ("ha-sync-mode", ALWAYS),
    ("ha-promote-on-shutdown", ALWAYS),
    ("ha-promote-on-failure", ALWAYS),
    ("queue-master-locator", ALWAYS),
    ("message-ttl", Versions(v(0, 0, 0), v(3, 10, 0))),
    ("max-age", SINCE_LISTS),
    ("stream-max-segment-size-bytes", SINCE_LISTS),
    ("initial-cluster-size", SINCE_LISTS),
    ("queue-leader-locator", Versions(LISTS, v(3, 10, 0))),
    ("selector-fields", SINCE_4_3),
    ("selector-field-max-bytes", SINCE_4_3),
];

/// Up to 3.8.12 a quorum queue names what it takes, not what it does not.
const TAKEN_BY_OLD_QUORUM: &[&str] = &[
    "max-length",
    "max-length-bytes",
    "max-in-memory-length",
    "max-in-memory-bytes",
    "delivery-limit",
    "dead-letter-exchange",
    "dead-letter-routing-key",
];

/// The same of `rabbit_stream_queue`.
const STREAM: &[(&str, Versions)] = &[
    ("expires", ALWAYS),
    ("message-ttl", ALWAYS),
    ("dead-letter-exchange", ALWAYS),
    ("dead-letter-routing-key", ALWAYS),
    ("max-length", ALWAYS),
    ("max-in-memory-length", ALWAYS),
    ("max-in-memory-bytes", ALWAYS),
    ("max-priority", ALWAYS),
    ("overflow", ALWAYS),
    ("queue-mode", ALWAYS),
    ("single-active-consumer", BEFORE_4_2),
    ("delivery-limit", ALWAYS),
    ("ha-mode", ALWAYS),
    ("ha-params", ALWAYS),
    ("ha-sync-mode", ALWAYS),
    ("ha-promote-on-shutdown", ALWAYS),
    ("ha-promote-on-failure", ALWAYS),
    ("queue-master-locator", ALWAYS),
    ("dead-letter-strategy", SINCE_3_10),
    ("target-group-size", SINCE_3_12_7),
    ("selector-fields", SINCE_4_3),
    ("selector-field-max-bytes", SINCE_4_3),
];

/// Whether a policy with this key can govern a queue of that type (`rabbit_queue_type:is_policy_applicable`). A key that
/// is in no list, such as a plugin's, is no obstacle, whether it does anything or not.
pub fn is_taken(key: &str, queue_type: QueueType, version: BrokerVersion) -> bool {
    let refused = match queue_type {
        QueueType::Quorum if version < v(3, 8, 13) => return TAKEN_BY_OLD_QUORUM.contains(&key),
        QueueType::Classic => CLASSIC,
        QueueType::Quorum => QUORUM,
        QueueType::Stream => STREAM,
    };
    !refused.iter().any(|(refused, Versions(first, end))| *refused == key && version >= *first && version < *end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_depends_on_type_and_version() {
        use QueueType::{Classic, Quorum, Stream};
        for (key, kind, version, taken) in [
            ("delivery-limit", Classic, v(3, 8, 9), true),
            ("delivery-limit", Classic, v(3, 10, 8), false),
            ("max-in-memory-length", Classic, v(3, 12, 6), true),
            ("max-in-memory-length", Classic, v(3, 12, 7), false),
            ("queue-leader-locator", Classic, v(3, 13, 7), false),
            ("queue-leader-locator", Classic, v(4, 0, 5), true),
            ("overflow", Quorum, v(3, 8, 9), false),
            ("overflow", Quorum, v(3, 8, 13), true),
            ("message-ttl", Quorum, v(3, 9, 0), false),
            ("message-ttl", Quorum, v(3, 10, 8), true),
            ("ha-sync-batch-size", Quorum, v(3, 10, 8), true),
            ("single-active-consumer", Stream, v(4, 2, 0), true),
            ("max-length-bytes", Stream, v(4, 0, 5), true),
            ("stream-filter-size-bytes", Classic, v(4, 0, 5), true),
            ("federation-upstream", Stream, v(4, 0, 5), true),
        ] {
            assert_eq!(is_taken(key, kind, version), taken, "{key} on {kind}, {version}");
        }
    }
}
