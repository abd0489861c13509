//! Reports globs in `owns` that match queues that applications probably declare. A policy in the spec matches the names
//! of such queues, but matches no object in the spec. `--prune` would delete these queues.

use super::policy_matches_nothing::GENERATED_NAMES;
use crate::lint::{Finding, Rule, Subject};
use crate::model::{Glob, ObjectId};
use crate::rabbitmq::Pattern;
use crate::spec::{Severity, Sourced};
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "prune-reaches-undeclared",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "`--prune` would delete queues that a policy in the spec targets",
    check,
    page: include_str!("prune_reaches_undeclared.md"),
};

/// An example of a suffix that clients generate.
const SUFFIX: &str = "0a1b";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let spec = subject.spec;
    let mut findings = Vec::new();
    let policy_targets = subject.policy_targets();
    let used: BTreeSet<_> =
        policy_targets.iter().flat_map(|it| it.matching_policies.iter().map(|matching| matching.named.name)).collect();
    for (name, policy) in spec.policies.iter().filter(|(name, _)| !used.contains(name)) {
        let pattern = Pattern::new(&policy.pattern.value);
        let Some(example) = example(&pattern) else { continue };
        let Some(owns) = owning_glob(subject, &example) else { continue };
        let text = format!(
            "policy `{name}` is for queues that are not declared here, such as `{example}`, but `owns: [\"{}\"]` matches them: \
             `--prune` deletes them",
            owns.value.as_str()
        );
        let finding = RULE.finding_at(ObjectId::Vhost, owns.at, text).also(policy.pattern.at, "the policy's pattern");
        let hint = format!("exclude them: `ignore: [\"{}\"]`", ignore_glob(&example));
        findings.push(finding.hint(hint));
    }
    findings
}

/// Returns the glob in `owns` that matches a name; `None` if there is none, or if `ignore` or `protect` matches the
/// name.
fn owning_glob<'a>(subject: &Subject<'a>, name: &str) -> Option<&'a Sourced<Glob>> {
    let spec = subject.spec;
    let is_excluded = spec.ignore.iter().chain(&spec.protect).any(|glob| glob.value.matches(name));
    spec.owns.iter().find(|glob| glob.value.matches(name)).filter(|_| !is_excluded)
}

/// Returns an example of a client-generated name that a pattern matches. Returns `None` if the pattern matches
/// server-named queues or only a single name, or if it has no known prefix.
fn example(pattern: &Pattern) -> Option<String> {
    if let Some(name) = GENERATED_NAMES.iter().find(|name| pattern.matches(name) == Some(true)) {
        // topo never deletes server-named objects.
        return (!name.starts_with("amq.")).then(|| (*name).to_owned());
    }
    // A pattern for a single undeclared name is more often a typo, which `policy-matches-nothing` reports.
    if pattern.only_name().is_some() {
        return None;
    }
    let name = format!("{}{SUFFIX}", pattern.common_prefix()?);
    (pattern.matches(&name) == Some(true)).then_some(name)
}

/// Returns the glob that matches names such as the example.
fn ignore_glob(example: &str) -> String {
    if !example.ends_with(SUFFIX) {
        return example.to_owned();
    }
    format!("{}*", example.trim_end_matches(SUFFIX))
}
