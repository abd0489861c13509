//! Defines the table of policy keys: the accepted values of each key, the queue types that skip a policy with the key,
//! and the precedence of its values.
//!
//! Sources, in all minor versions from 3.8 to 4.3: `rabbit_policies`, `rabbit_mirror_queue_misc`,
//! `rabbit_queue_location_validator` and `validate_policy` of the queue types (`accepts`); `unsupported_policies` in
//! their `capabilities` (`skipped_by`); `rabbit_amqqueue_process:process_args_policy`,
//! `rabbit_quorum_queue:ra_machine_config` and `gather_policy_config`, `rabbit_stream_queue:update_stream_conf`
//! (`precedence`); `merge_policy_value` (`merge`).

use super::Precedence::{Argument, Policy, Smallest, SmallestNonNegative};
use super::{Accepts, Merge, PolicyKey, Precedence, Scope, Validator};
use crate::model::QueueType::{self, Classic, Quorum, Stream};
use crate::model::known_arguments::Versions;
use Accepts::{Age, AtLeast, Between, Integer, Text, Words};
use Validator::{General, Locator, Mirroring};

const ALL: Versions = Versions::ALL;
/// The versions that support streams and list the unsupported keys of every queue type.
const SINCE_3_9: Versions = Versions::since(3, 9);
const SINCE_3_10: Versions = Versions::since(3, 10);
const SINCE_3_12: Versions = Versions::since(3, 12);
/// Excludes 3.12.0 to 3.12.6.
const SINCE_3_12_7: Versions = Versions::since_patch(3, 12, 7);
const SINCE_3_13: Versions = Versions::since(3, 13);
const SINCE_4_0: Versions = Versions::since(4, 0);
const SINCE_4_3: Versions = Versions::since(4, 3);
const BEFORE_4_0: Versions = Versions::ALL.until(4, 0);
const BEFORE_4_2: Versions = Versions::ALL.until(4, 2);
const BEFORE_4_3: Versions = Versions::ALL.until(4, 3);
/// The versions whose quorum queues read `expires` and `overflow`.
const SINCE_3_8_10: Versions = Versions::since_patch(3, 8, 10);

/// The versions whose policies accept delayed retries: 4.3.0 registers no validator (measured on 4.3.6).
const SINCE_4_3_1: &[Versions] = &[Versions::since_patch(4, 3, 1)];
/// The value of `in_operator_policies` for keys that operator policies can set on every version.
const OPERATORS: &[Versions] = &[ALL];

/// The default values of the table: a queue key that no version accepts and that the broker does not list as
/// unsupported.
const KEY: PolicyKey = PolicyKey {
    name: "",
    spec_key: "",
    scope: Scope::Queues,
    accepts: &[],
    skipped_by: &[],
    is_read_by_old_quorum: false,
    precedence: &[],
    in_operator_policies: &[],
    merge: Merge::Operator,
    affects_messages: false,
};

const IN_MEMORY: PolicyKey = PolicyKey {
    accepts: &[(ALL, General, AtLeast(0))],
    skipped_by: &[(Classic, SINCE_3_12_7), (Stream, ALL)],
    is_read_by_old_quorum: true,
    precedence: &[(Quorum, BEFORE_4_0, Smallest)],
    in_operator_policies: OPERATORS,
    merge: Merge::Smaller,
    ..KEY
};

const DEAD_LETTERING: PolicyKey = PolicyKey {
    accepts: &[(ALL, General, Text)],
    skipped_by: &[(Stream, ALL)],
    is_read_by_old_quorum: true,
    precedence: &[(Classic, ALL, Argument), (Quorum, ALL, Argument)],
    affects_messages: true,
    ..KEY
};

/// The queue types that skip policies with stream keys.
const STREAMS: &[(QueueType, Versions)] = &[(Classic, SINCE_3_9), (Quorum, SINCE_3_9)];
/// The queue types that skip policies with classic queue keys.
const CLASSIC: &[(QueueType, Versions)] = &[(Quorum, ALL), (Stream, ALL)];

const MIRROR: PolicyKey = PolicyKey { scope: Scope::Mirroring, skipped_by: CLASSIC, ..KEY };
const WHEN_PROMOTED: Accepts = Words(&["always", "when-synced"]);

const fn plugin(name: &'static str) -> PolicyKey {
    PolicyKey { name, spec_key: name, scope: Scope::Plugin, ..KEY }
}

