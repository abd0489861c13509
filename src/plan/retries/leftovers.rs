//! What is live of retries and not desired (any more).
//!
//! Names alone prove nothing: whoever built retries by hand calls an exchange `orders.retry`, too, and a shop has one for
//! `orders.return`. So something of the retries must be recognized by what no other has. Only then, or where the spec
//! wants the exchange that a binding comes from, the rest is taken as part of them by name.

use super::super::document::Desired;
use crate::model::naming::{self, TierName};
use crate::model::{Binding, Destination, Exchange, ExchangeName, Family, ObjectId, Queue, QueueName, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// What is live and what is desired.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a> {
    pub(super) current: &'a Topology,
    pub(super) desired: &'a Desired,
    /// Live objects that topo never touches.
    pub(super) untouchable: &'a BTreeSet<ObjectId>,
}

/// What is live of the retries of each queue that the spec answers for, and not desired.
pub(super) fn leftovers(sides: &Sides<'_>) -> BTreeMap<QueueName, BTreeSet<ObjectId>> {
    members(sides.current, sides.desired, |queue| answers_for(sides.desired, queue), |id| is_left_over(sides, id))
}

/// What is live of the retries of queues that are somebody else's. Owning its name is no leave to take it away.
pub(super) fn of_others(current: &Topology, desired: &Desired) -> BTreeSet<ObjectId> {
    let is_theirs = |queue: &QueueName| current.queues.contains_key(queue) && !answers_for(desired, queue);
    members(current, desired, is_theirs, |_| true).into_values().flatten().collect()
}

/// What is live of the retries of such queues, as far as it counts.
fn members(
    current: &Topology,
    desired: &Desired,
    is_meant: impl Fn(&QueueName) -> bool,
    counts: impl Fn(&ObjectId) -> bool,
) -> BTreeMap<QueueName, BTreeSet<ObjectId>> {
    let families: BTreeMap<&QueueName, &Family> =
        desired.scope.families.iter().map(|family| (&family.queue, family)).collect();
    let mut found: BTreeMap<QueueName, BTreeSet<ObjectId>> = BTreeMap::new();
    for (name, live) in &current.queues {
        let id = ObjectId::Queue(name.clone());
        if let Some(queue) = queue_of_tier(name, live).filter(&is_meant).filter(|_| counts(&id)) {
            found.entry(queue).or_default().insert(id);
        }
    }
    for (name, live) in &current.exchanges {
        let id = ObjectId::Exchange(name.clone());
        if let Some(queue) = certain(name, live).filter(&is_meant).filter(|_| counts(&id)) {
            found.entry(queue).or_default().insert(id);
        }
    }
    for (name, live) in &current.exchanges {
        let id = ObjectId::Exchange(name.clone());
        if let Some(old) = likely(name, live).and_then(|queue| found.get_mut(&queue))
            && counts(&id)
        {
            old.insert(id);
        }
    }
    for binding in &current.bindings {
        let Some(queue) = queue_of_binding(binding).filter(&is_meant) else { continue };
        let id = ObjectId::Binding(binding.clone());
        let source = ObjectId::Exchange(binding.source.clone());
        let is_desired_source = families.get(&queue).is_some_and(|family| family.members.contains(&source));
        if (is_desired_source || found.contains_key(&queue)) && counts(&id) {
            found.entry(queue).or_default().insert(id);
        }
    }
    found
}

/// Whether a live object is neither desired nor said to be somebody else's.
fn is_left_over(sides: &Sides<'_>, id: &ObjectId) -> bool {
    let (topology, scope) = (&sides.desired.topology, &sides.desired.scope);
    let is_foreign = |id: &ObjectId| scope.external.contains(id) || id.name().is_some_and(|name| scope.ignores(name));
    !sides.is_untouchable(id)
        && match id {
            ObjectId::Exchange(name) => !topology.exchanges.contains_key(name) && !is_foreign(id),
            ObjectId::Queue(name) => !topology.queues.contains_key(name) && !is_foreign(id),
            ObjectId::Binding(binding) => {
                let source = ObjectId::Exchange(binding.source.clone());
                // That it leads to somebody else's exchange is nothing special: dead letters may end there.
                !topology.bindings.contains(binding)
                    && !is_foreign(&source)
                    && !scope.ignores(binding.destination.name())
            }
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Record(_) => false,
        }
}

/// The queue whose messages wait in a live queue: its name says it, and so does the way back, with the key of the retry.
/// A name and an exchange alone are what somebody who waits by hand may have come to, too.
pub(super) fn queue_of_tier(name: &QueueName, live: &Queue) -> Option<QueueName> {
    let TierName { queue, number, .. } = TierName::parse(name)?;
    let says = |argument: &str, text: &str| live.arguments.get(argument).and_then(|it| it.as_text()) == Some(text);
    let hands_back = says("x-dead-letter-exchange", naming::return_exchange(&queue).as_str())
        && says("x-dead-letter-routing-key", &naming::retry_key(&queue, number));
    hands_back.then_some(queue)
}

