//! Topic bindings that another one of the same queue covers: whatever fits the narrow one fits the wide one, too.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{Binding, Destination, ExchangeName, ObjectId};
use crate::rabbitmq::routing::{Certainty, Keys, Kind, TopicIndex};
use crate::spec::{BindingSpec, Severity};
use std::collections::BTreeMap;

pub(super) static RULE: Rule = Rule {
    name: "topic-binding-shadowed",
    severity: Severity::Warning,
    sometimes: &[],
    is_optional: false,
    summary: "a wider topic binding covers this one",
    check,
    page: include_str!("topic_binding_shadowed.md"),
};

type Written<'a> = (&'a Binding, &'a BindingSpec);

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let mut ways: BTreeMap<(&ExchangeName, &Destination), Vec<Written<'_>>> = BTreeMap::new();
    for (binding, written) in &subject.spec.bindings {
        if routing.kind(&binding.source) == Some(Kind::Topic) {
            ways.entry((&binding.source, &binding.destination)).or_default().push((binding, written));
        }
    }
    let several = ways.into_values().filter(|bindings| bindings.len() > 1);
    several.flat_map(|bindings| of_one_way(subject, bindings)).collect()
}

/// Of the bindings between the same two.
fn of_one_way(subject: &Subject<'_>, mut bindings: Vec<Written<'_>>) -> Vec<Finding> {
    bindings.sort_by_key(|(_, written)| written.at);
    let mut index = TopicIndex::new();
    bindings.iter().enumerate().for_each(|(number, (binding, _))| index.add(&binding.routing_key, number));
    let mut findings = Vec::new();
    for (own, (binding, _)) in bindings.iter().enumerate() {
        let is_wider = |other: &usize| {
            let wide = bindings[*other].0;
            // Of two that are as wide as each other, the first stays; two of one key are duplicates.
            let is_other = wide.routing_key != binding.routing_key && covers(wide, binding);
            is_other && !(own < *other && covers(binding, wide))
        };
        if let Some(other) = index.candidates(&binding.routing_key).into_iter().find(is_wider) {
            findings.push(finding(subject, binding, bindings[other]));
        }
    }
    findings
}

fn covers(wide: &Binding, narrow: &Binding) -> bool {
    Keys::of_topic(&narrow.routing_key).match_topic(&wide.routing_key) == Certainty::Always
}

fn finding(subject: &Subject<'_>, binding: &Binding, (wide, written): Written<'_>) -> Finding {
    let to = match binding.destination {
        Destination::Queue(_) => "queue",
        Destination::Exchange(_) => "exchange",
    };
    let key = &wide.routing_key;
    let text = format!("it has no effect: the {to} already gets these messages through `{key}`");
    let finding = RULE.finding(subject, &ObjectId::Binding(binding.clone()), "routing_key", text);
    let hint = format!("remove it; or remove `{key}`, if this one should replace it");
    finding.also(written.key_at, "the wider binding").hint(hint)
}
