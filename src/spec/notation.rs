//! Records notation that the parsed values of a document do not preserve: durations without a unit, comments directly
//! after a routing key, and comments that allow findings (`# topo: allow RULE reason`).
//!
//! An `allow` comment at the end of a line applies to that line. On a separate line, an `allow` comment applies to the
//! next line with content. The YAML library drops comments, so this module searches the text. A `#` inside a value does
//! not start a comment.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::hints::closest;
use super::lint_keys::{self, is_rule};
use super::node::{Entry, Location, Node, SourceFile, Value};
use super::scalar;
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// One second, in milliseconds. A smaller duration without a unit is probably a number of seconds.
const SECOND: i64 = 1000;

/// The notation that lint rules check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notation {
    /// The positions of keys whose value is a duration from 1 to 999 ms without a unit.
    pub bare: BTreeSet<Location>,
    /// One-word comments directly after routing keys, by the position of the routing key.
    pub comments_after_keys: BTreeMap<Location, String>,
}

impl Notation {
    /// Adds the notation in an unchecked document.
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

/// Returns a one-word comment after a plain routing key, such as `#b` in `routingKey: a #b`. A comment with a space
/// after the `#`, or with several words, is intentional.
fn comment_after<'t>(node: &Node, text: &'t str) -> Option<&'t str> {
    let is_plain = |source: &str| !source.starts_with(['"', '\'', '|', '>']);
    text.get(node.at.start..node.at.end).filter(|source| !source.is_empty() && is_plain(source))?;
    let rest = text.get(node.at.end..)?.lines().next()?.trim_end();
    let comment = rest.trim_start_matches([' ', '\t']);
    let is_comment = comment.len() < rest.len() && comment.starts_with('#');
    // A second comment can follow the word.
    let (word, after_word) = comment.split_once(char::is_whitespace).unwrap_or((comment, ""));
    let is_word = after_word.is_empty() || word != "#" && after_word.trim_start().starts_with('#');
    (is_comment && is_word).then_some(word)
}

/// The prefix of topo comments, after the `#`.
const MARK: &str = "topo:";
const ALLOW: &str = "allow";

/// A comment that allows the findings of one rule on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow {
    /// The rule.
    pub rule: String,
    /// The reason, for readers.
    pub reason: String,
    /// The position of the comment.
    pub at: Location,
    /// The line to which the comment applies, in the same file.
    pub line: usize,
}

/// Returns all `allow` comments in a file, and reports invalid comments.
pub(super) fn allows(index: usize, file: &SourceFile, documents: &[Node], diagnostics: &mut Diagnostics) -> Vec<Allow> {
    // Comments cannot be recognized in invalid YAML.
    if documents.is_empty() || !file.text.contains(MARK) {
        return Vec::new();
    }
    let mut values = Vec::new();
    documents.iter().for_each(|document| collect_texts(document, &mut values));
    values.sort_unstable();
    let is_in_value = |at: usize| {
        let before = values.partition_point(|(start, _)| *start <= at);
        values[..before].last().is_some_and(|(_, end)| at < *end)
    };
    let mut found = Vec::new();
    // Comments on separate lines that precede the line to which they apply.
    let mut waiting: Vec<Allow> = Vec::new();
    let mut start = 0;
    for (number, line) in file.text.split_inclusive('\n').enumerate().map(|(index, line)| (index + 1, line)) {
        let text = line.trim();
        let hash = comment(line).filter(|at| !is_in_value(start + at));
        let is_alone = text.starts_with('#');
        let allow = hash.and_then(|at| {
            let column = line[..at].chars().count() + 1;
            let end = start + line.trim_end().len();
            read(&line[at..], Location { file: index, start: start + at, end, line: number, column }, diagnostics)
        });
        if !is_alone && !text.is_empty() {
            found.extend(waiting.drain(..).map(|allow| Allow { line: number, ..allow }));
        }
        match allow {
            Some(allow) if is_alone => waiting.push(allow),
            Some(allow) => found.push(allow),
            None => {}
        }
        start += line.len();
    }
    found.extend(waiting);
    found
}

/// Returns the position of the `#` of a topo comment in a line, if there is one.
fn comment(line: &str) -> Option<usize> {
    line.match_indices('#').map(|(at, _)| at).find(|at| {
        let is_comment = *at == 0 || line[..*at].ends_with([' ', '\t']);
        is_comment && line[at + 1..].trim_start().starts_with(MARK)
    })
}

