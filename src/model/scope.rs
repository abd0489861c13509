//! The desired state of a vhost: its topology, its scope (the objects that topo may report, change and delete), and the
//! positions of its settings in the spec.

use super::names::{ExchangeName, QueueName, VhostName};
use super::object::{ObjectId, ObjectKind};
use super::record::RecordId;
use super::record_kinds::RecordKind;
use super::requirements::Requirements;
use super::retry::Family;
use super::topology::Topology;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The objects that a spec manages, protects and ignores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// The name that the cluster must have; `None` if the spec does not set a cluster name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    /// The version, plugins and feature flags that the cluster must have.
    #[serde(default, skip_serializing_if = "Requirements::is_empty")]
    pub requires: Requirements,
    /// Globs for the names that this spec manages, in addition to the names that it declares.
    pub owns: Vec<Glob>,
    /// Globs for the names of objects that topo never deletes or recreates, regardless of flags.
    pub protect: Vec<Glob>,
    /// Globs for the names of objects that topo does not manage or report.
    pub ignore: Vec<Glob>,
    /// The globs and declarations of the cluster document that concern users. They apply to the records of users in a
    /// vhost, such as permissions. Without a cluster document, they are empty. For the cluster itself, only
    /// `with_permissions` is set.
    #[serde(default, skip_serializing_if = "UserScope::is_empty")]
    pub users: UserScope,
    /// The record kinds that have a section in the spec, each with its declared names. A section can be empty. topo
    /// reports unmanaged records of these kinds only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sections: BTreeMap<RecordKind, BTreeSet<String>>,
    /// The streams of each declared super stream, by exchange.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub super_streams: BTreeMap<ExchangeName, BTreeSet<QueueName>>,
    /// Objects to delete, if they exist.
    #[serde(default)]
    pub removed: BTreeSet<ObjectId>,
    /// External objects. They must exist, and topo never changes them.
    #[serde(default)]
    pub external: BTreeSet<ObjectId>,
    /// External objects that may be missing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub optional_externals: BTreeSet<ObjectId>,
    /// External dead-letter queues, each with the exchange to which it is bound according to the spec. The spec does
    /// not contain the routing keys of these bindings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub external_dead_letter_queues: BTreeMap<QueueName, ExchangeName>,
    /// The conflict resolution for each object in the list. For all other objects, the resolution is `refuse`.
    #[serde(default)]
    pub on_conflict: Vec<(ObjectId, OnConflict)>,
    /// The retries of each queue and the objects that topo generates for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<Family>,
    /// Arguments that topo sets on new queues if the broker supports them. topo does not recreate an existing queue to
    /// add such an argument, because the benefit of the argument does not justify a recreation. Existing queues without
    /// the argument are common, for example because an older broker or a different tool created them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub optional: BTreeMap<QueueName, BTreeSet<String>>,
}

/// The users that a run manages, protects and ignores, according to the cluster document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserScope {
    /// The users that the cluster document declares.
    pub declared: BTreeSet<String>,
    /// Globs for the names of the users that the spec manages, in addition to the users that it declares.
    pub owns: Vec<Glob>,
    /// Globs for the names of the users whose records topo never deletes.
    pub protect: Vec<Glob>,
    /// Globs for the names of the users whose records topo does not manage or report.
    pub ignore: Vec<Glob>,
    /// The users to whom the vhost documents grant permissions. Set only in the scope of the cluster.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub with_permissions: BTreeSet<String>,
}

impl UserScope {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn matches_any(globs: &[Glob], name: &str) -> bool {
    globs.iter().any(|glob| glob.matches(name))
}

impl Scope {
    /// Returns the record kinds that have a section in the spec, or an entry in `removed`.
    pub fn record_kinds(&self) -> BTreeSet<RecordKind> {
        let removed = self.removed.iter().filter_map(|id| match id.kind() {
            ObjectKind::Record(kind) => Some(kind),
            ObjectKind::Vhost | ObjectKind::Exchange | ObjectKind::Policy | ObjectKind::Queue | ObjectKind::Binding => {
                None
            }
        });
        self.sections.keys().copied().chain(removed).collect()
    }

    /// Returns true if an undeclared record is a setting, such as a user limit, and the spec has an entry for its owner
    /// (the user or the vhost). In that case, the spec requires this setting to be unset.
    pub fn leaves_unset(&self, id: &RecordId) -> bool {
        let is_setting = id.setting().is_some() || id.kind.row().key.is_empty();
        let declared = self.sections.get(&id.kind).filter(|_| is_setting);
        declared.is_some_and(|names| names.contains(id.name().unwrap_or_default()))
    }

    /// Returns true if a glob in `owns` matches the name.
    pub fn owns(&self, name: &str) -> bool {
        matches_any(&self.owns, name)
    }

    /// Returns true if a glob in `protect` matches the name.
    pub fn protects(&self, name: &str) -> bool {
        matches_any(&self.protect, name)
    }

    /// Returns true if a glob in `ignore` matches the name.
    pub fn ignores(&self, name: &str) -> bool {
        matches_any(&self.ignore, name)
    }

    /// Returns true if the spec owns the object: a glob in `owns` matches its name. For a user's record, the cluster
    /// document must declare or own the user.
    pub fn owns_object(&self, id: &ObjectId) -> bool {
        id.name().is_some_and(|name| match is_of_user(id) {
            true => self.users.declared.contains(name) || matches_any(&self.users.owns, name),
            false => self.owns(name),
        })
    }

