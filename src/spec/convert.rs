//! Converts checked nodes to model values, and creates the diagnostics for objects that are declared twice.

use super::diagnostic::Diagnostic;
use super::node::{Entry, Keyed, Location, Node, Sourced, Value};
use crate::model::{ArgumentValue, Float, OnConflict};
use std::collections::BTreeMap;

pub(super) fn items<'a>(node: &'a Node, key: &str) -> impl Iterator<Item = &'a Node> {
    node.get(key).map_or(&[][..], Node::items).iter()
}

pub(super) fn entries<'a>(node: &'a Node, key: &str) -> impl Iterator<Item = &'a Entry> {
    node.get(key).map_or(&[][..], Node::entries).iter()
}

pub(super) fn boolean(node: &Node, key: &str, default: bool) -> bool {
    node.get(key).and_then(Node::boolean).unwrap_or(default)
}

pub(super) fn sourced(node: &Node) -> Option<Sourced<&str>> {
    node.text().map(|text| Sourced::new(text, node.at))
}

/// Returns the conflict resolution with this name. Returns `None` for an unknown name.
pub(crate) fn on_conflict(word: &str) -> Option<OnConflict> {
    let all = [OnConflict::Refuse, OnConflict::IfEmpty, OnConflict::Migrate, OnConflict::Discard];
    all.into_iter().find(|known| known.as_str() == word)
}

/// Converts a node to an argument value.
pub(crate) fn value_of(node: &Node) -> ArgumentValue {
    match &node.value {
        Value::Null(_) => ArgumentValue::Null,
        Value::Boolean(value) => ArgumentValue::Boolean(*value),
        Value::Integer(value) => ArgumentValue::Integer(*value),
        Value::Float(value) => ArgumentValue::Float(Float(*value)),
        Value::Text(value) => ArgumentValue::Text(value.clone()),
        Value::List(items) => ArgumentValue::List(items.iter().map(value_of).collect()),
        Value::Table(entries) => {
            ArgumentValue::Table(entries.iter().map(|entry| (entry.key.clone(), value_of(&entry.node))).collect())
        }
    }
}

pub(super) fn arguments(node: &Node, key: &str) -> BTreeMap<String, Keyed<ArgumentValue>> {
    let keyed = |entry: &Entry| Keyed { value: value_of(&entry.node), key_at: entry.at, at: entry.node.at };
    entries(node, key).map(|entry| (entry.key.clone(), keyed(entry))).collect()
}

/// Returns the string of a node with its position. If the node is missing or not a string, returns `default` with `at`,
/// the position of the object.
pub(super) fn text_or(node: Option<&Node>, default: &str, at: Location) -> Sourced<String> {
    let text = node.and_then(sourced).unwrap_or(Sourced::new(default, at));
    Sourced::new(text.value.to_owned(), text.at)
}

/// Creates the diagnostic for an object that is declared twice.
pub(crate) fn declared_twice(what: &str, name: &str, at: Location, first: Location) -> Diagnostic {
    let diagnostic = Diagnostic::error("declared-twice", format!("{what} `{name}` is declared twice"), at);
    let hint = with_variants_hint("keep one of the two", at, first);
    diagnostic.label("again here").also(first, "first declared here").hint(hint)
}

/// Returns the hint for two conflicting settings or declarations. If the positions are in different files, adds a hint
/// for files that are variants of the same topology.
pub(super) fn with_variants_hint(hint: &str, at: Location, first: Location) -> String {
    if at.file == first.file {
        return hint.to_owned();
    }
    format!("{hint}: topo merges all files of a vhost; keep variants in separate folders, or use `${{NAME}}` variables")
}
