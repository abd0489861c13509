//! Reports policy keys that are never effective. Every queue or exchange that the policy governs has a different value
//! as an argument, and the argument is effective: it takes precedence, or its value is lower.

use crate::lint::policy_targets::{Kind, PolicyTarget, is_set_by_argument, summarize_names};
use crate::lint::{Finding, Rule, Subject};
use crate::model::known_arguments::KnownArgument;
use crate::model::units::with_unit;
use crate::model::{ArgumentValue, ObjectId, PolicyName};
use crate::rabbitmq::effective::effective_alternate;
use crate::rabbitmq::governing::select_governing;
use crate::rabbitmq::{Effective, Precedence, precedence};
use crate::spec::Severity;
use std::collections::BTreeMap;

pub(super) static RULE: Rule = Rule {
    name: "policy-loses-to-argument",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "the policy has no effect because arguments take precedence",
    check,
    page: include_str!("policy_loses_to_argument.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let policy_targets = subject.policy_targets();
    let mut by_policy: BTreeMap<&PolicyName, Vec<&PolicyTarget<'_>>> = BTreeMap::new();
    for it in policy_targets {
        if let Some(name) = it.governing() {
            by_policy.entry(name).or_default().push(it);
        }
    }
    let mut findings = Vec::new();
    for (name, policy) in &subject.spec.policies {
        let governed = by_policy.remove(name).unwrap_or_default();
        for (key, setting) in &policy.definition {
            let effective: Vec<_> =
                governed.iter().filter_map(|it| Some((*it, effective_value(subject, it, key)?))).collect();
            let is_overridden =
                |(_, it): &(&PolicyTarget<'_>, Effective)| is_set_by_argument(it) && it.value != setting.value;
            if !effective.is_empty() && effective.iter().all(is_overridden) {
                findings.push(finding(subject, name, key, &setting.value, &effective));
            }
        }
    }
    findings
}

/// Returns the effective value of a policy key; `None` if the object does not read the key. For exchanges, returns only
/// the value of `alternate-exchange`, because no other key can also be an argument of an exchange.
fn effective_value(subject: &Subject<'_>, it: &PolicyTarget<'_>, key: &str) -> Option<Effective> {
    match it.kind {
        Kind::Queue(queue) => it.effective(queue, subject.profile).get(key).cloned(),
        Kind::Exchange(exchange) if key == "alternate-exchange" => {
            effective_alternate(exchange, select_governing(&it.matching_policies).likely())
        }
        Kind::Exchange(_) => None,
    }
}

fn finding(
    subject: &Subject<'_>,
    name: &PolicyName,
    key: &str,
    policy_value: &ArgumentValue,
    effective: &[(&PolicyTarget<'_>, Effective)],
) -> Finding {
    let takes_precedence = |(it, _): &(&PolicyTarget<'_>, Effective)| match it.kind {
        Kind::Queue(queue) => {
            queue.queue_type().and_then(|kind| precedence(key, kind, subject.profile)) == Some(Precedence::Argument)
        }
        Kind::Exchange(_) => true,
    };
    let known = KnownArgument::of_policy_key(key);
    let argument = |id: &ObjectId| match id {
        ObjectId::Queue(_) => known.map_or_else(|| format!("x-{key}"), |known| known.name.to_owned()),
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => {
            key.to_owned()
        }
    };
    let names = summarize_names(effective.iter().map(|(it, _)| it.name));
    let value = effective.first().map_or_else(String::new, |(it, value)| with_unit(&argument(&it.id), &value.value));
    let overridden = with_unit(&format!("x-{key}"), policy_value);
    let is_by_argument = effective.iter().all(takes_precedence);
    let is_negative = policy_value.as_integer().is_some_and(|number| number < 0);
    let lower = if is_negative { "a negative value sets no limit" } else { "the lower value is effective" };
    let why = if is_by_argument { "arguments take precedence" } else { lower };
    let verb = if effective.len() == 1 { "has" } else { "have" };
    let text =
        format!("its `{key}` ({overridden}) is never effective: {names} {verb} {value} as an argument, and {why}");
    let mut finding = RULE.finding(subject, &ObjectId::Policy(name.clone()), key, text);
    if let Some((it, _)) = effective.first() {
        finding = finding.also(subject.position(&it.id, &argument(&it.id)).at, "the argument");
    }
    // A number in a policy may be intended as an upper limit for all arguments.
    let severity = if is_by_argument { Severity::Warning } else { Severity::Info };
    finding.severity(severity).hint(format!(
        "set `{key}` either in a policy or as an argument; an argument cannot change on an existing queue"
    ))
}
