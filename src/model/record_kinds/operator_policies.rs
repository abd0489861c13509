//! Defines the fields of operator policies.

use super::{Comparison, FieldShape, RecordField};

/// The kinds of objects that a policy can apply to.
pub const APPLY_TO: &[&str] = &["all", "queues", "exchanges", "classic_queues", "quorum_queues", "streams"];

pub(super) const OPERATOR_POLICY_FIELDS: &[RecordField] = &[
    RecordField {
        key: "pattern",
        name: "pattern",
        shape: FieldShape::Text,
        default: "",
        comparison: Comparison::Always,
        example: "'^orders\\.'",
        doc: "A regular expression (PCRE) that object names must match. It is not anchored unless it contains `^` or `$`.",
        ..RecordField::NEW
    },
    RecordField {
        key: "applyTo",
        name: "apply-to",
        shape: FieldShape::Words(APPLY_TO),
        default: "all",
        comparison: Comparison::Always,
        example: "",
        doc: "The kinds of objects that the policy applies to. `classic_queues`, `quorum_queues` and `streams` require \
              RabbitMQ 3.12.",
        ..RecordField::NEW
    },
    RecordField {
        key: "priority",
        name: "priority",
        shape: FieldShape::Number,
        default: "0",
        comparison: Comparison::Always,
        example: "",
        doc: "The priority. If several operator policies match an object, the one with the highest priority applies.",
        ..RecordField::NEW
    },
    RecordField {
        key: "definition",
        name: "definition",
        shape: FieldShape::Definition,
        default: "",
        comparison: Comparison::Always,
        example: "{maxLengthBytes: 1GiB}",
        doc: "The settings, in camelCase or in RabbitMQ's spelling. Only the keys that limit an object are allowed: \
              `expires`, `messageTtl`, `maxLength`, `maxLengthBytes`, `maxInMemoryLength`, `maxInMemoryBytes` and \
              `deliveryLimit`; also `queueVersion` since RabbitMQ 3.11.24, `overflow` since 3.12.7, and \
              `target-group-size` since 3.13.",
        ..RecordField::NEW
    },
];
