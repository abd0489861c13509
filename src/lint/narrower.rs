//! A pattern that leaves some names out, to be written in the place of one that takes them in.

use crate::behaviour::Pattern;
use crate::model::names::pattern_of;

/// So many names can stand in a pattern that people read.
const MOST_NAMES: usize = 4;

/// One that still matches what is kept and nothing of what is avoided; tried, not guessed. The first that is right, the
/// plainest first: its end, the names that are kept, the names that are left out, and tiers by what their names look like.
pub(super) fn narrower(pattern: &str, kept: &[&str], avoided: &[&str]) -> Option<String> {
    if kept.is_empty() {
        return None;
    }
    let is_tier = |name: &&str| Pattern::new(TIER).matches(name) == Some(true);
    let (tiers, others): (Vec<&str>, Vec<&str>) = avoided.iter().copied().partition(is_tier);
    let rest = match pattern.strip_prefix('^') {
        Some(rest) if !pattern.contains('|') => rest.to_owned(),
        Some(_) | None => format!(".*(?:{pattern})"),
    };
    let without = |what: &str| format!("^(?!{what}){rest}");
    let candidates = [
        (!pattern.ends_with('$')).then(|| format!("{pattern}$")),
        any_of(kept).map(|names| format!("^{names}$")),
        any_of(avoided).filter(|_| tiers.is_empty()).map(|names| without(&format!("{names}$"))),
        // Their names say delays, which change.
        others.is_empty().then(|| without(TIER)),
        any_of(&others).filter(|_| !tiers.is_empty()).map(|names| without(&format!("{names}$|{TIER}"))),
    ];
    let is_right = |candidate: &String| {
        let candidate = Pattern::new(candidate);
        kept.iter().all(|name| candidate.matches(name) == Some(true))
            && avoided.iter().all(|name| candidate.matches(name) == Some(false))
    };
    candidates.into_iter().flatten().find(is_right)
}

/// What the names of tiers look like.
const TIER: &str = r".*\.retry\.\d+\.\w+$";

/// Some names as a part of a pattern; `None` where they are too many, or none.
fn any_of(names: &[&str]) -> Option<String> {
    let escaped = |name: &&str| pattern_of(name).trim_start_matches('^').trim_end_matches('$').to_owned();
    match names {
        [] => None,
        [one] => Some(escaped(one)),
        several if several.len() <= MOST_NAMES => {
            Some(format!("(?:{})", several.iter().map(escaped).collect::<Vec<_>>().join("|")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plainest_that_is_right() {
        let work = &["orders.work"][..];
        fn of(pattern: &str, kept: &[&str], avoided: &[&str]) -> String {
            narrower(pattern, kept, avoided).unwrap_or_default()
        }
        assert_eq!(of(r"^orders\.work", work, &["orders.work.retry.1.5s"]), r"^orders\.work$");
        assert_eq!(of(r"^orders\.", work, &["orders.dead"]), r"^orders\.work$");
        assert_eq!(of(r"^o", &["o.a", "o.b"], &["o.dead"]), r"^(?:o\.a|o\.b)$");
        let many = &["o.a", "o.b", "o.c", "o.d", "o.e"][..];
        assert_eq!(of("^o", many, &["o.dead"]), r"^(?!o\.dead$)o");
        assert_eq!(of("o|q", many, &["o.dead", "q.dead"]), r"^(?!(?:o\.dead|q\.dead)$).*(?:o|q)");
        let tiers: Vec<String> = (1..9).map(|number| format!("o.a.retry.{number}.5s")).collect();
        let mut avoided: Vec<&str> = tiers.iter().map(String::as_str).collect();
        assert_eq!(of("^o", many, &avoided), r"^(?!.*\.retry\.\d+\.\w+$)o");
        avoided.push("o.dead");
        assert_eq!(of("^o", many, &avoided), r"^(?!o\.dead$|.*\.retry\.\d+\.\w+$)o");
        assert_eq!(narrower("^o", &[], &["o.dead"]), None);
        assert_eq!(narrower("^o", &["o.dead"], &["o.dead"]), None);
    }
}
