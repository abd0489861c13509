//! Topic bindings that another one of the same queue covers: whatever fits the narrow one fits the wide one, too.

use crate::behaviour::routing::{Certainty, Keys, Kind};
use crate::lint::{Finding, Rule, Subject};
use crate::model::{Binding, Destination, ExchangeName, ObjectId};
use crate::spec::{BindingSpec, Severity};
use std::collections::BTreeMap;

pub(super) static RULE: Rule = Rule {
    name: "topic-binding-shadowed",
    severity: Severity::Warning,
    is_optional: false,
    summary: "a wider topic binding covers this one",
    check,
    page: include_str!("topic_binding_shadowed.md"),
};

/// So many bindings of one queue are compared: each with each of those that have a wildcard.
const MOST_COMPARED: usize = 500;

type Written<'a> = (&'a Binding, &'a BindingSpec);

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let mut ways: BTreeMap<(&ExchangeName, &Destination), Vec<Written<'_>>> = BTreeMap::new();
    for (binding, written) in &subject.spec.bindings {
        if routing.kind(&binding.source) == Some(Kind::Topic) {
            ways.entry((&binding.source, &binding.destination)).or_default().push((binding, written));
        }
    }
    let mut findings = Vec::new();
    for bindings in ways.values_mut() {
        bindings.sort_by_key(|(_, written)| written.at);
        bindings.truncate(MOST_COMPARED);
        for (index, (binding, _)) in bindings.iter().enumerate() {
            let wider = bindings.iter().enumerate().find(|(other, (wide, _))| {
                let covers = |wide: &Binding, narrow: &Binding| {
                    Keys::of_topic(&narrow.routing_key).match_topic(&wide.routing_key) == Certainty::Always
                };
                // Of two that are as wide as each other, the first stays; two of one key are duplicates.
                let is_other = *other != index && wide.routing_key != binding.routing_key;
                is_other && covers(wide, binding) && !(index < *other && covers(binding, wide))
            });
            if let Some((_, (wide, written))) = wider {
                let to = match binding.destination {
                    Destination::Queue(_) => "queue",
                    Destination::Exchange(_) => "exchange",
                };
                let key = &wide.routing_key;
                let text = format!("it adds nothing: the {to} gets all that fits it by `{key}` already");
                let finding = RULE.finding(subject, &ObjectId::Binding((*binding).clone()), "name", text);
                let hint = format!("take it out; or take `{key}` out, if it was to be replaced");
                findings.push(finding.also(written.at, "the wider one").hint(hint));
            }
        }
    }
    findings
}
