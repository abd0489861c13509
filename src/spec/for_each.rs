//! Replaces each entry with `forEach` by one entry for each item of its list or mapping, before the document is checked.
//!
//! `{VARIABLE}` is an item of the list, or a key of the mapping. `{VARIABLE.KEY}` is a value in the mapping of the item. A
//! text that consists of one placeholder becomes the value itself, so that it can be a number.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::hints::closest;
use super::node::{Entry, Location, Node, Value};
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

/// Replaces the entries with `forEach` in a document. Returns true if there is such an entry.
pub(crate) fn expand(document: &mut Node, diagnostics: &mut Diagnostics) -> bool {
    let mut is_expanded = false;
    let Value::Table(sections) = &mut document.value else { return false };
    for section in sections.iter_mut().filter(|section| SECTIONS.contains(&section.key.as_str())) {
        let Value::Table(entries) = &mut section.node.value else { continue };
        if !entries.iter().any(|entry| entry.node.get(NAME).is_some()) {
            continue;
        }
        is_expanded = true;
        for entry in std::mem::take(entries) {
            match entry.node.entry(NAME) {
                Some(each) => entries.extend(expand_entry(&entry, each, diagnostics)),
                None => entries.push(entry),
            }
        }
    }
    is_expanded
}

/// The values of one item.
struct Item {
    /// The position of the item.
    at: Location,
    /// The values, by placeholder: `region`, `region.limit`.
    values: BTreeMap<String, Node>,
}

/// Returns the entries for all items of an entry. Reports an invalid `forEach`, and returns no entries.
fn expand_entry(entry: &Entry, each: &Entry, diagnostics: &mut Diagnostics) -> Vec<Entry> {
    let Some((variable, items)) = items(each, diagnostics) else { return Vec::new() };
    let own = format!("{{{variable}");
    if !entry.key.contains(&own) {
        let message = format!("the name `{}` does not contain `{{{variable}}}`", entry.key);
        let hint = format!("add `{{{variable}}}` to the name, for example `{}.{{{variable}}}`", entry.key);
        diagnostics.push(Diagnostic::error("for-each", message, entry.at).hint(hint));
        return Vec::new();
    }
    let mut template = entry.node.clone();
    if let Value::Table(keys) = &mut template.value {
        keys.retain(|key| key.key != NAME);
    }
    let mut expanded = Vec::new();
    // Several items can have the same problem.
    let mut reported: BTreeSet<Location> = BTreeSet::new();
    for item in &items {
        let mut errors = Vec::new();
        let key = replace(&entry.key, item, &mut |problem| errors.push((problem, entry.at)));
        let mut node = template.clone();
        substitute(&mut node, item, &mut errors);
        for (problem, at) in errors {
            if reported.insert(at) {
                diagnostics.push(problem.diagnostic(at, item));
            }
        }
        expanded.push(Entry { key, at: entry.at, node });
    }
    if reported.is_empty() { expanded } else { Vec::new() }
}

/// Returns the variable and the items of `forEach`. Reports invalid items.
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
        return refuse(format!("invalid variable name `{name}`"), variable.at, "use a-z, A-Z, 0-9 and `_`");
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

/// A problem with a placeholder.
enum Problem {
    /// The item has no such value.
    Unknown(String),
    /// The value is a list or a mapping, and the text contains more than the placeholder.
    NotAScalar(String),
}

impl Problem {
    fn diagnostic(self, at: Location, item: &Item) -> Diagnostic {
        match self {
            Self::Unknown(name) => {
                let near = closest(&name, item.values.keys().map(String::as_str));
                let hint = match near {
                    Some(near) => format!("did you mean `{{{near}}}`? For literal braces, write `{{{{{name}}}}}`"),
                    None => format!("add the value to the item; for literal braces, write `{{{{{name}}}}}`"),
                };
                let diagnostic = Diagnostic::error("for-each", format!("unknown placeholder `{{{name}}}`"), at);
                diagnostic.also(item.at, "not in this item").hint(hint)
            }
            Self::NotAScalar(name) => {
                let message = format!("`{{{name}}}` is a list or a mapping, so it cannot be part of a longer string");
                let hint = "use the placeholder as the whole value, or set it to a string or a number";
                Diagnostic::error("for-each", message, at).also(item.at, "in this item").hint(hint)
            }
        }
    }
}

/// Replaces the placeholders in a tree.
fn substitute(node: &mut Node, item: &Item, errors: &mut Vec<(Problem, Location)>) {
    let at = node.at;
    match &mut node.value {
        Value::Text(text) => {
            let whole = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            if let Some(value) = whole.and_then(|name| item.values.get(name)) {
                *node = Node { used_at: Some(at), ..value.clone() };
                return;
            }
            if text.contains(['{', '}']) {
                *text = replace(text, item, &mut |problem| errors.push((problem, at)));
                node.written = None;
            }
        }
        Value::List(items) => items.iter_mut().for_each(|it| substitute(it, item, errors)),
        Value::Table(entries) => {
            for entry in entries {
                if entry.key.contains(['{', '}']) {
                    entry.key = replace(&entry.key, item, &mut |problem| errors.push((problem, entry.at)));
                }
                substitute(&mut entry.node, item, errors);
            }
        }
        Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) => {}
    }
}

/// Replaces the placeholders in a text. `{{` and `}}` are literal braces.
fn replace(text: &str, item: &Item, report: &mut dyn FnMut(Problem)) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        replaced.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix(brace) {
            replaced.push_str(brace);
            rest = after;
            continue;
        }
        let name =
            after.split_once('}').map(|(name, _)| name).filter(|name| brace == "{" && name.split('.').all(is_name));
        let Some(name) = name else {
            replaced.push_str(brace);
            rest = after;
            continue;
        };
        match item.values.get(name).map(|value| value.scalar()) {
            Some(Some(value)) => replaced.push_str(&value),
            Some(None) => report(Problem::NotAScalar(name.to_owned())),
            None => report(Problem::Unknown(name.to_owned())),
        }
        rest = &after[name.len() + 1..];
    }
    replaced.push_str(rest);
    replaced
}
