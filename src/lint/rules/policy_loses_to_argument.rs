//! Keys of policies that hold nowhere, because every queue or exchange that the policy governs says otherwise itself, and
//! there the argument wins.

use crate::lint::ruled::{Kind, Ruled, first_of, is_own};
use crate::lint::{Finding, Rule, Subject};
use crate::model::units::with_unit;
use crate::model::{ArgumentValue, ObjectId, PolicyName};
use crate::rabbitmq::effective::effective_alternate;
use crate::rabbitmq::governing::chosen;
use crate::rabbitmq::{Effective, Precedence, precedence};
use crate::spec::Severity;
use std::collections::BTreeMap;

pub(super) static RULE: Rule = Rule {
    name: "policy-loses-to-argument",
    severity: Severity::Warning,
    sometimes: &[Severity::Info],
    is_optional: false,
    summary: "the policy has no effect because arguments take precedence",
    check,
    page: include_str!("policy_loses_to_argument.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let ruled = subject.ruled();
    let mut by_policy: BTreeMap<&PolicyName, Vec<&Ruled<'_>>> = BTreeMap::new();
    for it in ruled {
        if let Some(name) = it.governing() {
            by_policy.entry(name).or_default().push(it);
        }
    }
    let mut findings = Vec::new();
    for (name, policy) in &subject.spec.policies {
        let governed = by_policy.remove(name).unwrap_or_default();
        for (key, said) in &policy.definition {
            let held: Vec<_> = governed.iter().filter_map(|it| Some((*it, holds(subject, it, key)?))).collect();
            let is_lost = |(_, it): &(&Ruled<'_>, Effective)| is_own(it) && it.value != said.value;
            if !held.is_empty() && held.iter().all(is_lost) {
                findings.push(finding(subject, name, key, &said.value, &held));
            }
        }
    }
    findings
}

/// What holds for a policy's key; `None` where nothing looks at it.
fn holds(subject: &Subject<'_>, it: &Ruled<'_>, key: &str) -> Option<Effective> {
    match it.kind {
        Kind::Queue(queue) => it.effective(queue, subject).get(key).cloned(),
        Kind::Exchange(exchange) if key == "alternate-exchange" => {
            effective_alternate(exchange, chosen(&it.fits).likely())
        }
        Kind::Exchange(_) => None,
    }
}

fn finding(
    subject: &Subject<'_>,
    name: &PolicyName,
    key: &str,
    said: &ArgumentValue,
    held: &[(&Ruled<'_>, Effective)],
) -> Finding {
    let wins = |(it, _): &(&Ruled<'_>, Effective)| match it.kind {
        Kind::Queue(queue) => {
            queue.queue_type().and_then(|kind| precedence(key, kind, subject.profile)) == Some(Precedence::Argument)
        }
        Kind::Exchange(_) => true,
    };
    let argument = |id: &ObjectId| match id {
        ObjectId::Queue(_) => format!("x-{key}"),
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => {
            key.to_owned()
        }
    };
    let names = first_of(held.iter().map(|(it, _)| it.name));
    let value = held.first().map_or_else(String::new, |(it, own)| with_unit(&argument(&it.id), &own.value));
    let shown = with_unit(&format!("x-{key}"), said);
    let is_by_argument = held.iter().all(wins);
    let why = if is_by_argument { "arguments take precedence" } else { "the lower value is effective" };
    let text = format!("its `{key}` ({shown}) is never effective: {names} has {value} as an argument, and {why}");
    let mut finding = RULE.finding(subject, &ObjectId::Policy(name.clone()), key, text);
    if let Some((it, _)) = held.first() {
        finding = finding.also(subject.place(&it.id, &argument(&it.id)).at, "the argument");
    }
    // A number in a policy can be meant as the most that anybody may say.
    let severity = if is_by_argument { Severity::Warning } else { Severity::Info };
    finding
        .severity(severity)
        .hint(format!("set `{key}` in one of the two places; an argument cannot change on an existing queue"))
}
