//! Reports bindings that the source exchange does not distinguish from an earlier binding. Such a binding has no
//! effect: the destination, a queue or an exchange, receives each message only once.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{Arguments, Binding, Destination, ExchangeName, ObjectId};
use crate::rabbitmq::routing::Kind;
use crate::spec::{BindingSpec, Severity};
use std::collections::BTreeMap;

pub(super) static RULE: Rule = Rule {
    name: "duplicate-binding",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "the exchange treats two bindings as one",
    check,
    page: include_str!("duplicate_binding.md"),
};

/// The components that determine the effect of a binding: the source, the destination, and the routing key and the
/// arguments if the exchange compares them.
type EffectKey<'a> = (&'a ExchangeName, &'a Destination, Option<&'a str>, Option<&'a Arguments>);

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let mut bindings: Vec<(&Binding, &BindingSpec)> = subject.spec.bindings.iter().collect();
    bindings.sort_by_key(|(_, declaration)| declaration.at);
    let mut first: BTreeMap<EffectKey<'_>, &BindingSpec> = BTreeMap::new();
    let mut findings = Vec::new();
    for (binding, declaration) in bindings {
        let (key, arguments) = (binding.routing_key.as_str(), &binding.arguments);
        let ((key, arguments), why) = match routing.kind(&binding.source) {
            Some(Kind::Direct) => ((Some(key), None), "a direct exchange compares only the key"),
            Some(Kind::Topic) => ((Some(key), None), "a topic exchange compares only the key"),
            Some(Kind::Fanout) => ((None, None), "a fanout exchange ignores keys and arguments"),
            Some(Kind::Headers) => ((None, Some(arguments)), "a headers exchange ignores the key"),
            // The default exchange has no explicit bindings. On exchanges of the other kinds, an additional binding can
            // change the distribution of messages, or can have an effect that topo does not know.
            Some(Kind::Default | Kind::OneOf | Kind::Unknown) | None => continue,
        };
        let effect_key = (&binding.source, &binding.destination, key, arguments);
        if let Some(earlier) = first.get(&effect_key) {
            let text = format!("it has the same effect as an earlier binding: {why}");
            let finding = RULE.finding(subject, &ObjectId::Binding(binding.clone()), "name", text);
            findings.push(finding.also(earlier.at, "the earlier binding").hint("remove one of the two bindings"));
        } else {
            first.insert(effect_key, declaration);
        }
    }
    findings
}
