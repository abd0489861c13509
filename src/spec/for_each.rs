//! Expands each entry that has `forEach` into one entry for each item of a list or mapping, before the document is
//! checked.
//!
//! `{VARIABLE}` is an item of the list, or a key of the mapping. `{VARIABLE.KEY}` is a value in the item's mapping. A
//! string that consists of a single placeholder is replaced with the value itself, which can be a number.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::node::{Entry, Location, Node, Value};
use super::placeholders::{Item, Piece, Substitution, pieces};
use super::shape::{Forms, Key, Shape, key};
use super::variables::is_name;
use std::collections::{BTreeMap, BTreeSet};

const NAME: &str = "forEach";

/// The sections whose entries can have `forEach`.
const SECTIONS: [&str; 3] = ["exchanges", "queues", "deadLetterQueues"];

static ITEMS: Forms = Forms {
    what: "a list or a mapping",
    scalar: None,
    integer: None,
    list: Some(Shape::List(&Shape::Any)),
    map: Some(Shape::FreeMap(&Shape::Any)),
    tables: &[],
};

const ITEMS_SHAPE: Shape = Shape::OneForm(&ITEMS);

/// The key that repeats an entry.
pub(super) const FOR_EACH: Key = key(
    NAME,
    Shape::FreeMap(&ITEMS_SHAPE),
    "Declares one object for each item: `{VARIABLE: [ITEM…]}` or `{VARIABLE: {ITEM: {KEY: VALUE…}…}}`. In the \
     name and the values of the entry, `{VARIABLE}` is the item, and `{VARIABLE.KEY}` is a value of the item. `{{` and `}}` \
     are literal braces.",
)
.with_example("{region: [eu, us]}");

/// The byte ranges of the expanded entries in one file. Each range consists of the offset of the first byte and the
/// offset after the last byte.
pub(crate) type Templates = Vec<(usize, usize)>;

/// Expands the entries that have `forEach` in a document. Returns the ranges of these entries. `budget` is the number
/// of values that `forEach` can still add.
pub(crate) fn expand(document: &mut Node, budget: &mut usize, diagnostics: &mut Diagnostics) -> Templates {
    let mut templates = Templates::new();
    let Value::Table(sections) = &mut document.value else { return templates };
    for section in sections.iter_mut().filter(|section| SECTIONS.contains(&section.key.as_str())) {
        let Value::Table(entries) = &mut section.node.value else { continue };
        if !entries.iter().any(|entry| entry.node.get(NAME).is_some()) {
            continue;
        }
        for entry in std::mem::take(entries) {
            match entry.node.entry(NAME) {
                Some(each) => {
                    templates.push((entry.at.start, entry.node.extent().end.max(entry.at.end)));
                    entries.extend(expand_entry(&entry, each, budget, diagnostics));
                }
                None => entries.push(entry),
            }
        }
    }
    templates
}

/// Returns one entry for each item of `forEach`. If there is a problem, reports it and returns no entries.
fn expand_entry(entry: &Entry, each: &Entry, budget: &mut usize, diagnostics: &mut Diagnostics) -> Vec<Entry> {
    let Some((variable, items)) = items(each, diagnostics) else { return Vec::new() };
    let is_used = |piece: &Piece<'_>| match piece {
        Piece::Placeholder(name) => name.split('.').next() == Some(variable),
        Piece::Text(_) => false,
    };
    if !pieces(&entry.key).iter().any(is_used) {
        let message = format!("the name `{}` does not contain `{{{variable}}}`", entry.key);
        let hint = format!("add `{{{variable}}}` to the name, for example `{}.{{{variable}}}`", entry.key);
        diagnostics.push(Diagnostic::error("for-each", message, entry.at).hint(hint));
        return Vec::new();
    }
    let mut template = entry.node.clone();
    if let Value::Table(keys) = &mut template.value {
        keys.retain(|key| key.key != NAME);
    }
    let size = template.size();
    let mut expanded = Vec::new();
    // The positions of reported problems. Several items can have the same problem.
    let mut reported: BTreeSet<Location> = BTreeSet::new();
    for item in &items {
        let mut substitution = Substitution { item, errors: Vec::new(), budget };
        substitution.spend(size, each.at);
        let key = substitution.replace(&entry.key, entry.at);
        let mut node = template.clone();
        substitution.substitute(&mut node);
        let is_too_large = *substitution.budget == 0;
        for (problem, at) in substitution.errors {
            if reported.insert(at) {
                diagnostics.push(problem.diagnostic(at, item));
            }
        }
        if is_too_large {
            break;
        }
        expanded.push(Entry { key, at: entry.at, node });
    }
    if reported.is_empty() { expanded } else { Vec::new() }
}

/// Returns the variable and the items of `forEach`. Returns `None` for an invalid `forEach`, and reports the problem.
fn items<'a>(each: &'a Entry, diagnostics: &mut Diagnostics) -> Option<(&'a str, Vec<Item>)> {
    let mut refuse = |message: String, at: Location, hint: &str| {
        diagnostics.push(Diagnostic::error("for-each", message, at).hint(hint));
        None
    };
    let form = "write one variable with its items: `forEach: {region: [eu, us]}`";
    let [variable] = each.node.entries() else {
        let message = if let Value::Table(variables) = &each.node.value {
            format!("expected one variable in `forEach`, found {}", variables.len())
        } else {
            format!("expected a mapping with one variable for `forEach`, found {}", each.node.describe())
        };
        return refuse(message, each.at, form);
    };
    let name = variable.key.as_str();
    if !is_name(name) {
        let hint = "use a-z, A-Z, 0-9 and `_`; the first character must not be a digit";
        return refuse(format!("invalid variable name `{name}`"), variable.at, hint);
    }
    let mut found = Vec::new();
    match &variable.node.value {
        Value::List(items) => {
            let mut known: BTreeMap<String, Location> = BTreeMap::new();
            for item in items {
                if let Some(first) = item.scalar().and_then(|text| known.insert(text, item.at)) {
                    let message = format!("duplicate item `{}` in `{name}`", item.scalar().unwrap_or_default());
                    let diagnostic = Diagnostic::error("for-each", message, item.at).also(first, "first set here");
                    diagnostics.push(diagnostic.hint("remove one of the two"));
                    return None;
                }
                if item.scalar().is_none() {
                    let message =
                        format!("expected a string or a number as an item of `{name}`, found {}", item.describe());
                    return refuse(
                        message,
                        item.at,
                        "write strings or numbers; for several values per item, use a mapping",
                    );
                }
                found.push(Item { at: item.at, values: [(name.to_owned(), item.clone())].into() });
            }
        }
        Value::Table(items) => {
            for item in items {
                let own = Node { value: Value::Text(item.key.clone()), at: item.at, used_at: None, written: None };
                let more = item.node.entries().iter().map(|it| (format!("{name}.{}", it.key), it.node.clone()));
                let values = [(name.to_owned(), own)].into_iter().chain(more).collect();
                if !matches!(item.node.value, Value::Table(_) | Value::Null(_)) {
                    let message = format!("expected a mapping for item `{}`, found {}", item.key, item.node.describe());
                    return refuse(
                        message,
                        item.at,
                        "write a mapping: `{eu: {limit: 1000}}`, or `{}` for an item without values",
                    );
                }
                found.push(Item { at: item.at, values });
            }
        }
        Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => {
            let message = format!("expected a list or a mapping for `{name}`, found {}", variable.node.describe());
            return refuse(message, variable.at, form);
        }
    }
    Some((name, found))
}
