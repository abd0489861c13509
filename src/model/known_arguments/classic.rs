//! The arguments that only classic queues support.

use super::{Check, KnownArgument, LISTED, Support, UNCHECKED, ValueKind, Versions, always, check, supported};
use crate::model::{BrokerVersion, QueueType};

pub(super) const MAX_PRIORITY: KnownArgument = KnownArgument {
    name: "x-max-priority",
    key: "maxPriority",
    value: ValueKind::Count(0, 255),
    checks: &[check(ValueKind::Count(0, 255))],
    support: &[always(QueueType::Classic)],
    idle: &[],
    known_to_3_8: true,
    policy_key: None,
    doc: "Creates a priority queue with priorities from 0 to this value; 1 to 10 is enough.",
};

/// 4.3 still compares it, but no longer checks its value.
pub(super) const QUEUE_MODE: KnownArgument = KnownArgument {
    name: "x-queue-mode",
    key: "queueMode",
    value: ValueKind::OneOf(&["default", "lazy"]),
    checks: &[Check { versions: Versions::ALL.until(4, 3), value: ValueKind::OneOf(&["default", "lazy"]) }],
    support: &[Support { no_effect_since: Some(BrokerVersion::new(3, 12, 0)), ..always(QueueType::Classic) }],
    idle: &[],
    known_to_3_8: true,
    policy_key: Some("queue-mode"),
    doc: "`lazy` keeps messages on disk; no effect since 3.12.",
};

pub(super) const QUEUE_VERSION: KnownArgument = KnownArgument {
    name: "x-queue-version",
    key: "queueVersion",
    value: ValueKind::Count(1, 2),
    checks: &[
        Check { versions: Versions::since(3, 10).until(4, 3), value: ValueKind::Count(1, 2) },
        Check { versions: Versions::since(4, 3), value: ValueKind::Count(2, 2) },
    ],
    support: &[Support {
        no_effect_since: Some(BrokerVersion::new(4, 0, 0)),
        ..supported(QueueType::Classic, Versions::since(3, 10), &[Versions::since(3, 10)])
    }],
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("queue-version"),
    doc: "The storage format of a classic queue; no effect since 4.0, which only has version 2. Since 4.3 only 2 is accepted.",
};

/// No version checks its value: up to 3.13, the broker crashes on unknown words. All versions list it, but 4.3 refuses
/// it unless the deprecated feature `queue_master_locator` is permitted (`rabbit_classic_queue:validate_arguments`).
pub(super) const QUEUE_MASTER_LOCATOR: KnownArgument = KnownArgument {
    name: "x-queue-master-locator",
    key: "queueMasterLocator",
    value: ValueKind::OneOf(&["client-local", "min-masters", "random"]),
    checks: UNCHECKED,
    support: &[supported(QueueType::Classic, Versions::ALL.until(4, 3), LISTED)],
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("queue-master-locator"),
    doc: "The node on which a classic queue is created; 4.3 refuses it, use `queueLeaderLocator` there.",
};
