//! Renders the table of record kinds as `docs/objects.md`. A test compares the result with the committed page, and
//! `TOPO_UPDATE=1` updates the page.

use super::{Layout, Place, RECORD_KINDS, RecordField, RecordRow, RecordScope};
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Users, permissions, limits, shovels and parameters

This page lists the remaining kinds of objects that a spec can declare, and the keys of each kind. These kinds are
operator policies, limits, parameters, permissions, users, shovels, federation upstreams and upstream sets, and the deletion
protection of vhosts.
This page is generated; do not edit it.

topo changes these objects in place. The name in parentheses is the name of the field in RabbitMQ.
";

/// Returns the page in Markdown.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for row in RECORD_KINDS {
        let mut title = row.plural.to_owned();
        title[..1].make_ascii_uppercase();
        let _ = write!(page, "\n## {title}\n\n{}\n\n", row.doc);
        for fact in facts(row) {
            let _ = writeln!(page, "- {fact}");
        }
        let keys: Vec<String> = row.settings().iter().map(|field| key(row, field)).collect();
        if !matches!(row.layout, Layout::Value(_)) {
            let _ = write!(page, "\nKeys:\n\n{}", keys.concat());
        }
    }
    page
}

/// Lists the position of the kind in a spec, its requirements, and how to delete and export its records.
fn facts(row: &RecordRow) -> Vec<String> {
    let document = match row.scope {
        RecordScope::Vhost => "a document with `vhost`",
        RecordScope::Cluster => "a document with `cluster`",
    };
    let place = match row.place {
        Place::Section => format!("`{}` in {document}", row.section),
        Place::Vhost(key) => format!("`{key}` in `vhost`"),
        Place::Entry(section, key) => format!("`{key}` in an entry of `{}` in {document}", section.name),
        Place::Entries(section) => format!("`{}` in {document}", section.name),
    };
    let mut facts = vec![format!("declared in: {place}"), format!("required tag: `{}`", row.writer.as_str())];
    facts.extend(row.since.map(|since| format!("since RabbitMQ {since}")));
    facts.extend(row.plugins.first().map(|plugin| format!("plugin: `{plugin}`")));
    let removed = row.is_removable().then(|| format!("`removed: {{{}: [NAME]}}`", row.section));
    let pruned = (!row.key.is_empty()).then(|| format!("`--prune={}`", row.section));
    let deleted: Vec<String> = removed.into_iter().chain(pruned).collect();
    if !deleted.is_empty() {
        facts.push(format!("deleted with {}", deleted.join(" or ")));
    }
    facts.push(format!("exported with `--with={}`", row.section));
    facts
}

/// Returns the line for a key.
fn key(row: &RecordRow, field: &RecordField) -> String {
    let path = if field.group.is_empty() { field.key.to_owned() } else { format!("{}.{}", field.group, field.key) };
    // The password of a URI is not a separate field in requests.
    let name = if field.name == field.key || row.has_uris() && field.key == "password" {
        String::new()
    } else {
        format!(" (`{}`)", field.name)
    };
    let default = match (field.is_required(), field.default) {
        (true, _) => " Required.".to_owned(),
        (false, "") => String::new(),
        (false, default) => format!(" The default is `{}`.", default.trim_matches('\'')),
    };
    format!("- `{path}`{name} – {}{default}\n", field.doc)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/objects.md");

    #[test]
    fn committed_page_is_current() {
        let printed = reference();
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(COMMITTED, &printed).unwrap();
        }
        let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
        assert!(committed == printed, "docs/objects.md is outdated: run the tests with TOPO_UPDATE=1");
    }
}
