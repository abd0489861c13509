//! Reports topic bindings that a wider binding with the same source and destination covers: every key that matches the
//! narrow binding also matches the wide binding.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{Binding, Destination, ExchangeName, ObjectId};
use crate::rabbitmq::routing::{Certainty, Keys, Kind, TopicIndex};
use crate::spec::{BindingSpec, Severity};
use std::collections::BTreeMap;

pub(super) static RULE: Rule = Rule {
    name: "topic-binding-shadowed",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "a wider topic binding covers this binding",
    check,
    page: include_str!("topic_binding_shadowed.md"),
};

/// A binding with its declaration.
type DeclaredBinding<'a> = (&'a Binding, &'a BindingSpec);

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let mut by_ends: BTreeMap<(&ExchangeName, &Destination), Vec<DeclaredBinding<'_>>> = BTreeMap::new();
    for (binding, declaration) in &subject.spec.bindings {
        if routing.kind(&binding.source) == Some(Kind::Topic) {
            by_ends.entry((&binding.source, &binding.destination)).or_default().push((binding, declaration));
        }
    }
    let several = by_ends.into_values().filter(|bindings| bindings.len() > 1);
    several.flat_map(|bindings| report_shadowed(subject, bindings)).collect()
}

/// Reports the shadowed bindings in a list of bindings with the same source and destination.
fn report_shadowed(subject: &Subject<'_>, mut bindings: Vec<DeclaredBinding<'_>>) -> Vec<Finding> {
    bindings.sort_by_key(|(_, declaration)| declaration.at);
    let mut index = TopicIndex::new();
    bindings.iter().enumerate().for_each(|(number, (binding, _))| index.add(&binding.routing_key, number));
    let mut findings = Vec::new();
    for (number, (binding, _)) in bindings.iter().enumerate() {
        let is_wider = |other: &usize| {
            let wide = bindings[*other].0;
            // If two bindings are equally wide, the rule reports only the second. `duplicate-binding` reports identical
            // keys.
            let is_covered = wide.routing_key != binding.routing_key && covers(wide, binding);
            is_covered && !(number < *other && covers(binding, wide))
        };
        if let Some(other) = index.candidates(&binding.routing_key).into_iter().find(is_wider) {
            findings.push(finding(subject, binding, bindings[other]));
        }
    }
    findings
}

/// Returns true if every key that matches the narrow binding certainly matches the wide binding.
fn covers(wide: &Binding, narrow: &Binding) -> bool {
    Keys::of_topic(&narrow.routing_key).match_topic(&wide.routing_key) == Certainty::Always
}

fn finding(subject: &Subject<'_>, binding: &Binding, (wide, declaration): DeclaredBinding<'_>) -> Finding {
    let to = match binding.destination {
        Destination::Queue(_) => "queue",
        Destination::Exchange(_) => "exchange",
    };
    let key = &wide.routing_key;
    let text = format!("it has no effect: the {to} already receives these messages through `{key}`");
    let finding = RULE.finding(subject, &ObjectId::Binding(binding.clone()), "routing_key", text);
    let hint = format!("remove it; or remove `{key}`, if this binding should replace it");
    finding.also(declaration.key_at, "the wider binding").hint(hint)
}
