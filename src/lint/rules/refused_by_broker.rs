//! Reports objects that a broker of the assumed version refuses to declare, as `rabbitmq` predicts.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::rabbitmq::{Refusal, binding_refusals, refusals};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "refused-by-broker",
    severity: Severity::Error,
    sometimes: &[],
    is_optional: false,
    summary: "the broker refuses to declare the object",
    check,
    page: include_str!("refused_by_broker.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let topology = &subject.expansion.topology;
    let mut findings = Vec::new();
    let mut report = |id: &ObjectId, refused: &[Refusal]| {
        for refusal in refused {
            let finding = RULE.finding(subject, id, &refusal.subject, refusal.text.clone());
            findings.push(Finding { hint: refusal.hint.clone(), ..finding });
        }
    };
    for object in subject.objects() {
        report(&object.id(), &refusals(&object, subject.profile));
    }
    for name in topology.queues.keys() {
        let refused = subject.refusals_of(name);
        if !refused.is_empty() {
            report(&ObjectId::Queue(name.clone()), refused);
        }
    }
    for binding in &topology.bindings {
        // The type of the exchange determines which arguments a binding can have.
        let refused = binding_refusals(binding, subject.ends(binding), subject.profile);
        if !refused.is_empty() {
            report(&ObjectId::Binding(binding.clone()), &refused);
        }
    }
    findings
}
