//! Finds the exchanges that dead-lettered messages pass through. Their bindings are created first, so that a message
//! that is rejected at that moment can be routed.

use crate::model::{Destination, Exchange, ExchangeName, Family, ObjectId, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the exchanges that route dead-lettered messages: those that queues and policies name, all exchanges of
/// retries, and the exchanges and alternates behind them.
pub(super) fn dead_letter_exchanges(desired: &Topology, families: &[Family]) -> BTreeSet<ExchangeName> {
    let by_queue = desired.queues.values().filter_map(|queue| queue.arguments.get("x-dead-letter-exchange"));
    let by_policy = desired.policies.values().filter_map(|policy| policy.definition.get("dead-letter-exchange"));
    let mut open: Vec<ExchangeName> =
        by_queue.chain(by_policy).filter_map(|name| name.as_text()).map(ExchangeName::from).collect();
    open.extend(families.iter().flat_map(|family| &family.members).filter_map(|id| match id {
        ObjectId::Exchange(name) => Some(name.clone()),
        ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Queue(_) | ObjectId::Binding(_) | ObjectId::Record(_) => None,
    }));
    let mut onward: BTreeMap<&ExchangeName, Vec<&ExchangeName>> = BTreeMap::new();
    for binding in &desired.bindings {
        if let Destination::Exchange(name) = &binding.destination {
            onward.entry(&binding.source).or_default().push(name);
        }
    }
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        if found.contains(&name) {
            continue;
        }
        let alternate = desired.exchanges.get(&name).and_then(Exchange::alternate_exchange);
        open.extend(alternate.map(ExchangeName::from));
        open.extend(onward.get(&name).into_iter().flatten().map(|name| (*name).clone()));
        found.insert(name);
    }
    found
}