/// The queue whose retries an exchange is part of beyond doubt: no other has such an alternate.
pub(super) fn certain(name: &ExchangeName, live: &Exchange) -> Option<QueueName> {
    let leads_to = |next: &ExchangeName| live.alternate_exchange() == Some(next.as_str());
    let retry_switch = || {
        let queue = naming::queue_of_retry_exchange(&naming::switched_by(name)?)?;
        leads_to(&naming::over_exchange(&queue)).then_some(queue)
    };
    match live.kind.as_str() {
        "headers" => naming::queue_of_guard_exchange(name).filter(|queue| leads_to(&naming::retry_exchange(queue))),
        "direct" => {
            let own = || naming::queue_of_retry_exchange(name).filter(|_| leads_to(&naming::switch_of(name)));
            retry_switch().or_else(own)
        }
        "topic" => naming::queue_of_over_exchange(name).filter(|queue| leads_to(&naming::first_exchange(queue))),
        "fanout" => naming::queue_of_first_exchange(name).filter(|_| leads_to(&naming::switch_of(name))),
        _ => None,
    }
}

/// The queue whose retries an exchange is part of, if that queue has any.
fn likely(name: &ExchangeName, live: &Exchange) -> Option<QueueName> {
    let first_switch = || naming::queue_of_first_exchange(&naming::switched_by(name)?);
    match live.kind.as_str() {
        "fanout" => naming::queue_of_return_exchange(name).or_else(first_switch),
        _ => None,
    }
}

/// The queue whose retries a binding is part of, by its form: a tap that somebody hung on one of the exchanges is none.
fn queue_of_binding(binding: &Binding) -> Option<QueueName> {
    let Binding { source, destination, routing_key, arguments } = binding;
    let is_tier_of = |queue: &QueueName| is_tier(queue, destination);
    let to_exchange = matches!(destination, Destination::Exchange(_));
    let is_end =
        |queue: &QueueName| routing_key == "#" || Some(routing_key) == naming::retry_key_pattern(queue).as_ref();
    let is_final_death = |_: &QueueName| to_exchange && arguments.contains_key("x-last-death-reason");
    let is_way_back = |queue: &QueueName| *destination == Destination::Queue(queue.clone());
    // While a tier is exchanged for another, the switch stands in for the exchange.
    let switched = naming::switched_by(source);
    let source_or_switched = switched.as_ref().unwrap_or(source);
    let entry = || {
        let queue = naming::queue_of_retry_exchange(source_or_switched);
        queue.or_else(|| naming::queue_of_first_exchange(source_or_switched)).filter(is_tier_of)
    };
    // And while all tiers go, for the first of them.
    let last_way = || switched.as_ref().and_then(naming::queue_of_first_exchange).filter(|_| to_exchange);
    let over = || naming::queue_of_over_exchange(source).filter(is_end);
    let hand_back = || naming::queue_of_return_exchange(source).filter(is_way_back);
    let guard = || naming::queue_of_guard_exchange(source).filter(is_final_death);
    entry().or_else(last_way).or_else(over).or_else(hand_back).or_else(guard)
}

/// Whether a binding that ends there leads into a tier of that queue.
pub(super) fn is_tier(queue: &QueueName, destination: &Destination) -> bool {
    match destination {
        Destination::Queue(name) => TierName::parse(name).is_some_and(|tier| tier.queue == *queue),
        Destination::Exchange(_) => false,
    }
}

/// Whether a queue's retries are this spec's: it declares the queue, removes it, or owns it and does not declare it. A
/// queue that is somebody else's has somebody else's retries.
fn answers_for(desired: &Desired, queue: &QueueName) -> bool {
    let (scope, id) = (&desired.scope, ObjectId::Queue(queue.clone()));
    let is_foreign = scope.external.contains(&id) || scope.ignores(queue.as_str());
    desired.topology.queues.contains_key(queue)
        || !is_foreign && (scope.removed.contains(&id) || scope.owns(queue.as_str()))
}

impl Sides<'_> {
    fn is_untouchable(&self, id: &ObjectId) -> bool {
        self.untouchable.contains(id)
            || match id {
                ObjectId::Binding(binding) => {
                    self.untouchable.contains(&ObjectId::Exchange(binding.source.clone()))
                        || self.untouchable.contains(&binding.destination.id())
                }
                ObjectId::Vhost
                | ObjectId::Exchange(_)
                | ObjectId::Policy(_)
                | ObjectId::Queue(_)
                | ObjectId::Record(_) => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ArgumentValue, Arguments};

    #[test]
    fn a_tier_is_known_by_its_name_its_way_back_and_its_key() {
        let queue = |arguments: &[(&str, &str)]| Queue {
            durable: true,
            auto_delete: false,
            exclusive: false,
            arguments: arguments
                .iter()
                .map(|(name, text)| ((*name).to_owned(), ArgumentValue::from(*text)))
                .collect::<Arguments>(),
        };
        let (back, key) = (("x-dead-letter-exchange", "mail.return"), "x-dead-letter-routing-key");
        let is_tier = |name: &str, arguments: &[(&str, &str)]| queue_of_tier(&name.into(), &queue(arguments)).is_some();
        assert!(is_tier("mail.retry.1.5s", &[back, (key, "mail.retry.1")]));
        assert!(is_tier("mail.retry.1.5s~2", &[back, (key, "mail.retry.1")]));
        // Made by hand: the keys are the publishers' own, or the queue's.
        assert!(!is_tier("mail.retry.1.5s", &[back]));
        assert!(!is_tier("mail.retry.1.5s", &[back, (key, "mail")]));
        assert!(!is_tier("mail.retry.1.5s", &[back, (key, "mail.retry.2")]));
        assert!(!is_tier("mail.retry.1.5s", &[("x-dead-letter-exchange", "mail"), (key, "mail.retry.1")]));
    }
}
