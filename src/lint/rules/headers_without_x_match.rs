//! Bindings of headers exchanges that do not say how they match, or match otherwise than they look
//! (`rabbit_exchange_type_headers`).

use crate::behaviour::routing::Kind;
use crate::lint::{Finding, Rule, Subject};
use crate::model::{ArgumentValue, Binding, ObjectId};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "headers-without-x-match",
    severity: Severity::Warning,
    sometimes: &[Severity::Info],
    is_optional: false,
    summary: "the binding of a headers exchange does not say how it matches",
    check,
    page: include_str!("headers_without_x_match.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let of_headers = subject.spec.bindings.keys().filter(|it| routing.kind(&it.source) == Some(Kind::Headers));
    of_headers.filter_map(|binding| finding(subject, binding)).collect()
}

fn finding(subject: &Subject<'_>, binding: &Binding) -> Option<Finding> {
    let said = binding.arguments.get("x-match").and_then(ArgumentValue::as_text);
    let how = said.unwrap_or("all");
    let names = || binding.arguments.keys().filter(|name| *name != "x-match");
    // A broker without `…-with-x` refuses it, and another rule says so.
    let counts = |name: &&String| how.ends_with("-with-x") || !name.starts_with("x-");
    let taken = if how.starts_with("any") { "it takes no message" } else { "it takes every message" };
    let (severity, part, text, hint) = if let Some(ignored) = names().find(|name| !counts(name)) {
        let text = format!("headers that begin with `x-` are not compared: `{ignored}` does nothing here");
        let hint = if subject.is_at_least(3, 10) {
            format!("say `x-match: {how}-with-x`, or give the header another name")
        } else {
            "give the header another name".to_owned()
        };
        (Severity::Warning, ignored.as_str(), text, hint)
    } else if names().count() == 0 && (how.starts_with("any") || !binding.routing_key.is_empty()) {
        let text = format!("it names no header, and a headers exchange does not look at the key: {taken}");
        (Severity::Warning, "routing_key", text, "name the headers: `arguments: {x-match: all, region: eu}`".to_owned())
    } else if said.is_none() && names().count() > 1 {
        let text = "it does not say `x-match`: all of its headers must be there".to_owned();
        (Severity::Info, "name", text, "say `x-match: all`, or `any` if one is enough".to_owned())
    } else {
        return None;
    };
    Some(RULE.finding(subject, &ObjectId::Binding(binding.clone()), part, text).severity(severity).hint(hint))
}
