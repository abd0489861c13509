//! Recognizes retries with tiers: ladders, and republishing with delays. Names identify the candidates, and each object
//! must be identical to the object that the expansion generates.

use super::patterns::{GivenUp, Recognized};
use crate::expand::{FinalTarget, Ladder, Objects, Republish, Tiers};
use crate::model::naming::{self, TierName};
use crate::model::{Binding, Destination, ExchangeName, ObjectId, QueueName, Strategy, Topology};
use crate::plan::spec_keys::Tiered;
use crate::rabbitmq::BrokerProfile;
use crate::rabbitmq::routing::DeadLettering;
use std::collections::BTreeMap;

/// The possible tiers of a queue, by retry number.
type TierCandidates = BTreeMap<u32, Vec<TierName>>;

/// The destination of the last binding of each exchange. Used only for exhausted exchanges, which have at most one
/// binding each.
type DestinationBySource<'a> = BTreeMap<&'a ExchangeName, &'a Destination>;

/// Adds every queue with a complete set of tiers.
pub(super) fn find(recognized: &mut Recognized, profile: &BrokerProfile, kept: &Topology, given_up: &GivenUp) {
    let mut tiers: BTreeMap<QueueName, TierCandidates> = BTreeMap::new();
    for tier in kept.queues.keys().filter_map(TierName::parse) {
        tiers.entry(tier.queue.clone()).or_default().entry(tier.number).or_default().push(tier);
    }
    let destinations: DestinationBySource<'_> =
        kept.bindings.iter().map(|binding| (&binding.source, &binding.destination)).collect();
    for (name, found) in tiers {
        match find_tiers(recognized, profile, (kept, &destinations), &name, &found) {
            _ if given_up.retries.contains(&name) => {}
            None => {}
            Some(Ok((tiered, members))) => {
                recognized.generated.extend(members.into_iter().map(|id| (id, name.clone())));
                recognized.tiered.insert(name, tiered);
            }
            Some(Err(different)) => {
                let note = format!(
                    "its retries are similar to generated retries, except for {different}; topo exports their objects \
                     one by one"
                );
                recognized.notes.entry(ObjectId::Queue(name)).or_default().push(note);
            }
        }
    }
}

/// Returns the tiers of a queue, together with the generated objects. Returns `Err` with the first difference if the
/// objects only resemble tiers, and `None` if the objects are unrelated to tiers.
fn find_tiers(
    recognized: &Recognized,
    profile: &BrokerProfile,
    (kept, destinations): (&Topology, &DestinationBySource<'_>),
    name: &QueueName,
    found: &TierCandidates,
) -> Option<Result<(Tiered, Vec<ObjectId>), String>> {
    let queue = kept.queues.get(name)?;
    let queue_type = queue.queue_type()?;
    let exhausted = naming::exhausted_exchange(name);
    if ![&naming::retry_exchange(name), &exhausted, &naming::return_exchange(name)]
        .iter()
        .all(|it| kept.exchanges.contains_key(*it))
    {
        return None;
    }
    let mut names = Vec::new();
    for (number, expected) in found.iter().zip(1..) {
        match (number, expected) {
            ((number, tiers), expected) if *number == expected && tiers.len() == 1 => {
                names.extend(tiers.iter().cloned())
            }
            _ => return Some(Err(format!("the tiers of retry {expected}"))),
        }
    }
    let delays: Vec<i64> = names.iter().map(|tier| tier.delay).collect();
    let tiers = Tiers { queue: name.clone(), queue_type, durable: queue.durable, delays: delays.clone() };
    let dead_lettering = recognized.dead_lettering(kept, name);
    let last = destinations.get(&exhausted).copied().cloned();
    let is_ladder = dead_lettering.as_ref().is_some_and(|(it, _)| it.exchange == naming::guard_exchange(name));
    let (strategy, objects, end) = if is_ladder {
        let (Some(Destination::Exchange(exchange)), Some(pattern)) = (last, naming::retry_key_pattern(name)) else {
            return Some(Err("the end of the ladder".to_owned()));
        };
        let end = DeadLettering { exchange, routing_key: None };
        let ladder = Ladder { tiers, end: final_target(&end, None), retry_key_pattern: pattern };
        (Strategy::Ladder, ladder.objects(profile), Some(end))
    } else {
        let end = dead_lettering.map(|(it, _)| it);
        // The destination of the binding is a queue only if the dead-letter exchange requires a specific routing key.
        let receiver = match last {
            Some(Destination::Queue(queue)) => Some(queue),
            Some(Destination::Exchange(_)) | None => None,
        };
        let republish = Republish {
            queue: name.clone(),
            retries: tiers.last(),
            tiers: Some(tiers),
            jitter: None,
            end: end.as_ref().map(|end| final_target(end, receiver)),
        };
        (Strategy::Republish, republish.objects(profile), end)
    };
    let by_name = names.iter().map(|tier| (TierName { generation: 1, ..tier.clone() }.name(), tier.name())).collect();
    Some(members(kept, &objects, &by_name).map(|members| (Tiered { strategy, delays, end }, members)))
}

fn final_target(end: &DeadLettering, queue: Option<QueueName>) -> FinalTarget {
    FinalTarget {
        exchange: end.exchange.clone(),
        routing_key: end.routing_key.clone(),
        kind: queue.as_ref().map(|_| "direct".to_owned()),
        queue,
        description: String::new(),
    }
}

/// Returns the IDs of the current objects that are identical to the generated objects, or the first difference. A tier
/// can have the name of a later generation. `by_name` maps the generated names of tiers to their current names.
fn members(
    kept: &Topology,
    objects: &Objects,
    by_name: &BTreeMap<QueueName, QueueName>,
) -> Result<Vec<ObjectId>, String> {
    let mut members = Vec::new();
    let different = |id: &ObjectId| Err(id.to_string());
    for (name, exchange) in &objects.exchanges {
        let id = ObjectId::Exchange(name.clone());
        if kept.exchanges.get(name) != Some(exchange) {
            return different(&id);
        }
        members.push(id);
    }
    let live_name = |name: &QueueName| by_name.get(name).unwrap_or(name).clone();
    for (name, desired) in &objects.queues {
        let id = ObjectId::Queue(live_name(name));
        let optional = objects.optional.get(name);
        let is_optional = |argument: &String| optional.is_some_and(|it| it.contains(argument));
        let is_same = kept.queues.get(&live_name(name)).is_some_and(|live| {
            let mut completed = live.clone();
            let missing = desired.arguments.iter().filter(|(argument, _)| is_optional(argument));
            for (argument, value) in missing {
                completed.arguments.entry(argument.clone()).or_insert_with(|| value.clone());
            }
            completed == *desired
        });
        if !is_same {
            return different(&id);
        }
        members.push(id);
    }
    for binding in &objects.bindings {
        let destination = match &binding.destination {
            Destination::Queue(name) => Destination::Queue(live_name(name)),
            Destination::Exchange(_) => binding.destination.clone(),
        };
        let binding = Binding { destination, ..binding.clone() };
        let id = ObjectId::Binding(binding.clone());
        if !kept.bindings.contains(&binding) {
            return different(&id);
        }
        members.push(id);
    }
    Ok(members)
}
