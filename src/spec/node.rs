//! Defines the tree of a YAML document, with the position of every node. The tree contains YAML values, not the objects
//! of a topology.

/// One node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// The value.
    pub(crate) value: Value,
    /// The position in the source. If an alias, a merge key or a placeholder of `forEach` inserts the value, this is
    /// the position of the original value.
    pub(crate) at: Location,
    /// The position of the alias, the merge key or the placeholder, if one of these inserts the value.
    pub(crate) used_at: Option<Location>,
    /// The source text, if it cannot be recovered from the value: `1.0`, `007`, or a string with variables.
    pub(crate) written: Option<Box<str>>,
}

/// The value of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Null, with the reason why the value is null.
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
    /// A mapping, in file order.
    Table(Vec<Entry>),
}

/// The reason why a value is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// The file contains an explicit null, or no value.
    Empty,
    /// YAML reads the intended value as a comment: `routingKey: #.x`.
    Comment,
    /// YAML reads the intended value as an anchor: `routingKey: &x`.
    Anchor,
    /// YAML reads the intended value as a tag: `routingKey: !x`.
    Tag,
}

/// A key in a mapping, with its value.
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
    /// Returns the same tree with positions in another file.
    pub(crate) fn in_file(&self, file: usize) -> Self {
        let moved = |at: Location| Location { file, ..at };
        let value = match &self.value {
            Value::List(items) => Value::List(items.iter().map(|item| item.in_file(file)).collect()),
            Value::Table(entries) => Value::Table(
                entries
                    .iter()
                    .map(|entry| Entry { key: entry.key.clone(), at: moved(entry.at), node: entry.node.in_file(file) })
                    .collect(),
            ),
            Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => {
                self.value.clone()
            }
        };
        Self { value, at: moved(self.at), used_at: self.used_at.map(moved), written: self.written.clone() }
    }

    /// Returns a node at the same position with a different value.
    pub(crate) fn with(&self, value: Value) -> Self {
        Self { value, at: self.at, used_at: self.used_at, written: self.written.clone() }
    }

    /// Returns the entries in a mapping. Returns an empty slice for any other node.
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

    /// Returns the items in a list. Returns an empty slice for any other node.
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

    /// Returns the number of values at any depth, including the node itself.
    pub(crate) fn size(&self) -> usize {
        let items = self.items().iter().map(Self::size).sum::<usize>();
        1 + items + self.entries().iter().map(|entry| entry.node.size()).sum::<usize>()
    }

    /// Returns the position of the whole tree. For a list or a mapping, [`at`](Self::at) covers only the start.
    pub(crate) fn extent(&self) -> Location {
        let items = self.items().iter().map(|item| item.extent().end);
        let entries = self.entries().iter().map(|entry| entry.node.extent().end.max(entry.at.end));
        Location { end: items.chain(entries).max().unwrap_or(0).max(self.at.end), ..self.at }
    }

    /// Returns the entry with this key, if the node is a mapping that contains the key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// Returns the value of this key, if the node is a mapping that contains the key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// Returns the string. Returns `None` for any other node.
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

    /// Returns the boolean. Returns `None` for any other node.
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

    /// Returns true if the value is `true`, or a variable with the value `true`.
    pub(crate) fn is_true(&self) -> bool {
        self.boolean() == Some(true) || self.is_variable() && self.text() == Some("true")
    }

    /// Returns the source text before variables were replaced, if the value contained variables.
    pub(crate) fn template(&self) -> Option<&str> {
        self.written.as_deref().filter(|written| written.contains("${"))
    }

    /// Returns a scalar as a string. Returns `None` for null, a list or a mapping.
    pub(crate) fn scalar(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) => Some(text.clone()),
            Value::Boolean(value) => Some(value.to_string()),
            Value::Integer(value) => Some(value.to_string()),
            Value::Float(value) => Some(format!("{value:?}")),
            Value::Null(_) | Value::List(_) | Value::Table(_) => None,
        }
    }

    /// Returns true if the whole value came from one variable. topo converts such a value to the expected type.
    pub(crate) fn is_variable(&self) -> bool {
        self.template().is_some_and(|text| text.starts_with("${") && text.find('}') == Some(text.len() - 1))
    }

    /// Describes the value for messages: `the integer 5`, `a list`.
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

/// A range of bytes in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The index of the file, in the order in which the files were passed.
    pub file: usize,
    /// The offset of the first byte.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
    /// The line number of the first byte, starting at 1.
    pub line: usize,
    /// The column of the first byte in characters, starting at 1.
    pub column: usize,
}

impl Location {
    /// Returns the location of the beginning of a file.
    pub fn start_of(file: usize) -> Self {
        Self { file, start: 0, end: 0, line: 1, column: 1 }
    }

    /// Returns the location of a byte range in a text.
    pub(crate) fn spanning(file: usize, text: &str, range: std::ops::Range<usize>) -> Self {
        let before = text.get(..range.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { file, start: range.start, end: range.end, line, column }
    }

    /// Returns the location of the character at a line and a column. Lines and columns start at 1. If the text or the
    /// line is too short, returns an empty range at the end of the text or line, with the requested line and column.
    pub fn at(file: usize, text: &str, line: usize, column: usize) -> Self {
        let mut start = 0;
        let mut rest = text;
        for _ in 1..line {
            match rest.find('\n') {
                Some(end) => {
                    start += end + 1;
                    rest = &rest[end + 1..];
                }
                None => {
                    start = text.len();
                    rest = "";
                }
            }
        }
        let found = rest.char_indices().take_while(|(_, c)| *c != '\n').nth(column.saturating_sub(1));
        match found {
            Some((offset, c)) => Self { file, start: start + offset, end: start + offset + c.len_utf8(), line, column },
            None => {
                let end = start + rest.find('\n').unwrap_or(rest.len());
                Self { file, start: end, end, line, column }
            }
        }
    }
}

/// A value with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// The position.
    pub at: Location,
}

impl<T> Sourced<T> {
    /// Creates a value with its position.
    pub fn new(value: T, at: Location) -> Self {
        Self { value, at }
    }
}

/// A value in a mapping, with the positions of the key and the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyed<T> {
    /// The value.
    pub value: T,
    /// The position of the key.
    pub key_at: Location,
    /// The position of the value.
    pub at: Location,
}

/// A spec file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The name in messages.
    pub name: String,
    /// The content.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let location = Location::at(0, "a: 1\né: x\n", 2, 4);
        assert_eq!((location.start, location.end), (9, 10));
        assert_eq!(Location::at(0, "a", 7, 1), Location { file: 0, start: 1, end: 1, line: 7, column: 1 });
    }
}
