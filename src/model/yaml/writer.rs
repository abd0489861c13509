//! Writes trees as idiomatic YAML: short mappings on one line, long mappings as blocks, and quotes only where they are
//! necessary. Records the position of each object in the text.

use super::{Entry, Tree, Value, scalar};
use crate::model::object::ObjectId;
use std::ops::Range;

/// The maximum length of a line, in characters. A longer mapping or list is written as a block.
pub(crate) const WIDTH: usize = 100;

/// A YAML document, with the positions of its objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    /// The text of the document.
    pub(crate) text: String,
    /// The byte ranges of objects, ordered by their ends. An inner range precedes the range that contains it.
    object_ranges: Vec<(Range<usize>, ObjectId)>,
    /// The byte ranges that no other range contains.
    outermost: Vec<Range<usize>>,
}

impl Text {
    /// Writes a document from its sections. Sections that are mappings or lists follow an empty line and are written as
    /// blocks. `vhost` and `cluster` are exceptions, and sections with an anchor can be on one line.
    pub(crate) fn of(sections: &[Entry]) -> Self {
        let mut text = Self::default();
        for section in sections {
            let is_scalar = matches!(section.tree.value, Value::Scalar(_));
            let is_separate = !is_scalar && !["vhost", "cluster"].contains(&section.key.as_str());
            if is_separate {
                text.text.push('\n');
            }
            text.entry(section, 0, is_separate && section.tree.anchor.is_none());
        }
        text
    }

    /// Inserts a header before the text.
    pub(crate) fn with_header(self, header: String) -> Self {
        let offset = header.len();
        let moved = |range: Range<usize>| range.start + offset..range.end + offset;
        Self {
            text: header + &self.text,
            object_ranges: self.object_ranges.into_iter().map(|(range, id)| (moved(range), id)).collect(),
            outermost: self.outermost.into_iter().map(moved).collect(),
        }
    }

    /// Returns the objects at a byte offset, innermost first.
    pub(crate) fn at(&self, byte: usize) -> impl Iterator<Item = &ObjectId> {
        let outer = self.outermost.get(self.outermost.partition_point(|range| range.end <= byte)).cloned();
        let Range { start, end } = outer.unwrap_or_default();
        let until = |end: usize| self.object_ranges.partition_point(|(range, _)| range.end <= end);
        let inside = &self.object_ranges[until(start)..until(end)];
        inside.iter().filter(move |(range, _)| range.contains(&byte)).map(|(_, id)| id)
    }

    fn entry(&mut self, entry: &Entry, depth: usize, is_block: bool) {
        let indent = "  ".repeat(depth);
        for comment in &entry.comments {
            for line in wrap(&scalar::comment(comment), WIDTH.saturating_sub(indent.len() + 2)) {
                self.text.push_str(&format!("{indent}# {line}\n"));
            }
        }
        self.text.push_str(&indent);
        self.key_and_value(entry, depth, is_block);
    }

    /// Writes a key and its value. Nested blocks are indented one level deeper.
    fn key_and_value(&mut self, entry: &Entry, depth: usize, is_block: bool) {
        let start = self.text.len();
        self.text.push_str(&format!("{}:", entry.key));
        let tree = &entry.tree;
        if let Some(anchor) = &tree.anchor {
            self.text.push_str(&format!(" &{anchor}"));
        }
        let line = self.text.rfind('\n').map_or(0, |at| at + 1);
        let room = WIDTH.saturating_sub(columns(&self.text[line..]) + 1);
        if matches!(tree.value, Value::Scalar(_)) || tree.is_empty() || !is_block && !tree.is_block && fits(tree, room)
        {
            self.text.push(' ');
            self.line(tree);
            self.text.push('\n');
        } else {
            self.text.push('\n');
            self.block(tree, depth + 1);
        }
        self.record_range(start, tree);
    }

    pub(super) fn block(&mut self, tree: &Tree, depth: usize) {
        match &tree.value {
            Value::Scalar(_) => {}
            Value::Table(entries) => entries.iter().for_each(|it| self.entry(it, depth, false)),
            Value::List(items) => items.iter().for_each(|it| self.item(it, depth)),
        }
    }

    fn item(&mut self, tree: &Tree, depth: usize) {
        self.text.push_str(&"  ".repeat(depth));
        self.item_after_indent(tree, depth);
    }

