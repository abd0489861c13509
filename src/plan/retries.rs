//! Live retries that the spec does not want so (any more): until topo can take tiers down, they block the plan.
//!
//! With another count, an old key would lead to the dead letters beside the new one that leads to a tier, and a message
//! would be both a dead letter and tried again. Tiers that are left over hand back what nobody waits for any more.
//!
//! Names alone prove nothing: whoever built retries by hand calls an exchange `orders.retry`, too, and a shop has one for
//! `orders.return`. So something of the retries must be recognised by what no other has. Only then, or where the spec
//! wants the exchange that a binding comes from, the rest is taken as part of them by name.

use super::document::Options;
use super::draft::Draft;
use super::situation::Situation;
use crate::model::naming::{self, TierName};
use crate::model::{Binding, Destination, Exchange, ExchangeName, Family, ObjectId, ObjectKind, Queue, QueueName};
use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

/// After so many of a kind a list is cut.
const SHOWN: usize = 3;

/// Blocks what would change the live retries of a queue. After `--target`: what it leaves alone is no reason to stop.
pub(super) fn check(draft: &mut Draft, situation: &Situation<'_>, options: &Options) {
    let families: BTreeMap<&QueueName, &Family> =
        situation.wanted.scope.families.iter().map(|family| (&family.queue, family)).collect();
    for (queue, old) in leftovers(situation, &families) {
        let family = families.get(&queue).copied();
        if !is_asked_for(draft, situation, options, &queue, family) {
            continue;
        }
        let id = ObjectId::Queue(queue);
        let text =
            format!("{id} has live retries that the spec changes: {}; topo cannot retire tiers yet", listed(&old));
        let lift = "keep its retries as they are; or stop what publishes to it, let it and its tiers run empty, and \
                    delete the old objects by hand";
        draft.block(&situation.address(&id), text, Some(lift.to_owned()));
    }
}

/// What is live of the retries of each queue of the spec, and not wanted.
fn leftovers(
    situation: &Situation<'_>,
    families: &BTreeMap<&QueueName, &Family>,
) -> BTreeMap<QueueName, BTreeSet<ObjectId>> {
    let current = situation.current;
    // A queue that is somebody else's is not among them, and its retries are that somebody's.
    let is_ours = |queue: &QueueName| situation.wanted.topology.queues.contains_key(queue);
    let mut found: BTreeMap<QueueName, BTreeSet<ObjectId>> = BTreeMap::new();
    for (name, live) in &current.queues {
        let id = ObjectId::Queue(name.clone());
        if let Some(queue) = queue_of_tier(name, live).filter(is_ours).filter(|_| is_left_over(situation, &id)) {
            found.entry(queue).or_default().insert(id);
        }
    }
    for (name, live) in &current.exchanges {
        let id = ObjectId::Exchange(name.clone());
        if let Some(queue) = certain(name, live).filter(is_ours).filter(|_| is_left_over(situation, &id)) {
            found.entry(queue).or_default().insert(id);
        }
    }
    for (name, live) in &current.exchanges {
        let id = ObjectId::Exchange(name.clone());
        if let Some(old) = likely(name, live).and_then(|queue| found.get_mut(&queue))
            && is_left_over(situation, &id)
        {
            old.insert(id);
        }
    }
    for binding in &current.bindings {
        let Some(queue) = queue_of_binding(binding).filter(is_ours) else { continue };
        let id = ObjectId::Binding(binding.clone());
        let source = ObjectId::Exchange(binding.source.clone());
        let is_wanted_source = families.get(&queue).is_some_and(|family| family.members.contains(&source));
        if (is_wanted_source || found.contains_key(&queue)) && is_left_over(situation, &id) {
            found.entry(queue).or_default().insert(id);
        }
    }
    found
}

/// Whether a live object is neither wanted nor said to be somebody else's.
fn is_left_over(situation: &Situation<'_>, id: &ObjectId) -> bool {
    let wanted = situation.wanted;
    let (topology, scope) = (&wanted.topology, &wanted.scope);
    let is_foreign = |id: &ObjectId| scope.external.contains(id) || id.name().is_some_and(|name| scope.ignores(name));
    !situation.is_untouchable(id)
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
            ObjectId::Vhost | ObjectId::Policy(_) => false,
        }
}

