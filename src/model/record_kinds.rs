//! The table of the kinds of records, one row each. The spec, the diff, the plan, requests, the reader, exports and the
//! documentation follow these rows.
//!
//! Sources: `rabbit_mgmt_wm_operator_policy`, `rabbit_policies`, and the answers of 3.8.9, 3.10.8, 4.0.5 and 4.3.6.

use super::arguments::ArgumentValue;
use super::count::number;
use super::version::BrokerVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RecordKind {
    /// A policy of the operator, which bounds the policies of users.
    OperatorPolicy,
    /// A limit of a vhost.
    VhostLimit,
    /// A limit of a user.
    UserLimit,
}

/// A kind of records.
#[derive(Debug)]
pub struct RecordRow {
    /// The kind.
    pub kind: RecordKind,
    /// The word for one record.
    pub word: &'static str,
    /// The word with its article.
    pub what: &'static str,
    /// The name of its mapping in the JSON Schema.
    pub schema: &'static str,
    /// The word for several.
    pub plural: &'static str,
    /// The first segment of its addresses, and its word in `--prune` and `--with`.
    pub section: &'static str,
    /// The part of a broker that the records belong to.
    pub scope: RecordScope,
    /// The position of the records in a spec.
    pub place: Place,
    /// The documentation of the section.
    pub doc: &'static str,
    /// The documentation of its key in `removed`; empty if it has none.
    pub removed_doc: &'static str,
    /// The field of an entry of the broker's list that holds the name; `None` if records have no name of their own.
    pub owner: Option<&'static str>,
    /// The list of the objects that the records belong to, if these objects must exist.
    pub owners: Option<Owners>,
    /// The path of the list, without `/api/` and the vhost.
    pub path: &'static str,
    /// The conversion of settings to records.
    pub layout: Layout,
    /// The component of the runtime parameter that holds the records in a definitions file.
    pub component: &'static str,
    /// The tag that a user needs to write records.
    pub writer: Tag,
    /// The version that adds the kind; `None` if every supported version has it.
    pub since: Option<BrokerVersion>,
}

/// The part of a broker that the records of a kind belong to.
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
    /// The path of their list, without `/api/`.
    pub path: &'static str,
    /// The field of an entry of this list that holds the records in a definitions file.
    pub field: &'static str,
    /// The word for one of them.
    pub word: &'static str,
    /// The way to create a missing one.
    pub remedy: &'static str,
}

/// The position of the records of a kind in a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a mapping by name, whose key is the section.
    Section,
    /// In the mapping `vhost`, below this key. The records have no name of their own.
    Vhost(&'static str),
    /// In each entry of a section, below this key. The name of the entry is the name of the records.
    Entry(&'static Section, &'static str),
}

/// A section whose entries contain records below their keys, such as `users` with `limits`.
#[derive(Debug)]
pub struct Section {
    /// The key of the section.
    pub name: &'static str,
    /// The word for one entry, with its article.
    pub what: &'static str,
    /// The name of its mapping in the JSON Schema.
    pub schema: &'static str,
    /// The documentation of the section.
    pub doc: &'static str,
    /// An example of the section, as in a spec.
    pub example: &'static str,
}

impl PartialEq for Section {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Section {}

/// The conversion of the settings of an owner to records.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// One record that has all settings as its fields.
    Fields(&'static [RecordField]),
    /// One record for each setting, whose only field is `value`.
    Settings(&'static [RecordField]),
}

/// A field of a record.
#[derive(Clone, Copy, Debug)]
pub struct RecordField {
    /// The key in a spec.
    pub key: &'static str,
    /// The name in requests.
    pub name: &'static str,
    /// The values.
    pub shape: FieldShape,
    /// The default, as in a spec; empty if it is required.
    pub default: &'static str,
    /// An example value, as in a spec.
    pub example: &'static str,
    /// The documentation.
    pub doc: &'static str,
}

/// The values of a field.
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
    /// A number of objects. A negative one means no limit.
    Limit,
}

/// A tag of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// May write policies and parameters.
    Policymaker,
    /// May write all records.
    Administrator,
}

/// The kinds of objects that a policy can apply to.
pub const APPLY_TO: &[&str] = &["all", "queues", "exchanges", "classic_queues", "quorum_queues", "streams"];

