//! A JSON value as YAML, in block style: what reads one reads the same from the other.

use crate::model::printable::is_hidden;
use serde_json::Value;
use std::fmt::Write;

/// Words that YAML, of one version or another, takes for something else than text.
const NOT_TEXT: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// The whole document.
pub fn yaml(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(_) | Value::Array(_) if !is_empty(value) => block(&mut text, value, 0),
        Value::Object(_) | Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = writeln!(text, "{}", inline(value));
        }
    }
    text
}

fn block(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                let _ = write!(text, "{indent}{}:", scalar(key));
                below(text, value, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                if is_empty(item) || !(item.is_object() || item.is_array()) {
                    let _ = writeln!(text, "{indent}- {}", inline(item));
                } else {
                    block(&mut inner, item, depth + 1);
                    let _ = write!(text, "{indent}- {}", inner.trim_start());
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = writeln!(text, "{indent}{}", inline(value));
        }
    }
}

/// What stands behind a key: on its line, or below it.
fn below(text: &mut String, value: &Value, depth: usize) {
    if !is_empty(value) && (value.is_object() || value.is_array()) {
        text.push('\n');
        block(text, value, depth + 1);
    } else {
        let _ = writeln!(text, " {}", inline(value));
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// A text, in quotes wherever it could be taken for something else.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/ ".contains(c);
    let is_plain =
        text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain) && !text.ends_with(' ');
    if is_plain && !NOT_TEXT.contains(&text.to_lowercase().as_str()) {
        return text.to_owned();
    }
    // JSON's quotes are YAML's; but YAML prints no control characters, and JSON escapes only some.
    let quoted = Value::from(text).to_string();
    let escape = |c: char| match c {
        c if is_hidden(c) => format!("\\U{:08x}", u32::from(c)),
        c => c.to_string(),
    };
    quoted.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn blocks_are_nested() {
        let value = json!({
            "a": {"x": 1, "none": {}, "list": []},
            "list": ["plain", {"k": "v", "l": [1, 2]}, [true, null]],
        });
        let expected = "a:\n  x: 1\n  none: {}\n  list: []\nlist:\n  - plain\n  - k: v\n    l:\n      - 1\n      - 2\n  - - true\n    - null\n";
        assert_eq!(yaml(&value), expected);
        assert_eq!(yaml(&json!({})), "{}\n");
    }

    #[test]
    fn texts_stay_texts() {
        let texts =
            ["1", "yes", "Null", "", "a: b", "a ", "# x", "-", "x\u{7f}\n\u{1b}", "größe", "5s", "x-death[queue=q].y"];
        for text in texts {
            let written = yaml(&json!({ "k": text, text: "v" }));
            let read: Value = serde_yaml::from_str(&written).unwrap();
            assert_eq!(read, json!({ "k": text, text: "v" }), "{written}");
        }
    }
}
