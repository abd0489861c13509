//! Reports headers exchange bindings that do not set `x-match`, or whose headers have no effect
//! (`rabbit_exchange_type_headers`).

use crate::lint::{Finding, Rule, Subject};
use crate::model::{ArgumentValue, Binding, ObjectId};
use crate::rabbitmq::routing::Kind;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "headers-without-x-match",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "the binding of a headers exchange does not specify how to match",
    check,
    page: include_str!("headers_without_x_match.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let bindings = subject.spec.bindings.keys().filter(|it| routing.kind(&it.source) == Some(Kind::Headers));
    bindings.filter_map(|binding| finding(subject, binding)).collect()
}

fn finding(subject: &Subject<'_>, binding: &Binding) -> Option<Finding> {
    let x_match = binding.arguments.get("x-match").and_then(ArgumentValue::as_text);
    let mode = x_match.unwrap_or("all");
    let names = || binding.arguments.keys().filter(|name| *name != "x-match");
    // If the broker does not support `…-with-x`, a different rule reports the refusal.
    let is_compared = |name: &&String| mode.ends_with("-with-x") || !name.starts_with("x-");
    let matches = if mode.starts_with("any") { "it matches no message" } else { "it matches every message" };
    let (severity, setting, text, hint) = if let Some(ignored) = names().find(|name| !is_compared(name)) {
        let text = format!("headers that begin with `x-` are not compared: `{ignored}` has no effect here");
        let hint = if subject.is_at_least(3, 10) {
            format!("use `x-match: {mode}-with-x`, or rename the header")
        } else {
            "rename the header".to_owned()
        };
        (Severity::Warning, ignored.as_str(), text, hint)
    } else if names().count() == 0 && (mode.starts_with("any") || !binding.routing_key.is_empty()) {
        let text = format!("it has no headers, and a headers exchange ignores the key: {matches}");
        (Severity::Warning, "routing_key", text, "add headers: `arguments: {x-match: all, region: eu}`".to_owned())
    } else if x_match.is_none() && names().count() > 1 {
        let text = "it does not set `x-match`, so all of its headers must match".to_owned();
        (Severity::Info, "name", text, "add `x-match: all`, or `any` if one match is enough".to_owned())
    } else {
        return None;
    };
    Some(RULE.finding(subject, &ObjectId::Binding(binding.clone()), setting, text).severity(severity).hint(hint))
}
