//! Defines the limits and the deletion protection of vhosts.

use super::{Comparison, FieldShape, RecordField};

pub(super) const VHOST_LIMITS: &[RecordField] = &[
    RecordField {
        key: "maxConnections",
        name: "max-connections",
        shape: FieldShape::Limit,
        default: "-1",
        comparison: Comparison::Always,
        example: "1000",
        doc: "The maximum number of connections to the vhost; -1 means no limit.",
        ..RecordField::NEW
    },
    RecordField {
        key: "maxQueues",
        name: "max-queues",
        shape: FieldShape::Limit,
        default: "-1",
        comparison: Comparison::Always,
        example: "500",
        doc: "The maximum number of queues in the vhost; -1 means no limit. topo needs one queue for its lock.",
        ..RecordField::NEW
    },
];

pub(super) const DELETION_PROTECTION: RecordField = RecordField {
    key: "protectFromDeletion",
    name: "value",
    shape: FieldShape::Flag,
    example: "true",
    doc: "Whether the broker refuses to delete the vhost.",
    old_name: "protected_from_deletion",
    ..RecordField::NEW
};
