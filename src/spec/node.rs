//! The tree of a YAML document, with the position of every node. It is independent of topologies.

use super::position::Location;

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// The value.
    pub(crate) value: Value,
    /// The position in the source; for an alias or a merged value, the position of the anchor.
    pub(crate) at: Location,
    /// The position of the alias or the merge key, if there is one.
    pub(crate) used_at: Option<Location>,
    /// The source text, if the value does not reproduce it: `1.0`, `007`, or a string with variables.
    pub(crate) written: Option<Box<str>>,
}

/// The value of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Null, with the reason.
    Null(Absent),
    /// `true` or `false`.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// A number with a fraction or an exponent, or an integer that is too large.
    Float(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Table(Vec<Entry>),
}

/// The reason why a value is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// The file has an explicit null, or no value.
    Empty,
    /// YAML reads the intended value as a comment: `routingKey: #.x`.
    Comment,
    /// YAML reads the intended value as an anchor: `routingKey: &x`.
    Anchor,
    /// YAML reads the intended value as a tag: `routingKey: !x`.
    Tag,
}

/// A key of a mapping with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// The position of the key.
    pub(crate) at: Location,
    /// The value.
    pub(crate) node: Node,
}

impl Node {
    /// Returns a node at the same position with another value.
    pub(crate) fn with(&self, value: Value) -> Self {
        Self { value, at: self.at, used_at: self.used_at, written: self.written.clone() }
    }

    /// Returns its entries; empty if it is not a mapping.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            Value::Null(_)
            | Value::Boolean(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_) => &[],
        }
    }

    /// Returns its items; empty if it is not a list.
    pub(crate) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            Value::Null(_)
            | Value::Boolean(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Table(_) => &[],
        }
    }

    /// Returns the number of values at any depth, including itself.
    pub(crate) fn size(&self) -> usize {
        let items = self.items().iter().map(Self::size).sum::<usize>();
        1 + items + self.entries().iter().map(|entry| entry.node.size()).sum::<usize>()
    }

    /// Returns the entry with this key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// Returns the value of this key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// Returns the string, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Null(_)
            | Value::Boolean(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Table(_) => None,
        }
    }

    /// Returns the boolean, if it is one.
    pub(crate) fn boolean(&self) -> Option<bool> {
        match &self.value {
            Value::Boolean(value) => Some(*value),
            Value::Null(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Table(_) => None,
        }
    }

    /// Returns true if it is `true`, including through a variable.
    pub(crate) fn is_true(&self) -> bool {
        self.boolean() == Some(true) || self.is_variable() && self.text() == Some("true")
    }

    /// Returns its text before variables were replaced, if it contained variables.
    pub(crate) fn template(&self) -> Option<&str> {
        self.written.as_deref().filter(|written| written.contains("${"))
    }

    /// Returns true if the whole text came from a variable, so that it is converted to the expected type.
    pub(crate) fn is_variable(&self) -> bool {
        self.template().is_some_and(|text| text.starts_with("${") && text.find('}') == Some(text.len() - 1))
    }

    /// Describes it for messages: `the integer 5`, `a list`.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Null(_) => "nothing".to_owned(),
            Value::Boolean(value) => format!("the boolean `{value}`"),
            Value::Integer(value) => match &self.written {
                Some(written) if self.template().is_none() => format!("the integer {written}"),
                Some(_) | None => format!("the integer {value}"),
            },
            // The broker distinguishes `5.0` from 5.
            Value::Float(value) => format!("the number {value:?}"),
            Value::Text(text) if text.len() <= 40 => format!("the string {text:?}"),
            Value::Text(_) => "a string".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a mapping".to_owned(),
        }
    }
}
