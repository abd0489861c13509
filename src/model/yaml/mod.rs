//! Builds the trees from which topo writes YAML: specs, spec fragments, and JSON that is converted to YAML. No other
//! module writes YAML.

pub(crate) mod scalar;
pub(crate) mod value;
mod writer;

pub(crate) use writer::{Text, WIDTH, wrap};

use super::object::ObjectId;
use serde_json::Value as Json;
use std::fmt;

/// A YAML value, with the object that it describes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tree {
    value: Value,
    /// The object that the value describes, if there is one.
    about: Option<ObjectId>,
    /// The anchor that aliases refer to, if there is one.
    anchor: Option<String>,
    /// True if the value is always written as a block, even if it is short.
    is_block: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    /// The text of the scalar, including quotes.
    Scalar(String),
    List(Vec<Tree>),
    Table(Vec<Entry>),
}

/// A key with its value, and the comments above the key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    key: String,
    comments: Vec<String>,
    tree: Tree,
}

impl Tree {
    /// Creates a string scalar for a spec, with quotes if necessary. Escapes `${`, which starts a variable in a spec.
    pub(crate) fn text(text: &str) -> Self {
        Self::plain(scalar::text(text))
    }

    /// Creates a string scalar for a file without variables, with quotes if necessary.
    pub(crate) fn literal(text: &str) -> Self {
        Self::plain(scalar::quote_if_needed(text))
    }

    /// Creates a scalar without quotes, such as a number or a duration.
    pub(crate) fn plain(value: impl ToString) -> Self {
        Self { value: Value::Scalar(value.to_string()), about: None, anchor: None, is_block: false }
    }

    pub(crate) fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self { value: Value::List(items.into_iter().collect()), about: None, anchor: None, is_block: false }
    }

    pub(crate) fn table(entries: impl IntoIterator<Item = Entry>) -> Self {
        Self { value: Value::Table(entries.into_iter().collect()), about: None, anchor: None, is_block: false }
    }

    /// Forces the value to be written as a block.
    pub(crate) fn block(self) -> Self {
        Self { is_block: true, ..self }
    }

    /// Converts JSON to a tree in which all mappings and lists are blocks.
    pub(crate) fn from_json(json: &Json) -> Self {
        match json {
            Json::Null | Json::Bool(_) | Json::Number(_) => Self::plain(json),
            Json::String(text) => Self::plain(scalar::quote_if_needed(text)),
            Json::Array(items) => Self::list(items.iter().map(Self::from_json)).block(),
            Json::Object(table) => Self::table(table.iter().map(|(key, value)| Entry {
                key: scalar::quote_if_needed(key),
                comments: Vec::new(),
                tree: Self::from_json(value),
            }))
            .block(),
        }
    }

    /// Sets the value at a path of keys. Creates missing mappings on the path as blocks, and replaces scalars and lists
    /// on the path with such mappings.
    pub(crate) fn set(&mut self, path: &[&str], tree: Self) {
        let [first, rest @ ..] = path else {
            *self = tree;
            return;
        };
        if !matches!(self.value, Value::Table(_)) {
            *self = Self::table([]).block();
        }
        let Value::Table(entries) = &mut self.value else { return };
        let key = scalar::text(first);
        let index = entries.iter().position(|known| known.key == key).unwrap_or_else(|| {
            entries.push(entry(first, Self::table([]).block()));
            entries.len() - 1
        });
        entries[index].tree.set(rest, tree);
    }

    /// Sets the comments above the key at a path. Does nothing if the path does not exist.
    pub(crate) fn comment(&mut self, path: &[&str], comments: Vec<String>) {
        let ([first, rest @ ..], Value::Table(entries)) = (path, &mut self.value) else { return };
        let key = scalar::text(first);
        let Some(found) = entries.iter_mut().find(|known| known.key == key) else { return };
        if rest.is_empty() {
            found.comments = comments;
        } else {
            found.tree.comment(rest, comments);
        }
    }

    /// Returns the value as a complete YAML document.
    pub(crate) fn document(&self) -> String {
        let mut text = Text::default();
        match &self.value {
            Value::Table(_) | Value::List(_) if !self.is_empty() => text.block(self, 0),
            Value::Table(_) | Value::List(_) | Value::Scalar(_) => {
                text.line(self);
                text.text.push('\n');
            }
        }
        text.text
    }

    /// Sets the object that the value describes.
    pub(crate) fn about(self, id: ObjectId) -> Self {
        Self { about: Some(id), ..self }
    }

    /// Adds an anchor, so that aliases can refer to the value.
    pub(crate) fn with_anchor(self, name: &str) -> Self {
        Self { anchor: Some(name.to_owned()), ..self }
    }

    fn has_comments(&self) -> bool {
        match &self.value {
            Value::Scalar(_) => false,
            Value::List(items) => items.iter().any(Self::has_comments),
            Value::Table(entries) => entries.iter().any(|it| !it.comments.is_empty() || it.tree.has_comments()),
        }
    }

    /// Returns true if the value is a mapping or list without entries.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.value {
            Value::Scalar(_) => false,
            Value::List(items) => items.is_empty(),
            Value::Table(entries) => entries.is_empty(),
        }
    }
}

