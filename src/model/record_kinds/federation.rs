//! The rows for federation upstreams and upstream sets in the table of record kinds.
//!
//! Sources: `rabbit_federation_parameters` and `rabbit_federation_upstream` in RabbitMQ 3.8 to 4.3, and responses from
//! 3.8.9, 3.10.8, 4.0.5 and 4.3.6.

use super::shovels::{ACK_MODE, MAX_NUMBER, RECONNECT_DELAY};
use super::{
    Comparison, FieldShape, Layout, ListPath, Place, RecordField, RecordKind, RecordRow, RecordScope, Tag, WriteOrder,
};
use crate::model::version::BrokerVersion;

/// The component of a runtime parameter that contains a federation upstream.
pub(super) const UPSTREAM_COMPONENT: &str = "federation-upstream";
/// The component of a runtime parameter that contains an upstream set.
pub(super) const UPSTREAM_SET_COMPONENT: &str = "federation-upstream-set";
/// The key that contains the upstream's name in a member of a set.
pub const MEMBER_NAME: &str = "upstream";

/// On RabbitMQ 4.1 and later, the `rabbitmq_federation_common` plugin provides the upstreams.
const PLUGINS: &[&str] = &["rabbitmq_federation", "rabbitmq_federation_common"];

/// An optional field without a default.
const OPTIONAL: RecordField = RecordField { comparison: Comparison::Optional, ..RecordField::NEW };

const FIELDS: &[RecordField] = &[
    RecordField {
        key: "uri",
        name: "uri",
        shape: FieldShape::Uris { has_default_vhost: false },
        example: "amqps://fed@us.example/shop",
        doc: "The URI of the upstream broker, without a password. If this is a list, each link connects to one of the URIs. \
              `{env: NAME}` or `{file: PATH}` reads the complete URI, including its password. If the URI has no vhost, the name of this vhost is used.",
        ..RecordField::NEW
    },
    RecordField {
        key: "password",
        name: "uri-password",
        shape: FieldShape::Secret { can_be_none: false },
        example: "{env: US_PASSWORD}",
        doc: "The password of the user in `uri`. topo percent-encodes it, and adds it to each URI that contains a user.",
        ..OPTIONAL
    },
    RecordField {
        key: "exchange",
        name: "exchange",
        example: "orders",
        doc: "The exchange on the upstream. The default is the name of the federated exchange.",
        ..OPTIONAL
    },
    RecordField {
        key: "queue",
        name: "queue",
        example: "orders.work",
        doc: "The queue on the upstream. The default is the name of the federated queue.",
        ..OPTIONAL
    },
    RecordField {
        key: "consumerTag",
        name: "consumer-tag",
        example: "fed-us",
        doc: "The tag of the consumer on the upstream.",
        ..OPTIONAL
    },
    RecordField {
        key: "prefetch",
        name: "prefetch-count",
        shape: FieldShape::Count(0, MAX_NUMBER),
        default: "1000",
        doc: "The maximum number of unacknowledged messages on a link.",
        ..RecordField::NEW
    },
    RecordField {
        key: "maxHops",
        name: "max-hops",
        shape: FieldShape::Count(1, MAX_NUMBER),
        default: "1",
        doc: "The maximum number of federation links that a message can traverse; only for federated exchanges.",
        ..RecordField::NEW
    },
    RecordField {
        key: "expires",
        name: "expires",
        shape: FieldShape::Milliseconds,
        example: "1h",
        doc: "The time after which the upstream deletes the queue of a disconnected link; only for federated exchanges.",
        ..OPTIONAL
    },
    RecordField {
        key: "messageTtl",
        name: "message-ttl",
        shape: FieldShape::Milliseconds,
        example: "1h",
        doc: "The time to live of undelivered messages in the queue of a link; only for federated exchanges.",
        ..OPTIONAL
    },
    RecordField {
        key: "trustUserId",
        name: "trust-user-id",
        shape: FieldShape::Boolean,
        default: "false",
        doc: "Whether messages keep the user ID that the upstream validated.",
        ..RecordField::NEW
    },
    RecordField {
        key: "bindNowait",
        name: "bind-nowait",
        shape: FieldShape::Boolean,
        default: "false",
        doc: "Whether a link declares its bindings with `nowait`.",
        ..RecordField::NEW
    },
    RecordField {
        key: "resourceCleanupMode",
        name: "resource-cleanup-mode",
        shape: FieldShape::Words(&["default", "never"]),
        default: "default",
        doc: "`default`: a link deletes its internal queue on the upstream when it stops. `never`: the link keeps the queue.",
        ..RecordField::NEW
    },
    RecordField {
        key: "channelUseMode",
        name: "channel-use-mode",
        shape: FieldShape::Words(&["multiple", "single"]),
        default: "multiple",
        doc: "Whether a link uses `multiple` channels or a `single` channel; since RabbitMQ 3.8.13.",
        since: Some(BrokerVersion::new(3, 8, 13)),
        ..RecordField::NEW
    },
    RecordField {
        key: "queueType",
        name: "queue-type",
        shape: FieldShape::Words(&["classic", "quorum"]),
        default: "classic",
        doc: "The type of a link's queue on the upstream, for exchange federation; since RabbitMQ 3.13.1.",
        since: Some(BrokerVersion::new(3, 13, 1)),
        ..RecordField::NEW
    },
    ACK_MODE,
    RecordField { doc: "The delay before a link reconnects after a failure, in whole seconds.", ..RECONNECT_DELAY },
];

