//! Limits that nobody can have meant: a queue of no messages, a handful of bytes, and `7m`, which is no seven months.

use crate::lint::said::{Said, said};
use crate::lint::{Finding, Rule, Subject};
use crate::model::age;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "limit-too-small",
    severity: Severity::Warning,
    sometimes: &[],
    is_optional: false,
    summary: "the limit is so small that hardly a message is kept",
    check,
    page: include_str!("limit_too_small.md"),
};

/// So many bytes are a message or two.
const FEW_BYTES: i64 = 1024;
/// Twelve minutes, and whoever writes up to `12m` may mean months.
const SHORT_AGE: i128 = 12 * 60 * 1000;

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let finding = |said: Said<'_>| {
        let (text, hint) = problem(&said)?;
        Some(RULE.finding(subject, &said.id, said.setting, text).hint(hint))
    };
    said(subject.spec).filter_map(finding).collect()
}

fn problem(said: &Said<'_>) -> Option<(String, String)> {
    let key = said.known.key;
    match (said.known.name, said.value.as_integer(), said.value.as_text()) {
        ("x-max-length" | "x-max-length-bytes", Some(0), _) => {
            let text = format!("`{key}: 0` is a limit, and not none: the queue is too full with its first message");
            Some((text, format!("leave `{key}` out, if there is to be no limit")))
        }
        ("x-max-length-bytes", Some(bytes), _) if bytes <= FEW_BYTES => {
            let text = format!("`{key}` is no more than {bytes} bytes, which a message or two can be alone");
            Some((text, "write the unit: `64MiB`, `1GiB`".to_owned()))
        }
        ("x-max-age", _, Some(text)) if age(text).is_some_and(|age| age <= SHORT_AGE) => {
            let hint = match text.strip_suffix('m') {
                Some(number) => format!("`{number}M` is months, `{number}D` is days"),
                None => "`7D` is days, `1M` is a month".to_owned(),
            };
            let text = format!("`{key}: {text}` is minutes at most: `m` is minutes, and `s` is seconds");
            Some((text, hint))
        }
        (_, _, _) => None,
    }
}
