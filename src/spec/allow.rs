//! Parses comments that allow findings: `# topo: allow RULE reason`. At the end of a line, a comment applies to this
//! line; on a line of its own, to the next line. The YAML library drops comments, so this module searches the text. A
//! `#` inside a value is not a comment.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::lint_keys;
use super::lint_keys::is_rule;
use super::node::Location;
use super::node::SourceFile;
use super::node::{Node, Value};
use super::words::closest;

/// The prefix of these comments after the `#`.
const MARK: &str = "topo:";
const ALLOW: &str = "allow";

/// Allows the findings of one rule on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow {
    /// The rule.
    pub rule: String,
    /// The reason, for readers.
    pub reason: String,
    /// The position of the comment.
    pub at: Location,
    /// The line that it applies to, in the same file.
    pub line: usize,
}

/// Returns all of these comments in a file.
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
    // Comments on lines of their own that wait for the line to which they apply.
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

/// Returns the start of a comment for topo in a line.
fn comment(line: &str) -> Option<usize> {
    line.match_indices('#').map(|(at, _)| at).find(|at| {
        let is_comment = *at == 0 || line[..*at].ends_with([' ', '\t']);
        is_comment && line[at + 1..].trim_start().starts_with(MARK)
    })
}

/// Parses `# topo: allow RULE reason`.
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
        let (found, wrong) = of(text);
        let expected = [
            (1, "unbound-queue: by name".to_owned()),
            (6, "owns-everything: ours".to_owned()),
            (6, "trigger-happy: see there".to_owned()),
        ];
        assert_eq!((found, wrong.as_str()), (expected.into(), ""));
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
        let (found, wrong) =
            of("a: 1 # topo: allow unbound-queu by name\nb: 2 # topo: allow unbound-queue\nc: 3 # topo: alow \
                                 unbound-queue x\nd: 4 # topo: allow\n");
        assert_eq!(found, []);
        assert_eq!(
            wrong,
            "1:6: error[unknown-rule]: unknown rule `unbound-queu`\n\
             2:6: error[allow]: missing reason for allowing `unbound-queue`\n\
             3:6: error[allow]: unknown word `alow` in a topo comment\n\
             4:6: error[unknown-rule]: missing rule name\n"
        );
    }
}
