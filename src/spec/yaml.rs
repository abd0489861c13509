//! YAML text into trees of nodes, one a document. The only module that knows the YAML library: anchors, merge keys,
//! duplicate keys and the limits against bombs are the library's; which plain scalar is what is decided by `scalar`.

use super::SourceFile;
use super::diagnostic::{Diagnostic, Diagnostics};
use super::node::{Entry, Node, Value};
use super::position::Location;
use super::{scalar, syntax};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_yaml::{Error, Options, Spanned};
use std::collections::BTreeMap;
use std::fmt;

/// Deeper than any spec; low enough for the stack.
pub(super) const DEEPEST: usize = 64;
/// Some two million queues: the library's own limit ends at eleven thousand.
const MOST_NODES: usize = 50_000_000;
/// A merge key in every queue of the largest specs.
const MOST_ALIASES: usize = 1_000_000;
/// What aliases may stand for, in events of the library (a scalar is one), however large the file is.
const MOST_REPLAYED: usize = 2_000_000;

/// All documents of a file; `None` when it cannot be read, which is reported.
pub(crate) fn documents(file: usize, source: &SourceFile, diagnostics: &mut Diagnostics) -> Option<Vec<Node>> {
    let text = source.text.as_str();
    let read = |duplicates| serde_yaml::from_multiple_with_options::<Spanned<Raw>>(text, options(text, duplicates));
    let documents = match read(DuplicateKeyPolicy::Error) {
        Err(error) if matches!(error.without_snippet(), Error::DuplicateMappingKey { .. }) => {
            // Read again with all of them, so that each is reported, and the other errors of the file, too.
            let again = read(DuplicateKeyPolicy::LastWins);
            let mut found = Diagnostics::new();
            let mut trees: Vec<Node> =
                again.into_iter().flatten().map(|raw| node(file, text, raw, &mut found)).collect();
            let others = found.iter().len();
            trees.iter_mut().for_each(|tree| keep_first(tree, &mut found));
            if found.iter().len() == others {
                // Two numbers that are one key, such as 1 and 01.
                let (at, _) = place(file, text, &error);
                found.push(duplicate_key(text.get(at.start..at.end).unwrap_or_default(), at));
            }
            diagnostics.extend(found);
            return Some(trees);
        }
        Err(error) => {
            let (at, sentence) = place(file, text, &error);
            diagnostics.push(syntax::diagnostic(text, at, sentence));
            return None;
        }
        Ok(documents) => documents,
    };
    if documents.is_empty() {
        let message = format!("`{}` says nothing", source.name);
        let hint = "a spec starts with `version: 1` and `vhost: NAME`";
        diagnostics.push(Diagnostic::error("empty", message, Location::start_of(file)).hint(hint));
    }
    Some(documents.into_iter().map(|raw| node(file, text, raw, diagnostics)).collect())
}

