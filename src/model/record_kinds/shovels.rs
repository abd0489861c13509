//! The shovel row in the table of record kinds.
//!
//! Sources: `rabbit_shovel_parameters`, `rabbit_amqp091_shovel`, `rabbit_amqp10_shovel` and `rabbit_local_shovel` in
//! RabbitMQ 3.8 to 4.3, and responses from 3.8.9, 3.10.8, 4.0.5 and 4.3.6.

use super::{
    Comparison, FieldShape, Layout, ListPath, Place, RecordField, RecordKind, RecordRow, RecordScope, Tag, WriteOrder,
};
use crate::model::version::BrokerVersion;

/// The acknowledgement modes of shovels and upstreams.
pub(super) const ACK_MODES: &[&str] = &["on-confirm", "on-publish", "no-ack"];
/// The protocols of a shovel.
const PROTOCOLS: &[&str] = &["amqp091", AMQP_1_0, LOCAL];
/// The largest number that a numeric field accepts.
pub(super) const MAX_NUMBER: i64 = u32::MAX as i64;
/// The group of the source fields of a shovel. In a spec, the group is a mapping.
pub const SOURCE: &str = "source";
/// The group of the destination fields of a shovel. In a spec, the group is a mapping.
pub const DESTINATION: &str = "destination";

/// The component of a dynamic shovel's runtime parameter.
pub(super) const SHOVEL_COMPONENT: &str = "shovel";

/// The placeholder for a current password that does not match the spec.
pub const PASSWORD_IS_SET: &str = "set";
/// The placeholder for the current passwords of URIs that have different passwords.
pub const PASSWORDS_DIFFER: &str = "set (several)";
/// The first version with the `local` protocol.
pub const LOCAL_PROTOCOL_SINCE: BrokerVersion = BrokerVersion::new(4, 2, 0);
/// The protocol that addresses queues and exchanges with `address`.
pub const AMQP_1_0: &str = "amqp10";
/// The protocol for objects on the same broker.
pub const LOCAL: &str = "local";

/// An optional field without a default.
const OPTIONAL: RecordField = RecordField { comparison: Comparison::Optional, ..RecordField::NEW };
const OF_SOURCE: RecordField = RecordField { group: SOURCE, ..OPTIONAL };
const OF_DESTINATION: RecordField = RecordField { group: DESTINATION, ..OPTIONAL };

pub(super) const ACK_MODE: RecordField = RecordField {
    key: "ackMode",
    name: "ack-mode",
    shape: FieldShape::Words(ACK_MODES),
    default: "on-confirm",
    doc: "When a message is acknowledged at the source: `on-confirm`, after the destination confirms it; `on-publish`, after it is \
          published; `no-ack`, when it is delivered. Messages can be lost with `on-publish` and `no-ack`.",
    ..RecordField::NEW
};

pub(super) const RECONNECT_DELAY: RecordField = RecordField {
    key: "reconnectDelay",
    name: "reconnect-delay",
    shape: FieldShape::Seconds,
    default: "5s",
    example: "10s",
    doc: "The delay before the shovel reconnects after a failure, in whole seconds. `0s`: the shovel does not reconnect.",
    ..RecordField::NEW
};

