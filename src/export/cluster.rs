//! Exports the cluster's records as a spec document.

use super::objects::{field_entries, record_tree, settings_of};
use crate::model::record_kinds::{Layout, Place, RecordRow, RecordScope};
use crate::model::yaml::{Entry, Text, Tree, entry};
use crate::model::{Glob, Record, RecordId, RecordKind, Records};
use crate::spec::{SourceFile, Variables, parse};
use std::collections::{BTreeMap, BTreeSet};

/// The exported cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterExport {
    /// The document, as YAML.
    pub text: String,
    /// The exported records.
    pub records: Records,
    /// The names whose records a spec cannot represent, by kind.
    pub left_out: BTreeMap<RecordKind, BTreeSet<String>>,
}

/// Exports the records whose names match one of the globs. Without globs, exports all records. For the exported kinds,
/// the document declares exactly the records in [`ClusterExport::records`].
pub fn export_cluster(live: &Records, globs: &[Glob]) -> ClusterExport {
    let is_chosen = |name: &str| globs.is_empty() || globs.iter().any(|glob| glob.matches(name));
    let mut records = live.clone();
    records.retain(|id, _| id.name().is_some_and(is_chosen));
    let mut left_out: BTreeMap<RecordKind, BTreeSet<String>> = BTreeMap::new();
    if !is_declared_exactly(&records) {
        let names: BTreeSet<(RecordKind, String)> =
            records.keys().filter_map(|id| Some((id.kind, id.name()?.to_owned()))).collect();
        for (kind, name) in names {
            let is_named = |id: &RecordId| id.kind == kind && id.name() == Some(&name);
            let mut alone = records.clone();
            alone.retain(|id, _| is_named(id));
            if !is_declared_exactly(&alone) {
                records.retain(|id, _| !is_named(id));
                left_out.entry(kind).or_default().insert(name);
            }
        }
    }
    ClusterExport { text: text(&records), records, left_out }
}

/// Returns true if the exported document declares exactly these records. Ignores declared records of other kinds: a
/// document with a user's limits also declares the user.
fn is_declared_exactly(records: &Records) -> bool {
    let file = SourceFile { name: "export".to_owned(), text: text(records) };
    let Some(cluster) = parse(&[file], &Variables::new()).ok().and_then(|specs| specs.cluster) else { return false };
    let kinds: BTreeSet<RecordKind> = records.keys().map(|id| id.kind).collect();
    let declared = cluster.records.into_iter().filter(|(id, _)| kinds.contains(&id.kind));
    declared.map(|(id, spec)| (id, spec.record)).collect::<Records>() == *records
}

/// The comment above a user whose password is not exported.
const PASSWORD_COMMENT: &str =
    "The password is not exported. To create this user on another broker, set password or initialPassword.";

/// Returns true if the user has a password that the record does not describe.
fn has_unknown_password(user: &Record) -> bool {
    !user.fields.contains_key("password")
}

fn text(records: &Records) -> String {
    let mut sections: BTreeMap<&str, Vec<Entry>> = BTreeMap::new();
    // The users whose passwords are not exported.
    let mut commented: BTreeSet<&str> = BTreeSet::new();
    // The entries that several kinds share, such as `users`, by section and name.
    let mut shared: BTreeMap<&str, BTreeMap<&str, Vec<Entry>>> = BTreeMap::new();
    for row in RecordRow::of_scope(RecordScope::Cluster) {
        let names: BTreeSet<&str> =
            records.keys().filter(|id| id.kind == row.kind).filter_map(|id| id.name()).collect();
        for name in names {
            let tree = match row.layout {
                Layout::Settings(_) => {
                    let settings = settings_of(records, row, Some(name)).into_iter();
                    Tree::table(settings.map(|(_, key, value)| entry(key, value)))
                }
                Layout::Fields(_) | Layout::Value(_) => match records.get(&RecordId::named(row.kind, name)) {
                    Some(record) => record_tree(record, row),
                    None => continue,
                },
            };
            match row.place {
                Place::Entries(section) => {
                    let Some(record) = records.get(&RecordId::named(row.kind, name)) else { continue };
                    let keys = shared.entry(section.name).or_default().entry(name).or_default();
                    keys.splice(0..0, field_entries(record, row));
                    if row.kind == RecordKind::User && has_unknown_password(record) {
                        commented.insert(name);
                    }
                }
                Place::Entry(section, key) => {
                    shared.entry(section.name).or_default().entry(name).or_default().push(entry(key, tree));
                }
                Place::Section => sections.entry(row.section).or_default().push(entry(name, tree)),
                // Vhost keys are not part of the cluster's document.
                Place::Vhost(_) => {}
            }
        }
    }
    for (section, entries) in shared {
        let entries = entries.into_iter().map(|(name, keys)| entry(name, Tree::table(keys)));
        sections.entry(section).or_default().extend(entries);
    }
    let head = [entry("version", Tree::plain(1)), entry("cluster", Tree::table([]))];
    let section = |(name, entries): (&str, Vec<Entry>)| {
        let mut tree = Tree::table(entries);
        if name == RecordKind::User.row().section {
            for user in &commented {
                tree.comment(&[user], vec![PASSWORD_COMMENT.to_owned()]);
            }
        }
        entry(name, tree)
    };
    let sections = sections.into_iter().map(section);
    Text::of(&head.into_iter().chain(sections).collect::<Vec<_>>()).text
}
