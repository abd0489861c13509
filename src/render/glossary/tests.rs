//! Tests that the glossary has an entry for each label that plans, reports and other commands print.

use super::*;
use crate::diff::DeleteReason;
use crate::graph::{ArrowKind, Mark};
use crate::lint::RULES;
use crate::model::OnConflict;
use crate::plan::{ChangeKind, HazardKind, ResolutionKind};
use crate::spec::{code_page, key_page};
use std::collections::BTreeSet;
use std::path::Path;

fn is_explained(word: &str) -> bool {
    let is_rule = || RULES.iter().any(|rule| rule.name == word);
    let is_other = || word.parse::<HazardKind>().is_ok() || key_page(word).is_some() || code_page(word).is_some();
    term_of(word).is_some() || is_rule() || is_other()
}

#[test]
fn terms_are_sorted_and_words_are_unique() {
    let words: Vec<String> = terms().map(|term| term.word.to_lowercase()).collect();
    assert!(words.is_sorted(), "{words:?}");
    let all: Vec<&str> = terms().flat_map(Term::words).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
    // For the name of a rule or a hazard, `topo explain` would print the page for the rule or hazard instead.
    for word in all {
        assert!(word.parse::<HazardKind>().is_err() && RULES.iter().all(|rule| rule.name != word), "{word}");
        assert!(!word.contains(' '), "{word}");
    }
}

#[test]
fn texts_are_short_and_their_references_exist() {
    for term in terms() {
        let lines = term.text.lines().count();
        assert!((1..=6).contains(&lines) && term.text.lines().all(|line| line.len() <= 125), "{}", term.word);
        assert!(term.text.len() > 60 || term.word == "create", "{}", term.word);
        assert!(!term.see.is_empty(), "{}", term.word);
        for word in term.see {
            assert!(is_explained(word), "{} refers to {word}", term.word);
            assert_ne!(*word, term.word);
        }
    }
    assert_eq!(term_of("Not Attempted").map(|term| term.word), Some("not-attempted"));
    assert!(term_of("nothing-like-it").is_none());
}

/// The matches are exhaustive, so the compiler requires a word for each new variant.
#[test]
fn every_word_of_a_plan_is_explained() {
    let change = |kind| match kind {
        ChangeKind::Create => "create",
        ChangeKind::Change => "change",
        ChangeKind::Recreate => "recreate",
        ChangeKind::Delete => "delete",
        ChangeKind::Conflict => "conflict",
    };
    let reason = |reason| match reason {
        DeleteReason::Removed => "removed",
        DeleteReason::Unmanaged => "unmanaged",
        DeleteReason::Unset => "unset",
        DeleteReason::Retired => "retired",
    };
    let resolution = |kind: ResolutionKind| match kind {
        ResolutionKind::Keep | ResolutionKind::Policy | ResolutionKind::Rename | ResolutionKind::Recreate => {
            kind.as_str()
        }
    };
    let how = |how: OnConflict| match how {
        OnConflict::Refuse | OnConflict::IfEmpty | OnConflict::Migrate | OnConflict::Discard => how.as_str(),
    };
    let changes =
        [ChangeKind::Create, ChangeKind::Change, ChangeKind::Recreate, ChangeKind::Delete, ChangeKind::Conflict];
    let words = changes
        .map(change)
        .into_iter()
        .chain([DeleteReason::Removed, DeleteReason::Unmanaged, DeleteReason::Unset, DeleteReason::Retired].map(reason))
        .chain(
            [ResolutionKind::Keep, ResolutionKind::Policy, ResolutionKind::Rename, ResolutionKind::Recreate]
                .map(resolution),
        )
        .chain([OnConflict::Refuse, OnConflict::IfEmpty, OnConflict::Migrate, OnConflict::Discard].map(how))
        .chain(HazardKind::ALL.map(HazardKind::as_str))
        .chain(RULES.iter().map(|rule| rule.name));
    for word in words {
        assert!(is_explained(word), "{word}");
    }
}

/// Returns the labels in the scenario plans: words at the beginning of lines, such as `blocked`, `info`, `ladder` and
/// `broker`, and the words before a settings count, as in `conflict: 2 settings`.
fn words_of_plans() -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let plans = text.split("```text plan").skip(1).filter_map(|rest| rest.split("\n```").next());
        for line in plans.flat_map(str::lines) {
            words.extend(word_of(line));
        }
    }
    words
}

fn word_of(line: &str) -> Option<String> {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    let first = |text: &str| text.split([' ', ':']).next().filter(|word| is_word(word)).map(str::to_owned);
    if let Some(rest) = line.strip_prefix("! ") {
        return first(rest);
    }
    if line.starts_with("info ") {
        return Some("info".to_owned());
    }
    if let Some(rest) = line.strip_prefix("      + ").or_else(|| line.strip_prefix("      - ")) {
        return first(rest);
    }
    if let Some((head, _)) = line.split_once(" setting").or_else(|| line.split_once(" argument")) {
        let word = head.rsplit_once(": ").filter(|(_, number)| number.parse::<u64>().is_ok())?.0;
        return word.rsplit("  ").next().map(|word| word.trim().to_owned());
    }
    let label = line.strip_prefix("        ").and_then(|rest| Some((rest.get(..8)?, rest.get(8..10)?)));
    let (label, gap) = label?;
    let is_label = is_word(label.trim_end()) && gap.starts_with(' ') && !gap.ends_with(' ');
    is_label.then(|| label.trim_end().to_owned())
}

