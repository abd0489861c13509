//! Finds current retry objects that the spec no longer declares.
//!
//! A name alone is not sufficient: manual retries may also use an `orders.retry` exchange, and an application may have
//! an `orders.return` exchange. Therefore, at least one object of a queue's retries must have a feature that only
//! topo's retries have. Only in that case does topo match other objects by name. A binding is also matched if its
//! source is an exchange of desired retries.

use super::super::document::Desired;
use crate::model::naming::{self, TierName};
use crate::model::{Binding, Destination, Exchange, ExchangeName, Family, ObjectId, Queue, QueueName, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// The current and the desired topology.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a> {
    pub(super) current: &'a Topology,
    pub(super) desired: &'a Desired,
    /// Current objects that topo never changes.
    pub(super) untouchable: &'a BTreeSet<ObjectId>,
}

/// Returns the undesired current retry objects of each queue whose retries the spec manages.
pub(super) fn leftovers(sides: &Sides<'_>) -> BTreeMap<QueueName, BTreeSet<ObjectId>> {
    members(
        sides.current,
        sides.desired,
        |queue| is_responsible_for(sides.desired, queue),
        |id| is_left_over(sides, id),
    )
}

/// Returns the current retry objects of unmanaged queues. topo does not delete these objects, even if `owns` matches
/// their names.
pub(super) fn of_unmanaged_queues(current: &Topology, desired: &Desired) -> BTreeSet<ObjectId> {
    let is_unmanaged = |queue: &QueueName| current.queues.contains_key(queue) && !is_responsible_for(desired, queue);
    members(current, desired, is_unmanaged, |_| true).into_values().flatten().collect()
}

/// Returns the current retry objects of the selected queues.
fn members(
    current: &Topology,
    desired: &Desired,
    is_selected: impl Fn(&QueueName) -> bool,
    is_included: impl Fn(&ObjectId) -> bool,
) -> BTreeMap<QueueName, BTreeSet<ObjectId>> {
    let families: BTreeMap<&QueueName, &Family> =
        desired.scope.families.iter().map(|family| (&family.queue, family)).collect();
    let mut found: BTreeMap<QueueName, BTreeSet<ObjectId>> = BTreeMap::new();
    for (name, live) in &current.queues {
        let id = ObjectId::Queue(name.clone());
        if let Some(queue) = queue_of_tier(name, live).filter(&is_selected).filter(|_| is_included(&id)) {
            found.entry(queue).or_default().insert(id);
        }
    }
    for (name, live) in &current.exchanges {
        let id = ObjectId::Exchange(name.clone());
        if let Some(queue) = queue_of_exchange(name, live).filter(&is_selected).filter(|_| is_included(&id)) {
            found.entry(queue).or_default().insert(id);
        }
    }
    for (name, live) in &current.exchanges {
        let id = ObjectId::Exchange(name.clone());
        if let Some(old) = likely_queue_of_exchange(name, live).and_then(|queue| found.get_mut(&queue))
            && is_included(&id)
        {
            old.insert(id);
        }
    }
    for binding in &current.bindings {
        let Some(queue) = queue_of_binding(binding).filter(&is_selected) else { continue };
        let id = ObjectId::Binding(binding.clone());
        let source = ObjectId::Exchange(binding.source.clone());
        let is_desired_source = families.get(&queue).is_some_and(|family| family.members.contains(&source));
        if (is_desired_source || found.contains_key(&queue)) && is_included(&id) {
            found.entry(queue).or_default().insert(id);
        }
    }
    found
}

/// Returns true if a current object is undesired, and is neither external nor ignored nor untouchable.
fn is_left_over(sides: &Sides<'_>, id: &ObjectId) -> bool {
    let (topology, scope) = (&sides.desired.topology, &sides.desired.scope);
    let is_excluded = |id: &ObjectId| scope.external.contains(id) || id.name().is_some_and(|name| scope.ignores(name));
    !sides.is_untouchable(id)
        && match id {
            ObjectId::Exchange(name) => !topology.exchanges.contains_key(name) && !is_excluded(id),
            ObjectId::Queue(name) => !topology.queues.contains_key(name) && !is_excluded(id),
            ObjectId::Binding(binding) => {
                let source = ObjectId::Exchange(binding.source.clone());
                // A binding to an external exchange can be left over, because retries may dead-letter to the exchange.
                !topology.bindings.contains(binding)
                    && !is_excluded(&source)
                    && !scope.ignores(binding.destination.name())
            }
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Record(_) => false,
        }
}

/// Returns the queue to which a current tier belongs; `None` if `live` is not a tier. Three features must match: the
/// name, the dead-letter exchange, and the dead-letter routing key. Manual retries may have the same name and exchange.
pub(super) fn queue_of_tier(name: &QueueName, live: &Queue) -> Option<QueueName> {
    let TierName { queue, number, .. } = TierName::parse(name)?;
    let sets = |argument: &str, text: &str| live.arguments.get(argument).and_then(|it| it.as_text()) == Some(text);
    let returns_messages = sets("x-dead-letter-exchange", naming::return_exchange(&queue).as_str())
        && sets("x-dead-letter-routing-key", &naming::retry_key(&queue, number));
    returns_messages.then_some(queue)
}

