//! Records the notation that the parsed values of a document lose: numbers without a unit, and comments directly after
//! a routing key.

use super::node::Location;
use super::node::{Entry, Node, Value};
use super::scalar;
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// A number below this without a unit is less than a second.
const SECOND: i64 = 1000;

/// The notation that lint rules need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notation {
    /// The keys of durations that are less than a second, and are written without a unit.
    pub bare: BTreeSet<Location>,
    /// Comments after routing keys, by the position of the key.
    pub comments_after_keys: BTreeMap<Location, String>,
}

impl Notation {
    /// Adds the notation of a document, which is not checked yet.
    pub(super) fn add(&mut self, document: &Node, text: &str) {
        match &document.value {
            Value::List(items) => items.iter().for_each(|item| self.add(item, text)),
            Value::Table(entries) => {
                for entry in entries {
                    if is_bare(entry) {
                        self.bare.insert(entry.at);
                    }
                    if entry.key == "routingKey"
                        && let Some(comment) = comment_after(&entry.node, text)
                    {
                        self.comments_after_keys.insert(entry.node.at, comment.to_owned());
                    }
                    self.add(&entry.node, text);
                }
            }
            Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => {}
        }
    }
}

fn is_bare(entry: &Entry) -> bool {
    let number = match &entry.node.value {
        Value::Integer(number) => *number,
        Value::Text(text) if entry.node.is_variable() => match scalar::resolve(text) {
            Value::Integer(number) => number,
            Value::Null(_)
            | Value::Boolean(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Table(_) => return false,
        },
        Value::Null(_) | Value::Boolean(_) | Value::Float(_) | Value::Text(_) | Value::List(_) | Value::Table(_) => {
            return false;
        }
    };
    // Zero is the same in every unit.
    (1..SECOND).contains(&number) && is_duration(&entry.key)
}

fn is_duration(key: &str) -> bool {
    let is_named = |known: &&KnownArgument| known.key == key || known.name == key || known.policy_key == Some(key);
    KNOWN_ARGUMENTS.iter().filter(is_named).any(|known| known.unit() == Unit::Milliseconds)
}

/// Returns a comment of a single word after a plain routing key: `routingKey: a #b`. A comment with a space after the
/// `#`, or with several words, is intentional.
fn comment_after<'t>(node: &Node, text: &'t str) -> Option<&'t str> {
    let is_plain = |source: &str| !source.starts_with(['"', '\'', '|', '>']);
    text.get(node.at.start..node.at.end).filter(|source| !source.is_empty() && is_plain(source))?;
    let rest = text.get(node.at.end..)?.lines().next()?.trim_end();
    let comment = rest.trim_start_matches([' ', '\t']);
    let is_comment = comment.len() < rest.len() && comment.starts_with('#');
    // Another comment can follow.
    let (word, after_word) = comment.split_once(char::is_whitespace).unwrap_or((comment, ""));
    let is_word = after_word.is_empty() || word != "#" && after_word.trim_start().starts_with('#');
    (is_comment && is_word).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::diagnostic::Diagnostics;
    use crate::spec::node::SourceFile;
    use crate::spec::yaml;

    fn of(text: &str) -> Notation {
        let file = SourceFile { name: "a.yaml".to_owned(), text: text.to_owned() };
        let documents = yaml::documents(0, &file, &mut Diagnostics::new()).unwrap();
        let mut notation = Notation::default();
        documents.iter().for_each(|document| notation.add(document, text));
        notation
    }

    #[test]
    fn numbers_below_a_second_without_unit_are_found() {
        let text = "a: {messageTtl: 5, maxLength: 5}\nb: {messageTtl: 5ms, expires: 1000}\nc: {x-expires: 999, \
                    message-ttl: 1, consumerTimeout: 0}\n";
        let lines: Vec<_> = of(text).bare.iter().map(|at| (at.line, at.column)).collect();
        assert_eq!(lines, [(1, 5), (3, 5), (3, 21)]);
    }

    #[test]
    fn comments_of_one_word_after_routing_keys_are_found() {
        let text = "- routingKey: a #b\n- routingKey: a # b\n- routingKey: 'a' #b\n- routingKey: a #b c\n- {routingKey: a}\n\
                    - routingKey: order. #\n- routingKey: a#b\n- routingKey: \"a\" #b\n- key: a #b\n- routingKey: a #b # c d\n- \
                    routingKey: a # # b\n";
        let after_word: Vec<_> = of(text).comments_after_keys.iter().map(|(at, it)| (at.line, it.clone())).collect();
        assert_eq!(after_word, [(1, "#b".to_owned()), (6, "#".to_owned()), (10, "#b".to_owned())]);
    }
}
