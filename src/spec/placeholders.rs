//! Replaces the placeholders of `forEach` in keys and values.

use super::diagnostic::Diagnostic;
use super::hints::closest;
use super::node::{Location, Node, Value};
use super::variables::is_name;
use crate::model::count::number;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of values that `forEach` can add to the files in a run. A value takes about 150 bytes of memory.
pub(super) const MAX_EXPANDED: usize = 1_000_000;

/// An item of `forEach`, with the values for its placeholders.
pub(super) struct Item {
    /// The position of the item.
    pub(super) at: Location,
    /// The values, by placeholder: `region`, `region.limit`.
    pub(super) values: BTreeMap<String, Node>,
}

/// A problem with a placeholder.
pub(super) enum Problem {
    /// The item has no such value.
    Unknown(String),
    /// The value is null, a list or a mapping, and the placeholder is part of a longer string or of a key.
    NotAScalar(String),
    /// Two keys in a mapping are identical after the replacement.
    RepeatedKey(String),
    /// The files expand to too many values.
    TooLarge,
}

impl Problem {
    pub(super) fn diagnostic(self, at: Location, item: &Item) -> Diagnostic {
        match self {
            Self::Unknown(name) => {
                let near = closest(&name, item.values.keys().map(String::as_str));
                let hint = match (near, name.split_once('.')) {
                    (Some(near), _) => format!("did you mean `{{{near}}}`? For literal braces, write `{{{{{name}}}}}`"),
                    (None, Some((_, key))) => {
                        format!("add `{key}` to the item; for literal braces, write `{{{{{name}}}}}`")
                    }
                    (None, None) => {
                        format!("use the variable of `forEach`; for literal braces, write `{{{{{name}}}}}`")
                    }
                };
                let diagnostic = Diagnostic::error("for-each", format!("unknown placeholder `{{{name}}}`"), at);
                diagnostic.also(item.at, "not in this item").hint(hint)
            }
            Self::NotAScalar(name) => {
                let message = format!("`{{{name}}}` is null, a list or a mapping, so it cannot be part of a string");
                let hint = "use the placeholder as the whole value, or set it to a string or a number";
                Diagnostic::error("for-each", message, at).also(item.at, "in this item").hint(hint)
            }
            Self::RepeatedKey(key) => {
                let message = format!("the key `{key}` is set twice after placeholders are replaced");
                Diagnostic::error("for-each", message, at).also(item.at, "with this item").hint("remove one of the two")
            }
            Self::TooLarge => {
                let message =
                    format!("`forEach` expands the files to more than {} values", number(MAX_EXPANDED as u64));
                Diagnostic::error("too-large", message, at).hint("use fewer items, or a smaller entry")
            }
        }
    }
}

/// The state while placeholders in one entry are being replaced.
pub(super) struct Substitution<'a> {
    pub(super) item: &'a Item,
    pub(super) errors: Vec<(Problem, Location)>,
    /// The number of values that `forEach` can still add. At 0, the expansion stops.
    pub(super) budget: &'a mut usize,
}

impl Substitution<'_> {
    /// Subtracts values from the budget. Reports the position at which the budget is exhausted.
    pub(super) fn spend(&mut self, values: usize, at: Location) {
        if *self.budget > 0 && *self.budget <= values {
            self.errors.push((Problem::TooLarge, at));
        }
        *self.budget = self.budget.saturating_sub(values);
    }

    /// Replaces the placeholders in a tree.
    pub(super) fn substitute(&mut self, node: &mut Node) {
        let at = node.at;
        match &mut node.value {
            Value::Text(text) => {
                let whole = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
                if let Some(value) = whole.and_then(|name| self.item.values.get(name)) {
                    self.spend(value.size(), at);
                    if *self.budget > 0 {
                        *node = Node { used_at: Some(at), ..value.clone() };
                    }
                } else if text.contains(['{', '}']) {
                    *text = self.replace(text, at);
                    node.written = None;
                }
            }
            Value::List(items) => items.iter_mut().for_each(|item| self.substitute(item)),
            Value::Table(entries) => {
                let mut is_replaced = false;
                for entry in entries.iter_mut() {
                    if entry.key.contains(['{', '}']) {
                        entry.key = self.replace(&entry.key, entry.at);
                        is_replaced = true;
                    }
                    self.substitute(&mut entry.node);
                }
                let mut known: BTreeSet<&str> = BTreeSet::new();
                for entry in entries.iter().filter(|_| is_replaced) {
                    if !known.insert(&entry.key) {
                        self.errors.push((Problem::RepeatedKey(entry.key.clone()), entry.at));
                    }
                }
            }
            Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) => {}
        }
    }

    /// Replaces the placeholders in a string. `at` is the position of the string, for errors.
    pub(super) fn replace(&mut self, text: &str, at: Location) -> String {
        let mut replaced = String::new();
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => replaced.push_str(text),
                Piece::Placeholder(name) => match self.item.values.get(name).map(Node::scalar) {
                    Some(Some(value)) => replaced.push_str(&value),
                    Some(None) => self.errors.push((Problem::NotAScalar(name.to_owned()), at)),
                    None => self.errors.push((Problem::Unknown(name.to_owned()), at)),
                },
            }
        }
        replaced
    }
}

/// A piece of a string: literal text or a placeholder.
pub(super) enum Piece<'a> {
    Text(&'a str),
    /// The name of a placeholder, such as `region.limit`.
    Placeholder(&'a str),
}

/// Splits a string into literal text and placeholders. `{{` and `}}` are literal braces.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        found.push(Piece::Text(&rest[..at]));
        let brace = &rest[at..=at];
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix(brace) {
            found.push(Piece::Text(brace));
            rest = after;
            continue;
        }
        let name = after.split_once('}').map(|(name, _)| name);
        match name.filter(|name| brace == "{" && name.split('.').all(is_name)) {
            Some(name) => {
                found.push(Piece::Placeholder(name));
                rest = &after[name.len() + 1..];
            }
            None => {
                found.push(Piece::Text(brace));
                rest = after;
            }
        }
    }
    found.push(Piece::Text(rest));
    found
}
