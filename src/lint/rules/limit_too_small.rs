//! Reports limits that are probably mistakes: zero messages, a few bytes, or `7m`, which means seven minutes, not
//! months.

use crate::lint::effective::{KnownSetting, known_settings};
use crate::lint::{Finding, Rule, Subject};
use crate::model::age;
use crate::model::count::count;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "limit-too-small",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "the limit is so small that the queue keeps hardly any messages",
    check,
    page: include_str!("limit_too_small.md"),
};

/// The size of one or two messages, in bytes.
const FEW_BYTES: i64 = 1024;
/// Twelve minutes in milliseconds, because values up to `12m` may be intended as months.
const SHORT_AGE: i128 = 12 * 60 * 1000;

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let finding = |setting: KnownSetting<'_>| {
        let (text, hint) = problem(&setting)?;
        Some(RULE.finding(subject, &setting.id, setting.key, text).hint(hint))
    };
    known_settings(subject.spec).filter_map(finding).collect()
}

/// Returns the text and the hint for a limit that is too small; `None` for other settings.
fn problem(setting: &KnownSetting<'_>) -> Option<(String, String)> {
    let key = setting.known.key;
    match (setting.known.name, setting.value.as_integer(), setting.value.as_text()) {
        ("x-max-length" | "x-max-length-bytes", Some(0), _) => {
            let text = format!("`{key}: 0` sets a limit of zero, which even the first message exceeds");
            Some((text, format!("remove `{key}` to disable the limit")))
        }
        ("x-max-length-bytes", Some(bytes), _) if bytes <= FEW_BYTES => {
            let text = format!(
                "`{key}` is only {}, which one or two messages can exceed",
                count(bytes.unsigned_abs(), "byte")
            );
            Some((text, "write the unit: `64MiB`, `1GiB`".to_owned()))
        }
        ("x-max-age", _, Some(text)) if age(text).is_some_and(|age| age <= SHORT_AGE) => {
            let hint = match text.strip_suffix('m') {
                Some(number) => format!("write `{number}M` for months, or `{number}D` for days"),
                None => "write `7D` for days, or `1M` for a month".to_owned(),
            };
            let text = format!("`{key}: {text}` is a very short age: `m` means minutes and `s` means seconds");
            Some((text, hint))
        }
        (_, _, _) => None,
    }
}