/// Returns the queue whose retries certainly own this exchange; `None` if this is not certain. The proof is the
/// alternate exchange, because only exchanges of topo's retries have such an alternate exchange.
pub(super) fn queue_of_exchange(name: &ExchangeName, live: &Exchange) -> Option<QueueName> {
    let leads_to = |next: &ExchangeName| live.alternate_exchange() == Some(next.as_str());
    let retry_switch = || {
        let queue = naming::queue_of_retry_exchange(&naming::exchange_of_switch(name)?)?;
        leads_to(&naming::exhausted_exchange(&queue)).then_some(queue)
    };
    match live.kind.as_str() {
        "headers" => naming::queue_of_guard_exchange(name).filter(|queue| leads_to(&naming::retry_exchange(queue))),
        "direct" => {
            let own = || naming::queue_of_retry_exchange(name).filter(|_| leads_to(&naming::switch_exchange(name)));
            retry_switch().or_else(own)
        }
        "topic" => naming::queue_of_exhausted_exchange(name).filter(|queue| leads_to(&naming::first_exchange(queue))),
        "fanout" => naming::queue_of_first_exchange(name).filter(|_| leads_to(&naming::switch_exchange(name))),
        _ => None,
    }
}

/// Returns the queue whose retries own this exchange, judging by its name and type. The caller must check that other
/// objects of these retries exist.
fn likely_queue_of_exchange(name: &ExchangeName, live: &Exchange) -> Option<QueueName> {
    let first_switch = || naming::queue_of_first_exchange(&naming::exchange_of_switch(name)?);
    match live.kind.as_str() {
        "fanout" => naming::queue_of_return_exchange(name).or_else(first_switch),
        _ => None,
    }
}

/// Returns the queue whose retries own this binding, judging by its source, destination, routing key and
/// arguments. Returns `None` for bindings that other owners add to the exchanges of retries.
fn queue_of_binding(binding: &Binding) -> Option<QueueName> {
    let Binding { source, destination, routing_key, arguments } = binding;
    let is_tier_of = |queue: &QueueName| is_tier(queue, destination);
    let to_exchange = matches!(destination, Destination::Exchange(_));
    let is_exhausted_key =
        |queue: &QueueName| routing_key == "#" || Some(routing_key) == naming::retry_key_pattern(queue).as_ref();
    let is_final_death = |_: &QueueName| to_exchange && arguments.contains_key("x-last-death-reason");
    let is_return = |queue: &QueueName| *destination == Destination::Queue(queue.clone());
    // While topo replaces a tier, the source of the binding is temporarily the switch of the exchange.
    let switched = naming::exchange_of_switch(source);
    let source_or_switched = switched.as_ref().unwrap_or(source);
    let entry = || {
        let queue = naming::queue_of_retry_exchange(source_or_switched);
        queue.or_else(|| naming::queue_of_first_exchange(source_or_switched)).filter(is_tier_of)
    };
    // While topo retires all tiers, the source of the binding is temporarily the switch of the first exchange.
    let without_tiers = || switched.as_ref().and_then(naming::queue_of_first_exchange).filter(|_| to_exchange);
    let exhausted = || naming::queue_of_exhausted_exchange(source).filter(is_exhausted_key);
    let returned = || naming::queue_of_return_exchange(source).filter(is_return);
    let guard = || naming::queue_of_guard_exchange(source).filter(is_final_death);
    entry().or_else(without_tiers).or_else(exhausted).or_else(returned).or_else(guard)
}

/// Returns true if a destination is a tier of the queue.
pub(super) fn is_tier(queue: &QueueName, destination: &Destination) -> bool {
    match destination {
        Destination::Queue(name) => TierName::parse(name).is_some_and(|tier| tier.queue == *queue),
        Destination::Exchange(_) => false,
    }
}

/// Returns true if the spec is responsible for the retries of a queue: the spec declares or removes the queue, or owns
/// the queue without declaring it. The retries of an external queue belong to its owner.
fn is_responsible_for(desired: &Desired, queue: &QueueName) -> bool {
    let (scope, id) = (&desired.scope, ObjectId::Queue(queue.clone()));
    let is_excluded = scope.external.contains(&id) || scope.ignores(queue.as_str());
    desired.topology.queues.contains_key(queue)
        || !is_excluded && (scope.removed.contains(&id) || scope.owns(queue.as_str()))
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
    fn tiers_are_recognized_by_name_return_exchange_and_key() {
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
        // In manual retries, a message keeps its routing key, or its routing key becomes the name of the queue.
        assert!(!is_tier("mail.retry.1.5s", &[back]));
        assert!(!is_tier("mail.retry.1.5s", &[back, (key, "mail")]));
        assert!(!is_tier("mail.retry.1.5s", &[back, (key, "mail.retry.2")]));
        assert!(!is_tier("mail.retry.1.5s", &[("x-dead-letter-exchange", "mail"), (key, "mail.retry.1")]));
    }
}
