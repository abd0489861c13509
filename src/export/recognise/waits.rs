//! Queues in which messages wait and go on by themselves: retries that somebody made by hand. No key of a spec makes those
//! exactly so, and they stay the queues that they are; a comment says what they are for.

use super::{Recognised, dead_lettering};
use crate::behaviour::routing::DeadLettering;
use crate::model::units::duration;
use crate::model::{Destination, ExchangeName, ObjectId, QueueName, Topology};
use std::collections::BTreeMap;

/// By the exchange that they come from, keys and queues.
type Leading<'a> = BTreeMap<&'a ExchangeName, Vec<(&'a str, &'a QueueName)>>;

/// Notes what each is for.
pub(super) fn find(recognised: &mut Recognised, kept: &Topology) {
    let mut leading = Leading::new();
    for binding in &kept.bindings {
        if let Destination::Queue(name) = &binding.destination {
            leading.entry(&binding.source).or_default().push((&binding.routing_key, name));
        }
    }
    for (name, queue) in &kept.queues {
        let id = ObjectId::Queue(name.clone());
        if recognised.made.contains_key(&id) {
            continue;
        }
        let Some(on) = dead_lettering(&queue.arguments, "x-") else { continue };
        let wait = queue.arguments.get("x-message-ttl").and_then(|ttl| duration(ttl.as_integer()?));
        let Some(wait) = wait else { continue };
        if recognised.dead_letter_queues.values().any(|it| it.exchange == on.exchange) {
            continue;
        }
        let comes_back = |target: &&QueueName| {
            let letters = recognised.dead_lettering(kept, target);
            letters.is_some_and(|(letters, _)| queues_of(&leading, kept, &letters).contains(&name))
        };
        let note = match queues_of(&leading, kept, &on).into_iter().find(comes_back) {
            Some(target) => format!(
                "a retry made by hand: what `{target}` rejects waits here {wait} and goes back, for ever unless the worker counts"
            ),
            None => format!("messages wait here {wait}, and then go on to {}", shown(&on)),
        };
        recognised.notes.entry(id).or_default().push(note);
    }
}

/// The queues to which dead letters may go, as far as keys say it: a letter that keeps its own key may go to any.
fn queues_of<'a>(leading: &Leading<'a>, kept: &'a Topology, letters: &'a DeadLettering) -> Vec<&'a QueueName> {
    if letters.exchange.as_str().is_empty() {
        let named = letters.routing_key.as_deref().map(QueueName::from);
        return named.and_then(|name| kept.queues.get_key_value(&name)).map(|(name, _)| name).into_iter().collect();
    }
    let is_fanout = kept.exchanges.get(&letters.exchange).is_some_and(|it| it.kind == "fanout");
    let takes = |key: &str| is_fanout || letters.routing_key.as_deref().is_none_or(|it| it == key);
    let bound = leading.get(&letters.exchange).into_iter().flatten();
    bound.filter(|(key, _)| takes(key)).map(|(_, name)| *name).collect()
}

fn shown(letters: &DeadLettering) -> String {
    match (letters.exchange.as_str(), &letters.routing_key) {
        ("", Some(key)) => format!("queue `{key}`"),
        ("", None) => "the queue of their key".to_owned(),
        (exchange, Some(key)) => format!("exchange `{exchange}` with the key `{key}`"),
        (exchange, None) => format!("exchange `{exchange}`"),
    }
}