/// Parses `# topo: allow RULE reason`. Returns `None` for any other comment. Reports a mistake in an `allow` comment,
/// and returns `None`.
fn read(comment: &str, at: Location, diagnostics: &mut Diagnostics) -> Option<Allow> {
    let content = comment.trim_start_matches('#').trim().strip_prefix(MARK)?.trim();
    let (verb, rest) = content.split_once(char::is_whitespace).unwrap_or((content, ""));
    if verb != ALLOW {
        // Any other text after `topo:` is an ordinary comment, unless its first word resembles `allow`.
        if closest(verb, [ALLOW]).is_some() {
            let diagnostic = Diagnostic::error("allow", format!("unknown word `{verb}` in a topo comment"), at);
            diagnostics.push(diagnostic.hint("write `# topo: allow RULE reason`"));
        }
        return None;
    }
    let rest = rest.trim();
    let (rule, reason) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if !is_rule(rule) {
        let message = if rule.is_empty() { "missing rule name".to_owned() } else { format!("unknown rule `{rule}`") };
        let plain = rule.trim_end_matches([',', ':', ';']);
        let hint = match closest(plain, lint_keys::rules()) {
            Some(_) if is_rule(plain) && rest.split([',', ' ']).filter(|word| is_rule(word)).count() > 1 => {
                "use one comment for each rule, each on its own line above".to_owned()
            }
            Some(_) if is_rule(plain) => format!("write `# topo: allow {plain} reason`"),
            Some(near) => format!("did you mean `{near}`?"),
            None => "list the rules with `topo rules`".to_owned(),
        };
        diagnostics.push(Diagnostic::error("unknown-rule", message, at).hint(hint));
        return None;
    }
    let reason = reason.trim();
    if reason.is_empty() {
        let message = format!("missing reason for allowing `{rule}`");
        let hint = format!("add a reason: `# topo: allow {rule} …`");
        diagnostics.push(Diagnostic::error("allow", message, at).hint(hint));
        return None;
    }
    Some(Allow { rule: rule.to_owned(), reason: reason.to_owned(), at, line: at.line })
}

/// Collects the byte ranges of all keys and strings. A `#` in such a range does not start a comment.
fn collect_texts(node: &Node, found: &mut Vec<(usize, usize)>) {
    match &node.value {
        Value::Text(_) => found.push((node.at.start, node.at.end)),
        Value::List(items) => items.iter().for_each(|item| collect_texts(item, found)),
        Value::Table(entries) => {
            for entry in entries {
                found.push((entry.at.start, entry.at.end));
                collect_texts(&entry.node, found);
            }
        }
        Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) => {}
    }
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
    fn one_word_comments_after_routing_keys_are_found() {
        let text = "- routingKey: a #b\n- routingKey: a # b\n- routingKey: 'a' #b\n- routingKey: a #b c\n- {routingKey: a}\n\
                    - routingKey: order. #\n- routingKey: a#b\n- routingKey: \"a\" #b\n- key: a #b\n- routingKey: a #b # c d\n- \
                    routingKey: a # # b\n";
        let after_word: Vec<_> = of(text).comments_after_keys.iter().map(|(at, it)| (at.line, it.clone())).collect();
        assert_eq!(after_word, [(1, "#b".to_owned()), (6, "#".to_owned()), (10, "#b".to_owned())]);
    }
}

#[cfg(test)]
mod allow_tests {
    use super::*;
    use crate::spec::yaml;

    fn of(text: &str) -> (Vec<(usize, String)>, String) {
        let file = SourceFile { name: "a.yaml".to_owned(), text: text.to_owned() };
        let mut diagnostics = Diagnostics::new();
        let documents = yaml::documents(0, &file, &mut diagnostics).unwrap_or_default();
        let found = allows(0, &file, &documents, &mut diagnostics);
        let listed = found.into_iter().map(|it| (it.line, format!("{}: {}", it.rule, it.reason)));
        (listed.collect(), diagnostics.to_string())
    }

    #[test]
    fn comment_applies_to_its_line_or_the_next() {
        let text = "a: 1 # topo: allow unbound-queue by name\n# topo: allow owns-everything  ours\n\n  # more\n#topo: allow \
                    trigger-happy see there\nb: 2\nc: 3\n";
        let (found, errors) = of(text);
        let expected = [
            (1, "unbound-queue: by name".to_owned()),
            (6, "owns-everything: ours".to_owned()),
            (6, "trigger-happy: see there".to_owned()),
        ];
        assert_eq!((found, errors.as_str()), (expected.into(), ""));
    }

    #[test]
    fn marks_inside_values_are_not_comments() {
        let text = "a: 'x # topo: allow nothing y'\nb: |\n  # topo: allow nothing y\n  z\nc: x#topo:allow\nd: \"1\n  # topo: \
                    allow nothing\"\n";
        assert_eq!(of(text), (Vec::new(), String::new()));
        assert_eq!(of("# topo: the tool that reads this\na: 1\n"), (Vec::new(), String::new()));
    }

    #[test]
    fn mistakes_are_reported() {
        let (found, errors) =
            of("a: 1 # topo: allow unbound-queu by name\nb: 2 # topo: allow unbound-queue\nc: 3 # topo: alow \
                                 unbound-queue x\nd: 4 # topo: allow\n");
        assert_eq!(found, []);
        assert_eq!(
            errors,
            "1:6: error[unknown-rule]: unknown rule `unbound-queu`\n\
             2:6: error[allow]: missing reason for allowing `unbound-queue`\n\
             3:6: error[allow]: unknown word `alow` in a topo comment\n\
             4:6: error[unknown-rule]: missing rule name\n"
        );
    }
}