const POLICY_FIELDS: &[RecordField] = &[
    RecordField {
        key: "pattern",
        name: "pattern",
        shape: FieldShape::Text,
        default: "",
        example: "'^orders\\.'",
        doc: "A regular expression (PCRE) over names. It is not anchored unless it contains `^` or `$`.",
    },
    RecordField {
        key: "applyTo",
        name: "apply-to",
        shape: FieldShape::Words(APPLY_TO),
        default: "all",
        example: "",
        doc: "The kinds of objects that it applies to; the last three since RabbitMQ 3.12.",
    },
    RecordField {
        key: "priority",
        name: "priority",
        shape: FieldShape::Number,
        default: "0",
        example: "",
        doc: "Of all operator policies that match an object, only the one with the highest priority applies.",
    },
    RecordField {
        key: "definition",
        name: "definition",
        shape: FieldShape::Definition,
        default: "",
        example: "{maxLengthBytes: 1GiB}",
        doc: "The settings, in camelCase or in RabbitMQ's own spelling. Only the keys that limit an object are allowed: \
              `expires`, `messageTtl`, `maxLength`, `maxLengthBytes`, `maxInMemoryLength`, `maxInMemoryBytes` and \
              `deliveryLimit`; `queueVersion` since RabbitMQ 3.11.24, `overflow` since 3.12.7, `target-group-size` \
              since 3.13.",
    },
];

const VHOST_LIMITS: &[RecordField] = &[
    RecordField {
        key: "maxConnections",
        name: "max-connections",
        shape: FieldShape::Limit,
        default: "-1",
        example: "1000",
        doc: "The number of connections that the vhost can have; -1 means no limit.",
    },
    RecordField {
        key: "maxQueues",
        name: "max-queues",
        shape: FieldShape::Limit,
        default: "-1",
        example: "500",
        doc: "The number of queues that the vhost can have; -1 means no limit. topo itself needs one for its lock.",
    },
];

const USER_LIMITS: &[RecordField] = &[
    RecordField {
        key: "maxConnections",
        name: "max-connections",
        shape: FieldShape::Limit,
        default: "-1",
        example: "200",
        doc: "The number of connections that the user can have; -1 means no limit.",
    },
    RecordField {
        key: "maxChannels",
        name: "max-channels",
        shape: FieldShape::Limit,
        default: "-1",
        example: "2000",
        doc: "The number of channels that the user can have on all its connections; -1 means no limit.",
    },
];

const USERS: Section = Section {
    name: "users",
    what: "a user",
    schema: "User",
    doc: "The users, by name. topo sets their limits, and does not create users: each must exist.",
    example: "{shop-app: {limits: {maxConnections: 200}}}",
};

/// The kinds, in the order of the enum.
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
        doc: "The operator policies, by name: they bound what arguments and policies set. Writing them requires the tag \
          `administrator`.",
        removed_doc: "Names of operator policies to delete.",
        owner: Some("name"),
        owners: None,
        path: "operator-policies",
        layout: Layout::Fields(POLICY_FIELDS),
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
        doc: "The limits of the vhost. topo deletes limits that are not listed. Writing them requires the tag `administrator`.",
        removed_doc: "",
        owner: None,
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
        doc: "The limits of the user; since RabbitMQ 3.8.10. topo deletes limits that are not listed. Writing them requires \
              the tag `administrator`.",
        removed_doc: "",
        owner: Some("user"),
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
    /// Returns the word for the tag.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policymaker => "policymaker",
            Self::Administrator => "administrator",
        }
    }
}

impl RecordKind {
    /// Returns the row.
    pub fn row(self) -> &'static RecordRow {
        match self {
            Self::OperatorPolicy => &RECORD_KINDS[0],
            Self::VhostLimit => &RECORD_KINDS[1],
            Self::UserLimit => &RECORD_KINDS[2],
        }
    }

    /// Returns the kind with this section.
    pub fn of_section(section: &str) -> Option<Self> {
        RECORD_KINDS.iter().find(|row| row.section == section).map(|row| row.kind)
    }
}

impl RecordRow {
    /// Returns the kinds of a scope.
    pub fn of_scope(scope: RecordScope) -> impl Iterator<Item = &'static Self> {
        RECORD_KINDS.iter().filter(move |row| row.scope == scope)
    }

    /// Returns the kinds that `--prune` can name: those of which a spec can leave records unmanaged.
    pub fn prunable() -> impl Iterator<Item = &'static Self> {
        RECORD_KINDS.iter().filter(|row| row.owner.is_some())
    }

    /// Formats a number of records: `1 operator policy`, `2 operator policies`.
    pub fn counted(&self, many: usize) -> String {
        format!("{} {}", number(many as u64), if many == 1 { self.word } else { self.plural })
    }

    /// Returns the settings of a name.
    pub fn settings(&self) -> &'static [RecordField] {
        match self.layout {
            Layout::Fields(fields) | Layout::Settings(fields) => fields,
        }
    }
}

impl RecordField {
    /// Returns the value of an absent field; `None` if the field is required.
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
