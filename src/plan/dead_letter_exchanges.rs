//! Finds the exchanges that dead-lettered messages pass. Their bindings are created first, so that a message that is
//! rejected at that moment can be routed.

use crate::model::{Destination, Exchange, ExchangeName, Family, ObjectId, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// The exchanges through which dead letters go: where queues and policies send them, where those send on what they do not
/// know, and all of a queue's retries.
pub(super) fn sinks(desired: &Topology, families: &[Family]) -> BTreeSet<ExchangeName> {
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
    let mut sinks = BTreeSet::new();
    while let Some(name) = open.pop() {
        if sinks.contains(&name) {
            continue;
        }
        let alternate = desired.exchanges.get(&name).and_then(Exchange::alternate_exchange);
        open.extend(alternate.map(ExchangeName::from));
        open.extend(onward.get(&name).into_iter().flatten().map(|name| (*name).clone()));
        sinks.insert(name);
    }
    sinks
}