const FIELDS: &[RecordField] = &[
    RecordField {
        key: "uri",
        name: "src-uri",
        shape: FieldShape::Uris { has_default_vhost: true },
        example: "amqps://sync@old.example/shop",
        doc: "The URI of the source, without a password. If this is a list, the shovel connects to one of the URIs. `{env: NAME}` or \
              `{file: PATH}` reads the complete URI, including its password. The default is this vhost on this broker.",
        ..OF_SOURCE
    },
    RecordField {
        key: "password",
        name: "src-password",
        shape: FieldShape::Secret { can_be_none: false },
        example: "{env: OLD_PASSWORD}",
        doc: "The password of the user in `uri`. topo percent-encodes it, and adds it to each URI that contains a user.",
        ..OF_SOURCE
    },
    RecordField {
        key: "protocol",
        name: "src-protocol",
        shape: FieldShape::Words(PROTOCOLS),
        default: "amqp091",
        comparison: Comparison::Always,
        doc: "The protocol: `amqp091`; `amqp10`, with `address`; or `local`, since RabbitMQ 4.2, for objects on this broker.",
        ..OF_SOURCE
    },
    RecordField {
        key: "queue",
        name: "src-queue",
        example: "orders.work",
        doc: "The queue that the shovel consumes from. If the queue does not exist, the shovel declares it. `queueArguments` \
              can set its type; the default is the default queue type of the vhost.",
        ..OF_SOURCE
    },
    RecordField {
        key: "exchange",
        name: "src-exchange",
        example: "orders",
        doc: "The exchange to consume from, instead of `queue`. The shovel binds a queue to it.",
        ..OF_SOURCE
    },
    RecordField {
        key: "routingKey",
        name: "src-exchange-key",
        shape: FieldShape::BindingKey,
        example: "'order.#'",
        doc: "The routing key of the binding to `exchange`.",
        ..OF_SOURCE
    },
    RecordField {
        key: "address",
        name: "src-address",
        example: "/queues/orders.work",
        doc: "The address of the source, for the `amqp10` protocol.",
        ..OF_SOURCE
    },
    RecordField {
        key: "queueArguments",
        name: "src-queue-args",
        shape: FieldShape::Arguments,
        example: "{x-queue-type: quorum}",
        doc: "The arguments with which the shovel declares `queue`; since RabbitMQ 3.8.12.",
        since: Some(BrokerVersion::new(3, 8, 12)),
        ..OF_SOURCE
    },
    RecordField {
        key: "consumerArguments",
        name: "src-consumer-args",
        shape: FieldShape::Table,
        example: "{x-priority: -1}",
        doc: "The arguments of the shovel's consumer; since RabbitMQ 3.9.",
        since: Some(BrokerVersion::new(3, 9, 0)),
        ..OF_SOURCE
    },
    RecordField {
        key: "consumerName",
        name: "src-consumer-name",
        example: "shovel-orders",
        doc: "The tag of the shovel's consumer; since RabbitMQ 4.3.",
        since: Some(BrokerVersion::new(4, 3, 0)),
        ..OF_SOURCE
    },
    RecordField {
        key: "prefetch",
        name: "src-prefetch-count",
        old_name: "prefetch-count",
        shape: FieldShape::Count(0, MAX_NUMBER),
        default: "1000",
        comparison: Comparison::Always,
        doc: "The maximum number of unacknowledged messages.",
        ..OF_SOURCE
    },
    RecordField {
        key: "predeclared",
        name: "src-predeclared",
        shape: FieldShape::Boolean,
        example: "true",
        doc: "Whether the shovel waits for `queue` instead of declaring it; since RabbitMQ 4.0. Without this key, the \
              setting of the plugin applies.",
        since: Some(BrokerVersion::new(4, 0, 0)),
        ..OF_SOURCE
    },
    RecordField {
        key: "uri",
        name: "dest-uri",
        shape: FieldShape::Uris { has_default_vhost: true },
        example: "amqps://sync@new.example/shop",
        doc: "The URI of the destination, in the same form as the `uri` of the source. The default is this vhost on this \
              broker.",
        ..OF_DESTINATION
    },
    RecordField {
        key: "password",
        name: "dest-password",
        shape: FieldShape::Secret { can_be_none: false },
        example: "{env: NEW_PASSWORD}",
        doc: "The password of the user in `uri`. topo percent-encodes it, and adds it to each URI that contains a user.",
        ..OF_DESTINATION
    },
    RecordField {
        key: "protocol",
        name: "dest-protocol",
        shape: FieldShape::Words(PROTOCOLS),
        default: "amqp091",
        comparison: Comparison::Always,
        doc: "The protocol: `amqp091`; `amqp10`, with `address`; or `local`, since RabbitMQ 4.2, for an object on this broker.",
        ..OF_DESTINATION
    },
    RecordField {
        key: "queue",
        name: "dest-queue",
        example: "orders.copy",
        doc: "The queue that the shovel publishes to. If the queue does not exist, the shovel declares it. `queueArguments` \
              can set its type; the default is the default queue type of the vhost.",
        ..OF_DESTINATION
    },
    RecordField {
        key: "exchange",
        name: "dest-exchange",
        example: "orders",
        doc: "The exchange that the shovel publishes to, instead of `queue`.",
        ..OF_DESTINATION
    },
    RecordField {
        key: "routingKey",
        name: "dest-exchange-key",
        example: "orders",
        doc: "The routing key of the published messages. Without this key, messages keep their routing keys.",
        ..OF_DESTINATION
    },
    RecordField {
        key: "address",
        name: "dest-address",
        example: "/exchanges/orders",
        doc: "The address of the destination, for the `amqp10` protocol.",
        ..OF_DESTINATION
    },
    RecordField {
        key: "queueArguments",
        name: "dest-queue-args",
        shape: FieldShape::Arguments,
        example: "{x-queue-type: quorum}",
        doc: "The arguments with which the shovel declares `queue`; since RabbitMQ 3.8.12.",
        since: Some(BrokerVersion::new(3, 8, 12)),
        ..OF_DESTINATION
    },
    RecordField {
        key: "predeclared",
        name: "dest-predeclared",
        shape: FieldShape::Boolean,
        example: "true",
        doc: "Whether the shovel waits for `queue` instead of declaring it; since RabbitMQ 4.0. Without this key, the \
              setting of the plugin applies.",
        since: Some(BrokerVersion::new(4, 0, 0)),
        ..OF_DESTINATION
    },
    RecordField {
        key: "publishProperties",
        name: "dest-publish-properties",
        old_name: "publish-properties",
        shape: FieldShape::Table,
        example: "{delivery_mode: 2}",
        doc: "The properties that the shovel sets on each message, in RabbitMQ's spelling.",
        ..OF_DESTINATION
    },
    RecordField {
        key: "addForwardHeaders",
        name: "dest-add-forward-headers",
        old_name: "add-forward-headers",
        shape: FieldShape::Boolean,
        default: "false",
        comparison: Comparison::Always,
        doc: "Whether the shovel adds the `x-shovelled` header, which names the shovel, the source and the destination.",
        ..OF_DESTINATION
    },
    RecordField {
        key: "addTimestampHeader",
        name: "dest-add-timestamp-header",
        old_name: "add-timestamp-header",
        shape: FieldShape::Boolean,
        default: "false",
        comparison: Comparison::Always,
        doc: "Whether the shovel adds the `x-shovelled-timestamp` header.",
        ..OF_DESTINATION
    },
    RecordField {
        key: "properties",
        name: "dest-properties",
        shape: FieldShape::Table,
        example: "{content_type: text/plain}",
        doc: "The AMQP 1.0 properties that the shovel sets, for the `amqp10` protocol.",
        ..OF_DESTINATION
    },
    RecordField {
        key: "applicationProperties",
        name: "dest-application-properties",
        shape: FieldShape::Table,
        example: "{origin: old}",
        doc: "The application properties that the shovel sets, for the `amqp10` protocol.",
        ..OF_DESTINATION
    },
    RecordField {
        key: "messageAnnotations",
        name: "dest-message-annotations",
        shape: FieldShape::Table,
        example: "{x-origin: old}",
        doc: "The message annotations that the shovel sets, for the `amqp10` protocol.",
        ..OF_DESTINATION
    },
    ACK_MODE,
    RECONNECT_DELAY,
];

pub(super) const ROW: RecordRow = RecordRow {
    kind: RecordKind::Shovel,
    word: "shovel",
    what: "a shovel",
    schema: "Shovel",
    plural: "shovels",
    section: "shovels",
    scope: RecordScope::Vhost,
    place: Place::Section,
    doc: "The dynamic shovels of the vhost, by name. A shovel moves messages from a source to a destination. Requires the \
          `rabbitmq_shovel` plugin on the broker, and the `policymaker` tag.",
    removed_doc: "The names of shovels to delete.",
    key: &["name"],
    is_last_key_in_body: false,
    shorthand: None,
    reserved: &[],
    owners: None,
    path: "parameters/shovel",
    is_wrapped: true,
    plugins: &["rabbitmq_shovel"],
    list: ListPath::OfKind,
    order: WriteOrder::AfterObjects { rank: 2 },
    layout: Layout::Fields(FIELDS),
    definitions_key: "",
    component: SHOVEL_COMPONENT,
    writer: Tag::Policymaker,
    since: None,
};