/// Writes the value on one line.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = Text::default();
        line.line(self);
        f.write_str(&line.text)
    }
}

/// Creates an entry in a spec. The key is quoted and escaped if necessary.
pub(crate) fn entry(key: &str, tree: Tree) -> Entry {
    Entry { key: scalar::text(key), comments: Vec::new(), tree }
}

/// Creates an entry in a file without variables. The key is quoted if necessary.
pub(crate) fn literal_entry(key: &str, tree: Tree) -> Entry {
    Entry { key: scalar::quote_if_needed(key), comments: Vec::new(), tree }
}

/// Creates a merge key (`<<`), which includes all keys of the mapping with the given anchor.
pub(crate) fn merge_key(anchor: &str) -> Entry {
    Entry { key: "<<".to_owned(), comments: Vec::new(), tree: Tree::plain(format!("*{anchor}")) }
}

impl Entry {
    /// Returns the key as YAML, with quotes if necessary.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Returns the key as YAML, and the value.
    pub(crate) fn into_parts(self) -> (String, Tree) {
        (self.key, self.tree)
    }

    /// Sets the comments above the entry.
    pub(crate) fn comments(self, comments: Vec<String>) -> Self {
        Self { comments, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_becomes_nested_blocks() {
        let value = json!({
            "a": {"x": 1, "none": {}, "list": []},
            "list": ["plain", {"k": "v", "l": [1, 2]}, [true, null]],
        });
        let expected = "a:\n  x: 1\n  none: {}\n  list: []\nlist:\n  - plain\n  - k: v\n    l:\n      - 1\n      - 2\n  - - true\n    - null\n";
        assert_eq!(Tree::from_json(&value).document(), expected);
        assert_eq!(Tree::from_json(&json!({})).document(), "{}\n");
    }

    #[test]
    fn strings_are_quoted_if_yaml_reads_another_type() {
        let texts = [
            "1",
            "yes",
            "Null",
            "",
            "a: b",
            "a ",
            "# x",
            "-",
            "x\u{7f}\n\u{1b}",
            "größe",
            "5s",
            "${A}",
            "x-death[queue=q].y",
        ];
        for text in texts {
            let written = Tree::from_json(&json!({ "k": text, text: "v" })).document();
            let read: Json = serde_yaml::from_str(&written).unwrap();
            assert_eq!(read, json!({ "k": text, text: "v" }), "{written}");
        }
    }

    #[test]
    fn keys_keep_their_order() {
        let mut tree = Tree::table([]);
        tree.set(&["queues", "a: b", "messageTtl"], Tree::plain("1m"));
        tree.set(&["policies", "p", "priority"], Tree::plain(1));
        tree.set(&["queues", "a: b", "retry"], Tree::table([entry("strategy", Tree::plain("ladder"))]));
        let expected = "queues:\n  \"a: b\":\n    messageTtl: 1m\n    retry: {strategy: ladder}\npolicies:\n  p:\n    priority: 1\n";
        assert_eq!(tree.document(), expected);
    }
}
