//! Reports globs of `owns` that match queues which applications declare themselves, as policies of the spec show: `--prune`
//! would delete them.

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

/// A suffix like those of client-generated names.
const ENDING: &str = "0a1b";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let spec = subject.spec;
    let mut findings = Vec::new();
    let policy_targets = subject.policy_targets();
    let used: BTreeSet<_> = policy_targets.iter().flat_map(|it| it.fits.iter().map(|fit| fit.named.name)).collect();
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

/// Returns the glob by which the spec owns a name.
fn owning<'a>(subject: &Subject<'a>, name: &str) -> Option<&'a Sourced<Glob>> {
    let spec = subject.spec;
    let is_left_out = spec.ignore.iter().chain(&spec.protect).any(|glob| glob.value.matches(name));
    spec.owns.iter().find(|glob| glob.value.matches(name)).filter(|_| !is_left_out)
}

/// Returns an example of a client-generated name that a pattern matches.
fn example(pattern: &Pattern) -> Option<String> {
    if let Some(made) = MADE_BY_CLIENTS.iter().find(|made| pattern.matches(made) == Some(true)) {
        // topo never deletes server-named objects.
        return (!made.starts_with("amq.")).then(|| (*made).to_owned());
    }
    // A pattern for a single undeclared name is more often a typo, which `policy-matches-nothing` reports.
    if pattern.only_name().is_some() {
        return None;
    }
    let name = format!("{}{ENDING}", pattern.only_start()?);
    (pattern.matches(&name) == Some(true)).then_some(name)
}

/// Returns the glob that excludes names like the example.
fn ignoring(example: &str) -> String {
    if !example.ends_with(ENDING) {
        return example.to_owned();
    }
    format!("{}*", example.trim_end_matches(ENDING))
}
