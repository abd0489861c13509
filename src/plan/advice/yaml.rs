//! Pieces of a spec as text: block tables in the order in which they were said, every scalar so that the spec's reader
//! takes it for the same value.

use crate::model::known_arguments::{KnownArgument, ValueKind};
use crate::model::printable::is_hidden;
use crate::model::units::{duration, size};
use crate::model::{ArgumentValue, age};
use std::fmt::Write;

/// Words that YAML, of one version or another, takes for something else than text.
const NOT_TEXT: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// A document that is put together key by key.
#[derive(Default)]
pub(super) struct Fragment {
    remarks: Vec<String>,
    table: Vec<(String, Part)>,
}

enum Part {
    Scalar(String),
    Table(Vec<(String, Self)>),
}

impl Fragment {
    /// Puts a value, which is YAML already, at a path of keys, which are not.
    pub(super) fn set(&mut self, path: &[&str], yaml: impl Into<String>) {
        insert(&mut self.table, path, yaml.into());
    }

    /// A comment before all else.
    pub(super) fn remark(&mut self, text: String) {
        self.remarks.push(text);
    }

    /// The text; `None` when there is nothing to write.
    pub(super) fn text(&self) -> Option<String> {
        if self.table.is_empty() {
            return None;
        }
        let mut text = String::new();
        for remark in &self.remarks {
            let _ = writeln!(text, "# {remark}");
        }
        write_table(&mut text, &self.table, 0);
        Some(text)
    }
}

fn insert(table: &mut Vec<(String, Part)>, path: &[&str], yaml: String) {
    let [first, rest @ ..] = path else { return };
    let key = scalar(first);
    let index = match table.iter().position(|(known, _)| *known == key) {
        Some(index) => index,
        None => {
            table.push((key, Part::Table(Vec::new())));
            table.len() - 1
        }
    };
    let part = &mut table[index].1;
    if rest.is_empty() {
        *part = Part::Scalar(yaml);
    } else {
        if matches!(part, Part::Scalar(_)) {
            *part = Part::Table(Vec::new());
        }
        if let Part::Table(inner) = part {
            insert(inner, rest, yaml);
        }
    }
}

fn write_table(text: &mut String, table: &[(String, Part)], depth: usize) {
    for (key, part) in table {
        let indent = "  ".repeat(depth);
        match part {
            Part::Scalar(yaml) => {
                let _ = writeln!(text, "{indent}{key}: {yaml}");
            }
            Part::Table(inner) => {
                let _ = writeln!(text, "{indent}{key}:");
                write_table(text, inner, depth + 1);
            }
        }
    }
}

/// Text as a scalar, plain where nobody can take it for anything else. `${` is a variable to a spec, `$${` is not.
pub(in crate::plan) fn scalar(text: &str) -> String {
    let text = text.replace("${", "$${");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_plain);
    if is_word && !NOT_TEXT.contains(&text.to_ascii_lowercase().as_str()) {
        text
    } else if !text.chars().any(is_hidden) {
        format!("'{}'", text.replace('\'', "''"))
    } else {
        let mut quoted = String::from("\"");
        for c in text.chars() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                c if !is_hidden(c) => quoted.push(c),
                c => {
                    let _ = write!(quoted, "\\U{:08X}", u32::from(c));
                }
            }
        }
        quoted + "\""
    }
}

/// Any value as it stands.
pub(in crate::plan) fn value(value: &ArgumentValue) -> String {
    match value {
        ArgumentValue::Text(text) => scalar(text),
        ArgumentValue::List(items) => {
            let items: Vec<String> = items.iter().map(self::value).collect();
            format!("[{}]", items.join(", "))
        }
        ArgumentValue::Table(table) => flow(table.iter().map(|(key, item)| (key.as_str(), self::value(item)))),
        ArgumentValue::Null | ArgumentValue::Boolean(_) | ArgumentValue::Integer(_) | ArgumentValue::Float(_) => {
            value.to_string()
        }
    }
}

/// A table in one line; the values are YAML already.
pub(in crate::plan) fn flow<'a>(entries: impl Iterator<Item = (&'a str, String)>) -> String {
    let entries: Vec<String> = entries.map(|(key, yaml)| format!("{}: {yaml}", scalar(key))).collect();
    format!("{{{}}}", entries.join(", "))
}

/// A known argument's value in the spec's own units; `None` where the grammar has no words for it.
pub(super) fn known(known: &KnownArgument, value: &ArgumentValue) -> Option<String> {
    match (known.value, value) {
        (ValueKind::Duration(least, most), ArgumentValue::Integer(number)) => {
            let in_units = || duration(*number).unwrap_or_else(|| number.to_string());
            (least..=most).contains(number).then(in_units)
        }
        (ValueKind::Size(most), ArgumentValue::Integer(number)) => {
            (0..=most).contains(number).then(|| size(*number).unwrap_or_else(|| number.to_string()))
        }
        (ValueKind::Count(least, most), ArgumentValue::Integer(number)) => {
            (least..=most).contains(number).then(|| number.to_string())
        }
        (ValueKind::Boolean, ArgumentValue::Boolean(truth)) => Some(truth.to_string()),
        (ValueKind::Text, ArgumentValue::Text(text)) => Some(scalar(text)),
        (ValueKind::OneOf(words), ArgumentValue::Text(text)) => words.contains(&text.as_str()).then(|| scalar(text)),
        (ValueKind::MaxAge, ArgumentValue::Text(text)) => {
            // The broker takes two lines for an age; a spec does not.
            (age(text).is_some() && !text.contains('\n')).then(|| text.clone())
        }
        (
            ValueKind::Duration(..)
            | ValueKind::Size(_)
            | ValueKind::Count(..)
            | ValueKind::Boolean
            | ValueKind::Text
            | ValueKind::OneOf(_)
            | ValueKind::MaxAge,
            _,
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_plain_where_they_can_be() {
        for (text, yaml) in [
            ("orders.mail", "orders.mail"),
            ("30000", "'30000'"),
            ("true", "'true'"),
            ("No", "'No'"),
            ("", "''"),
            ("it's", "'it''s'"),
            (r"^orders\.mail$", r"'^orders\.mail$'"),
            ("${A}", "'$${A}'"),
            ("a: b", "'a: b'"),
            ("größe", "'größe'"),
            ("a\u{1}\"\\", r#""a\U00000001\"\\""#),
            ("\u{202e}x", r#""\U0000202Ex""#),
        ] {
            assert_eq!(scalar(text), yaml);
        }
    }

    #[test]
    fn a_fragment_keeps_its_order() {
        let mut fragment = Fragment::default();
        fragment.set(&["queues", "a b", "messageTtl"], "1m");
        fragment.set(&["policies", "p", "priority"], "1");
        fragment.set(&["queues", "a b", "maxLength"], "5");
        fragment.remark("first".to_owned());
        let text = fragment.text().unwrap();
        let expected =
            "# first\nqueues:\n  'a b':\n    messageTtl: 1m\n    maxLength: 5\npolicies:\n  p:\n    priority: 1\n";
        assert_eq!(text, expected);
    }
}
