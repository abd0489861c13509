//! The fields and limits of users in the table of record kinds.

use super::{Comparison, FieldShape, RecordField, Section};

/// The password hashing algorithms. RabbitMQ calls them `rabbit_password_hashing_sha256` etc.
pub const HASHING_ALGORITHMS: &[&str] = &["sha256", "sha512", "md5"];

pub(super) const USER_LIMITS: &[RecordField] = &[
    RecordField {
        key: "maxConnections",
        name: "max-connections",
        shape: FieldShape::Limit,
        default: "-1",
        comparison: Comparison::Always,
        example: "200",
        doc: "The maximum number of connections of the user; -1 means no limit.",
        ..RecordField::NEW
    },
    RecordField {
        key: "maxChannels",
        name: "max-channels",
        shape: FieldShape::Limit,
        default: "-1",
        comparison: Comparison::Always,
        example: "2000",
        doc: "The maximum number of channels of the user, across all connections; -1 means no limit.",
        ..RecordField::NEW
    },
];

pub(super) const USERS_DOC: &str = "The users, by name. Reading and writing users requires the `administrator` tag.";

pub(super) const USERS: Section = Section {
    name: "users",
    what: "a user",
    schema: "User",
    doc: USERS_DOC,
    example: "{shop-app: {password: {env: SHOP_APP_PASSWORD}}}",
};

pub(super) const USER_FIELDS: &[RecordField] = &[
    RecordField {
        key: "tags",
        name: "tags",
        shape: FieldShape::Tags,
        default: "",
        comparison: Comparison::IfSet,
        example: "[monitoring]",
        doc: "The tags of the user: `management`, `policymaker`, `monitoring`, `administrator`, or any other tags. Without \
              this key, topo keeps the current tags, and a new user has no tags.",
        ..RecordField::NEW
    },
    RecordField {
        key: "password",
        name: "password",
        shape: FieldShape::Secret { can_be_none: true },
        default: "",
        comparison: Comparison::IfSet,
        example: "{env: SHOP_APP_PASSWORD}",
        doc: "The password: `{env: NAME}` reads an environment variable, and `{file: PATH}` reads a file. topo compares the \
              password with the hash on the broker, and sends the password only if it does not match the hash. `none`: the \
              broker stores no password, and the user authenticates with a certificate, LDAP or OAuth 2.",
        ..RecordField::NEW
    },
    RecordField {
        key: "initialPassword",
        name: "initialPassword",
        shape: FieldShape::Secret { can_be_none: false },
        default: "",
        comparison: Comparison::Never,
        example: "{env: SHOP_REPORTS_PASSWORD}",
        doc: "The password of a new user. topo does not compare it, so the password of an existing user does not change.",
        ..RecordField::NEW
    },
    RecordField {
        key: "passwordHash",
        name: "passwordHash",
        shape: FieldShape::Secret { can_be_none: false },
        default: "",
        comparison: Comparison::IfSet,
        example: "{env: SHOP_LEGACY_HASH}",
        doc: "The hash of the password, as `rabbitmqctl hash_password` prints it: the salt and the digest in Base64. The \
              broker does not apply its credential validator to a hash.",
        ..RecordField::NEW
    },
    RecordField {
        key: "hashingAlgorithm",
        name: "hashingAlgorithm",
        shape: FieldShape::Words(HASHING_ALGORITHMS),
        default: "",
        comparison: Comparison::IfSet,
        example: "sha512",
        doc: "The hashing algorithm used for `passwordHash`. The default is `sha256`.",
        ..RecordField::NEW
    },
];
