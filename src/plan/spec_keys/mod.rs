//! Converts a queue's current settings to spec keys. `topo export` and the resolutions of a conflict both use this
//! module, so they produce the same keys.

mod schedule;

pub(crate) use schedule::RetryKeys;

use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use crate::model::yaml::value::{self, with_unit};
use crate::model::yaml::{Entry, Tree, entry};
use crate::model::{ArgumentValue, Arguments, Binding, Destination, Queue, QueueName, QueueType, Strategy};
use crate::rabbitmq::redelivery_delays;
use crate::rabbitmq::routing::DeadLettering;
use std::collections::BTreeMap;

/// The retries of a queue with delayed retry queues.
#[derive(Clone, Debug)]
pub(crate) struct Tiered {
    /// The strategy: a ladder, or republishing.
    pub(crate) strategy: Strategy,
    /// The delays in milliseconds, one for each retry.
    pub(crate) delays: Vec<i64>,
    /// The destination of messages after the last retry.
    pub(crate) end: Option<DeadLettering>,
}

/// A function that returns the declared dead-letter queue that receives messages through an exchange and a routing key.
pub(crate) type DeadLetterQueueAt<'a> = &'a dyn Fn(&DeadLettering) -> Option<QueueName>;

/// The facts that, in addition to a queue's own arguments, determine the queue's keys.
pub(crate) struct Parts<'a> {
    /// The retries of the queue, if it has delayed retry queues.
    pub(crate) tiered: Option<&'a Tiered>,
    /// True if the delivery limit of the queue is the number of its retries.
    pub(crate) is_counted: bool,
    /// Finds the declared dead-letter queue that receives messages through an exchange and a routing key.
    pub(crate) dead_letter_queue_at: DeadLetterQueueAt<'a>,
    /// True if the queue is a dead-letter queue.
    pub(crate) is_dead_letter_queue: bool,
    /// True if the delivery limit of the queue is the limit that topo sets for a dead-letter queue.
    pub(crate) has_default_limit: bool,
}

impl Parts<'_> {
    /// Returns the facts for a queue without recognized patterns.
    pub(crate) fn plain() -> Self {
        Parts {
            tiered: None,
            is_counted: false,
            dead_letter_queue_at: &|_| None,
            is_dead_letter_queue: false,
            has_default_limit: false,
        }
    }
}

/// The spec keys for a queue.
#[derive(Clone, Debug)]
pub(crate) struct QueueKeys {
    /// The value of `type`.
    pub(crate) queue_type: Option<Tree>,
    /// The values of the keys that set a single argument, by argument name.
    pub(crate) keys: BTreeMap<&'static str, Tree>,
    /// The `maxRetries` and `retry` keys.
    pub(crate) retry: Option<RetryKeys>,
    /// The value of `deadLetter`.
    pub(crate) dead_letter: Option<Tree>,
    /// The `arguments` key, with the arguments that no other key sets.
    pub(crate) arguments: Option<Entry>,
    /// The queue type whose defaults apply.
    pub(crate) kind: Option<QueueType>,
    /// True if the queue is a dead-letter queue.
    pub(crate) is_dead_letter_queue: bool,
}

/// The arguments whose keys are converted separately.
const CONVERTED_SEPARATELY: [&str; 3] = ["x-queue-type", "x-dead-letter-exchange", "x-dead-letter-routing-key"];

/// Returns the spec keys for a queue. `wiring` contains the dead-letter destination of the queue, and a flag that is
/// true if a policy sets the destination.
pub(crate) fn queue_keys(queue: &Queue, wiring: Option<(DeadLettering, bool)>, parts: &Parts<'_>) -> QueueKeys {
    let (mut retry, mut arguments) = (None, queue.arguments.clone());
    let by_policy = wiring.as_ref().is_some_and(|(_, by_policy)| *by_policy);
    let mut end = match parts.tiered {
        Some(tiered) => {
            retry = Some(RetryKeys::delayed(tiered.strategy, &tiered.delays));
            tiered.end.clone()
        }
        None => {
            if parts.is_counted {
                retry = counted_retries(queue, &mut arguments);
            }
            wiring.map(|(to, _)| to)
        }
    };
    if parts.has_default_limit {
        arguments.remove("x-delivery-limit");
    }
    // `deadLetter` refuses a routing key if a binding with this key could not be deleted. As an argument, such a key is
    // valid.
    let in_arguments =
        !by_policy && end.as_ref().is_some_and(|end| !is_deletable_routing_key(end.routing_key.as_deref()));
    if in_arguments {
        end = None;
    }
    let has_key = |name: &str| match KnownArgument::named(name) {
        Some(_) => name == CONVERTED_SEPARATELY[0] || !CONVERTED_SEPARATELY.contains(&name) || !in_arguments,
        None => false,
    };
    let own = KNOWN_ARGUMENTS.iter().filter(|known| !CONVERTED_SEPARATELY.contains(&known.name));
    let keys = own.filter_map(|known| Some((known.name, with_unit(known.name, arguments.get(known.name)?))));
    QueueKeys {
        queue_type: Some(Tree::text(queue.type_name())),
        keys: keys.collect(),
        retry,
        dead_letter: end.map(|end| dead_letter(parts.dead_letter_queue_at, &end, by_policy)),
        arguments: value::arguments(value::without_key(&arguments, has_key)),
        kind: queue.queue_type(),
        is_dead_letter_queue: parts.is_dead_letter_queue,
    }
}

