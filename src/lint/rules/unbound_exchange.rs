//! Reports exchanges that do not route to any queue. The broker drops the messages that are published to them.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{ExchangeName, ObjectId};
use crate::rabbitmq::routing::{Keys, Message, RouteOutcome};
use crate::spec::Severity;
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "unbound-exchange",
    severity: Severity::Info,
    other_severities: &[],
    is_optional: false,
    summary: "the exchange does not route to any queue",
    check,
    page: include_str!("unbound_exchange.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let topology = &subject.expansion.topology;
    // If a spec declares only exchanges, other specs or applications bind queues to these exchanges.
    if topology.queues.is_empty() {
        return Vec::new();
    }
    let routing = subject.routing();
    // Other rules report alternate exchanges and dead-letter exchanges.
    let mut targets: BTreeSet<ExchangeName> = BTreeSet::new();
    for name in routing.topology().exchanges.keys() {
        targets.extend(routing.alternates(name).into_iter().map(|(alternate, _)| alternate));
    }
    for name in routing.topology().queues.keys() {
        targets.extend(routing.dead_lettering(name).iter().flatten().map(|to| to.exchange.clone()));
    }
    let any = Message::with(Keys::any());
    let reaches_nothing = |name: &&ExchangeName| routing.route(name, &any).outcome() == RouteOutcome::ReachesNothing;
    let declared = subject.spec.exchanges.keys().filter(|name| topology.exchanges.contains_key(*name));
    let finding = |name: &ExchangeName| {
        let mut bindings = topology.bindings.iter().chain(subject.unmanaged_bindings());
        let is_bound = bindings.any(|binding| binding.source == *name);
        let text = if is_bound {
            "its bindings do not route to any queue: messages published to it are dropped"
        } else {
            "nothing is bound to it: messages published to it are dropped"
        };
        let finding = RULE.finding(subject, &ObjectId::Exchange(name.clone()), "name", text);
        finding.hint("bind a queue to it, or add an `alternateExchange`, unless applications bind queues to it")
    };
    declared.filter(|name| !targets.contains(*name)).filter(reaches_nothing).map(finding).collect()
}
