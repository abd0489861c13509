//! Keys of topic bindings in which a wildcard is part of a word, or which are written for something else than AMQP.

use crate::behaviour::routing::Kind;
use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "wildcard-inside-word",
    severity: Severity::Warning,
    sometimes: &[Severity::Info],
    is_optional: false,
    summary: "a wildcard that is not a whole word of the key, which is plain text there",
    check,
    page: include_str!("wildcard_inside_word.md"),
};

/// Words that are no mistakes.
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

fn problem(key: &str) -> Option<(Severity, String, String)> {
    let is_partial = |word: &&str| word.contains(['*', '#']) && !["*", "#"].contains(word) && !LANGUAGES.contains(word);
    if let Some(word) = key.split('.').find(is_partial) {
        let text = format!("`{word}` is plain text: `*` and `#` are wildcards only as whole words, between dots");
        let hint = if word.contains('/') {
            format!("the words of a key are parted by dots: `{}`", key.replace('/', "."))
        } else {
            "no wildcard is for part of a word: let publishers put a dot there, as in `order.#`, or bind every key"
                .to_owned()
        };
        return Some((Severity::Warning, text, hint));
    }
    if key.split('.').any(|word| word == "+") {
        let text = "`+` is plain text: it is a wildcard to MQTT alone".to_owned();
        return Some((Severity::Warning, text, "write `*` for one word, and `#` for any number of them".to_owned()));
    }
    (!key.is_empty() && key.split('.').any(str::is_empty)).then(|| {
        let text = "it has an empty word: only keys with a dot in that very place fit".to_owned();
        (Severity::Info, text, "take the dot out that is too much".to_owned())
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
