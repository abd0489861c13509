//! Reports globs in `owns`, `protect` and `ignore` that look like regular expressions or topic patterns. Such globs
//! match nothing, so `protect` does not protect the intended objects.

use super::protect_misspelled::names;
use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "glob-looks-like-pattern",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "the glob looks like a regular expression or a topic pattern",
    check,
    page: include_str!("glob_looks_like_pattern.md"),
};

/// Characters that have a special meaning in regular expressions or shell globs, but are literal in these globs.
const SPECIAL_CHARACTERS: [char; 11] = ['^', '$', '\\', '(', ')', '[', ']', '{', '}', '|', '+'];
const GLOBS: &str =
    "in a glob, `*` matches any string, `?` matches one character, and any other character matches itself";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let spec = subject.spec;
    let lists = [("owns", &spec.owns), ("protect", &spec.protect), ("ignore", &spec.ignore)];
    let mut findings = Vec::new();
    for (key, glob) in lists.into_iter().flat_map(|(key, globs)| globs.iter().map(move |glob| (key, glob))) {
        let text = glob.value.as_str();
        let Some(names_with) = problem(text) else { continue };
        // If the spec contains a matching name, the glob is intentional.
        if names(subject).into_iter().any(|name| glob.value.matches(name)) {
            continue;
        }
        let message = format!("`{key}: [{text:?}]` is a glob that only matches {names_with}");
        findings.push(RULE.finding_at(ObjectId::Vhost, glob.at, message).hint(hint(key, text)));
    }
    findings
}

/// Describes the names that a glob matches; `None` if such names are plausible.
fn problem(text: &str) -> Option<String> {
    let is_between = |edge: char| text.len() > 2 && text.starts_with(edge) && text.ends_with(edge);
    if text.is_empty() {
        return Some("the empty name".to_owned());
    }
    if is_between('/') {
        return Some("names enclosed in `/`".to_owned());
    }
    if text.starts_with(".*") {
        return Some("names that begin with a dot".to_owned());
    }
    if text == "#" || text.ends_with(".#") {
        return Some("names that end with a `#`".to_owned());
    }
    text.chars().find(|c| SPECIAL_CHARACTERS.contains(c)).map(|special| format!("names that contain `{special}`"))
}

fn hint(key: &str, text: &str) -> String {
    if text.is_empty() {
        return format!("remove the empty glob; {GLOBS}");
    }
    let intended = intended(text);
    if intended.is_empty() || intended.iter().any(|glob| glob.is_empty() || glob.contains(SPECIAL_CHARACTERS)) {
        return GLOBS.to_owned();
    }
    let globs: Vec<String> = intended.iter().map(|glob| format!("{glob:?}")).collect();
    format!("write `{key}: [{}]`", globs.join(", "))
}

/// Returns the globs that the author probably intended.
fn intended(text: &str) -> Vec<String> {
    let text = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).unwrap_or(text);
    if let Some(start) = text.strip_suffix('#') {
        return vec![format!("{start}*")];
    }
    let is_prefix = text.starts_with('^') && !text.ends_with('$');
    let text = text.trim_start_matches('^').trim_end_matches('$');
    alternatives(text).iter().map(|text| to_glob(text, is_prefix)).collect()
}

/// Splits a string into its alternatives. For example, `a.(b|c)`, `a.{b,c}` and `b|c` have two alternatives.
fn alternatives(text: &str) -> Vec<String> {
    for (open, separator, close) in [('(', '|', ')'), ('{', ',', '}')] {
        if let Some((before, rest)) = text.split_once(open)
            && let Some((inside, after)) = rest.split_once(close)
        {
            return inside.split(separator).map(|one| format!("{before}{one}{after}")).collect();
        }
    }
    text.split('|').map(str::to_owned).collect()
}

/// Converts a regular expression to a glob. `is_prefix` is true if the expression matches any name with this prefix.
fn to_glob(text: &str, is_prefix: bool) -> String {
    let glob = text.replace("\\.", "\u{0}").replace(".*", "*").replace(".+", "*").replace('\u{0}', ".");
    let glob = glob.replace("\\-", "-").replace("\\_", "_");
    if is_prefix && !glob.ends_with('*') { format!("{glob}*") } else { glob }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_expressions_become_globs() {
        for (text, expected) in [
            (r"orders\.audit$", &["orders.audit"][..]),
            (r"^orders\..*", &["orders.*"]),
            ("^orders.*", &["orders*"]),
            (r"^orders\.", &["orders.*"]),
            ("order.#", &["order.*"]),
            ("#", &["*"]),
            ("orders.{a,b}", &["orders.a", "orders.b"]),
            (r"^(orders|mail)\.work$", &["orders.work", "mail.work"]),
            ("/tmp.*/", &["tmp*"]),
            (r".*\.dead", &["*.dead"]),
            ("a|b", &["a", "b"]),
        ] {
            assert_eq!(intended(text), expected, "{text}");
        }
        assert_eq!(hint("owns", "orders.[a-z]"), GLOBS);
        assert_eq!(hint("owns", "orders.(a|(b))"), GLOBS);
    }

    #[test]
    fn ordinary_globs_are_not_reported() {
        for text in ["*", "orders.*", "orders*", "*.dead", "a.*.b", "caf?", "orders/eu", "c#.work"] {
            assert_eq!(problem(text), None, "{text}");
        }
    }
}