    fn item_after_indent(&mut self, tree: &Tree, depth: usize) {
        let start = self.text.len();
        self.text.push_str("- ");
        let room = WIDTH.saturating_sub(2 * depth + 2);
        match &tree.value {
            Value::Table(entries) if !tree.is_empty() && (tree.is_block || !fits(tree, room)) => {
                for (index, entry) in entries.iter().enumerate() {
                    if index == 0 {
                        self.key_and_value(entry, depth + 1, false);
                    } else {
                        self.entry(entry, depth + 1, false);
                    }
                }
            }
            Value::List(items) if !tree.is_empty() && tree.is_block => {
                for (index, item) in items.iter().enumerate() {
                    if index == 0 {
                        self.item_after_indent(item, depth + 1);
                    } else {
                        self.item(item, depth + 1);
                    }
                }
            }
            Value::Table(_) | Value::Scalar(_) | Value::List(_) => {
                self.line(tree);
                self.text.push('\n');
            }
        }
        self.record_range(start, tree);
    }

    /// Writes a nested value on one line.
    fn flow(&mut self, tree: &Tree) {
        let start = self.text.len();
        self.line(tree);
        self.record_range(start, tree);
    }

    pub(super) fn line(&mut self, tree: &Tree) {
        match &tree.value {
            Value::Scalar(text) => self.text.push_str(text),
            Value::List(items) => {
                self.text.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.text.push_str(if index == 0 { "" } else { ", " });
                    self.flow(item);
                }
                self.text.push(']');
            }
            Value::Table(entries) => {
                self.text.push('{');
                for (index, entry) in entries.iter().enumerate() {
                    self.text.push_str(if index == 0 { "" } else { ", " });
                    // The key belongs to the object that the value describes, as in a block.
                    let start = self.text.len();
                    self.text.push_str(&format!("{}: ", entry.key));
                    self.line(&entry.tree);
                    self.record_range(start, &entry.tree);
                }
                self.text.push('}');
            }
        }
    }

    fn record_range(&mut self, start: usize, tree: &Tree) {
        if let Some(id) = &tree.about {
            let range = start..self.text.len();
            while self.outermost.last().is_some_and(|inner| inner.start >= start) {
                self.outermost.pop();
            }
            self.outermost.push(range.clone());
            self.object_ranges.push((range, id.clone()));
        }
    }
}

fn fits(tree: &Tree, room: usize) -> bool {
    let mut line = Text::default();
    line.flow(tree);
    columns(&line.text) <= room && !tree.has_comments()
}

/// Wraps a string into lines of at most `width` columns, and indents all lines except the first by two spaces. A word
/// that does not fit goes on a line of its own.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::QueueName;
    use crate::model::yaml::entry;

    #[test]
    fn short_mappings_are_on_one_line_and_long_ones_in_a_block() {
        let long = "x".repeat(50);
        let queue = |name: &str| {
            let id = ObjectId::Queue(QueueName::new(name));
            let bindings = [name, "b"].map(|it| Tree::table([entry("exchange", Tree::text(it))]));
            let keys = [entry("type", Tree::text("quorum")), entry("bindings", Tree::list(bindings))];
            entry(name, Tree::table(keys).about(id)).comments(vec!["odd".to_owned()])
        };
        let text = Text::of(&[
            entry("version", Tree::plain(1)),
            entry("queues", Tree::table([queue("a"), queue(&long)])),
            entry("none", Tree::table([])),
        ]);
        let expected = format!(
            "version: 1\n\nqueues:\n  # odd\n  a: {{type: quorum, bindings: [{{exchange: a}}, {{exchange: b}}]}}\n  # odd\n  \
             {long}:\n    type: quorum\n    bindings: [{{exchange: {long}}}, {{exchange: b}}]\n\nnone: {{}}\n"
        );
        assert_eq!(text.text, expected);
        let at = |part: &str| text.at(text.text.find(part).unwrap()).map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(at("quorum"), ["queue a"]);
        assert_eq!(at("version"), [""; 0]);
        let id = ObjectId::Queue(QueueName::new("a"));
        let nested = entry("x", Tree::table([entry("key", Tree::text("v").about(id))]));
        let text = Text::of(&[entry("top", Tree::table([nested]))]);
        assert_eq!(text.text, "\ntop:\n  x: {key: v}\n");
        let at = |part: &str| text.at(text.text.find(part).unwrap()).map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            (at("key"), at("v}"), at("x:")),
            (vec!["queue a".to_owned()], vec!["queue a".to_owned()], Vec::new())
        );
    }
}
