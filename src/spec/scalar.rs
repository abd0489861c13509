//! Implements the rules that both YAML readers share: the values of plain scalars, the limits on a file, and tags. A
//! core schema tag is applied if it matches the value. Any other tag is reported, because the intended value is usually
//! a string that starts with `!`.

use super::diagnostic::Diagnostic;
use super::node::{Absent, Location, Value};
pub(crate) use crate::model::yaml::scalar::is_plain_text;
use crate::model::yaml::scalar::{self, Plain};
use std::ops::Range;

/// Returns the value of a plain scalar.
pub(crate) fn resolve(text: &str) -> Value {
    match scalar::resolve(text) {
        Plain::Null => Value::Null(Absent::Empty),
        Plain::Boolean(truth) => Value::Boolean(truth),
        Plain::Integer(number) => Value::Integer(number),
        Plain::Float(number) => Value::Float(number),
        Plain::Text => Value::Text(text.to_owned()),
    }
}

/// The maximum nesting depth. It is more than any spec needs, and low enough to prevent a stack overflow.
pub(super) const MAX_DEPTH: usize = 64;

/// The maximum number of nodes. It is sufficient for about 300,000 queues, which need 2 GB of memory, at 400 bytes per
/// node. The YAML library's default is sufficient for only 11,000 queues.
pub(super) const MAX_NODES: usize = 5_000_000;

/// The characters that begin a scalar that is not plain.
pub(super) const QUOTES: [char; 4] = ['"', '\'', '|', '>'];

/// Returns true if the source of a number or boolean differs from its printed form.
pub(super) fn differs_from_source(value: &Value, source: &str) -> bool {
    match value {
        Value::Boolean(value) => source != value.to_string(),
        Value::Integer(value) => source != value.to_string(),
        Value::Float(value) => source != value.to_string(),
        Value::Null(_) | Value::Text(_) | Value::List(_) | Value::Table(_) => false,
    }
}

/// Returns the reason why the key that ends at a position has no value. In `routingKey: #.x`, for example, YAML reads
/// `#.x` as a comment.
pub(super) fn absent_reason(text: &str, end: usize) -> Absent {
    let rest = text.get(end..).unwrap_or_default().trim_start_matches([' ', '\t', ':']);
    match rest.chars().next() {
        Some('#') => Absent::Comment,
        Some('&') => Absent::Anchor,
        Some('!') => Absent::Tag,
        Some(_) | None => Absent::Empty,
    }
}

/// Returns the range of the tag before the value that starts at `start`, if there is one.
pub(super) fn tag_before_value(text: &str, start: usize) -> Option<Range<usize>> {
    tag_before(text, start, true)
}

/// Returns the range of the tag before the key that starts at `start`, if there is one. Searches only the same line,
/// because the line above belongs to a different value.
pub(super) fn tag_before_key(text: &str, start: usize) -> Option<Range<usize>> {
    tag_before(text, start, false)
}

fn tag_before(text: &str, start: usize, includes_lines_above: bool) -> Option<Range<usize>> {
    let mut rest = text.get(..start)?;
    loop {
        let trimmed = rest.trim_end();
        if rest[trimmed.len()..].contains('\n') {
            if !includes_lines_above {
                return None;
            }
            let line = trimmed.rfind('\n').map_or(0, |end| end + 1);
            let content = line + line_without_comment(&trimmed[line..]).len();
            if content < trimmed.len() {
                // Keeps the line break, so that the next iteration handles the line above in the same way.
                rest = if content == line { &trimmed[..line] } else { &trimmed[..content] };
                continue;
            }
        }
        let is_end = |c: char| c.is_whitespace() || "{[,".contains(c);
        let from = trimmed.rfind(is_end).map_or(0, |at| at + trimmed[at..].chars().next().map_or(1, char::len_utf8));
        let word = &trimmed[from..];
        if word.starts_with('&') {
            rest = &trimmed[..from];
            continue;
        }
        // A word before a colon is the end of a key: `hello !x: 5`.
        if word.starts_with('!') && !word.ends_with(':') {
            return Some(from..trimmed.len());
        }
        if !word.ends_with('>') {
            return None;
        }
        // A verbatim tag such as `!<tag:yaml.org,2002:str>` contains a comma.
        let line = trimmed.rfind('\n').map_or(0, |end| end + 1);
        return trimmed[line..].rfind("!<").map(|at| line + at..trimmed.len());
    }
}

/// Returns a line without its comment.
fn line_without_comment(line: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (at, c) in line.char_indices() {
        let starts_token = before.is_whitespace() || "{[,".contains(before);
        match (quote, c) {
            (None, '#') if before.is_whitespace() => return line[..at].trim_end(),
            (None, '"' | '\'') if starts_token => quote = Some(c),
            (Some(open), _) if c == open && !(c == '"' && before == '\\') => quote = None,
            (None | Some(_), _) => {}
        }
        before = c;
    }
    line
}

