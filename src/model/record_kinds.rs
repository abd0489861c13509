//! The properties of record kinds. All code that reads, compares, plans, writes, exports or documents records uses the
//! rows of the [table](RECORD_KINDS).

mod federation;
mod fields;
mod operator_policies;
mod permissions;
mod reference;
mod shovels;
mod table;
mod users;
mod vhosts;

use super::count::number;
use super::version::BrokerVersion;
pub use federation::{MEMBER_NAME, member_fields};
pub use fields::{Comparison, FieldShape, RecordField};
pub use operator_policies::APPLY_TO;
pub use reference::reference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use shovels::{AMQP_1_0, DESTINATION, LOCAL, LOCAL_PROTOCOL_SINCE, PASSWORD_IS_SET, PASSWORDS_DIFFER, SOURCE};
pub use table::RECORD_KINDS;
pub use users::HASHING_ALGORITHMS;

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
    /// A global runtime parameter.
    GlobalParameter,
    /// The permissions of a user in a vhost.
    Permission,
    /// A restriction on the routing keys that a user may use on an exchange.
    TopicPermission,
    /// A user in the broker's internal database.
    User,
    /// A dynamic shovel.
    Shovel,
    /// A federation upstream.
    Upstream,
    /// A set of federation upstreams.
    UpstreamSet,
    /// A runtime parameter of any other component.
    Parameter,
    /// The deletion protection of a vhost.
    DeletionProtection,
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
    /// The position of the records in a spec.
    pub place: Place,
    /// The documentation of the spec key that contains the records.
    pub doc: &'static str,
    /// The documentation of the kind's key in `removed`; empty if `removed` has no such key.
    pub removed_doc: &'static str,
    /// The fields of an entry in the broker's list that contain the segments of the key; empty if records of this kind
    /// have no names. The first segment is the name. In a spec, each segment is the key of a nested mapping.
    pub key: &'static [&'static str],
    /// True if a request that writes a record contains the last segment of the key in its body instead of in its path.
    pub is_last_key_in_body: bool,
    /// The word that replaces the mapping of an entry, if there is one.
    pub shorthand: Option<Shorthand>,
    /// The reserved names. topo ignores records with these names, and a spec cannot declare them.
    pub reserved: &'static [&'static str],
    /// The objects that the records belong to, if these objects must exist.
    pub owners: Option<Owners>,
    /// The path of these records, without `/api/`, the vhost and the key.
    pub path: &'static str,
    /// True if the fields of the record are the members of the `value` object of a runtime parameter.
    pub is_wrapped: bool,
    /// The plugins, the most common one first. At least one of the plugins must be enabled before topo can write these
    /// records. Empty if no plugin is required.
    pub plugins: &'static [&'static str],
    /// The API path that lists these records.
    pub list: ListPath,
    /// The position of creations, changes and deletions in a plan.
    pub order: WriteOrder,
    /// How settings map to records.
    pub layout: Layout,
    /// The key of the list that contains the records in a definitions file; empty if there is no such list.
    pub definitions_key: &'static str,
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

/// The API path that lists the records of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListPath {
    /// [`RecordRow::path`], followed by the vhost if the kind belongs to a vhost.
    OfKind,
    /// `vhosts/VHOST`, followed by [`RecordRow::path`].
    OfVhost,
    /// `vhosts/VHOST` alone. The response contains the fields of the kind's only record. A POST to [`RecordRow::path`]
    /// below the vhost creates the record.
    Vhost,
    /// [`RecordRow::path`] alone, which lists the records of all vhosts. The path of a record contains, in this order:
    /// the first segment of its key, the vhost, the other segments.
    OfAllVhosts,
}

