//! Reports objects that the broker refuses to declare, as predicted by [`crate::rabbitmq`].

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::rabbitmq::{Refusal, binding_refusals, refusals};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "refused-by-broker",
    severity: Severity::Error,
    other_severities: &[],
    is_optional: false,
    summary: "the broker refuses to declare the object",
    check,
    page: include_str!("refused_by_broker.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let topology = &subject.expansion.topology;
    let mut findings = Vec::new();
    let mut report = |id: &ObjectId, refusals: &[Refusal]| {
        for refusal in refusals {
            let finding = RULE.finding(subject, id, &refusal.subject, refusal.text.clone());
            findings.push(Finding { hint: refusal.hint.clone(), ..finding });
        }
    };
    for object in subject.objects() {
        report(&object.id(), &refusals(&object, subject.profile));
    }
    for name in topology.queues.keys() {
        let refusals = subject.refusals_of(name);
        if !refusals.is_empty() {
            report(&ObjectId::Queue(name.clone()), refusals);
        }
    }
    for binding in &topology.bindings {
        // The exchange type determines the arguments that a binding can have.
        let refusals = binding_refusals(binding, subject.ends(binding), subject.profile);
        if !refusals.is_empty() {
            report(&ObjectId::Binding(binding.clone()), &refusals);
        }
    }
    findings
}