#[test]
fn every_label_of_a_plan_is_explained() {
    let words = words_of_plans();
    for known in ["broker", "live", "blocked", "message-loss", "info", "ladder", "bind", "conflict", "change in place"]
    {
        assert!(words.contains(known), "{known} not found: {words:?}");
    }
    let missing: Vec<&String> = words.iter().filter(|word| !is_explained(word)).collect();
    assert!(missing.is_empty(), "no entry: {missing:?}");
}

/// Reads the labels from the source code of the module that renders reports.
#[test]
fn every_label_of_a_report_is_explained() {
    let source = include_str!("../report_text.rs");
    let painted = source.match_indices("Painted(").filter_map(|(at, _)| {
        let (arguments, _) = source[at..].split_once(')')?;
        Some(arguments.split_once(", \"")?.1.strip_suffix('"')?.trim())
    });
    let words: BTreeSet<&str> = painted.collect();
    assert!(words.contains("not attempted") && words.len() >= 5, "{words:?}");
    for word in words {
        assert!(is_explained(word), "{word}");
    }
}

/// Returns the string literals that follow `before` in source code. Truncates each literal at a placeholder or at the
/// spaces that pad a column. After that, omits literals that are empty, or that contain a comma or `─`.
fn literals<'s>(source: &'s str, before: &str) -> BTreeSet<&'s str> {
    let literal = |(at, _)| {
        let rest = source[at + before.len()..].trim_start();
        let (text, _) = rest.strip_prefix("&format!(").unwrap_or(rest).strip_prefix('"')?.split_once('"')?;
        let label = text.split('{').next()?.trim_start();
        let label = label.split("  ").next()?.trim_end().trim_end_matches(':');
        Some(label).filter(|label| !label.is_empty() && !label.contains([',', '─']))
    };
    source.match_indices(before).filter_map(literal).collect()
}

/// Fails unless each label has an entry and `labels` contains the known labels.
#[track_caller]
fn expect_explained(labels: &BTreeSet<&str>, known: &[&str]) {
    for word in known {
        assert!(labels.contains(word), "{word} not found: {labels:?}");
    }
    let missing: Vec<&&str> = labels.iter().filter(|label| !is_explained(&label.replace(' ', "-"))).collect();
    assert!(missing.is_empty(), "no entry: {missing:?}");
}

#[test]
fn every_label_of_a_contract_is_explained() {
    let source = include_str!("../contract_table.rs");
    let mut labels = literals(source, "lines.line(");
    let heads = source.split("let heads = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    labels.extend(heads.split('"').skip(1).step_by(2).filter(|head| *head != "queue"));
    expect_explained(&labels, &["on failure", "give up", "a retry", "dead-letter", "deliveries", "dead-lettered to"]);
}

#[test]
fn every_label_of_a_lifecycle_is_explained() {
    let source = include_str!("../lifecycle_text.rs");
    let mut labels = literals(include_str!("../../contract/lifecycle/exits.rs"), "add(");
    for sign in ["●", "⋮", "◌", "■", "✗", "○"] {
        labels.extend(literals(source, &format!("\"{sign}\"),")));
        labels.extend(literals(source, &format!("(\"{sign}\",")));
    }
    labels.extend(literals(source, "sentence(text,").into_iter().filter(|label| !label.contains(' ')));
    labels.extend(literals(source, "sentence(&mut lines,").into_iter().filter(|label| !label.contains(' ')));
    labels.extend(literals(source, "index == 0 {"));
    let known =
        ["acked", "taken", "given up", "too old", "attempt", "waits", "published", "has", "x-death", "warnings"];
    expect_explained(&labels, &known);
}

#[test]
fn every_label_of_a_lock_is_explained() {
    let source = include_str!("../../cli/lock.rs");
    let mut labels = literals(source, "writeln!(text,");
    labels.retain(|label| !label.contains(' '));
    for color in ["GREEN", "YELLOW", "RED"] {
        labels.extend(literals(source, &format!("Painted({color},")));
    }
    labels.retain(|label| !["vhost", "queue"].contains(label));
    expect_explained(&labels, &["free", "locked", "down", "node", "lease", "delete"]);
}

#[test]
fn every_label_of_an_export_is_explained() {
    let source = include_str!("../../cli/export.rs");
    let mut labels = literals(source, "output::eprint(&format!(");
    labels.extend(literals(source, "text.push_str(&format!("));
    labels.extend(literals(source, "Painted(YELLOW,"));
    expect_explained(&labels, &["not in the spec", "not in any spec", "info"]);
}

/// The labels in a graph are the arrow kinds in its legend and the marks in a plan.
#[test]
fn every_label_of_a_graph_is_explained() {
    let kinds = ArrowKind::ALL.map(ArrowKind::as_str);
    let marks = [Mark::Created, Mark::Changed, Mark::Recreated, Mark::Deleted, Mark::Conflict].map(|mark| match mark {
        Mark::Created | Mark::Changed | Mark::Recreated | Mark::Deleted | Mark::Conflict => mark.as_str(),
    });
    let word = |label: &'static str| label.split(" (").next().unwrap_or_default();
    expect_explained(&kinds.into_iter().chain(marks).map(word).collect(), &["binding", "retry", "created"]);
}

#[test]
fn committed_page_is_current() {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/glossary.md");
    let printed = reference();
    if std::env::var_os("TOPO_UPDATE").is_some() {
        std::fs::write(&committed, &printed).unwrap();
    }
    let text = std::fs::read_to_string(committed).unwrap_or_default();
    assert!(text == printed, "docs/glossary.md is outdated: run the tests with TOPO_UPDATE=1");
}
