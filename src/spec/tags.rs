//! Handles YAML tags. Tags of the core schema are applied if they fit the value. Any other tag is reported, because the
//! intended value is usually a string that starts with `!`.

use super::diagnostic::Diagnostic;
use super::node::Location;
use super::node::Value;
use super::scalar;
use std::ops::Range;

/// Returns the tag before a value that starts at this position.
pub(super) fn before_value(text: &str, start: usize) -> Option<Range<usize>> {
    before(text, start, true)
}

/// Returns the tag before a key that starts at this position, on the same line only, because another value ends above
/// it.
pub(super) fn before_key(text: &str, start: usize) -> Option<Range<usize>> {
    before(text, start, false)
}

fn before(text: &str, start: usize, includes_lines_above: bool) -> Option<Range<usize>> {
    let mut rest = text.get(..start)?;
    loop {
        let trimmed = rest.trim_end();
        if rest[trimmed.len()..].contains('\n') {
            if !includes_lines_above {
                return None;
            }
            let line = trimmed.rfind('\n').map_or(0, |end| end + 1);
            let content = line + without_comment(&trimmed[line..]).len();
            if content < trimmed.len() {
                // Keeps the line break, so that the line above is handled in the same way.
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
        // Before a colon it is the end of a key: `hello !x: 5`.
        if word.starts_with('!') && !word.ends_with(':') {
            return Some(from..trimmed.len());
        }
        if !word.ends_with('>') {
            return None;
        }
        // `!<tag:yaml.org,2002:str>` contains a comma.
        let line = trimmed.rfind('\n').map_or(0, |end| end + 1);
        return trimmed[line..].rfind("!<").map(|at| line + at..trimmed.len());
    }
}

/// Returns a line without its comment.
fn without_comment(line: &str) -> &str {
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

/// Returns the name of a core schema tag.
fn core(tag: &str) -> Option<&str> {
    let verbatim = || tag.strip_prefix("!<tag:yaml.org,2002:")?.strip_suffix('>');
    let name = tag.strip_prefix("!!").or_else(verbatim)?;
    ["str", "int", "float", "bool", "null", "seq", "map"].contains(&name).then_some(name)
}

/// Applies a tag to a value. Returns `None` if the tag is unknown or does not fit the value.
pub(super) fn applied(text: &str, tag: &Range<usize>, value: &Value, at: Location) -> Option<Value> {
    let name = text.get(tag.clone()).unwrap_or_default();
    let source = text.get(at.start..at.end).unwrap_or_default();
    match (core(name), value) {
        (None, _) => None,
        (Some("str"), Value::Text(_)) | (Some("seq"), Value::List(_)) | (Some("map"), Value::Table(_)) => {
            Some(value.clone())
        }
        (Some(name), _) => {
            // Quotes do not matter, because the tag sets the type.
            let quoted = ['"', '\''].iter().find_map(|quote| source.strip_prefix(*quote)?.strip_suffix(*quote));
            match (name, scalar::resolve(quoted.unwrap_or(source))) {
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

/// Reports a tag that is not in the core schema, or that does not fit its value.
pub(super) fn diagnostic(text: &str, tag: &Range<usize>, value: Location) -> Diagnostic {
    let name = text.get(tag.clone()).unwrap_or_default();
    if core(name).is_some() {
        let diagnostic = Diagnostic::error("syntax", format!("this is not a `{name}`"), value);
        return diagnostic.hint("remove the tag, or correct the value after it");
    }
    let at = Location::spanning(value.file, text, tag.clone());
    let message = format!("YAML reads `{name}` as a tag, not as part of the value");
    let meant = text.get(tag.start..value.end.max(tag.end)).unwrap_or(name);
    let hint = match name {
        _ if name.starts_with("!!") || name.starts_with("!<") || meant.contains(['\n', '"', '\\', '{', '[']) => {
            "remove it, or put a string that starts with `!` in quotes".to_owned()
        }
        _ => format!("put a string that starts with `!` in quotes: \"{meant}\""),
    };
    Diagnostic::error("syntax", message, at).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tag before the `V` of a text.
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
            assert_eq!(found(text, before_value), expected, "{text}");
        }
        assert_eq!(found("a: hello !x\nV: 1", before_key), None);
        assert_eq!(found("a: 1\n!x V: 1", before_key), Some("!x"));
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
            assert_eq!(applied(text, &(0..start - 1), &value, at), expected, "{text}");
        }
    }
}