/// The queue whose messages wait in a live queue: its name says it, and so does the way back.
fn queue_of_tier(name: &QueueName, live: &Queue) -> Option<QueueName> {
    let TierName { queue, .. } = TierName::parse(name)?;
    let back = live.arguments.get("x-dead-letter-exchange")?.as_text()?;
    (back == naming::return_exchange(&queue).as_str()).then_some(queue)
}

/// The queue whose retries an exchange is part of beyond doubt: no other has such an alternate.
fn certain(name: &ExchangeName, live: &Exchange) -> Option<QueueName> {
    let leads_to = |next: ExchangeName| live.alternate_exchange() == Some(next.as_str());
    match live.kind.as_str() {
        "headers" => naming::queue_of_guard_exchange(name).filter(|queue| leads_to(naming::retry_exchange(queue))),
        "direct" => naming::queue_of_retry_exchange(name).filter(|queue| leads_to(naming::first_exchange(queue))),
        _ => None,
    }
}

/// The queue whose retries an exchange is part of, if that queue has any.
fn likely(name: &ExchangeName, live: &Exchange) -> Option<QueueName> {
    match live.kind.as_str() {
        "direct" => naming::queue_of_retry_exchange(name),
        "fanout" => naming::queue_of_first_exchange(name).or_else(|| naming::queue_of_return_exchange(name)),
        _ => None,
    }
}

/// The queue whose retries a binding is part of, by its form: a tap that somebody hung on one of the exchanges is none.
fn queue_of_binding(binding: &Binding) -> Option<QueueName> {
    let Binding { source, destination, routing_key, arguments } = binding;
    let is_tier_of = |queue: &QueueName| match destination {
        Destination::Queue(name) => TierName::parse(name).is_some_and(|tier| tier.queue == *queue),
        Destination::Exchange(_) => false,
    };
    let to_exchange = matches!(destination, Destination::Exchange(_));
    // The last key leads to an exchange, the keys before it to tiers.
    let is_step = |queue: &QueueName| {
        is_tier_of(queue) || to_exchange && naming::number_of_retry_key(queue, routing_key).is_some()
    };
    let is_final_death = |_: &QueueName| to_exchange && arguments.contains_key("x-last-death-reason");
    let is_way_back = |queue: &QueueName| *destination == Destination::Queue(queue.clone());
    let retry = || naming::queue_of_retry_exchange(source).filter(is_step);
    let first = || naming::queue_of_first_exchange(source).filter(is_tier_of);
    let hand_back = || naming::queue_of_return_exchange(source).filter(is_way_back);
    let guard = || naming::queue_of_guard_exchange(source).filter(is_final_death);
    retry().or_else(first).or_else(hand_back).or_else(guard)
}

/// Whether anything that is planned has to do with this queue's retries.
fn is_asked_for(
    draft: &Draft,
    situation: &Situation<'_>,
    options: &Options,
    queue: &QueueName,
    family: Option<&Family>,
) -> bool {
    let own = [ObjectId::Queue(queue.clone()), ObjectId::Policy(naming::dead_letter_policy(queue))];
    let address = situation.address(&own[0]);
    let concerns = |id: ObjectId| own.contains(&id) || family.is_some_and(|family| family.members.contains(&id));
    options.targets.is_empty()
        || options.targets.iter().any(|target| target.matches(address.as_str()))
        || draft.changes.iter().filter_map(|change| change.id()).any(concerns)
}

/// `1 tier queue (orders.work.retry.3.5m), 4 bindings (…, and 1 more)`.
fn listed(old: &BTreeSet<ObjectId>) -> String {
    let kinds =
        [(ObjectKind::Queue, "tier queue"), (ObjectKind::Exchange, "exchange"), (ObjectKind::Binding, "binding")];
    let of = |(kind, word): (ObjectKind, &str)| {
        let names: Vec<String> = old.iter().filter(|id| id.kind() == kind).filter_map(shown).collect();
        let plural = if names.len() == 1 { "" } else { "s" };
        let more = match names.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let first = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| format!("{} {word}{plural} ({first}{more})", names.len()))
    };
    kinds.into_iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

fn shown(id: &ObjectId) -> Option<String> {
    match id {
        ObjectId::Exchange(name) => Some(name.to_string()),
        ObjectId::Queue(name) => Some(name.to_string()),
        ObjectId::Binding(binding) => Some(binding.to_string()),
        ObjectId::Vhost | ObjectId::Policy(_) => None,
    }
}
