//! Reports alternate exchanges that do not route to any queue. The broker still drops the unroutable messages.

use crate::lint::policy_targets::{Kind, PolicyTarget};
use crate::lint::{Finding, Rule, Subject};
use crate::model::{ExchangeName, ObjectId};
use crate::rabbitmq::routing::{Keys, Message, RouteOutcome};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "dangling-alternate-exchange",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "the alternate exchange does not route to any queue",
    check,
    page: include_str!("dangling_alternate_exchange.md"),
};

const KEY: &str = "alternate-exchange";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let any = Message::with(Keys::any());
    let mut findings = Vec::new();
    for it in subject.policy_targets() {
        let (Kind::Exchange(_), None) = (it.kind, it.retry_owner) else { continue };
        let name = ExchangeName::new(it.name);
        let [(alternate, _)] = &routing.alternates(&name)[..] else { continue };
        if routing.routes_all(&name, &any) {
            continue;
        }
        let text = if alternate.as_str() == it.name {
            "the exchange is its own alternate exchange: messages that it cannot route are dropped".to_owned()
        } else if routing.route(alternate, &any).outcome() == RouteOutcome::ReachesNothing {
            format!(
                "messages that it cannot route go to `{alternate}`, which does not route them to any queue: they are dropped"
            )
        } else {
            continue;
        };
        let hint = "bind a queue to the alternate exchange for all keys, and monitor that queue";
        findings.push(finding(subject, it, text).hint(hint));
    }
    findings
}

/// Creates a finding at the setting: the argument of the exchange, or the key of the policy that governs the exchange.
fn finding(subject: &Subject<'_>, it: &PolicyTarget<'_>, text: String) -> Finding {
    let at_exchange = RULE.finding(subject, &it.id, KEY, text);
    let is_set_by_argument = matches!(it.kind, Kind::Exchange(exchange) if exchange.arguments.contains_key(KEY));
    match it.governing().filter(|_| !is_set_by_argument) {
        Some(policy) => {
            let at = subject.position(&ObjectId::Policy(policy.clone()), KEY).at;
            Finding { at, also: vec![(at_exchange.at, "the policy applies here".to_owned())], ..at_exchange }
        }
        None => at_exchange,
    }
}