    /// Returns true if topo never deletes or recreates the object: a glob in `protect` matches its name. For a user's
    /// record, the globs in the cluster document apply.
    pub fn protects_object(&self, id: &ObjectId) -> bool {
        id.name().is_some_and(|name| match is_of_user(id) {
            true => matches_any(&self.users.protect, name),
            false => self.protects(name),
        })
    }

    /// Returns true if topo does not manage or report the object: a glob in `ignore` matches its name. For a user's
    /// record, the globs in the cluster document apply.
    pub fn ignores_object(&self, id: &ObjectId) -> bool {
        id.name().is_some_and(|name| match is_of_user(id) {
            true => matches_any(&self.users.ignore, name),
            false => self.ignores(name),
        })
    }

    /// Returns the super stream to which a stream belongs.
    pub fn super_stream_of(&self, stream: &QueueName) -> Option<&ExchangeName> {
        self.super_streams.iter().find(|(_, streams)| streams.contains(stream)).map(|(name, _)| name)
    }

    /// Returns true if topo accepts an existing queue with this argument although the spec does not set the argument.
    /// The only such argument is the leader locator of a stream in a super stream. On RabbitMQ 4.0 and later,
    /// `rabbitmq-streams add_super_stream` sets this argument, which affects only the creation of a stream.
    pub fn is_accepted_on_existing(&self, queue: &QueueName, argument: &str) -> bool {
        argument == "x-queue-leader-locator" && self.super_stream_of(queue).is_some()
    }

    /// Returns true if topo accepts an existing queue without this argument.
    pub fn is_optional(&self, queue: &QueueName, argument: &str) -> bool {
        self.optional.get(queue).is_some_and(|arguments| arguments.contains(argument))
    }
}

/// Returns true if the object is a record that is named after a user.
fn is_of_user(id: &ObjectId) -> bool {
    matches!(id.kind(), ObjectKind::Record(kind) if kind.row().is_named_after_users())
}

/// The resolution of a conflict. A conflict is a change that the broker refuses to make to an existing object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnConflict {
    /// Shows the conflict and its resolutions. The plan is blocked.
    #[default]
    Refuse,
    /// Recreations the object if it is empty. Otherwise, the plan is blocked.
    IfEmpty,
    /// Recreations the object and keeps every message.
    Migrate,
    /// Deletes the object with its messages, and declares it again.
    Discard,
}

impl OnConflict {
    /// Returns the value as written in a spec and in `--recreate ADDRESS=…`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::IfEmpty => "ifEmpty",
            Self::Migrate => "migrate",
            Self::Discard => "discard",
        }
    }
}

impl fmt::Display for OnConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A pattern for a whole name: `*` matches zero or more characters, `?` matches one character, and all other characters
/// match themselves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    /// Creates a glob; every string is a valid glob.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the glob as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the whole name matches. Matching backtracks only to the last `*`, so it takes nearly linear time
    /// in practice.
    pub fn matches(&self, name: &str) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let name: Vec<char> = name.chars().collect();
        let (mut p, mut n) = (0, 0);
        let mut backtrack: Option<(usize, usize)> = None;
        while n < name.len() {
            match pattern.get(p) {
                Some('*') => {
                    backtrack = Some((p, n));
                    p += 1;
                }
                Some(&expected) if expected == '?' || expected == name[n] => {
                    p += 1;
                    n += 1;
                }
                Some(_) | None => match backtrack {
                    Some((star, consumed)) => {
                        p = star + 1;
                        n = consumed + 1;
                        backtrack = Some((star, consumed + 1));
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|&rest| rest == '*')
    }
}

/// The inputs of a plan that topo derives from a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Desired {
    /// The topology that the spec expands to.
    pub topology: Topology,
    /// The objects that the spec manages, protects and ignores.
    pub scope: Scope,
    /// The position of each object in the spec, sorted by object.
    pub sources: Vec<(ObjectId, Source)>,
}

impl Desired {
    /// Creates the inputs for a vhost in which the spec declares nothing.
    pub fn nothing(vhost: VhostName) -> Self {
        Self { topology: Topology::missing(vhost), scope: Scope::default(), sources: Vec::new() }
    }
}

/// The position of an object in a spec, and the keys that set its arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The file name, as the user specified it.
    pub file: String,
    /// The line number, starting at 1.
    pub line: usize,
    /// The column in characters, starting at 1.
    pub column: usize,
    /// The dead-letter queue that the object belongs to, if the object is an entry in `deadLetterQueues` or the
    /// exchange of such an entry.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part_of: Option<QueueName>,
    /// The spec keys that set each argument, by argument name. The effective key comes first. Arguments that are set
    /// only by their own key in the object are omitted.
    #[serde(skip_serializing_if = "Places::is_empty", default)]
    pub places: Places,
}

/// The key in a spec that sets an argument of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SetIn {
    /// The argument's own key in the object.
    Key,
    /// The `arguments` mapping of the object.
    Arguments,
    /// A key of the document's `defaults.queue` or `defaults`, on this line.
    Defaults(usize),
    /// The document's `defaults.queue.arguments`, on this line.
    DefaultArguments(usize),
}

/// The spec keys that set each argument, by argument name. The effective key comes first. Arguments that are set only
/// by their own key in the object are omitted.
pub type Places = BTreeMap<String, Vec<SetIn>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        for (glob, name, expected) in [
            ("orders.*", "orders.work", true),
            ("orders.*", "orders", false),
            ("orders.*", "my.orders.work", false),
            ("*", "", true),
            ("a*b*c", "a/xx/b--c", true),
            ("a*b*c", "a/xx/b--cd", false),
            ("caf?", "café", true),
            ("[x]", "[x]", true),
            ("[x]", "x", false),
            ("*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(Glob::new(glob).matches(name), expected, "{glob} on {name}");
        }
    }
}
