//! Substitutes `${NAME}` and `${NAME:-default}` in the strings and keys of a tree. The caller provides the values.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::node::{Location, Node, Value};
use std::collections::BTreeMap;

/// The values of variables, merged by the caller from `--var`, `--var-file` and `TOPO_VAR_NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a variable. A later value replaces an earlier value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Returns the value of a variable. Returns `None` if the variable is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl FromIterator<(String, String)> for Variables {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// Replaces every variable in a tree. Reports invalid variables, and variables without a value or default.
pub(crate) fn substitute(node: &mut Node, variables: &Variables, diagnostics: &mut Diagnostics) {
    let at = node.at;
    match &mut node.value {
        Value::Text(text) => {
            if let Some(replaced) = replace(text, at, variables, diagnostics) {
                node.written = Some(std::mem::replace(text, replaced).into());
            }
        }
        Value::List(items) => items.iter_mut().for_each(|item| substitute(item, variables, diagnostics)),
        Value::Table(entries) => {
            for entry in entries {
                if let Some(replaced) = replace(&entry.key, entry.at, variables, diagnostics) {
                    entry.key = replaced;
                }
                substitute(&mut entry.node, variables, diagnostics);
            }
        }
        Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) => {}
    }
}

/// Returns a string with its variables replaced. Returns `None` if the string does not contain `${`.
fn replace(text: &str, at: Location, variables: &Variables, diagnostics: &mut Diagnostics) -> Option<String> {
    // Nearly all strings contain no `$`, and searching for one byte is faster than searching for `${`.
    if !text.as_bytes().contains(&b'$') || !text.contains("${") {
        return None;
    }
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let after = &rest[start + 2..];
        if let Some(before) = rest[..start].strip_suffix('$') {
            replaced.push_str(before);
            replaced.push_str("${");
            rest = after;
            continue;
        }
        replaced.push_str(&rest[..start]);
        let Some(end) = after.find('}') else {
            let diagnostic = Diagnostic::error("variable", "this variable has no closing `}`", at);
            diagnostics.push(diagnostic.hint("write $${ for a literal ${"));
            return Some(replaced);
        };
        let inside = &after[..end];
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        // As in a shell, `:-` also replaces an empty value.
        match (variables.get(name), default) {
            (Some(value), None) => replaced.push_str(value),
            (Some(value), Some(_)) if !value.is_empty() => replaced.push_str(value),
            (Some(_) | None, Some(default)) => replaced.push_str(default),
            (None, None) if is_name(name) => {
                let message = format!("the variable `{name}` is not set");
                // `TOPO_VAR_FILE` sets `--var-file`, not the `FILE` variable.
                let sources = match name {
                    "FILE" => "--var FILE=VALUE or --var-file".to_owned(),
                    _ => format!("--var {name}=VALUE, --var-file or TOPO_VAR_{name}"),
                };
                let hint = format!(
                    "set it with {sources}, or write ${{{name}:-DEFAULT}}; topo does not read other environment variables"
                );
                diagnostics.push(Diagnostic::error("variable", message, at).hint(hint));
            }
            (None, None) => {
                let message = format!("invalid variable name `{name}`");
                let hint =
                    "use A-Z, a-z, 0-9 and `_`; the first character must not be a digit; write $${ for a literal ${";
                diagnostics.push(Diagnostic::error("variable", message, at).hint(hint));
            }
        }
        rest = &after[end + 1..];
    }
    replaced.push_str(rest);
    Some(replaced)
}

/// Returns true if the string is a valid variable name.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str) -> (Option<String>, String) {
        let mut variables = Variables::new();
        variables.set("A", "alpha");
        variables.set("EMPTY", "");
        let mut diagnostics = Diagnostics::new();
        let result = replace(text, Location::start_of(0), &variables, &mut diagnostics);
        (result, diagnostics.to_string())
    }

    #[test]
    fn variables_are_replaced() {
        for (text, expected) in [
            ("${A}", "alpha"),
            ("x.${A}.${B:-beta}", "x.alpha.beta"),
            ("${EMPTY:-e}|${EMPTY}", "e|"),
            ("$${A}$", "${A}$"),
            ("${B:-}", ""),
        ] {
            assert_eq!(replaced(text), (Some(expected.to_owned()), String::new()), "{text}");
        }
        assert_eq!(replaced(r"^orders\.work$"), (None, String::new()));
    }

    #[test]
    fn variables_without_value_are_reported() {
        assert_eq!(replaced("${NO}").1, "1:1: error[variable]: the variable `NO` is not set\n");
        assert_eq!(replaced("a ${A").1, "1:1: error[variable]: this variable has no closing `}`\n");
        assert_eq!(replaced("${1-2}").1, "1:1: error[variable]: invalid variable name `1-2`\n");
    }
}
