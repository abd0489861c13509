//! What a spec answers for: the objects that topo may report, change and delete.

use super::{ExchangeName, Family, ObjectId, ObjectKind, QueueName, RecordId, RecordKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Whose objects are whose, as the spec says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// Names that this spec answers for, beyond what it declares.
    pub owns: Vec<Glob>,
    /// Names that are never deleted or recreated, whatever the flags.
    pub protect: Vec<Glob>,
    /// Names that are invisible.
    pub ignore: Vec<Glob>,
    /// The kinds of records that the spec has a section for, even an empty one, with the names that it declares. Only
    /// their unmanaged records are reported.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sections: BTreeMap<RecordKind, BTreeSet<String>>,
    /// Objects to delete, if they are there.
    #[serde(default)]
    pub removed: BTreeSet<ObjectId>,
    /// External objects: they must exist, and topo never changes them.
    #[serde(default)]
    pub external: BTreeSet<ObjectId>,
    /// External objects that may be missing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub optional_externals: BTreeSet<ObjectId>,
    /// External dead-letter queues, and the exchange to which the spec declares each as bound. The key is not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub external_dead_letter_queues: BTreeMap<QueueName, ExchangeName>,
    /// What to do when an object cannot change in place; absent means [`OnConflict::Refuse`].
    #[serde(default)]
    pub on_conflict: Vec<(ObjectId, OnConflict)>,
    /// What is generated for the retries of each queue, by queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<Family>,
    /// Arguments that topo adds by itself where a broker offers them. A live queue without one stays as it is: it was
    /// made by an older broker, or before topo, and to recreate it would cost more than the argument is worth.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub optional: BTreeMap<QueueName, BTreeSet<String>>,
}

impl Scope {
    /// Returns the kinds of records that the spec is about.
    pub fn record_kinds(&self) -> BTreeSet<RecordKind> {
        let removed = self.removed.iter().filter_map(|id| match id.kind() {
            ObjectKind::Record(kind) => Some(kind),
            ObjectKind::Vhost | ObjectKind::Exchange | ObjectKind::Policy | ObjectKind::Queue | ObjectKind::Binding => {
                None
            }
        });
        self.sections.keys().copied().chain(removed).collect()
    }

    /// Whether the spec declares the settings of a name without this one.
    pub fn leaves_unset(&self, id: &RecordId) -> bool {
        let declared = self.sections.get(&id.kind).filter(|_| id.setting().is_some());
        declared.is_some_and(|names| names.contains(id.name().unwrap_or_default()))
    }

    /// Whether a glob of `owns` matches the name.
    pub fn owns(&self, name: &str) -> bool {
        self.owns.iter().any(|glob| glob.matches(name))
    }

    /// Whether a glob of `protect` matches the name.
    pub fn protects(&self, name: &str) -> bool {
        self.protect.iter().any(|glob| glob.matches(name))
    }

    /// Whether a glob of `ignore` matches the name.
    pub fn ignores(&self, name: &str) -> bool {
        self.ignore.iter().any(|glob| glob.matches(name))
    }

    /// Whether a live queue may lack an argument.
    pub fn is_optional(&self, queue: &QueueName, argument: &str) -> bool {
        self.optional.get(queue).is_some_and(|arguments| arguments.contains(argument))
    }
}

/// What to do with an object that differs in a way that the broker cannot change in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnConflict {
    /// Show the conflict and the ways out; the plan is blocked.
    #[default]
    Refuse,
    /// Recreate when it is empty at that moment, else refuse.
    IfEmpty,
    /// Recreate and keep every message.
    Migrate,
    /// Delete and recreate.
    Discard,
}

impl OnConflict {
    /// The word in the spec and behind `--recreate ADDRESS=`.
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

/// A pattern over a whole name: `*` is any run of characters, `?` is any one; all else is itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    /// From its text; every text is a glob.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole name matches. Linear in practice: it goes back to the last star only.
    pub fn matches(&self, name: &str) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let name: Vec<char> = name.chars().collect();
        let (mut p, mut n) = (0, 0);
        let mut back: Option<(usize, usize)> = None;
        while n < name.len() {
            match pattern.get(p) {
                Some('*') => {
                    back = Some((p, n));
                    p += 1;
                }
                Some(&expected) if expected == '?' || expected == name[n] => {
                    p += 1;
                    n += 1;
                }
                Some(_) | None => match back {
                    Some((star, taken)) => {
                        p = star + 1;
                        n = taken + 1;
                        back = Some((star, taken + 1));
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|&rest| rest == '*')
    }
}

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
