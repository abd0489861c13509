//! Writes strings and argument values as literals in the languages of client configurations.

use crate::model::printable::is_hidden;
use crate::model::{ArgumentValue, Arguments, Float};
use crate::render::style::wrap;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The maximum width of a comment.
const WIDTH: usize = 100;

/// The language of a client configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// Python.
    Python,
    /// TypeScript, with amqplib's notation for typed values.
    TypeScript,
    /// Symfony YAML, in which `%` begins a parameter.
    SymfonyYaml,
    /// Java.
    Java,
}

/// Returns a string literal. Escapes hidden characters, and `##[`, which a workflow runner would interpret as a
/// command.
pub(super) fn string(text: &str, language: Language) -> String {
    let quote = if language == Language::TypeScript { '\'' } else { '"' };
    let mut literal = String::from(quote);
    for (at, c) in text.char_indices() {
        match c {
            _ if c == quote || c == '\\' => literal.extend(['\\', c]),
            '%' if language == Language::SymfonyYaml => literal.push_str("%%"),
            _ if is_hidden(c) || text[at..].starts_with("##[") => literal.push_str(&escape(c, language)),
            _ => literal.push(c),
        }
    }
    literal.push(quote);
    literal
}

fn escape(c: char, language: Language) -> String {
    let code = u32::from(c);
    match language {
        Language::Python | Language::SymfonyYaml if code > 0xffff => format!("\\U{code:08x}"),
        // The compiler replaces `\u000a` before it reads the literal, so the literal would contain a line break.
        Language::Java if code < 0x80 => format!("\\{code:03o}"),
        Language::Python | Language::SymfonyYaml | Language::Java | Language::TypeScript => {
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
    }
}

/// Returns the literal for an argument value. The client sends the value with a type that the broker considers equal to
/// the declared type.
pub(super) fn value(value: &ArgumentValue, language: Language) -> String {
    match value {
        ArgumentValue::Null => if language == Language::Python { "None" } else { "null" }.to_owned(),
        ArgumentValue::Boolean(flag) => match (language, flag) {
            (Language::Python, true) => "True".to_owned(),
            (Language::Python, false) => "False".to_owned(),
            (Language::TypeScript | Language::SymfonyYaml | Language::Java, _) => flag.to_string(),
        },
        ArgumentValue::Integer(number) if language == Language::Java && i32::try_from(*number).is_err() => {
            format!("{number}L")
        }
        ArgumentValue::Integer(number) => number.to_string(),
        // amqplib would send an integer.
        ArgumentValue::Float(Float(number)) if language == Language::TypeScript && number.fract() == 0.0 => {
            format!("{{ '!': 'double', value: {number:?} }}")
        }
        ArgumentValue::Float(Float(number)) => format!("{number:?}"),
        ArgumentValue::Text(text) => string(text, language),
        ArgumentValue::List(values) => {
            let values: Vec<String> = values.iter().map(|one| self::value(one, language)).collect();
            match language {
                Language::Java => format!("List.of({})", values.join(", ")),
                Language::Python | Language::TypeScript | Language::SymfonyYaml => format!("[{}]", values.join(", ")),
            }
        }
        ArgumentValue::Table(table) => {
            let entries = table.iter().map(|(name, one)| (key(name, language), self::value(one, language)));
            match language {
                Language::Java => {
                    let entries: Vec<String> =
                        entries.map(|(key, value)| format!("Map.entry({key}, {value})")).collect();
                    format!("Map.ofEntries({})", entries.join(", "))
                }
                Language::Python | Language::TypeScript | Language::SymfonyYaml => {
                    let entries: Vec<String> = entries.map(|(key, value)| format!("{key}: {value}")).collect();
                    format!("{{{}}}", entries.join(", "))
                }
            }
        }
    }
}

/// Returns the literal for a key. In TypeScript, writes `__proto__` as a computed key, because a literal key would set
/// the prototype of the object.
pub(super) fn key(name: &str, language: Language) -> String {
    match (language, name) {
        (Language::TypeScript, "__proto__") => "['__proto__']".to_owned(),
        (_, _) => string(name, language),
    }
}

/// Writes each argument on a separate line, indented by `indent` spaces.
pub(super) fn arguments(text: &mut String, arguments: &Arguments, language: Language, indent: usize) {
    let end = if language == Language::SymfonyYaml { "" } else { "," };
    for (name, argument) in arguments {
        let _ = writeln!(text, "{:indent$}{}: {}{end}", "", key(name, language), value(argument, language));
    }
}

/// Converts arguments to JSON for amqplib, which sends floats without a fractional part as integers unless their type
/// is set.
pub(super) fn json_arguments(arguments: &Arguments) -> Value {
    fn one(value: &ArgumentValue) -> Value {
        match value {
            ArgumentValue::Float(Float(number)) if number.fract() == 0.0 => json!({ "!": "double", "value": number }),
            ArgumentValue::List(values) => values.iter().map(one).collect(),
            ArgumentValue::Table(table) => Value::Object(all(table)),
            ArgumentValue::Null
            | ArgumentValue::Boolean(_)
            | ArgumentValue::Integer(_)
            | ArgumentValue::Float(_)
            | ArgumentValue::Text(_) => json!(value),
        }
    }
    fn all(arguments: &Arguments) -> Map<String, Value> {
        arguments.iter().map(|(name, value)| (name.clone(), one(value))).collect()
    }
    Value::Object(all(arguments))
}

/// Writes a comment on one or more lines. `mark` is the indentation and the comment mark, such as `    # `.
pub(super) fn comment(text: &mut String, mark: &str, sentence: &str) {
    // In Java, `\u000a` ends a comment.
    let sentence = if mark.contains("//") { sentence.replace('\\', "/") } else { sentence.to_owned() };
    let words: Vec<String> = sentence.split(' ').map(str::to_owned).collect();
    for line in wrap(&words, " ", WIDTH.saturating_sub(mark.len())) {
        let _ = writeln!(text, "{mark}{line}");
    }
}

/// Returns the name, with a number appended if `used` contains the name. Adds the result to `used`.
pub(super) fn unused(name: String, used: &mut BTreeSet<String>) -> String {
    let numbered = (2_u32..).map(|number| format!("{name}_{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| used.insert(name.clone()));
    free.unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Language; 4] = [Language::Python, Language::TypeScript, Language::SymfonyYaml, Language::Java];

    #[test]
    fn strings_are_escaped_for_each_language() {
        let all = |text: &str| ALL.map(|language| string(text, language));
        assert_eq!(all("it's"), [r#""it's""#, r"'it\'s'", r#""it's""#, r#""it's""#]);
        assert_eq!(all(r#"a"\b"#), [r#""a\"\\b""#, r#"'a"\\b'"#, r#""a\"\\b""#, r#""a\"\\b""#]);
        assert_eq!(all("%x% ${y}é"), ["\"%x% ${y}é\"", "'%x% ${y}é'", "\"%%x%% ${y}é\"", "\"%x% ${y}é\""]);
        assert_eq!(all("\n"), [r#""\u000a""#, r"'\u000a'", r#""\u000a""#, r#""\012""#]);
        assert_eq!(
            all("\u{202e}\u{e0041}"),
            [r#""\u202e\U000e0041""#, r"'\u202e\udb40\udc41'", r#""\u202e\U000e0041""#, r#""\u202e\udb40\udc41""#]
        );
        assert_eq!(all("##[x]"), [r##""\u0023#[x]""##, r"'\u0023#[x]'", r##""\u0023#[x]""##, r##""\043#[x]""##]);
    }

    #[test]
    fn values_keep_their_type() {
        let all = |it: &ArgumentValue| ALL.map(|language| value(it, language));
        assert_eq!(all(&true.into()), ["True", "true", "true", "true"]);
        assert_eq!(all(&5.into()), ["5"; 4]);
        assert_eq!(all(&3_000_000_000_i64.into()), ["3000000000", "3000000000", "3000000000", "3000000000L"]);
        assert_eq!(all(&"5".into()), ["\"5\"", "'5'", "\"5\"", "\"5\""]);
        let float = ArgumentValue::Float(Float(5.0));
        assert_eq!(all(&float), ["5.0", "{ '!': 'double', value: 5.0 }", "5.0", "5.0"]);
        let nested = ArgumentValue::List(vec![ArgumentValue::Table([("__proto__".to_owned(), 1.into())].into())]);
        assert_eq!(
            all(&nested),
            [
                "[{\"__proto__\": 1}]",
                "[{['__proto__']: 1}]",
                "[{\"__proto__\": 1}]",
                "List.of(Map.ofEntries(Map.entry(\"__proto__\", 1)))"
            ]
        );
        let arguments = [("a".to_owned(), float), ("b".to_owned(), 1.into())].into();
        assert_eq!(json_arguments(&arguments).to_string(), r#"{"a":{"!":"double","value":5.0},"b":1}"#);
    }
}
