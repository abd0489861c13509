//! Globs of `owns` that cover queues which applications declare themselves, as other parts of the spec show: `--prune` would
//! delete them.

use super::policy_matches_nothing::MADE_BY_CLIENTS;
use crate::lint::{Finding, Rule, Subject};
use crate::model::{Glob, ObjectId};
use crate::rabbitmq::Pattern;
use crate::spec::{Severity, Sourced};
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "prune-reaches-undeclared",
    severity: Severity::Warning,
    sometimes: &[],
    is_optional: false,
    summary: "`--prune` would delete queues that the spec relies on",
    check,
    page: include_str!("prune_reaches_undeclared.md"),
};

/// As clients end the names that they make.
const ENDING: &str = "0a1b";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let spec = subject.spec;
    let mut findings = Vec::new();
    let ruled = subject.ruled();
    let used: BTreeSet<_> = ruled.iter().flat_map(|it| it.fits.iter().map(|fit| fit.named.name)).collect();
    for (name, policy) in spec.policies.iter().filter(|(name, _)| !used.contains(name)) {
        let pattern = Pattern::new(&policy.pattern.value);
        let Some(example) = example(&pattern) else { continue };
        let Some(owns) = owning(subject, &example) else { continue };
        let text = format!(
            "policy `{name}` is for queues that are not declared here, such as `{example}`, but `owns: [\"{}\"]` matches them: \
             `--prune` deletes them",
            owns.value.as_str()
        );
        let finding = RULE.found(ObjectId::Vhost, owns.at, text).also(policy.pattern.at, "the policy's pattern");
        let hint = format!("exclude them: `ignore: [\"{}\"]`", ignoring(&example));
        findings.push(finding.hint(hint));
    }
    findings
}

/// The glob that makes a name this spec's.
fn owning<'a>(subject: &Subject<'a>, name: &str) -> Option<&'a Sourced<Glob>> {
    let spec = subject.spec;
    let is_left_out = spec.ignore.iter().chain(&spec.protect).any(|glob| glob.value.matches(name));
    spec.owns.iter().find(|glob| glob.value.matches(name)).filter(|_| !is_left_out)
}

/// A name that a pattern is for and that clients make.
fn example(pattern: &Pattern) -> Option<String> {
    if let Some(made) = MADE_BY_CLIENTS.iter().find(|made| pattern.matches(made) == Some(true)) {
        // What the server names is never deleted.
        return (!made.starts_with("amq.")).then(|| (*made).to_owned());
    }
    // A single name that is not there is a typing error more often, and policy-matches-nothing speaks of it.
    if pattern.only_name().is_some() {
        return None;
    }
    let name = format!("{}{ENDING}", pattern.only_start()?);
    (pattern.matches(&name) == Some(true)).then_some(name)
}

fn ignoring(example: &str) -> String {
    if !example.ends_with(ENDING) {
        return example.to_owned();
    }
    format!("{}*", example.trim_end_matches(ENDING))
}
