//! The table of record kinds, with one row for each kind.
//!
//! Sources: `rabbit_mgmt_wm_operator_policy`, `rabbit_policies`, `rabbit_mgmt_wm_global_parameter`, and responses from
//! RabbitMQ 3.8.9, 3.10.8, 4.0.5 and 4.3.6.

use super::federation::{UPSTREAM, UPSTREAM_COMPONENT, UPSTREAM_SET, UPSTREAM_SET_COMPONENT};
use super::permissions::{PERMISSION_FIELDS, TOPIC_PERMISSION_FIELDS};
use super::shovels::{self, SHOVEL_COMPONENT};
use super::users::{USER_FIELDS, USER_LIMITS, USERS, USERS_DOC};
use super::{
    Comparison, FieldShape, Layout, ListPath, Owners, Place, RecordField, RecordKind, RecordRow, RecordScope,
    Shorthand, Tag, WriteOrder,
};
use crate::model::version::BrokerVersion;

/// The kinds of objects that a policy can apply to.
pub const APPLY_TO: &[&str] = &["all", "queues", "exchanges", "classic_queues", "quorum_queues", "streams"];

const OPERATOR_POLICY_FIELDS: &[RecordField] = &[
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

const VHOST_LIMITS: &[RecordField] = &[
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

const GLOBAL_PARAMETER_VALUE: RecordField = RecordField {
    key: "value",
    name: "value",
    shape: FieldShape::Any,
    default: "",
    comparison: Comparison::Always,
    example: "{team: payments}",
    doc: "The value.",
    ..RecordField::NEW
};

const DELETION_PROTECTION: RecordField = RecordField {
    key: "protectFromDeletion",
    name: "value",
    shape: FieldShape::Flag,
    example: "true",
    doc: "Whether the broker refuses to delete the vhost.",
    old_name: "protected_from_deletion",
    ..RecordField::NEW
};

const PERMISSION_OWNERS: Owners =
    Owners { path: "users", field: "", word: "user", remedy: "create it first: rabbitmqctl add_user NAME" };

/// The rows, in the order of [`RecordKind`].
pub static RECORD_KINDS: &[RecordRow] = &[
    RecordRow {
        kind: RecordKind::OperatorPolicy,
        word: "operator policy",
        what: "an operator policy",
        schema: "OperatorPolicy",
        plural: "operator policies",
        section: "operatorPolicies",
        scope: RecordScope::Vhost,
        place: Place::Section,
        doc: "The operator policies, by name. They limit the values that arguments and policies can set. Writing \
              operator policies requires the `administrator` tag.",
        removed_doc: "The names of operator policies to delete.",
        key: &["name"],
        is_last_key_in_body: false,
        shorthand: None,
        reserved: &[],
        owners: None,
        path: "operator-policies",
        is_wrapped: false,
        plugins: &[],
        list: ListPath::OfKind,
        order: WriteOrder::BeforeQueues,
        layout: Layout::Fields(OPERATOR_POLICY_FIELDS),
        definitions_key: "",
        component: "operator_policy",
        writer: Tag::Administrator,
        since: None,
    },
    RecordRow {
        kind: RecordKind::VhostLimit,
        word: "vhost limit",
        what: "the limits of a vhost",
        schema: "VhostLimits",
        plural: "vhost limits",
        section: "vhostLimits",
        scope: RecordScope::Vhost,
        place: Place::Vhost("limits"),
        doc: "The limits of the vhost. topo deletes limits that are not listed. Writing limits requires the `administrator` \
              tag.",
        removed_doc: "",
        key: &[],
        is_last_key_in_body: false,
        shorthand: None,
        reserved: &[],
        owners: None,
        path: "vhost-limits",
        is_wrapped: false,
        plugins: &[],
        list: ListPath::OfKind,
        order: WriteOrder::BeforeQueues,
        layout: Layout::Settings(VHOST_LIMITS),
        definitions_key: "",
        component: "vhost-limits",
        writer: Tag::Administrator,
        since: None,
    },
    RecordRow {
        kind: RecordKind::UserLimit,
        word: "user limit",
        what: "the limits of a user",
        schema: "UserLimits",
        plural: "user limits",
        section: "userLimits",
        scope: RecordScope::Cluster,
        place: Place::Entry(&USERS, "limits"),
        doc: "The limits of the user; since RabbitMQ 3.8.10. topo deletes limits that are not listed. Writing limits \
              requires the `administrator` tag.",
        removed_doc: "",
        key: &["user"],
        is_last_key_in_body: false,
        shorthand: None,
        reserved: &[],
        owners: Some(Owners {
            path: "users",
            field: "limits",
            word: "user",
            remedy: "create it first: rabbitmqctl add_user NAME",
        }),
        path: "user-limits",
        is_wrapped: false,
        plugins: &[],
        list: ListPath::OfKind,
        order: WriteOrder::BeforeQueues,
        layout: Layout::Settings(USER_LIMITS),
        definitions_key: "",
        component: "",
        writer: Tag::Administrator,
        since: Some(BrokerVersion::new(3, 8, 10)),
    },
    RecordRow {
        kind: RecordKind::GlobalParameter,
        word: "global parameter",
        what: "a global parameter",
        schema: "GlobalParameter",
        plural: "global parameters",
        section: "globalParameters",
        scope: RecordScope::Cluster,
        place: Place::Section,
        doc: "The global runtime parameters, by name, each with its value. Writing global parameters requires the \
              `policymaker` tag.",
        removed_doc: "The names of global parameters to delete.",
        key: &["name"],
        is_last_key_in_body: false,
        shorthand: None,
        reserved: &["cluster_name", "cluster_tags", "imported_definition_hash_value", "internal_cluster_id"],
        owners: None,
        path: "global-parameters",
        is_wrapped: false,
        plugins: &[],
        list: ListPath::OfKind,
        order: WriteOrder::BeforeQueues,
        layout: Layout::Value(&[GLOBAL_PARAMETER_VALUE]),
        definitions_key: "global_parameters",
        component: "",
        writer: Tag::Policymaker,
        since: None,
    },
    RecordRow {
        kind: RecordKind::Permission,
        word: "permission",
        what: "a permission",
        schema: "Permission",
        plural: "permissions",
        section: "permissions",
        scope: RecordScope::Vhost,
        place: Place::Section,
        doc: "The permissions of users in the vhost, by user name. An omitted pattern matches no object. `all` \
              sets all three patterns to `.*`. The users must exist or be declared. Reading and writing permissions requires the \
              `administrator` tag.",
        removed_doc: "The names of users whose permissions in the vhost are deleted.",
        key: &["user"],
        is_last_key_in_body: false,
        shorthand: Some(Shorthand { words: &["all"], value: ".*" }),
        reserved: &[],
        owners: Some(PERMISSION_OWNERS),
        path: "permissions",
        is_wrapped: false,
        plugins: &[],
        list: ListPath::OfVhost,
        order: WriteOrder::AfterObjects { rank: 1 },
        layout: Layout::Fields(PERMISSION_FIELDS),
        definitions_key: "permissions",
        component: "",
        writer: Tag::Administrator,
        since: None,
    },
    RecordRow {
        kind: RecordKind::TopicPermission,
        word: "topic permission",
        what: "a topic permission",
        schema: "TopicPermission",
        plural: "topic permissions",
        section: "topicPermissions",
        scope: RecordScope::Vhost,
        place: Place::Section,
        doc: "The topic permissions, by user name and exchange. They restrict the routing keys of a user on a topic \
              exchange, in addition to `permissions`. Without a topic permission, a user may use every routing key. \
              `{write: '.*', read: '.*'}` is equivalent to no topic permission. Reading and writing topic permissions \
              requires the `administrator` tag.",
        removed_doc: "",
        key: &["user", "exchange"],
        is_last_key_in_body: true,
        shorthand: None,
        reserved: &[],
        owners: Some(PERMISSION_OWNERS),
        path: "topic-permissions",
        is_wrapped: false,
        plugins: &[],
        list: ListPath::OfVhost,
        order: WriteOrder::AfterObjects { rank: 0 },
        layout: Layout::Fields(TOPIC_PERMISSION_FIELDS),
        definitions_key: "topic_permissions",
        component: "",
        writer: Tag::Administrator,
        since: None,
    },
    RecordRow {
        kind: RecordKind::User,
        word: "user",
        what: "a user",
        schema: "User",
        plural: "users",
        section: "users",
        scope: RecordScope::Cluster,
        place: Place::Entries(&USERS),
        doc: USERS_DOC,
        removed_doc: "The names of users to delete.",
        key: &["name"],
        is_last_key_in_body: false,
        shorthand: None,
        reserved: &[],
        owners: None,
        path: "users",
        is_wrapped: false,
        plugins: &[],
        list: ListPath::OfKind,
        order: WriteOrder::First,
        layout: Layout::Fields(USER_FIELDS),
        definitions_key: "",
        component: "",
        writer: Tag::Administrator,
        since: None,
    },
    shovels::ROW,
    UPSTREAM,
    UPSTREAM_SET,
    RecordRow {
        kind: RecordKind::Parameter,
        word: "parameter",
        what: "a parameter",
        schema: "Parameter",
        plural: "parameters",
        section: "parameters",
        doc: "The runtime parameters of other plugins in the vhost, by component and name, each with its value. Requires the \
              `policymaker` tag.",
        removed_doc: "",
        key: &["component", "name"],
        // These components have sections or keys of their own.
        reserved: &[
            SHOVEL_COMPONENT,
            UPSTREAM_COMPONENT,
            UPSTREAM_SET_COMPONENT,
            "operator_policy",
            "policy",
            "vhost-limits",
        ],
        path: "parameters",
        plugins: &[],
        list: ListPath::OfAllVhosts,
        order: WriteOrder::AfterObjects { rank: 2 },
        layout: Layout::Value(&[GLOBAL_PARAMETER_VALUE]),
        component: "",
        ..UPSTREAM_SET
    },
    RecordRow {
        kind: RecordKind::DeletionProtection,
        word: "deletion protection",
        what: "the deletion protection of a vhost",
        schema: "DeletionProtection",
        plural: "deletion protection",
        section: "deletionProtection",
        scope: RecordScope::Vhost,
        place: Place::Vhost("protectFromDeletion"),
        doc: "Whether the broker refuses to delete the vhost; since RabbitMQ 4.0.6. Without this key, topo keeps the current \
              protection. Changing the protection requires the `administrator` tag.",
        removed_doc: "",
        key: &[],
        is_last_key_in_body: false,
        shorthand: None,
        reserved: &[],
        owners: None,
        path: "deletion/protection",
        is_wrapped: false,
        plugins: &[],
        list: ListPath::Vhost,
        order: WriteOrder::BeforeQueues,
        layout: Layout::Value(&[DELETION_PROTECTION]),
        definitions_key: "",
        component: "",
        writer: Tag::Administrator,
        since: Some(BrokerVersion::new(4, 0, 6)),
    },
];
