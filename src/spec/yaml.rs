//! Parses YAML into trees of nodes, one for each document. The YAML library handles anchors, merge keys, duplicate keys
//! and the limits that guard against alias bombs. `scalar` resolves plain scalars. [`plain_yaml`] reads most files,
//! because it is faster.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::node::{Absent, Entry, Location, Node, SourceFile, Value};
use super::scalar::{self, MAX_DEPTH, MAX_NODES, QUOTES, absent_reason, differs_from_source};
use super::{plain_yaml, syntax};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_yaml::{Error, Options, Spanned};
use std::collections::BTreeMap;
use std::fmt;

/// The maximum number of aliases. It is sufficient for a merge key in every queue of the largest specs.
const MAX_ALIASES: usize = 1_000_000;
/// The maximum expansion of aliases for a file of any size, in library events. A scalar is one event.
const MAX_REPLAYED: usize = 2_000_000;

/// The maximum number of times that topo parses a file. Each repaired mistake requires one more parse.
const MAX_PARSES: usize = 20;

/// Parses all documents in a file, and reports mistakes. Returns `None` if the file cannot be parsed.
///
/// Invalid YAML is reported and repaired where possible, so that one unquoted routing key does not hide other mistakes.
/// For a duplicate key, the tree contains only the first entry, so that duplicate keys do not hide other mistakes
/// either.
pub(crate) fn documents(file: usize, source: &SourceFile, diagnostics: &mut Diagnostics) -> Option<Vec<Node>> {
    plain_yaml::documents(file, &source.text).or_else(|| any_documents(file, source, diagnostics))
}

/// Parses all documents in a file with the library, without [`plain_yaml`].
pub(super) fn any_documents(file: usize, source: &SourceFile, diagnostics: &mut Diagnostics) -> Option<Vec<Node>> {
    let mut repaired: Option<String> = None;
    let mut duplicate: Option<Location> = None;
    let (mut last_line, mut replaced_at) = (0, Vec::new());
    for _ in 0..MAX_PARSES {
        let text = repaired.as_deref().unwrap_or(&source.text);
        let policy = if duplicate.is_some() { DuplicateKeyPolicy::LastWins } else { DuplicateKeyPolicy::Error };
        let error = match serde_yaml::from_multiple_with_options::<Spanned<Raw>>(text, options(text, policy)) {
            Ok(documents) => {
                let mut trees = trees(file, source, text, documents, duplicate, diagnostics);
                trees.iter_mut().for_each(|tree| replace_with_null(tree, &replaced_at));
                return Some(trees);
            }
            Err(error) => error,
        };
        let (at, error_text) = position_and_message(file, text, &error);
        if matches!(error.without_snippet(), Error::DuplicateMappingKey { .. }) && duplicate.is_none() {
            duplicate = Some(at);
            continue;
        }
        let tag = scalar::tag_before_value(text, at.start).filter(|_| is_tag_error(&error_text));
        if let Some(tag) = tag {
            let diagnostic = scalar::tag_diagnostic(text, &tag, at);
            if diagnostic.primary == at {
                replaced_at.push(at.start);
            }
            diagnostics.push(diagnostic);
            let mut text = text.to_owned();
            text.replace_range(tag.clone(), &" ".repeat(tag.len()));
            repaired = Some(text);
            continue;
        }
        let repair = syntax::repair(text, at, &error_text);
        // An unrepairable error on the line of the previous repair may be a consequence of that repair.
        if repair.is_some() || at.line != last_line {
            diagnostics.push(syntax::diagnostic(text, at, error_text));
        }
        if let (None, Some(at)) = (&repair, duplicate) {
            diagnostics.push(duplicate_key(text.get(at.start..at.end).unwrap_or_default(), at));
        }
        last_line = at.line;
        replaced_at.push(at.start);
        let repair = repair?;
        // The replaced character may precede the position of the error.
        replaced_at.extend(repair.bytes().zip(text.bytes()).position(|(new, old)| new != old));
        repaired = Some(repair);
    }
    None
}

/// Returns true if the library's error refers to the value after a tag.
fn is_tag_error(error_text: &str) -> bool {
    error_text.contains("tagged scalar") || error_text.starts_with("invalid ")
}

/// Converts the documents to trees. Reports an empty file, and reports and removes duplicate keys.
fn trees(
    file: usize,
    source: &SourceFile,
    text: &str,
    documents: Vec<Spanned<Raw>>,
    duplicate: Option<Location>,
    diagnostics: &mut Diagnostics,
) -> Vec<Node> {
    if documents.is_empty() {
        let message = format!("`{}` is empty", source.name);
        let hint = "start the spec with `version: 1` and `vhost: NAME`";
        diagnostics.push(Diagnostic::error("empty", message, Location::start_of(file)).hint(hint));
    }
    let mut trees: Vec<Node> = documents.into_iter().map(|raw| node(file, text, raw, diagnostics)).collect();
    if let Some(at) = duplicate {
        let count = diagnostics.iter().len();
        trees.iter_mut().for_each(|tree| keep_first(tree, diagnostics));
        if diagnostics.iter().len() == count {
            // The library can treat two different strings, such as 1 and 01, as duplicate keys.
            diagnostics.push(duplicate_key(text.get(at.start..at.end).unwrap_or_default(), at));
        }
    }
    trees
}