/// The position, in a plan, of the steps that write records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// Creations and changes precede those of all other objects, which can require these records. Deletions follow all
    /// other deletions.
    First,
    /// Creations and changes precede those of policies, which can use these records. Deletions follow all other
    /// deletions. Kinds with a lower rank are created and changed earlier, and deleted later.
    BeforePolicies {
        /// The rank.
        rank: u8,
    },
    /// Creations and changes precede those of queues. Deletions follow all other deletions.
    BeforeQueues,
    /// Creations and changes follow all creations and changes of other objects. Deletions precede all other deletions.
    /// Therefore, applications find all objects as soon as they have permissions, and do not lose an object before they
    /// lose the permissions. Kinds with a lower rank are created and changed earlier, and deleted later.
    AfterObjects {
        /// The rank.
        rank: u8,
    },
}

/// A word that a spec accepts instead of an entry's mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shorthand {
    /// The word, as a one-element list for the grammar.
    pub words: &'static [&'static str; 1],
    /// The value of every field.
    pub value: &'static str,
}

/// The objects that records belong to, such as the users that have limits.
#[derive(Clone, Copy, Debug)]
pub struct Owners {
    /// The API path that lists these objects, without `/api/`.
    pub path: &'static str,
    /// The field of such an object that contains the records in a definitions file; empty if there is none.
    pub field: &'static str,
    /// The noun for one such object.
    pub word: &'static str,
    /// The hint for a missing object, which describes how to create it.
    pub remedy: &'static str,
}

/// The position of a kind's records in a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a top-level mapping from names to records. Its key is [`RecordRow::section`].
    Section,
    /// In the `vhost` mapping, under this key. The records have no names.
    Vhost(&'static str),
    /// In each entry of a section, under this key. The name of the entry is the name of the records.
    Entry(&'static Section, &'static str),
    /// The entries of a section themselves. The entries can also contain records of other kinds.
    Entries(&'static Section),
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

/// How settings map to records.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// All settings are fields of one record.
    Fields(&'static [RecordField]),
    /// Each setting is one record. The only field of the record is `value`.
    Settings(&'static [RecordField]),
    /// The entry in a spec is the value of the record's only field, `value`.
    Value(&'static [RecordField; 1]),
}

/// A user tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// The tag that allows a user to write policies and runtime parameters.
    Policymaker,
    /// The tag that allows a user to write all records.
    Administrator,
}

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
            Self::GlobalParameter => &RECORD_KINDS[3],
            Self::Permission => &RECORD_KINDS[4],
            Self::TopicPermission => &RECORD_KINDS[5],
            Self::User => &RECORD_KINDS[6],
            Self::Shovel => &RECORD_KINDS[7],
            Self::Upstream => &RECORD_KINDS[8],
            Self::UpstreamSet => &RECORD_KINDS[9],
            Self::Parameter => &RECORD_KINDS[10],
            Self::DeletionProtection => &RECORD_KINDS[11],
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
        RECORD_KINDS.iter().filter(|row| !row.key.is_empty())
    }

    /// Formats a count of records: `1 operator policy`, `2 operator policies`.
    pub fn format_count(&self, count: usize) -> String {
        format!("{} {}", number(count as u64), if count == 1 { self.word } else { self.plural })
    }

    /// Returns true if the kind belongs to vhosts and its records belong to users. In that case, the globs in the
    /// cluster document apply to the user names, and the globs in the vhost document do not apply.
    pub fn is_named_after_users(&self) -> bool {
        self.scope == RecordScope::Vhost && self.owners.is_some()
    }

    /// Returns true if the records contain AMQP URIs, which can contain passwords.
    pub fn has_uris(&self) -> bool {
        self.settings().iter().any(|field| matches!(field.shape, FieldShape::Uris { .. }))
    }

    /// Returns true if a spec can list the records of this kind under `removed`.
    pub fn is_removable(&self) -> bool {
        !self.removed_doc.is_empty()
    }

    /// Returns the settings of the kind.
    pub fn settings(&self) -> &'static [RecordField] {
        match self.layout {
            Layout::Fields(fields) | Layout::Settings(fields) => fields,
            Layout::Value(field) => field,
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
