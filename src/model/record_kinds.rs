//! The table of record kinds, with one row for each kind. All code that reads, compares, plans, writes, exports or
//! documents records uses these rows.
//!
//! Sources: `rabbit_mgmt_wm_operator_policy`, `rabbit_policies`, and responses of 3.8.9, 3.10.8, 4.0.5 and 4.3.6.

use super::arguments::ArgumentValue;
use super::count::number;
use super::version::BrokerVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RecordKind {
    /// An operator policy, which limits the effective values of arguments and policies.
    OperatorPolicy,
    /// A limit of a vhost.
    VhostLimit,
    /// A limit of a user.
    UserLimit,
}

/// The properties of a record kind: one row of the table.
#[derive(Debug)]
pub struct RecordRow {
    /// The kind.
    pub kind: RecordKind,
    /// The noun for one record: `operator policy`.
    pub word: &'static str,
    /// The description of the kind's mapping in diagnostics, with an article: `an operator policy`.
    pub what: &'static str,
    /// The name of the kind's mapping in the JSON Schema.
    pub schema: &'static str,
    /// The plural of the noun: `operator policies`.
    pub plural: &'static str,
    /// The first segment of the addresses of these records, and the name of the kind in `--prune` and `--with`.
    pub section: &'static str,
    /// The scope that the records belong to.
    pub scope: RecordScope,
    /// The place of the records in a spec.
    pub place: Place,
    /// The documentation of the spec key that contains the records.
    pub doc: &'static str,
    /// The documentation of the kind's key in `removed`; empty if `removed` has no such key.
    pub removed_doc: &'static str,
    /// The field that contains the name, in an entry of the broker's list; `None` if records of this kind have no
    /// names.
    pub name_field: Option<&'static str>,
    /// The objects that the records belong to, if these objects must exist.
    pub owners: Option<Owners>,
    /// The path of the broker's list of these records, without `/api/` and the vhost.
    pub path: &'static str,
    /// The relation between settings and records.
    pub layout: Layout,
    /// The component of the runtime parameter that contains the records in a definitions file; empty if there is none.
    pub component: &'static str,
    /// The user tag that is required to write these records.
    pub writer: Tag,
    /// The first RabbitMQ version with this kind; `None` if every supported version has it.
    pub since: Option<BrokerVersion>,
}

/// The scope that the records of a kind belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordScope {
    /// A vhost.
    Vhost,
    /// The whole cluster.
    Cluster,
}

/// The objects that records belong to, such as the users that have limits.
#[derive(Clone, Copy, Debug)]
pub struct Owners {
    /// The path of the broker's list of these objects, without `/api/`.
    pub path: &'static str,
    /// The field of such an object that contains the records in a definitions file.
    pub field: &'static str,
    /// The noun for one such object.
    pub word: &'static str,
    /// The hint for a missing object, which describes how to create it.
    pub remedy: &'static str,
}

/// The place of the records of a kind in a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a top-level mapping from names to records. Its key is [`RecordRow::section`].
    Section,
    /// In the `vhost` mapping, under this key. The records have no names.
    Vhost(&'static str),
    /// In each entry of a section, under this key. The name of the entry is the name of the records.
    Entry(&'static Section, &'static str),
}

/// A section whose entries contain records, such as `users` with `limits`.
#[derive(Debug)]
pub struct Section {
    /// The key of the section.
    pub name: &'static str,
    /// The description of one entry in diagnostics, with an article: `a user`.
    pub what: &'static str,
    /// The name of an entry's mapping in the JSON Schema.
    pub schema: &'static str,
    /// The documentation of the section.
    pub doc: &'static str,
    /// An example value of the section, as written in a spec.
    pub example: &'static str,
}

impl PartialEq for Section {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Section {}

/// The relation between settings and records.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// All settings are fields of one record.
    Fields(&'static [RecordField]),
    /// Each setting is one record. The only field of the record is `value`.
    Settings(&'static [RecordField]),
}

/// A field of a record.
#[derive(Clone, Copy, Debug)]
pub struct RecordField {
    /// The key in a spec.
    pub key: &'static str,
    /// The name in requests.
    pub name: &'static str,
    /// The values that the field accepts.
    pub shape: FieldShape,
    /// The default, as written in a spec; empty if the field is required.
    pub default: &'static str,
    /// An example value, as written in a spec; empty if none is needed.
    pub example: &'static str,
    /// The documentation of the key.
    pub doc: &'static str,
}

/// The values that a field accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldShape {
    /// Any string.
    Text,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Any number.
    Number,
    /// Policy keys with their values.
    Definition,
    /// A maximum number of objects. -1 means no limit. Brokers may list other negative numbers, which mean the same.
    Limit,
}

/// A user tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// The tag that allows a user to write policies and runtime parameters.
    Policymaker,
    /// The tag that allows a user to write all records.
    Administrator,
}

/// The kinds of objects that a policy can apply to.
pub const APPLY_TO: &[&str] = &["all", "queues", "exchanges", "classic_queues", "quorum_queues", "streams"];