/// Returns the name of a core schema tag. Returns `None` for any other tag.
fn core_tag(tag: &str) -> Option<&str> {
    let verbatim = || tag.strip_prefix("!<tag:yaml.org,2002:")?.strip_suffix('>');
    let name = tag.strip_prefix("!!").or_else(verbatim)?;
    ["str", "int", "float", "bool", "null", "seq", "map"].contains(&name).then_some(name)
}

/// Applies a tag to a value. Returns `None` if the tag is unknown or does not match the value.
pub(super) fn apply_tag(text: &str, tag: &Range<usize>, value: &Value, at: Location) -> Option<Value> {
    let name = text.get(tag.clone()).unwrap_or_default();
    let source = text.get(at.start..at.end).unwrap_or_default();
    match (core_tag(name), value) {
        (None, _) => None,
        (Some("str"), Value::Text(_)) | (Some("seq"), Value::List(_)) | (Some("map"), Value::Table(_)) => {
            Some(value.clone())
        }
        (Some(name), _) => {
            // Quotes do not matter, because the tag sets the type.
            let quoted = ['"', '\''].iter().find_map(|quote| source.strip_prefix(*quote)?.strip_suffix(*quote));
            match (name, resolve(quoted.unwrap_or(source))) {
                ("float", Value::Integer(value)) => Some(Value::Float(value as f64)),
                ("int", value @ Value::Integer(_))
                | ("float", value @ Value::Float(_))
                | ("bool", value @ Value::Boolean(_))
                | ("null", value @ Value::Null(_)) => Some(value),
                (_, _) => None,
            }
        }
    }
}

/// Creates the diagnostic for a tag that is not in the core schema, or that does not match its value.
pub(super) fn tag_diagnostic(text: &str, tag: &Range<usize>, value: Location) -> Diagnostic {
    let name = text.get(tag.clone()).unwrap_or_default();
    if core_tag(name).is_some() {
        let diagnostic = Diagnostic::error("syntax", format!("this value does not match the `{name}` tag"), value);
        return diagnostic.hint("remove the tag, or correct the value after it");
    }
    let at = Location::spanning(value.file, text, tag.clone());
    let message = format!("YAML reads `{name}` as a tag, not as part of the value");
    let meant = text.get(tag.start..value.end.max(tag.end)).unwrap_or(name);
    let hint = match name {
        _ if name.starts_with("!!") || name.starts_with("!<") || meant.contains(['\n', '"', '\\', '{', '[']) => {
            "remove the tag, or put a string that starts with `!` in quotes".to_owned()
        }
        _ => format!("put a string that starts with `!` in quotes: \"{meant}\""),
    };
    Diagnostic::error("syntax", message, at).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tag before the first `V` in a string.
    fn found(text: &str, before: fn(&str, usize) -> Option<Range<usize>>) -> Option<&str> {
        before(text, text.find('V')?).and_then(|range| text.get(range))
    }

    #[test]
    fn only_tags_are_found() {
        for (text, expected) in [
            ("key: !y V", Some("!y")),
            ("key: !y  V", Some("!y")),
            ("[!y V", Some("!y")),
            ("{a: b,!y V", Some("!y")),
            ("key: !y &anchor V", Some("!y")),
            ("key: &anchor !y V", Some("!y")),
            ("key: !y # why\n  V", Some("!y")),
            ("key: !y\n\n  # why !z\n  V", Some("!y")),
            ("key: !<tag:yaml.org,2002:str> V", Some("!<tag:yaml.org,2002:str>")),
            ("key: V", None),
            ("hello !x: V", None),
            ("\"hello !x\": V", None),
            ("key: # hello !x\n  V", None),
            ("# hello !x\nV", None),
            ("'a # !x': # !y\n  - V", None),
            ("V", None),
        ] {
            assert_eq!(found(text, tag_before_value), expected, "{text}");
        }
        assert_eq!(found("a: hello !x\nV: 1", tag_before_key), None);
        assert_eq!(found("a: 1\n!x V: 1", tag_before_key), Some("!x"));
    }

    #[test]
    fn tags_of_the_core_schema_are_applied() {
        for (text, value, expected) in [
            ("!!str 5", Value::Text("5".to_owned()), Some(Value::Text("5".to_owned()))),
            ("!!int \"5\"", Value::Text("\"5\"".to_owned()), Some(Value::Integer(5))),
            ("!!float 5", Value::Integer(5), Some(Value::Float(5.0))),
            ("!!bool 'true'", Value::Text("'true'".to_owned()), Some(Value::Boolean(true))),
            ("!!int five", Value::Text("five".to_owned()), None),
            ("!!seq {}", Value::Table(Vec::new()), None),
            ("!!binary aGk=", Value::Text("hi".to_owned()), None),
            ("! 5", Value::Text("5".to_owned()), None),
        ] {
            let start = text.find(' ').map_or(0, |at| at + 1);
            let at = Location { file: 0, start, end: text.len(), line: 1, column: start + 1 };
            assert_eq!(apply_tag(text, &(0..start - 1), &value, at), expected, "{text}");
        }
    }
}
