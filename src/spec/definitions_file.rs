//! Recognizes specs, and RabbitMQ definitions files that users pass as specs. Also guesses the vhosts in specs from
//! lines such as `vhost: shop`, before the files are parsed as YAML. The guess can be wrong, so callers must verify it
//! after parsing.

use super::diagnostic::Diagnostic;
use super::diagnostic::Diagnostics;
use super::node::{Location, SourceFile, Value};
use super::yaml;
use crate::model::VhostName;
use std::collections::BTreeSet;

/// Top-level keys that occur only in definitions files from a broker.
const BROKER_KEYS: [&str; 3] = ["\"rabbit_version\"", "\"rabbitmq_version\"", "\"rabbitmq_definition_format\""];
/// The object lists of a definitions file.
const LISTS: [&str; 4] = ["\"vhosts\"", "\"queues\"", "\"exchanges\"", "\"bindings\""];

/// Returns an error if the file is a definitions file. topo does not check the content of such a file, because its keys
/// differ from the keys in a spec.
pub(super) fn refusal(index: usize, file: &SourceFile) -> Option<Diagnostic> {
    let text = file.text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('{') || text.contains("\"version\"") && !BROKER_KEYS.iter().any(|key| text.contains(key)) {
        return None;
    }
    let is_definitions_file = BROKER_KEYS.iter().any(|key| text.contains(key))
        || LISTS.iter().filter(|key| text.contains(*key)).count() >= 2 && text.contains("\"vhost\"");
    let message = format!("`{}` is a RabbitMQ definitions file, not a spec", file.name);
    let hint = format!("convert it to a spec with `topo export --definitions {}`", argument(&file.name));
    is_definitions_file.then(|| Diagnostic::error("definitions", message, Location::start_of(index)).hint(hint))
}

/// Formats a file name as a shell argument, with quotes if the shell would split or expand the name.
fn argument(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%".contains(c);
    match name {
        "<stdin>" => "-".to_owned(),
        plain if plain.chars().all(is_plain) && !plain.starts_with('-') => plain.to_owned(),
        other => format!("'{}'", other.replace('\'', r"'\''")),
    }
}

/// Returns the vhosts in lines such as `vhost: shop`, sorted. Omits mappings, and values with variables, anchors or
/// escapes.
pub fn guess_vhosts(files: &[SourceFile]) -> Vec<VhostName> {
    let lines = files.iter().flat_map(|file| file.text.lines());
    let names: BTreeSet<VhostName> = lines.filter_map(name).map(VhostName::new).collect();
    names.into_iter().collect()
}

/// Returns true if a string is a spec: YAML with a top-level integer `version`. In other YAML files, `version` is
/// usually a string.
pub fn is_spec(text: &str) -> bool {
    let source = SourceFile { name: String::new(), text: text.to_owned() };
    let documents = yaml::documents(0, &source, &mut Diagnostics::default()).unwrap_or_default();
    let mut entries = documents.iter().flat_map(|document| document.entries());
    entries.any(|entry| entry.key == "version" && matches!(entry.node.value, Value::Integer(_)))
}

/// Returns the name in a line such as `vhost: shop`. Returns `None` for any other line. The name can be plain, or in
/// quotes without escapes. A comment can follow the name.
fn name(line: &str) -> Option<&str> {
    let value = line.strip_prefix("vhost:")?.trim();
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            let (inner, _) = quoted.split_once(quote)?;
            return Some(inner).filter(|inner| !inner.contains(['\\', '$']));
        }
    }
    let plain = value.split(" #").next().unwrap_or_default().trim_end();
    let is_indicator = |first: char| "{[&*!|>#$%@`".contains(first);
    Some(plain).filter(|plain| !plain.is_empty() && !plain.starts_with(is_indicator) && !plain.contains("${"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vhost_lines_are_recognized() {
        for (line, expected) in [
            ("vhost: shop", Some("shop")),
            ("vhost: /", Some("/")),
            ("vhost:   a b  # the shop", Some("a b")),
            ("vhost: \"a#b\" # quoted", Some("a#b")),
            ("vhost: 'it'", Some("it")),
            ("vhost: ${name}", None),
            ("vhost: shop-${name}", None),
            ("vhost: \"a\\n\"", None),
            ("vhost: {name: shop}", None),
            ("vhost: &anchor shop", None),
            ("vhost:", None),
            ("  vhost: shop", None),
            ("vhosts: shop", None),
        ] {
            assert_eq!(name(line), expected, "{line}");
        }
    }

    #[test]
    fn spec_has_an_integer_version() {
        assert!(is_spec("# ours\nversion: 1\nvhost: shop\n"));
        assert!(is_spec("{\"version\": 1, \"queues\": {}}"));
        for text in ["", "[]", "name: shop\nversion: 1.0.0\n", "{\"queues\": [", "{\"rabbit_version\": \"4.0.5\"}"] {
            assert!(!is_spec(text), "{text}");
        }
    }

    #[test]
    fn vhosts_are_unique_and_sorted() {
        let file = |text: &str| SourceFile { name: "f".to_owned(), text: text.to_owned() };
        let files = [file("version: 1\nvhost: shop\n---\nvhost: a\n"), file("vhost: shop\nqueues: {}\n")];
        assert_eq!(guess_vhosts(&files), ["a", "shop"].map(VhostName::new));
    }
}
