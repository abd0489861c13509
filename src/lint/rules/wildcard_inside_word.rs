//! Reports topic binding keys that contain an MQTT wildcard, an empty word, or a wildcard as part of a word.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::rabbitmq::routing::Kind;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "wildcard-inside-word",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "the key contains a wildcard that is only part of a word and therefore literal",
    check,
    page: include_str!("wildcard_inside_word.md"),
};

/// Words with a literal `#` that are not mistakes.
const LANGUAGES: [&str; 4] = ["c#", "C#", "f#", "F#"];

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let mut findings = Vec::new();
    for binding in subject.spec.bindings.keys() {
        let Some((severity, text, hint)) = problem(&binding.routing_key) else { continue };
        if routing.kind(&binding.source) == Some(Kind::Topic) {
            let finding = RULE.finding(subject, &ObjectId::Binding(binding.clone()), "routing_key", text);
            findings.push(finding.severity(severity).hint(hint));
        }
    }
    findings
}

/// Describes the mistake in a key, with a severity and a hint; `None` if the key contains no mistake.
fn problem(key: &str) -> Option<(Severity, String, String)> {
    let is_partial = |word: &&str| word.contains(['*', '#']) && !["*", "#"].contains(word) && !LANGUAGES.contains(word);
    if let Some(word) = key.split('.').find(is_partial) {
        let text = format!("`{word}` is literal: `*` and `#` are wildcards only as whole words, between dots");
        let hint = if word.contains('/') {
            format!("separate the words of a key with dots: `{}`", key.replace('/', "."))
        } else {
            "use keys with a dot there, as in `order.#`, or bind each key separately: a wildcard cannot match part of a \
             word"
                .to_owned()
        };
        return Some((Severity::Warning, text, hint));
    }
    if key.split('.').any(|word| word == "+") {
        let text = "`+` is literal: it is a wildcard only in MQTT".to_owned();
        return Some((Severity::Warning, text, "use `*` for one word, or `#` for zero or more words".to_owned()));
    }
    (!key.is_empty() && key.split('.').any(str::is_empty)).then(|| {
        let text = "it contains an empty word: it matches only keys with an empty word in this position".to_owned();
        (Severity::Info, text, "remove the extra dot".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_are_wildcards() {
        for key in ["order*", "order.created#", "x#.y", "order/#", "a.**", "sensors.+.temp", "order..x", "order.", ".x"]
        {
            assert!(problem(key).is_some(), "{key}");
        }
        for key in ["", "#", "*", "order.#", "*.eu.#", "lang.c#", "a/b", "a+b", "1.0"] {
            assert_eq!(problem(key), None, "{key}");
        }
    }
}