fn options(text: &str, duplicates: DuplicateKeyPolicy) -> Options {
    // An alias bomb is a small file, so the limit depends on the file size. A low limit also rejects a bomb sooner.
    let max_replayed = (100_000 + 64 * text.len()).min(MAX_REPLAYED);
    serde_yaml::options! {
        budget: serde_yaml::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 2 * MAX_NODES,
            max_aliases: MAX_ALIASES,
            max_anchors: MAX_ALIASES,
            max_merge_keys: MAX_ALIASES,
            max_documents: 100_000,
            max_total_scalar_bytes: 1 << 30,
            max_recorded_anchor_events: 5_000_000,
            // In an ordinary spec, every queue can use the same anchor, such as `&defaults`.
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_yaml::alias_limits! {
            max_total_replayed_events: max_replayed,
        },
        duplicate_keys: duplicates,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    }
}

/// A value that the library returns, before it is resolved.
enum Raw {
    /// Null, a boolean or a number, which [`plain`] resolves again from the source.
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
        f.write_str("any YAML value")
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
        Raw::Plain => plain(source, at, diagnostics),
        // The library normalizes infinities and NaN: `.INF` becomes `.inf`.
        Raw::Text(content) if matches!(content.as_str(), ".inf" | "-.inf" | ".nan") && !source.starts_with(QUOTES) => {
            Value::Text(source.to_owned())
        }
        Raw::Text(content) => Value::Text(content),
        Raw::List(items) => Value::List(items.into_iter().map(|item| node(file, text, item, diagnostics)).collect()),
        Raw::Table(entries) => Value::Table(
            entries
                .into_iter()
                .map(|(key, value)| {
                    let at = location(file, text, &key.defined);
                    if let Some(tag) = scalar::tag_before_key(text, at.start) {
                        diagnostics.push(scalar::tag_diagnostic(text, &tag, at));
                    }
                    let mut node = node(file, text, value, diagnostics);
                    if let Value::Null(why) = &mut node.value
                        && node.at.start == node.at.end
                    {
                        // A missing value has no position.
                        *why = absent_reason(text, at.end);
                    }
                    Entry { key: key.value, at, node }
                })
                .collect(),
        ),
    };
    let tag = scalar::tag_before_value(text, at.start).filter(|_| at.start < at.end);
    let value = match tag {
        None => value,
        Some(tag) => scalar::apply_tag(text, &tag, &value, at).unwrap_or_else(|| {
            diagnostics.push(scalar::tag_diagnostic(text, &tag, at));
            value
        }),
    };
    let written = differs_from_source(&value, source).then(|| source.into());
    Node { value, at, used_at: (used_at != at).then_some(used_at), written }
}

/// Resolves a plain scalar from its source. Reports an integer outside the range of signed 64-bit integers.
fn plain(source: &str, at: Location, diagnostics: &mut Diagnostics) -> Value {
    let value = scalar::resolve(source);
    let is_whole = source.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'+');
    if is_whole && matches!(value, Value::Float(_)) {
        let message = format!("integer {source} is out of range");
        let hint = "RabbitMQ supports signed 64-bit integers; put the value in quotes if it is a string";
        diagnostics.push(Diagnostic::error("too-large", message, at).hint(hint));
    }
    value
}

fn location(file: usize, text: &str, location: &serde_yaml::Location) -> Location {
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let (line, column) = (number(location.line()), number(location.column()));
    match (location.span().byte_offset(), location.span().byte_len()) {
        (Some(start), Some(length)) => {
            let (start, end) = (number(start), number(start + length));
            // The span of a block scalar includes its last line break.
            let end = start + text.get(start..end).map_or(0, |source| source.trim_end().len());
            Location { file, start, end, line, column }
        }
        (None, _) | (_, None) => Location::at(file, text, line, column),
    }
}

/// Returns the position of a library error, and its message without the position.
fn position_and_message(file: usize, text: &str, error: &Error) -> (Location, String) {
    let error = error.without_snippet();
    let at = error.location().map_or_else(|| Location::start_of(file), |found| location(file, text, &found));
    let error_text = error.to_string();
    (at, error_text.split(" at line ").next().unwrap_or_default().to_owned())
}

/// Replaces the strings that begin at these positions with null, because repairs changed the intended values.
fn replace_with_null(node: &mut Node, places: &[usize]) {
    if places.is_empty() {
        return;
    }
    if places.contains(&node.at.start) && node.text().is_some() {
        node.value = Value::Null(Absent::Empty);
    }
    match &mut node.value {
        Value::Table(entries) => entries.iter_mut().for_each(|entry| replace_with_null(&mut entry.node, places)),
        Value::List(items) => items.iter_mut().for_each(|item| replace_with_null(item, places)),
        Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => {}
    }
}

/// Reports every duplicate key in a tree, and removes all entries with this key except the first.
fn keep_first(node: &mut Node, diagnostics: &mut Diagnostics) {
    match &mut node.value {
        Value::Table(entries) => {
            let mut seen: BTreeMap<String, Location> = BTreeMap::new();
            entries.retain(|entry| match seen.get(&entry.key) {
                Some(first) => {
                    diagnostics.push(duplicate_key(&entry.key, entry.at).also(*first, "first set here"));
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
    let diagnostic = Diagnostic::error("duplicate-key", format!("duplicate key `{key}`"), at);
    diagnostic.label("again here").hint("keep one of the two")
}