/// Returns true if the management API can delete a binding with this routing key. The API does not treat `null` and
/// `undefined` as routing keys.
pub(crate) fn is_deletable_routing_key(key: Option<&str>) -> bool {
    !matches!(key, Some("null" | "undefined"))
}

/// Returns the retries that a quorum queue counts, and removes their arguments from `arguments`. Returns `None`, and
/// changes nothing, if `retry` cannot represent the arguments.
fn counted_retries(queue: &Queue, arguments: &mut Arguments) -> Option<RetryKeys> {
    let number = |name: &str| queue.arguments.get(name).and_then(ArgumentValue::as_integer);
    let retries = number("x-delivery-limit").and_then(|it| u32::try_from(it).ok())?;
    let delays = ["x-delayed-retry-type", "x-delayed-retry-min", "x-delayed-retry-max"];
    if !delays.iter().any(|name| arguments.contains_key(*name)) {
        arguments.remove("x-delivery-limit");
        return Some(RetryKeys::immediate(retries));
    }
    let is_all = queue.arguments.get("x-delayed-retry-type").and_then(ArgumentValue::as_text) == Some("all");
    let (min, max) = (number(delays[1])?, number(delays[2])?);
    if !is_all || retries > schedule::MAX_DELAYS || min.saturating_mul(i64::from(retries)) < max || min > max {
        return None;
    }
    arguments.retain(|name, _| name != "x-delivery-limit" && !delays.contains(&name.as_str()));
    let delays: Vec<i64> = redelivery_delays(min, max, retries.into()).collect();
    Some(RetryKeys::delayed(Strategy::Delayed, &delays))
}

/// Returns the value of `deadLetter`: the declared dead-letter queue that receives messages through the exchange and
/// the routing key. If there is no such queue, returns the exchange and the routing key.
pub(crate) fn dead_letter(queue_at: DeadLetterQueueAt<'_>, end: &DeadLettering, by_policy: bool) -> Tree {
    let wiring = by_policy.then(|| entry("wiring", Tree::plain("policy")));
    match queue_at(end) {
        // `deadLetter: none` disables dead-lettering.
        Some(name) if !by_policy && name.as_str() != "none" => Tree::text(name.as_str()),
        Some(name) => Tree::table([entry("queue", Tree::text(name.as_str()))].into_iter().chain(wiring)),
        None => {
            let key = end.routing_key.as_ref().map(|key| entry("routingKey", Tree::text(key)));
            let exchange = entry("exchange", Tree::text(end.exchange.as_str()));
            Tree::table([exchange].into_iter().chain(key).chain(wiring))
        }
    }
}

impl QueueKeys {
    /// Returns the keys of the queue in the usual order, without `arguments`.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let key = |known: &KnownArgument| self.keys.get(known.name).map(|it| entry(known.key, it.clone()));
        let queue_type = self.queue_type.iter().map(|it| entry("type", it.clone()));
        let retry = self.retry.iter().flat_map(RetryKeys::entries);
        let keys = queue_type.chain(KNOWN_ARGUMENTS.iter().filter_map(key)).chain(retry);
        keys.chain(self.dead_letter.iter().map(|it| entry("deadLetter", it.clone()))).collect()
    }
}

/// Returns the spec entry for an exchange that the spec references but does not create.
pub(crate) fn external_exchange(is_missing: bool) -> Tree {
    let optional = is_missing.then(|| entry("optional", Tree::plain(true)));
    Tree::table([entry("external", Tree::plain(true))].into_iter().chain(optional))
}

/// Returns the comment for a missing exchange; `messages` describes the messages that are sent to it.
pub(crate) fn missing_exchange(messages: &str) -> String {
    format!(
        "this exchange does not exist, and the broker drops {messages}; to create it, declare it here without \
         `external`"
    )
}

/// Returns a binding as a list entry: its source, destination, routing key and arguments.
pub(crate) fn binding(binding: &Binding) -> Tree {
    let endpoints = [("source", binding.source.as_str()), ("destination", binding.destination.name())];
    let endpoints = endpoints.map(|(key, name)| entry(key, Tree::text(name)));
    let kind = match binding.destination {
        Destination::Queue(_) => None,
        Destination::Exchange(_) => Some(entry("destinationType", Tree::plain("exchange"))),
    };
    Tree::table(endpoints.into_iter().chain(kind).chain(key_and_arguments(binding)))
}

/// Returns the routing key and the arguments of a binding, if they are not empty.
pub(crate) fn key_and_arguments(binding: &Binding) -> impl Iterator<Item = Entry> {
    let key = (!binding.routing_key.is_empty()).then(|| entry("routingKey", Tree::text(&binding.routing_key)));
    key.into_iter().chain(value::arguments(&binding.arguments))
}
