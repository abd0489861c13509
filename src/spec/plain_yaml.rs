//! Builds trees directly from the events of the YAML parser, for files without anchors, merge keys, tags, duplicate
//! keys, errors, or unusual content such as a byte order mark or a numeric key. [`yaml`](super::yaml) reads all other
//! files at about half the speed, and reports errors. If both modules can read a file, they build the same trees.

use super::node::{Entry, Location, Node, Value};
use super::scalar::{self, MAX_DEPTH, MAX_NODES, absent_reason, differs_from_source};
use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput};
use std::borrow::Cow;

/// The maximum number of documents in a file that this module reads.
const MAX_DOCUMENTS: usize = 1000;
/// Up to this number of entries, comparing all keys in a mapping is faster than sorting the keys.
const SMALL_MAPPING: usize = 16;

/// Returns all documents in a file. Each document is a mapping. Returns `None` if [`yaml`](super::yaml) must read the
/// file.
pub(super) fn documents(file: usize, text: &str) -> Option<Vec<Node>> {
    // The parser's positions do not account for a byte order mark.
    if text.starts_with('\u{feff}') {
        return None;
    }
    let mut options = Options::default();
    options.set_emit_comments(false);
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader { file, text, parser, events: 0 };
    let mut documents = Vec::new();
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentEnd, _) => {}
            (Event::DocumentStart(_, None), _) if documents.len() < MAX_DOCUMENTS => {
                let first = reader.next()?;
                let document = reader.node(first, 0)?;
                if !matches!(document.value, Value::Table(_)) {
                    return None;
                }
                documents.push(document);
            }
            (Event::StreamEnd, _) if !documents.is_empty() => return Some(documents),
            (_, _) => return None,
        }
    }
}

struct Reader<'a> {
    file: usize,
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    /// The number of events read so far.
    events: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<(Event<'a>, Span)> {
        self.events += 1;
        self.parser.next_event()?.ok().filter(|_| self.events <= MAX_NODES)
    }

    /// Reads the node that begins with this event. `depth` is the nesting depth of the node.
    fn node(&mut self, (event, span): (Event<'a>, Span), depth: usize) -> Option<Node> {
        let at = self.location(&span)?;
        let source = self.text.get(at.start..at.end)?;
        let value = match (event, depth + 1 < MAX_DEPTH) {
            (Event::Scalar(content, ScalarStyle::Plain, 0, None), _) => plain(source, content)?,
            (Event::Scalar(content, _, 0, None), _) => Value::Text(content.into_owned()),
            (Event::SequenceStart(_, 0, None), true) => self.list(depth + 1)?,
            (Event::MappingStart(_, 0, None), true) => self.table(depth + 1)?,
            (_, _) => return None,
        };
        let written = differs_from_source(&value, source).then(|| source.into());
        Some(Node { value, at, used_at: None, written })
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Some(Value::List(items)),
                event => items.push(self.node(event, depth)?),
            }
        }
    }

    fn table(&mut self, depth: usize) -> Option<Value> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            match self.next()? {
                (Event::MappingEnd, _) => break,
                (Event::Scalar(key, style, 0, None), span) => {
                    let at = self.location(&span)?;
                    let is_text = style != ScalarStyle::Plain || scalar::is_plain_text(&key);
                    if !is_text || key == "<<" {
                        return None;
                    }
                    let value = self.next()?;
                    let mut node = self.node(value, depth)?;
                    if let Value::Null(why) = &mut node.value
                        && node.at.start == node.at.end
                    {
                        *why = absent_reason(self.text, at.end);
                    }
                    entries.push(Entry { key: key.into_owned(), at, node });
                }
                _ => return None,
            }
        }
        (!has_duplicate_key(&entries)).then_some(Value::Table(entries))
    }

    fn location(&self, span: &Span) -> Option<Location> {
        let range = span.byte_range()?;
        // The span of a block scalar includes its last line break.
        let end = range.start + self.text.get(range.clone())?.trim_end().len();
        let (line, column) = (span.start.line(), span.start.col() + 1);
        Some(Location { file: self.file, start: range.start, end, line, column })
    }
}

/// Resolves a plain scalar from its source. If the scalar is a string, its value is `content`, in which the lines are
/// joined. Returns `None` for a number that is too large.
fn plain(source: &str, content: Cow<'_, str>) -> Option<Value> {
    let value = scalar::resolve(source);
    if matches!(value, Value::Text(_)) {
        return Some(Value::Text(content.into_owned()));
    }
    let is_whole = !source.contains(['.', 'e', 'E']);
    let is_too_large = matches!(value, Value::Float(number) if is_whole || !number.is_finite());
    (!is_too_large).then_some(value)
}

fn has_duplicate_key(entries: &[Entry]) -> bool {
    if entries.len() <= SMALL_MAPPING {
        return entries.iter().enumerate().any(|(n, entry)| entries[..n].iter().any(|before| before.key == entry.key));
    }
    let mut keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}
