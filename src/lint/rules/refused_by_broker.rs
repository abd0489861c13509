//! What a broker of that version refuses when it is declared, as `behaviour` predicts it.

use crate::behaviour::{Refusal, binding_refusals, refusals};
use crate::lint::{Finding, Rule, Subject};
use crate::model::Object;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "refused-by-broker",
    severity: Severity::Error,
    sometimes: &[],
    is_optional: false,
    summary: "the broker refuses to declare it",
    check,
    page: include_str!("refused_by_broker.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for object in subject.objects() {
        let id = object.id();
        for refusal in refused(subject, &object) {
            let finding = RULE.finding(subject, &id, &refusal.subject, refusal.text);
            findings.push(Finding { hint: refusal.hint, ..finding });
        }
    }
    findings
}

/// What a binding may say is for the type of its exchange to decide.
fn refused(subject: &Subject<'_>, object: &Object) -> Vec<Refusal> {
    match object {
        Object::Binding(binding) => binding_refusals(binding, subject.ends(binding), subject.dialect),
        Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Queue(..) => {
            refusals(object, subject.dialect)
        }
    }
}
