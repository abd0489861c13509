//! Reports patterns in policies and permissions that look like globs or topic patterns. The broker interprets them as
//! regular expressions.

use crate::lint::{Finding, Rule, Subject};
use crate::model::names::pattern_of;
use crate::model::record_kinds::FieldShape;
use crate::model::{ArgumentValue, Glob, ObjectId};
use crate::rabbitmq::Pattern;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "pattern-looks-like-glob",
    severity: Severity::Warning,
    other_severities: &[Severity::Error],
    is_optional: false,
    summary: "the pattern is a regular expression but looks like a glob",
    check,
    page: include_str!("pattern_looks_like_glob.md"),
};

/// Characters that indicate an intentional regular expression.
const REGEX_CHARACTERS: [char; 10] = ['\\', '[', ']', '(', ')', '{', '}', '|', '+', '$'];

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let names: Vec<&str> =
        subject.policy_targets().iter().filter(|it| it.retry_owner.is_none()).map(|it| it.name).collect();
    let policies = subject.spec.policies.iter();
    let policies =
        policies.map(|(name, policy)| (ObjectId::Policy(name.clone()), "pattern", policy.pattern.value.as_str()));
    let records = subject.spec.records.iter().flat_map(|(id, declaration)| {
        let patterns = id.fields().into_iter().filter(|field| field.shape == FieldShape::Pattern);
        let text = |name: &str| declaration.record.fields.get(name).and_then(ArgumentValue::as_text);
        patterns.filter_map(move |field| Some((ObjectId::Record(id.clone()), field.name, text(field.name)?)))
    });
    let mut findings = Vec::new();
    for (id, key, text) in policies.chain(records).filter(|(.., text)| !text.contains(REGEX_CHARACTERS)) {
        if let Some((message, severity)) = problem(text, &names) {
            let finding = RULE.finding(subject, &id, key, message).severity(severity);
            findings.push(finding.hint(format!("write the regular expression `{key}: '{}'`", intended(text))));
        }
    }
    findings
}

/// Describes how a pattern differs from the glob that it looks like. Also returns the severity. Returns `None` if the
/// pattern does not look like a glob. A pattern such as `orders.*` is reported only if the glob matches a name in
/// `names`, and the pattern also matches a name that the glob does not match.
fn problem(text: &str, names: &[&str]) -> Option<(String, Severity)> {
    if text.starts_with('*') {
        return Some((
            "a `*` at the beginning has nothing to repeat: the broker refuses the pattern".to_owned(),
            Severity::Error,
        ));
    }
    let stars = text.match_indices('*').map(|(at, _)| text[..at].chars().next_back());
    if let Some(repeated) = stars.flatten().find(|c| *c != '.' && *c != '^') {
        let message = format!("`{repeated}*` matches zero or more `{repeated}`; `.*` matches any string");
        return Some((message, Severity::Warning));
    }
    if text.ends_with(".#") {
        return Some((
            "`#` is literal in a pattern, not a wildcard as in a topic binding".to_owned(),
            Severity::Warning,
        ));
    }
    // `orders.*` is a valid glob and a valid pattern. It is a mistake only if the glob and the pattern match different
    // names.
    let is_ambiguous =
        text.ends_with(".*") && text.len() > 2 && !text.starts_with('^') && !text[..text.len() - 2].contains('*');
    let (glob, pattern) = (Glob::new(text), Pattern::new(text));
    let differs = |name: &&&str| pattern.matches(name) == Some(true) && !glob.matches(name);
    let more = is_ambiguous.then(|| names.iter().find(differs)).flatten()?;
    names.iter().any(|name| glob.matches(name)).then(|| {
        (
            format!(
                "the pattern also matches `{more}`, which the glob would not match: `.` matches any character, and the pattern is not anchored"
            ),
            Severity::Warning,
        )
    })
}

/// Returns the regular expression that corresponds to the glob.
fn intended(text: &str) -> String {
    let text = text.trim_start_matches('^');
    let text = text.strip_suffix(".#").map_or_else(|| text.to_owned(), |start| format!("{start}.*"));
    let parts: Vec<String> =
        text.split('*').map(|part| pattern_of(part).trim_start_matches('^').trim_end_matches('$').to_owned()).collect();
    // `^a.*$` is equivalent to `^a`.
    format!("^{}$", parts.join(".*")).replace(".*$", "").replace("^.*", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_become_regular_expressions() {
        for (glob, expected) in [
            ("orders.*", r"^orders\."),
            ("orders*", "^orders"),
            ("*.dead", r"\.dead$"),
            ("orders.#", r"^orders\."),
            ("a*b", "^a.*b$"),
        ] {
            assert_eq!(intended(glob), expected, "{glob}");
        }
    }
}
