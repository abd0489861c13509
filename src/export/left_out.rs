//! Objects that exist and are not exported, with the reasons.

use crate::model::count::{count, number};
use crate::model::{ObjectId, ObjectKind, PolicyName, RecordKind};
use std::collections::BTreeMap;

/// So many names are told of each kind.
const MOST_NAMES: usize = 8;
/// So many reasons are told.
const MOST_LINES: usize = 40;

/// Why an object is left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It belongs to one connection.
    Exclusive,
    /// The broker gave it its name.
    ServerNamed,
    /// It goes with its last consumer, or its last binding.
    AutoDelete,
    /// It does not survive a restart.
    Transient,
    /// Topo made it for itself.
    Topos,
    /// A plugin made it for itself.
    Plugins,
    /// A binding from something that is left out.
    FromLeftOut,
    /// A binding to what is not there, as only a file can have it.
    ToNothing,
    /// A binding from an exchange that does not exist, as only a file can have it.
    FromNothing,
    /// No spec can say it; the sentence says why.
    Unsayable(String),
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    objects: BTreeMap<ObjectId, Why>,
    /// Records of kinds that were not asked for.
    pub(super) records: BTreeMap<RecordKind, Vec<String>>,
    /// Policies that nobody asked for, by the names of what they govern of that which is in the spec.
    pub(super) governing: BTreeMap<PolicyName, Vec<String>>,
    /// What no spec knows at all, by what it is.
    pub(super) beside: BTreeMap<String, Vec<String>>,
}

impl LeftOut {
    pub(super) fn add(&mut self, id: ObjectId, why: Why) {
        self.objects.entry(id).or_insert(why);
    }

    pub(super) fn contains(&self, id: &ObjectId) -> bool {
        self.objects.contains_key(id)
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The number of exchanges, queues and policies, without records.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.objects.keys().filter(|id| !matches!(id, ObjectId::Binding(_))).count()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        let is_bare = self.objects.is_empty() && self.records.is_empty();
        is_bare && self.governing.is_empty() && self.beside.is_empty()
    }

    /// One line for each reason: `2 exclusive queues: a, b`.
    pub fn lines(&self) -> Vec<String> {
        let mut groups: BTreeMap<(&Why, ObjectKind), Vec<String>> = BTreeMap::new();
        for (id, why) in &self.objects {
            let name = match id {
                ObjectId::Binding(binding) => binding.to_string(),
                ObjectId::Vhost
                | ObjectId::Exchange(_)
                | ObjectId::Policy(_)
                | ObjectId::Queue(_)
                | ObjectId::Record(_) => id.name().unwrap_or_default().to_owned(),
            };
            groups.entry((why, id.kind())).or_default().push(name);
        }
        let records =
            self.records.iter().map(|(kind, names)| format!("{}: {}", kind.row().counted(names.len()), listed(names)));
        let beside = self.beside.iter().map(|(thing, names)| counted(thing, names));
        let groups = groups.into_iter().map(|((why, kind), names)| line(why, kind, &names));
        let mut lines: Vec<String> = groups.chain(records).chain(beside).collect();
        let governing = |(policy, names): (&PolicyName, &Vec<String>)| {
            format!("policy {policy}, which governs {}; use --match '{policy}' to include it", listed(names))
        };
        lines.extend(self.governing.iter().map(governing));
        if lines.len() > MOST_LINES {
            let more = lines.len() - MOST_LINES;
            lines.truncate(MOST_LINES);
            lines.push(format!("and {} more", count(more as u64, "line")));
        }
        lines
    }
}

/// `2 shovels: a, b`.
pub fn counted(thing: &str, names: &[String]) -> String {
    format!("{}: {}", count(names.len() as u64, thing), listed(names))
}

fn line(why: &Why, kind: ObjectKind, names: &[String]) -> String {
    let things = match (kind, names.len()) {
        (ObjectKind::Policy, 2..) => "policies".to_owned(),
        (_, 1) => kind.to_string(),
        (_, _) => format!("{kind}s"),
    };
    let (before, behind) = match why {
        Why::Exclusive => ("exclusive ", ""),
        Why::ServerNamed => ("server-named ", ""),
        Why::AutoDelete => ("auto-delete ", ""),
        Why::Transient => ("transient ", ""),
        Why::Topos => ("", " of topo itself"),
        Why::Plugins => ("", " of a plugin"),
        Why::FromLeftOut => ("", " from objects that are not exported"),
        Why::ToNothing => ("", " to objects that do not exist"),
        Why::FromNothing => ("", " from an exchange that does not exist"),
        Why::Unsayable(_) => ("", " that cannot be represented in a spec"),
    };
    let line = format!("{} {before}{things}{behind}: {}", number(names.len() as u64), listed(names));
    match why {
        Why::Unsayable(why) => format!("{line} ({why})"),
        Why::Exclusive
        | Why::ServerNamed
        | Why::AutoDelete
        | Why::Transient
        | Why::Topos
        | Why::Plugins
        | Why::FromLeftOut
        | Why::FromNothing
        | Why::ToNothing => line,
    }
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(MOST_NAMES) {
        Some(more) if more > 0 => format!("{shown} and {} more", number(more as u64)),
        Some(_) | None => shown,
    }
}
