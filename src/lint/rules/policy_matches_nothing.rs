//! Reports policies that match no object in the spec. This may be intentional, because clients also declare queues. A
//! pattern that nearly matches, or that matches only objects of a different kind, is probably a mistake.

use crate::lint::{Finding, Rule, Subject};
use crate::model::names::pattern_of;
use crate::model::{ObjectId, ObjectKind, PolicyName};
use crate::rabbitmq::Pattern;
use crate::rabbitmq::pattern::pattern_error;
use crate::spec::{PolicySpec, Severity, closest};
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "policy-matches-nothing",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "the policy matches no object in the spec",
    check,
    page: include_str!("policy_matches_nothing.md"),
};

/// Examples of names that brokers and clients generate. topo assumes that a policy for such names is intentional.
pub(super) const GENERATED_NAMES: &[&str] = &[
    "amq.gen-JzTY20BRgKO-HjmUJj0wLg",
    "mqtt-subscription-sensor-17qos0",
    "mqtt-subscription-sensor-17qos1",
    "stomp-subscription-JzTY20BRgKO-HjmUJj0wLg",
    "federation: orders -> rabbit@here",
    "celery@worker-1.celery.pidbox",
    "celeryev.0a1b2c3d",
];

/// The minimum length of a prefix that is compared with names. A shorter prefix would resemble too many names.
const MIN_PREFIX_LENGTH: usize = 6;

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let policy_targets = subject.policy_targets();
    let used: BTreeSet<&PolicyName> =
        policy_targets.iter().flat_map(|it| it.matching_policies.iter().map(|matching| matching.named.name)).collect();
    let names: Vec<(ObjectId, &str)> = policy_targets
        .iter()
        .filter(|it| it.retry_owner.is_none())
        .map(|it| (it.id.clone(), it.name))
        .chain(subject.expansion.scope.external.iter().filter_map(|id| Some((id.clone(), id.name()?))))
        .collect();
    let mut findings = Vec::new();
    for (name, policy) in subject.spec.policies.iter().filter(|(name, _)| !used.contains(name)) {
        let text = policy.pattern.value.as_str();
        let pattern = Pattern::new(text);
        let is_for_generated = GENERATED_NAMES.iter().any(|name| pattern.matches(name) == Some(true));
        let is_for_external = subject.expansion.scope.external.iter().any(|id| is_for(&pattern, id));
        if is_for_generated || is_for_external || pattern_error(text).is_some() {
            continue;
        }
        findings.push(finding(subject, name, policy, &pattern, &names));
    }
    findings
}

/// Returns true if a pattern matches the name of an object, or if topo cannot evaluate the pattern.
fn is_for(pattern: &Pattern, id: &ObjectId) -> bool {
    id.name().is_some_and(|name| pattern.matches(name) != Some(false))
}

fn finding(
    subject: &Subject<'_>,
    name: &PolicyName,
    policy: &PolicySpec,
    pattern: &Pattern,
    names: &[(ObjectId, &str)],
) -> Finding {
    let id = ObjectId::Policy(name.clone());
    let kind = policy.apply_to.value;
    if let Some((other, matched)) = names.iter().find(|(_, name)| pattern.matches(name) == Some(true)) {
        let matched_kind = match (other, subject.expansion.topology.object(other)) {
            (ObjectId::Queue(_), Some(crate::model::Object::Queue(_, queue))) => {
                queue.queue_type().map_or_else(|| "a queue".to_owned(), |it| format!("a {it} queue"))
            }
            (other, _) => format!("{} {}", article(other.kind()), other.kind()),
        };
        let text = format!(
            "it applies to {kind}, but its pattern matches only objects of other kinds: `{matched}` is {matched_kind}"
        );
        return RULE.finding(subject, &id, "apply-to", text).hint("change `applyTo` or the pattern");
    }
    let text = "its pattern matches nothing that the spec declares";
    let finding = RULE.finding(subject, &id, "pattern", text);
    match suggest_pattern(&policy.pattern.value, pattern, names) {
        Some(intended) => finding.hint(format!("did you mean `{intended}`?")),
        None => finding.severity(Severity::Info).hint("correct the pattern, unless applications declare the objects"),
    }
}

fn article(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Exchange => "an",
        ObjectKind::Vhost | ObjectKind::Policy | ObjectKind::Queue | ObjectKind::Binding | ObjectKind::Record(_) => "a",
    }
}

/// Returns the pattern that was probably intended; `None` if no name is similar, or if the pattern is too short or too
/// complex to compare.
fn suggest_pattern(text: &str, pattern: &Pattern, names: &[(ObjectId, &str)]) -> Option<String> {
    if let Some(only) = pattern.only_name() {
        return closest(only, names.iter().map(|(_, name)| *name)).map(pattern_of);
    }
    let literal = text.strip_prefix('^')?.trim_end_matches(".*").replace('\\', "");
    let is_plain = literal.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    if !is_plain || literal.len() < MIN_PREFIX_LENGTH {
        return None;
    }
    let starts: BTreeSet<&str> = names.iter().filter_map(|(_, name)| name.get(..literal.len())).collect();
    let start = closest(&literal, starts)?;
    Some(pattern_of(start).trim_end_matches('$').to_owned())
}