/// Creates a key that the broker lists as unsupported by some queue types, although no policy can set the key.
const fn never_accepted(name: &'static str, skipped_by: &'static [(QueueType, Versions)]) -> PolicyKey {
    PolicyKey { name, spec_key: name, skipped_by, ..KEY }
}

const fn delayed_retry(
    (name, spec_key): (&'static str, &'static str),
    accepts: &'static [(Versions, Validator, Accepts)],
    precedence: &'static [(QueueType, Versions, Precedence)],
    merge: Merge,
) -> PolicyKey {
    PolicyKey { name, spec_key, accepts, precedence, in_operator_policies: SINCE_4_3_1, merge, ..KEY }
}

/// All policy keys.
pub const POLICY_KEYS: &[PolicyKey] = &[
    PolicyKey {
        name: "expires",
        spec_key: "expires",
        accepts: &[(ALL, General, AtLeast(1))],
        skipped_by: &[(Stream, ALL)],
        precedence: &[
            (Classic, ALL, Smallest),
            (Quorum, SINCE_3_8_10.until(4, 0), Policy),
            (Quorum, SINCE_4_0, Smallest),
        ],
        in_operator_policies: OPERATORS,
        merge: Merge::Smaller,
        affects_messages: true,
        ..KEY
    },
    PolicyKey {
        name: "message-ttl",
        spec_key: "messageTtl",
        accepts: &[(ALL, General, AtLeast(0))],
        skipped_by: &[(Quorum, Versions::ALL.until(3, 10)), (Stream, ALL)],
        precedence: &[(Classic, ALL, Smallest), (Quorum, SINCE_3_10, Smallest)],
        in_operator_policies: OPERATORS,
        merge: Merge::Smaller,
        affects_messages: true,
        ..KEY
    },
    PolicyKey {
        name: "max-length",
        spec_key: "maxLength",
        accepts: &[(ALL, General, AtLeast(0))],
        skipped_by: &[(Stream, ALL)],
        is_read_by_old_quorum: true,
        precedence: &[(Classic, ALL, Smallest), (Quorum, ALL, Smallest)],
        in_operator_policies: OPERATORS,
        merge: Merge::Smaller,
        affects_messages: true,
        ..KEY
    },
    PolicyKey {
        name: "max-length-bytes",
        spec_key: "maxLengthBytes",
        accepts: &[(ALL, General, AtLeast(0))],
        is_read_by_old_quorum: true,
        precedence: &[(Classic, ALL, Smallest), (Quorum, ALL, Smallest), (Stream, SINCE_3_9, Policy)],
        in_operator_policies: OPERATORS,
        merge: Merge::Smaller,
        affects_messages: true,
        ..KEY
    },
    PolicyKey {
        name: "overflow",
        spec_key: "overflow",
        accepts: &[(ALL, General, Words(&["drop-head", "reject-publish", "reject-publish-dlx"]))],
        skipped_by: &[(Stream, ALL)],
        precedence: &[(Classic, ALL, Argument), (Quorum, SINCE_3_8_10, Policy)],
        in_operator_policies: &[SINCE_3_12_7],
        affects_messages: true,
        ..KEY
    },
    PolicyKey { name: "dead-letter-exchange", spec_key: "deadLetterExchange", ..DEAD_LETTERING },
    PolicyKey { name: "dead-letter-routing-key", spec_key: "deadLetterRoutingKey", ..DEAD_LETTERING },
    PolicyKey {
        name: "dead-letter-strategy",
        spec_key: "deadLetterStrategy",
        accepts: &[(SINCE_3_10, General, Words(&["at-least-once", "at-most-once"]))],
        skipped_by: &[(Classic, SINCE_3_10), (Stream, SINCE_3_10)],
        precedence: &[(Quorum, SINCE_3_10, Argument)],
        affects_messages: true,
        ..KEY
    },
    PolicyKey {
        name: "delivery-limit",
        spec_key: "deliveryLimit",
        accepts: &[(BEFORE_4_0, General, AtLeast(0)), (SINCE_4_0, General, Integer)],
        skipped_by: &[(Classic, SINCE_3_10), (Stream, ALL)],
        is_read_by_old_quorum: true,
        precedence: &[(Quorum, BEFORE_4_0, Smallest), (Quorum, SINCE_4_0, SmallestNonNegative)],
        in_operator_policies: OPERATORS,
        merge: Merge::SmallerNonNegative,
        affects_messages: true,
        ..KEY
    },
    PolicyKey { name: "max-in-memory-length", spec_key: "maxInMemoryLength", ..IN_MEMORY },
    PolicyKey { name: "max-in-memory-bytes", spec_key: "maxInMemoryBytes", ..IN_MEMORY },
    PolicyKey {
        name: "queue-mode",
        spec_key: "queueMode",
        accepts: &[(ALL, General, Words(&["default", "lazy"]))],
        skipped_by: CLASSIC,
        // The key has had no effect since 3.12, and the broker has not read it since 4.3.
        precedence: &[(Classic, BEFORE_4_3, Argument)],
        ..KEY
    },
    PolicyKey {
        name: "queue-version",
        spec_key: "queueVersion",
        accepts: &[(SINCE_3_10, General, Between(1, 2))],
        precedence: &[(Classic, SINCE_3_10.until(4, 3), Argument)],
        // In the 3.11 series, only 3.11.24 and later support the key.
        in_operator_policies: &[Versions::since_patch(3, 11, 24).until(3, 12), SINCE_3_12_7],
        ..KEY
    },
    PolicyKey {
        name: "queue-master-locator",
        spec_key: "queueMasterLocator",
        accepts: &[
            (BEFORE_4_0, Locator, Words(&["client-local", "min-masters", "random"])),
            (
                SINCE_4_0.until(4, 3),
                Locator,
                Words(&["balanced", "client-local", "least-leaders", "min-masters", "random"]),
            ),
            // The key is deprecated, and the broker refuses it unless the node's configuration permits it.
            (SINCE_4_3, Locator, Words(&[])),
        ],
        skipped_by: CLASSIC,
        ..KEY
    },
    PolicyKey {
        name: "queue-leader-locator",
        spec_key: "queueLeaderLocator",
        accepts: &[
            (SINCE_3_9.until(3, 10), General, Words(&["client-local", "least-leaders", "random"])),
            (SINCE_3_10, General, Words(&["balanced", "client-local", "least-leaders", "random"])),
        ],
        skipped_by: &[(Classic, SINCE_3_9.until(4, 0)), (Quorum, SINCE_3_9.until(3, 10))],
        ..KEY
    },
    PolicyKey {
        name: "target-group-size",
        spec_key: "quorumTargetGroupSize",
        accepts: &[(SINCE_3_13, Validator::Quorum, AtLeast(1))],
        skipped_by: &[(Classic, SINCE_3_12_7), (Stream, SINCE_3_12_7)],
        // The broker compares the argument's tuple with the policy's number (see `TARGET_GROUP_SIZE` in
        // `known_arguments`). Not tested live, because this requires a cluster: v4.0.5 and
        // v3.13.7:rabbit_quorum_queue_periodic_membership_reconciliation.erl:217.
        precedence: &[(Quorum, SINCE_3_13, Argument)],
        in_operator_policies: &[SINCE_3_13],
        merge: Merge::Larger,
        ..KEY
    },
    PolicyKey {
        name: "consumer-timeout",
        spec_key: "consumerTimeout",
        accepts: &[(SINCE_3_12, General, AtLeast(0))],
        // `rabbit_channel:get_queue_consumer_timeout` (v4.0.5, line 2697) reads the key for every queue type. On 4.3.0
        // and later, `rabbit_queue_type` passes the timeout to the queue (v4.3.5, line 948), and only `rabbit_fifo`
        // reads it.
        precedence: &[
            (Classic, SINCE_3_12.until(4, 3), Smallest),
            (Quorum, SINCE_3_12, Smallest),
            (Stream, SINCE_3_12.until(4, 3), Smallest),
        ],
        ..KEY
    },
    PolicyKey {
        name: "consumer-disconnected-timeout",
        spec_key: "consumerDisconnectedTimeout",
        accepts: &[(SINCE_4_3, General, AtLeast(0))],
        // Not tested live, because this requires a cluster: v4.3.5:rabbit_quorum_queue.erl:1960.
        precedence: &[(Quorum, SINCE_4_3, Smallest)],
        ..KEY
    },
    delayed_retry(
        ("delayed-retry-type", "delayedRetryType"),
        &[(Versions::since_patch(4, 3, 1), Validator::Quorum, Words(&["all", "disabled", "failed", "returned"]))],
        &[(Quorum, SINCE_4_3, Policy)],
        Merge::Operator,
    ),
    delayed_retry(
        ("delayed-retry-min", "delayedRetryMin"),
        &[(Versions::since_patch(4, 3, 1), Validator::Quorum, AtLeast(1))],
        &[(Quorum, SINCE_4_3, Smallest)],
        Merge::Larger,
    ),
    delayed_retry(
        ("delayed-retry-max", "delayedRetryMax"),
        &[(Versions::since_patch(4, 3, 1), Validator::Quorum, AtLeast(1))],
        &[(Quorum, SINCE_4_3, Smallest)],
        Merge::Smaller,
    ),
    PolicyKey {
        name: "max-age",
        spec_key: "maxAge",
        accepts: &[(SINCE_3_9, General, Age)],
        skipped_by: STREAMS,
        precedence: &[(Stream, SINCE_3_9, Policy)],
        affects_messages: true,
        ..KEY
    },
    PolicyKey {
        name: "stream-max-segment-size-bytes",
        spec_key: "streamMaxSegmentSizeBytes",
        accepts: &[(SINCE_3_9, General, Between(0, 3_000_000_000))],
        skipped_by: STREAMS,
        precedence: &[(Stream, SINCE_3_9, Policy)],
        ..KEY
    },
    PolicyKey {
        name: "stream-filter-size-bytes",
        spec_key: "streamFilterSizeBytes",
        accepts: &[(SINCE_3_13, General, Between(16, 255))],
        // Not tested live: the broker does not expose the filter size. v4.0.5:rabbit_stream_queue.erl:1070.
        precedence: &[(Stream, SINCE_3_13, Policy)],
        ..KEY
    },
    PolicyKey {
        name: "initial-cluster-size",
        spec_key: "initialClusterSize",
        accepts: &[(SINCE_3_9, General, AtLeast(0))],
        skipped_by: STREAMS,
        ..KEY
    },
    PolicyKey {
        name: "alternate-exchange",
        spec_key: "alternateExchange",
        scope: Scope::Exchanges,
        accepts: &[(ALL, General, Text)],
        ..KEY
    },
    // `declare::policy` validates `ha-mode` and `ha-params`, because their valid values depend on each other.
    PolicyKey { name: "ha-mode", spec_key: "ha-mode", ..MIRROR },
    PolicyKey { name: "ha-params", spec_key: "ha-params", ..MIRROR },
    PolicyKey {
        name: "ha-sync-mode",
        spec_key: "ha-sync-mode",
        accepts: &[(BEFORE_4_0, Mirroring, Words(&["automatic", "manual"]))],
        ..MIRROR
    },
    PolicyKey {
        name: "ha-sync-batch-size",
        spec_key: "ha-sync-batch-size",
        accepts: &[(BEFORE_4_0, Mirroring, AtLeast(1))],
        skipped_by: &[],
        ..MIRROR
    },
    PolicyKey {
        name: "ha-promote-on-shutdown",
        spec_key: "ha-promote-on-shutdown",
        accepts: &[(BEFORE_4_0, Mirroring, WHEN_PROMOTED)],
        ..MIRROR
    },
    PolicyKey {
        name: "ha-promote-on-failure",
        spec_key: "ha-promote-on-failure",
        accepts: &[(BEFORE_4_0, Mirroring, WHEN_PROMOTED)],
        ..MIRROR
    },
    PolicyKey { spec_key: "federationUpstream", ..plugin("federation-upstream") },
    PolicyKey { spec_key: "federationUpstreamPattern", ..plugin("federation-upstream-pattern") },
    PolicyKey { spec_key: "federationUpstreamSet", ..plugin("federation-upstream-set") },
    plugin("routing-key"),
    plugin("shards-per-node"),
    never_accepted("max-priority", CLASSIC),
    never_accepted("single-active-consumer", &[(Quorum, BEFORE_4_2), (Stream, BEFORE_4_2)]),
    never_accepted("selector-fields", &[(Classic, SINCE_4_3), (Quorum, SINCE_4_3), (Stream, SINCE_4_3)]),
    never_accepted("selector-field-max-bytes", &[(Classic, SINCE_4_3), (Quorum, SINCE_4_3), (Stream, SINCE_4_3)]),
];
