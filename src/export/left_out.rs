//! Collects the objects in a vhost that are not exported, with the reasons.

use crate::model::count::{count, number};
use crate::model::known_clients::TransientObject;
use crate::model::{Glob, ObjectId, ObjectKind, PolicyName, RecordKind, natural};
use std::collections::BTreeMap;

/// The maximum number of names that are listed on each line.
const MAX_NAMES: usize = 8;
/// The maximum number of lines.
const MAX_LINES: usize = 40;
/// The maximum number of names in the `ignore` list. Clients can create many queues with random names.
const MAX_IGNORED_NAMES: usize = 20;

/// The reason why an object is left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The queue is exclusive to one connection.
    Exclusive,
    /// The broker generated the name of the queue.
    ServerNamed,
    /// The object is auto-delete. The broker deletes such a queue when its last consumer is canceled, and such an
    /// exchange when its last binding is removed.
    AutoDelete,
    /// The object does not survive a restart of the broker.
    Transient,
    /// A client declared the object for its own use.
    OwnedByClient {
        /// The name of the client.
        client: &'static str,
        /// The group that the object belongs to.
        group: &'static TransientObject,
    },
    /// The queue has `x-expires`, and no other object refers to it.
    Expires,
    /// topo created the object for its own use.
    OwnedByTopo,
    /// A plugin created the object for its own use.
    OwnedByPlugin,
    /// The source exchange of the binding is left out.
    SourceLeftOut,
    /// The destination of the binding does not exist, which is possible only in a definitions file.
    MissingDestination,
    /// The source of the binding does not exist, which is possible only in a definitions file.
    MissingSource,
    /// A spec cannot represent the object, for this reason.
    NotRepresentable(String),
}

/// The objects that are left out, with the reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    objects: BTreeMap<ObjectId, Reason>,
    /// The records of kinds that were not requested.
    pub(super) records: BTreeMap<RecordKind, Vec<String>>,
    /// The policies that the filter does not select and that can apply to exported objects, with the names of these
    /// objects.
    pub(super) governing: BTreeMap<PolicyName, Vec<String>>,
    /// The objects of kinds that specs do not support, by kind.
    pub(super) other_objects: BTreeMap<String, Vec<String>>,
}

/// The `ignore` list of an exported spec.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ignored {
    /// The globs.
    pub(super) globs: Vec<Glob>,
    /// The number of names that the list omits.
    pub(super) omitted: usize,
}

impl LeftOut {
    pub(super) fn add(&mut self, id: ObjectId, why: Reason) {
        self.objects.entry(id).or_insert(why);
    }

    pub(super) fn contains(&self, id: &ObjectId) -> bool {
        self.objects.contains_key(id)
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns the number of objects that are left out, except bindings.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.objects.keys().filter(|id| !matches!(id, ObjectId::Binding(_))).count()
    }

    /// Returns true if there is nothing to report.
    pub fn is_empty(&self) -> bool {
        let is_bare = self.objects.is_empty() && self.records.is_empty();
        is_bare && self.governing.is_empty() && self.other_objects.is_empty()
    }

    /// Returns the `ignore` list for the temporary objects of clients and the queues that expire. A glob for a group of
    /// objects must not match an exported object. If it does, the list contains the names of the objects instead.
    pub(super) fn ignored(&self, is_exported: impl Fn(&Glob) -> bool) -> Ignored {
        let mut ignored = Ignored::default();
        let mut names: Vec<&str> = Vec::new();
        for (id, why) in &self.objects {
            let group = match why {
                Reason::OwnedByClient { group, .. } => Some(Glob::new(group.glob)).filter(|glob| !is_exported(glob)),
                Reason::Expires => None,
                Reason::Exclusive
                | Reason::ServerNamed
                | Reason::AutoDelete
                | Reason::Transient
                | Reason::OwnedByTopo
                | Reason::OwnedByPlugin
                | Reason::SourceLeftOut
                | Reason::MissingDestination
                | Reason::MissingSource
                | Reason::NotRepresentable(_) => continue,
            };
            match group {
                Some(glob) if ignored.globs.contains(&glob) => {}
                Some(glob) => ignored.globs.push(glob),
                None => names.extend(id.name().filter(|name| !is_exported(&Glob::new(*name)))),
            }
        }
        // A queue and an exchange can have the same name.
        names.sort_by(|a, b| natural::compare(a, b));
        names.dedup();
        ignored.omitted = names.len().saturating_sub(MAX_IGNORED_NAMES);
        ignored.globs.extend(names.into_iter().take(MAX_IGNORED_NAMES).map(Glob::new));
        ignored.globs.sort_by(|a, b| natural::compare(a.as_str(), b.as_str()));
        ignored
    }