/// Returns the fields that a member of an upstream set can override: all except the URI and its password.
pub fn member_fields() -> impl Iterator<Item = &'static RecordField> {
    FIELDS.iter().filter(|field| !matches!(field.shape, FieldShape::Uris { .. } | FieldShape::Secret { .. }))
}

pub(super) const UPSTREAM: RecordRow = RecordRow {
    kind: RecordKind::Upstream,
    word: "upstream",
    what: "an upstream",
    schema: "Upstream",
    plural: "upstreams",
    section: "upstreams",
    scope: RecordScope::Vhost,
    place: Place::Section,
    doc: "The federation upstreams of the vhost, by name. A policy with `federationUpstream`, `federationUpstreamSet` or \
          `federationUpstreamPattern` connects exchanges or queues to them. Requires the `rabbitmq_federation` plugin on the broker, and the \
          `policymaker` tag.",
    removed_doc: "The names of federation upstreams to delete.",
    key: &["name"],
    is_last_key_in_body: false,
    shorthand: None,
    reserved: &[],
    owners: None,
    path: "parameters/federation-upstream",
    is_wrapped: true,
    plugins: PLUGINS,
    list: ListPath::OfKind,
    order: WriteOrder::BeforePolicies { rank: 0 },
    layout: Layout::Fields(FIELDS),
    definitions_key: "",
    component: UPSTREAM_COMPONENT,
    writer: Tag::Policymaker,
    since: None,
};

pub(super) const UPSTREAM_SET: RecordRow = RecordRow {
    kind: RecordKind::UpstreamSet,
    word: "upstream set",
    what: "an upstream set",
    schema: "UpstreamSet",
    plural: "upstream sets",
    section: "upstreamSets",
    scope: RecordScope::Vhost,
    place: Place::Section,
    doc: "The sets of federation upstreams, by name. Each member is the name of an upstream, or a mapping with `upstream` and \
          the keys to override. The built-in `all` set contains all upstreams.",
    removed_doc: "The names of upstream sets to delete.",
    path: "parameters/federation-upstream-set",
    is_wrapped: false,
    order: WriteOrder::BeforePolicies { rank: 1 },
    layout: Layout::Value(&[RecordField {
        key: "value",
        name: "value",
        shape: FieldShape::Members,
        example: "[us]",
        doc: "The members.",
        ..RecordField::NEW
    }]),
    component: UPSTREAM_SET_COMPONENT,
    ..UPSTREAM
};
