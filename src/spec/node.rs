//! The tree of a YAML document, every node with its position. It says nothing of topologies.

use super::position::Location;

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// What it is.
    pub(crate) value: Value,
    /// Where it is written; for an alias or a merged value, where the anchor is.
    pub(crate) at: Location,
    /// Where it is used, when that is elsewhere: the alias, or the merge key.
    pub(crate) used_at: Option<Location>,
    /// How it is written, where its value does not say it: `1.0`, `007`, or a text with variables.
    pub(crate) written: Option<Box<str>>,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Nothing, and why.
    Null(Absent),
    /// `true` or `false`.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// A number with a fraction or an exponent, or an integer that is too large.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A table, in the order of the file.
    Table(Vec<Entry>),
}

/// Why nothing stands where a value may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It is said, or nothing is.
    Said,
    /// What was meant is a comment: `routingKey: #.x`.
    Comment,
    /// What was meant is an anchor: `routingKey: &x`.
    Anchor,
    /// What was meant is a tag: `routingKey: !x`.
    Tag,
}

/// A key of a table with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// Where the key is written.
    pub(crate) at: Location,
    /// The value.
    pub(crate) node: Node,
}

impl Node {
    /// The same place with another value.
    pub(crate) fn with(&self, value: Value) -> Self {
        Self { value, at: self.at, used_at: self.used_at, written: self.written.clone() }
    }

    /// Its entries; none when it is no table.
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

    /// Its items; none when it is no list.
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

    /// How many values it holds at any depth, itself among them.
    pub(crate) fn size(&self) -> usize {
        let items = self.items().iter().map(Self::size).sum::<usize>();
        1 + items + self.entries().iter().map(|entry| entry.node.size()).sum::<usize>()
    }

    /// The entry with that key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The value at that key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The text, if it is one.
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

    /// The boolean, if it is one.
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

    /// Whether it is `true`, also by a variable.
    pub(crate) fn is_true(&self) -> bool {
        self.boolean() == Some(true) || self.is_variable() && self.text() == Some("true")
    }

    /// Its text before the variables in it were replaced, if it had some.
    pub(crate) fn template(&self) -> Option<&str> {
        self.written.as_deref().filter(|written| written.contains("${"))
    }

    /// Whether the whole text came from a variable, so that it takes the type that its position wants.
    pub(crate) fn is_variable(&self) -> bool {
        self.template().is_some_and(|text| text.starts_with("${") && text.find('}') == Some(text.len() - 1))
    }

    /// What it is, for people: `the integer 5`, `a list`.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Null(_) => "nothing".to_owned(),
            Value::Boolean(value) => format!("the boolean `{value}`"),
            Value::Integer(value) => match &self.written {
                Some(written) if self.template().is_none() => format!("the integer {written}"),
                Some(_) | None => format!("the integer {value}"),
            },
            // `5.0` is not 5: the broker tells them apart.
            Value::Float(value) => format!("the number {value:?}"),
            Value::Text(text) if text.len() <= 40 => format!("the string {text:?}"),
            Value::Text(_) => "a string".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a mapping".to_owned(),
        }
    }
}
