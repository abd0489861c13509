//! Bindings that the type of their exchange cannot tell apart: the queue gets each message once all the same.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{Arguments, Binding, Destination, ExchangeName, ObjectId};
use crate::rabbitmq::routing::Kind;
use crate::spec::{BindingSpec, Severity};
use std::collections::BTreeMap;

pub(super) static RULE: Rule = Rule {
    name: "duplicate-binding",
    severity: Severity::Warning,
    sometimes: &[],
    is_optional: false,
    summary: "the exchange treats two bindings as one",
    check,
    page: include_str!("duplicate_binding.md"),
};

/// What the exchange looks at.
type Seen<'a> = (&'a ExchangeName, &'a Destination, Option<&'a str>, Option<&'a Arguments>);

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let mut written: Vec<(&Binding, &BindingSpec)> = subject.spec.bindings.iter().collect();
    written.sort_by_key(|(_, written)| written.at);
    let mut first: BTreeMap<Seen<'_>, &BindingSpec> = BTreeMap::new();
    let mut findings = Vec::new();
    for (binding, at) in written {
        let (key, arguments) = (binding.routing_key.as_str(), &binding.arguments);
        let (seen, why) = match routing.kind(&binding.source) {
            Some(Kind::Direct) => ((Some(key), None), "a direct exchange compares only the key"),
            Some(Kind::Topic) => ((Some(key), None), "a topic exchange compares only the key"),
            Some(Kind::Fanout) => ((None, None), "a fanout exchange ignores keys and arguments"),
            Some(Kind::Headers) => ((None, Some(arguments)), "a headers exchange ignores the key"),
            // A weight, or a plugin's own affair.
            Some(Kind::Default | Kind::OneOf | Kind::Unknown) | None => continue,
        };
        let seen = (&binding.source, &binding.destination, seen.0, seen.1);
        if let Some(earlier) = first.get(&seen) {
            let text = format!("it has the same effect as an earlier one: {why}");
            let finding = RULE.finding(subject, &ObjectId::Binding(binding.clone()), "name", text);
            findings.push(finding.also(earlier.at, "the earlier one").hint("remove one of the two"));
        } else {
            first.insert(seen, at);
        }
    }
    findings
}