    /// Returns one line for each reason and kind, such as `2 exclusive queues: a, b`.
    pub fn lines(&self) -> Vec<String> {
        let mut groups: BTreeMap<(&Reason, ObjectKind), Vec<String>> = BTreeMap::new();
        for (id, why) in &self.objects {
            let name = match id {
                ObjectId::Binding(binding) => binding.to_string(),
                ObjectId::Record(id) => id.key.join(" "),
                ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Queue(_) => {
                    id.name().unwrap_or_default().to_owned()
                }
            };
            groups.entry((why, id.kind())).or_default().push(name);
        }
        let records = self
            .records
            .iter()
            .map(|(kind, names)| format!("{}: {}", kind.row().format_count(names.len()), join_names(names)));
        let other_objects = self.other_objects.iter().map(|(thing, names)| format_count_and_names(thing, names));
        let groups = groups.into_iter().map(|((why, kind), mut names)| {
            if kind != ObjectKind::Binding {
                names.sort_by(|a, b| natural::compare(a, b));
            }
            line(why, kind, &names)
        });
        let mut lines: Vec<String> = groups.chain(records).chain(other_objects).collect();
        let governing = |(policy, names): (&PolicyName, &Vec<String>)| {
            format!("policy {policy}, which governs {}; use --match '{policy}' to include it", join_names(names))
        };
        lines.extend(self.governing.iter().map(governing));
        if lines.len() > MAX_LINES {
            let more = lines.len() - MAX_LINES;
            lines.truncate(MAX_LINES);
            lines.push(format!("and {}", count(more as u64, "more line")));
        }
        lines
    }
}

/// Formats the number and the names of objects, such as `2 shovels: a, b`.
pub fn format_count_and_names(thing: &str, names: &[String]) -> String {
    format!("{}: {}", count(names.len() as u64, thing), join_names(names))
}

fn line(why: &Reason, kind: ObjectKind, names: &[String]) -> String {
    let things = match (kind, names.len()) {
        (ObjectKind::Policy, 2..) => "policies".to_owned(),
        (_, 1) => kind.to_string(),
        (_, _) => format!("{kind}s"),
    };
    let (before, after) = match why {
        Reason::OwnedByClient { client, group } => ("", &format!(" created by {client} for {}", group.purpose)[..]),
        Reason::Expires if names.len() == 1 => ("", " that expires when unused"),
        Reason::Expires => ("", " that expire when unused"),
        Reason::Exclusive => ("exclusive ", ""),
        Reason::ServerNamed => ("server-named ", ""),
        Reason::AutoDelete => ("auto-delete ", ""),
        Reason::Transient => ("transient ", ""),
        Reason::OwnedByTopo => ("", " created by topo"),
        Reason::OwnedByPlugin => ("", " created by a plugin"),
        Reason::SourceLeftOut => ("", " from objects that are not exported"),
        Reason::MissingDestination => ("", " to objects that do not exist"),
        Reason::MissingSource => ("", " from an exchange that does not exist"),
        Reason::NotRepresentable(_) => ("", " that cannot be represented in a spec"),
    };
    let line = format!("{} {before}{things}{after}: {}", number(names.len() as u64), join_names(names));
    match why {
        Reason::NotRepresentable(why) => format!("{line} ({why})"),
        Reason::Exclusive
        | Reason::ServerNamed
        | Reason::AutoDelete
        | Reason::Transient
        | Reason::OwnedByClient { .. }
        | Reason::Expires
        | Reason::OwnedByTopo
        | Reason::OwnedByPlugin
        | Reason::SourceLeftOut
        | Reason::MissingSource
        | Reason::MissingDestination => line,
    }
}

/// Joins names into a list such as `a, b and 3 more`.
fn join_names(names: &[String]) -> String {
    let listed = names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(MAX_NAMES) {
        Some(more) if more > 0 => format!("{listed} and {} more", number(more as u64)),
        Some(_) | None => listed,
    }
}
