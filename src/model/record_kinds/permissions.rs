//! The fields of permissions and topic permissions in the table of record kinds.

use super::{Comparison, FieldShape, RecordField};

/// The pattern that matches no object.
const NO_OBJECT: &str = "^$";

pub(super) const PERMISSION_FIELDS: &[RecordField] = &[
    RecordField {
        key: "configure",
        name: "configure",
        shape: FieldShape::Pattern,
        default: NO_OBJECT,
        comparison: Comparison::Always,
        example: "'^orders\\.'",
        doc: "A regular expression (PCRE) for the exchanges and queues that the user may declare and delete.",
        ..RecordField::NEW
    },
    RecordField {
        key: "write",
        name: "write",
        shape: FieldShape::Pattern,
        default: NO_OBJECT,
        comparison: Comparison::Always,
        example: "'^orders$'",
        doc: "A regular expression for the exchanges to which the user may publish, for the destinations of bindings, and \
              for the dead-letter and alternate exchanges of objects that the user declares. For the default exchange, \
              the pattern must match `amq.default`.",
        ..RecordField::NEW
    },
    RecordField {
        key: "read",
        name: "read",
        shape: FieldShape::Pattern,
        default: NO_OBJECT,
        comparison: Comparison::Always,
        example: "'^orders\\.'",
        doc: "A regular expression for the queues that the user may consume from or purge, for the sources of bindings, and \
              for the objects that the user declares with a dead-letter or alternate exchange.",
        ..RecordField::NEW
    },
];

pub(super) const TOPIC_PERMISSION_FIELDS: &[RecordField] = &[
    RecordField {
        key: "write",
        name: "write",
        shape: FieldShape::Pattern,
        default: "",
        comparison: Comparison::Always,
        example: "'^order\\.'",
        doc: "A regular expression (PCRE) for the routing keys with which the user may publish to the exchange. \
              The broker replaces `{username}`, `{vhost}` and, for MQTT, `{client_id}`.",
        ..RecordField::NEW
    },
    RecordField {
        key: "read",
        name: "read",
        shape: FieldShape::Pattern,
        default: "",
        comparison: Comparison::Always,
        example: "'.*'",
        doc: "A regular expression for the routing keys with which the user may bind queues and exchanges to the exchange.",
        ..RecordField::NEW
    },
];