fn options(text: &str, duplicates: DuplicateKeyPolicy) -> Options {
    // A bomb is a small file: one that is no bomb says something for what it stands for. Most of the time that a bomb takes
    // is spent before it is refused.
    let most_replayed = (100_000 + 64 * text.len()).min(MOST_REPLAYED);
    serde_yaml::options! {
        budget: serde_yaml::budget! {
            max_depth: DEEPEST,
            max_nodes: MOST_NODES,
            max_events: 2 * MOST_NODES,
            max_aliases: MOST_ALIASES,
            max_anchors: MOST_ALIASES,
            max_merge_keys: MOST_ALIASES,
            max_documents: 100_000,
            max_total_scalar_bytes: 1 << 30,
            max_recorded_anchor_events: 5_000_000,
            // One `&defaults` in every queue is what anchors are for.
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_yaml::alias_limits! {
            max_total_replayed_events: most_replayed,
        },
        duplicate_keys: duplicates,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    }
}

/// What the library hands over: values without a type of ours.
enum Raw {
    /// Null, a boolean or a number: decided again from the source.
    Plain,
    Text(String),
    List(Vec<Spanned<Self>>),
    Table(Vec<(Spanned<String>, Spanned<Self>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut table = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            table.push(entry);
        }
        Ok(Raw::Table(table))
    }
}

fn node(file: usize, text: &str, raw: Spanned<Raw>, diagnostics: &mut Diagnostics) -> Node {
    let at = location(file, text, &raw.defined);
    let used_at = location(file, text, &raw.referenced);
    let source = text.get(at.start..at.end).unwrap_or_default();
    let value = match raw.value {
        Raw::Plain => plain(source, at, is_before_comment(text, at.end), diagnostics),
        Raw::Text(content) => Value::Text(content),
        Raw::List(items) => Value::List(items.into_iter().map(|item| node(file, text, item, diagnostics)).collect()),
        Raw::Table(entries) => Value::Table(
            entries
                .into_iter()
                .map(|(key, value)| {
                    let at = location(file, text, &key.defined);
                    let mut node = node(file, text, value, diagnostics);
                    if let Value::Null(is_comment) = &mut node.value {
                        // Such a null has no place of its own.
                        *is_comment |= is_before_comment(text, at.end);
                    }
                    Entry { key: key.value, at, node }
                })
                .collect(),
        ),
    };
    Node { value, at, used_at: (used_at != at).then_some(used_at), is_variable: false }
}

/// A plain scalar, as it is written.
fn plain(source: &str, at: Location, is_comment: bool, diagnostics: &mut Diagnostics) -> Value {
    let value = scalar::resolve(source);
    let is_whole = source.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'+');
    if is_whole && matches!(value, Value::Float(_)) {
        let message = format!("the number {source} is too large");
        let hint = "RabbitMQ's integers have 64 bits; put it in quotes if it is text";
        diagnostics.push(Diagnostic::error("too-large", message, at).hint(hint));
    }
    if matches!(value, Value::Null(_)) { Value::Null(is_comment) } else { value }
}

/// Whether what follows on the line is a comment: `routingKey: #.x` is null to YAML.
fn is_before_comment(text: &str, end: usize) -> bool {
    text.get(end..).is_some_and(|rest| rest.trim_start_matches([' ', '\t', ':']).starts_with('#'))
}

fn location(file: usize, text: &str, location: &serde_yaml::Location) -> Location {
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let (line, column) = (number(location.line()), number(location.column()));
    match (location.span().byte_offset(), location.span().byte_len()) {
        (Some(start), Some(length)) => {
            let (start, end) = (number(start), number(start + length));
            // The span of a block scalar ends behind its last line break.
            let end = start + text.get(start..end).map_or(0, |source| source.trim_end().len());
            Location { file, start, end, line, column }
        }
        (None, _) | (_, None) => Location::at(file, text, line, column),
    }
}

/// Where the library found an error, and its sentence without the position.
fn place(file: usize, text: &str, error: &Error) -> (Location, String) {
    let error = error.without_snippet();
    let at = error.location().map_or_else(|| Location::start_of(file), |found| location(file, text, &found));
    let sentence = error.to_string();
    (at, sentence.split(" at line ").next().unwrap_or_default().to_owned())
}

/// Reports every key that stands twice in a table, and takes the later ones out.
fn keep_first(node: &mut Node, diagnostics: &mut Diagnostics) {
    match &mut node.value {
        Value::Table(entries) => {
            let mut seen: BTreeMap<String, Location> = BTreeMap::new();
            entries.retain(|entry| match seen.get(&entry.key) {
                Some(first) => {
                    diagnostics.push(duplicate_key(&entry.key, entry.at).also(*first, "first here"));
                    false
                }
                None => seen.insert(entry.key.clone(), entry.at).is_none(),
            });
            entries.iter_mut().for_each(|entry| keep_first(&mut entry.node, diagnostics));
        }
        Value::List(items) => items.iter_mut().for_each(|item| keep_first(item, diagnostics)),
        Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => {}
    }
}

fn duplicate_key(key: &str, at: Location) -> Diagnostic {
    let diagnostic = Diagnostic::error("duplicate-key", format!("`{key}` is said twice in one table"), at);
    diagnostic.label("again here").hint("keep one of the two")
}