const OPERATOR_POLICY_FIELDS: &[RecordField] = &[
    RecordField {
        key: "pattern",
        name: "pattern",
        shape: FieldShape::Text,
        default: "",
        example: "'^orders\\.'",
        doc: "A regular expression (PCRE) that object names must match. It is not anchored unless it contains `^` or `$`.",
    },
    RecordField {
        key: "applyTo",
        name: "apply-to",
        shape: FieldShape::Words(APPLY_TO),
        default: "all",
        example: "",
        doc: "The kinds of objects that the policy applies to. `classic_queues`, `quorum_queues` and `streams` require \
              RabbitMQ 3.12.",
    },
    RecordField {
        key: "priority",
        name: "priority",
        shape: FieldShape::Number,
        default: "0",
        example: "",
        doc: "The priority. If several operator policies match an object, the one with the highest priority applies.",
    },
    RecordField {
        key: "definition",
        name: "definition",
        shape: FieldShape::Definition,
        default: "",
        example: "{maxLengthBytes: 1GiB}",
        doc: "The settings, in camelCase or in RabbitMQ's spelling. Only the keys that limit an object are allowed: \
              `expires`, `messageTtl`, `maxLength`, `maxLengthBytes`, `maxInMemoryLength`, `maxInMemoryBytes` and \
              `deliveryLimit`; also `queueVersion` since RabbitMQ 3.11.24, `overflow` since 3.12.7, and \
              `target-group-size` since 3.13.",
    },
];

const VHOST_LIMITS: &[RecordField] = &[
    RecordField {
        key: "maxConnections",
        name: "max-connections",
        shape: FieldShape::Limit,
        default: "-1",
        example: "1000",
        doc: "The maximum number of connections to the vhost; -1 means no limit.",
    },
    RecordField {
        key: "maxQueues",
        name: "max-queues",
        shape: FieldShape::Limit,
        default: "-1",
        example: "500",
        doc: "The maximum number of queues in the vhost; -1 means no limit. topo needs one queue for its lock.",
    },
];

const USER_LIMITS: &[RecordField] = &[
    RecordField {
        key: "maxConnections",
        name: "max-connections",
        shape: FieldShape::Limit,
        default: "-1",
        example: "200",
        doc: "The maximum number of connections of the user; -1 means no limit.",
    },
    RecordField {
        key: "maxChannels",
        name: "max-channels",
        shape: FieldShape::Limit,
        default: "-1",
        example: "2000",
        doc: "The maximum number of channels of the user, on all connections together; -1 means no limit.",
    },
];

const USERS: Section = Section {
    name: "users",
    what: "a user",
    schema: "User",
    doc: "The limits of users, by user name. topo does not create users, so each user must exist.",
    example: "{shop-app: {limits: {maxConnections: 200}}}",
};

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
        name_field: Some("name"),
        owners: None,
        path: "operator-policies",
        layout: Layout::Fields(OPERATOR_POLICY_FIELDS),
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
        name_field: None,
        owners: None,
        path: "vhost-limits",
        layout: Layout::Settings(VHOST_LIMITS),
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
        name_field: Some("user"),
        owners: Some(Owners {
            path: "users",
            field: "limits",
            word: "user",
            remedy: "create it first: rabbitmqctl add_user NAME",
        }),
        path: "user-limits",
        layout: Layout::Settings(USER_LIMITS),
        component: "",
        writer: Tag::Administrator,
        since: Some(BrokerVersion::new(3, 8, 10)),
    },
];

impl Tag {
    /// Returns RabbitMQ's name for the tag.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policymaker => "policymaker",
            Self::Administrator => "administrator",
        }
    }
}

impl RecordKind {
    /// Returns the row of the kind.
    pub fn row(self) -> &'static RecordRow {
        match self {
            Self::OperatorPolicy => &RECORD_KINDS[0],
            Self::VhostLimit => &RECORD_KINDS[1],
            Self::UserLimit => &RECORD_KINDS[2],
        }
    }

    /// Returns the kind with this section; `None` for an unknown section.
    pub fn of_section(section: &str) -> Option<Self> {
        RECORD_KINDS.iter().find(|row| row.section == section).map(|row| row.kind)
    }
}

impl RecordRow {
    /// Returns the rows of all kinds with this scope.
    pub fn of_scope(scope: RecordScope) -> impl Iterator<Item = &'static Self> {
        RECORD_KINDS.iter().filter(move |row| row.scope == scope)
    }

    /// Returns the rows of the kinds that `--prune` accepts. Records of the other kinds have no names, and topo always
    /// manages all or none of them.
    pub fn prunable() -> impl Iterator<Item = &'static Self> {
        RECORD_KINDS.iter().filter(|row| row.name_field.is_some())
    }

    /// Formats a number of records: `1 operator policy`, `2 operator policies`.
    pub fn format_count(&self, many: usize) -> String {
        format!("{} {}", number(many as u64), if many == 1 { self.word } else { self.plural })
    }

    /// Returns the settings of the kind.
    pub fn settings(&self) -> &'static [RecordField] {
        match self.layout {
            Layout::Fields(fields) | Layout::Settings(fields) => fields,
        }
    }
}

impl RecordField {
    /// Returns the default value of the field; `None` if the field is required.
    pub fn default_value(&self) -> Option<ArgumentValue> {
        match self.shape {
            _ if self.default.is_empty() => None,
            FieldShape::Number | FieldShape::Limit => self.default.parse().ok().map(ArgumentValue::Integer),
            FieldShape::Text | FieldShape::Words(_) | FieldShape::Definition => Some(self.default.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_match_their_kinds() {
        for row in RECORD_KINDS {
            assert_eq!(row.kind.row().section, row.section);
            assert_eq!(RecordKind::of_section(row.section), Some(row.kind));
        }
    }
}
