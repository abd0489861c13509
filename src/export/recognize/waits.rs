//! Recognizes manual retries: queues in which messages wait until they expire and are dead-lettered. No spec key
//! generates exactly these objects, so topo exports them as plain queues with a comment.

use super::patterns::Recognized;
use crate::export::CurrentVhost;
use crate::model::units::duration;
use crate::model::{ArgumentValue, Destination, ObjectId, Queue, QueueName, QueueType, Topology};
use crate::rabbitmq::routing::{Arrivals, DeadLettering, Keys, Message, Reason, Route};
use crate::rabbitmq::{Routing, dead_lettering};
use std::collections::{BTreeMap, BTreeSet};

/// A queue whose messages expire and are dead-lettered.
struct Waiting<'a> {
    name: &'a QueueName,
    milliseconds: i64,
    target: DeadLettering,
}

/// A comment on a waiting queue, or on a queue to which messages return.
pub(in crate::export) struct Note {
    pub(in crate::export) id: ObjectId,
    pub(in crate::export) text: String,
    /// True if messages wait in the queue and are not processed there.
    pub(in crate::export) is_for_waiting: bool,
    /// True if the comment mentions the destination of the messages.
    pub(in crate::export) mentions_destination: bool,
}

/// Returns the comments on waiting queues, and on queues to which messages certainly return after the wait. The
/// comments describe the routing of all current objects.
pub(in crate::export) fn notes(recognized: &Recognized, live: &CurrentVhost<'_>, kept: &Topology) -> Vec<Note> {
    let is_plain = |name: &QueueName| !recognized.generated.contains_key(&ObjectId::Queue(name.clone()));
    let is_recognized =
        |target: &DeadLettering| recognized.dead_letter_queues.values().any(|it| it.exchange == target.exchange);
    let waiting = kept.queues.iter().filter(|(name, _)| is_plain(name)).filter_map(|(name, queue)| {
        let target = dead_lettering(&queue.arguments, "x-").filter(|target| !is_recognized(target))?;
        Some(Waiting { name, milliseconds: message_ttl(queue)?, target })
    });
    let waiting: Vec<Waiting<'_>> = waiting.collect();
    if waiting.is_empty() {
        return Vec::new();
    }
    let nothing = BTreeSet::new();
    let operator_policies = live.topology.operator_policies();
    let routing = Routing::new(live.topology, &operator_policies, &nothing, live.profile);
    let arrivals = Arrivals::new(&routing, &[]);
    let retry_routes = RetryRoutes { routing: &routing, arrivals: &arrivals };
    let names: BTreeSet<&QueueName> = waiting.iter().map(|it| it.name).collect();
    let (rejected, dead_letter_targets) = (retry_routes.rejected_messages(&names), dead_letter_targets(&routing));
    let mut notes = Vec::new();
    let mut ladders: BTreeMap<QueueName, BTreeSet<(i64, &QueueName)>> = BTreeMap::new();
    for it in &waiting {
        let Some(wait) = duration(it.milliseconds) else { continue };
        if retry_routes.after(it).any(|queues| queues.contains(it.name)) {
            // A lint rule reports this mistake.
            continue;
        }
        let arriving: &[(QueueName, Message)] = rejected.get(it.name).map_or(&[], Vec::as_slice);
        let back_to =
            arriving.iter().find(|(from, message)| retry_routes.returns_to(it, from, message)).map(|(from, _)| from);
        let is_shared = retry_routes.is_shared(it, arriving);
        let is_for_waiting = back_to.is_some() || is_for_waiting(it.name, &routing, &dead_letter_targets);
        // Messages in other waiting queues may be work that is delayed intentionally.
        let is_retry = back_to.is_some() || has_retry_name(it.name, &routing);
        if is_for_waiting
            && is_retry
            && !is_shared
            && let [only] = retry_routes.only_after(it).as_slice()
        {
            ladders.entry(only.clone()).or_default().insert((it.milliseconds, it.name));
        }
        let text = match back_to {
            Some(_) if is_shared => format!(
                "a manual retry that several queues share: messages that {} wait here for {wait}, and then {}",
                describe_senders(arriving),
                describe_common_destination(&it.target)
            ),
            Some(target) => format!(
                "a manual retry: messages that the worker of `{target}` rejects wait here for {wait} and then \
                 return, without limit unless the worker counts attempts"
            ),
            None if is_for_waiting => {
                format!("messages wait here for {wait}, and then go to {}", describe_target(&it.target))
            }
            None => format!("messages that are not consumed within {wait} go to {}", describe_target(&it.target)),
        };
        let mentions_destination = back_to.is_none();
        notes.push(Note { id: ObjectId::Queue(it.name.clone()), text, is_for_waiting, mentions_destination });
    }
    let needs_ladder_note = |target: &QueueName| {
        let retries = recognized.tiered.contains_key(target) || recognized.counted.contains(target);
        kept.queues.get(target).is_some_and(|queue| queue.queue_type() != Some(QueueType::Stream))
            && is_plain(target)
            && !retries
            && !names.contains(target)
    };
    notes.extend(ladders.iter().filter(|(target, _)| needs_ladder_note(target)).filter_map(|(target, waits)| {
        let text = ladder(waits)?;
        Some(Note { id: ObjectId::Queue(target.clone()), text, is_for_waiting: false, mentions_destination: false })
    }));
    notes
}

/// Returns the comment on a queue to which messages return. `waits` contains the delays and the waiting queues. Returns
/// `None` if a delay cannot be formatted.
fn ladder(waits: &BTreeSet<(i64, &QueueName)>) -> Option<String> {
    let delays: BTreeSet<i64> = waits.iter().map(|(wait, _)| *wait).collect();
    let delays: Vec<String> = delays.into_iter().map(duration).collect::<Option<_>>()?;
    let names: Vec<String> = waits.iter().map(|(_, name)| format!("`{name}`")).collect();
    let (names, delays) = (join_names(&names), delays.join(", "));
    Some(format!(
        "manual retries: messages that waited in {names} return here; `retry: {{delays: [{delays}]}}` has the same \
         effect and counts attempts"
    ))
}

/// Names the workers that reject messages, such as ``the worker of `a` rejects`` or ``the workers of `a`, `b` reject``.
fn describe_senders(arriving: &[(QueueName, Message)]) -> String {
    let names: BTreeSet<&QueueName> = arriving.iter().map(|(from, _)| from).collect();
    let (workers, verb) = if names.len() == 1 { ("worker", "rejects") } else { ("workers", "reject") };
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    format!("the {workers} of {} {verb}", join_names(&names))
}

/// Returns the TTL of a queue in milliseconds; `None` if the TTL is unset or zero.
fn message_ttl(queue: &Queue) -> Option<i64> {
    queue.arguments.get("x-message-ttl").and_then(ArgumentValue::as_integer).filter(|ttl| *ttl > 0)
}

/// The simulated routes to and from waiting queues.
struct RetryRoutes<'r, 'a> {
    routing: &'r Routing<'a>,
    arrivals: &'r Arrivals,
}

impl RetryRoutes<'_, '_> {
    /// Returns the queues that certainly receive messages after the wait, for each kind of routing key.
    fn after(&self, it: &Waiting<'_>) -> impl Iterator<Item = BTreeSet<QueueName>> {
        self.keys(it.name, &it.target).into_iter().map(|keys| self.certain_destinations(it, &Message::with(keys)))
    }

    /// Returns the queues that receive all messages after the wait. The result is empty if the queues are uncertain, or
    /// if they depend on the message.
    fn only_after(&self, it: &Waiting<'_>) -> Vec<QueueName> {
        let routes = self.keys(it.name, &it.target).into_iter().map(|keys| self.route(it, &Message::with(keys)));
        let mut all = BTreeSet::new();
        for route in routes {
            if !route.possible_queues.is_empty() {
                return Vec::new();
            }
            all.insert(route.certain_queues);
        }
        if all.len() == 1 { all.pop_first().into_iter().flatten().collect() } else { Vec::new() }
    }

    /// Returns true if several queues dead-letter rejected messages to this queue, or if a rejected message can also
    /// reach other queues after the wait.
    fn is_shared(&self, it: &Waiting<'_>, arriving: &[(QueueName, Message)]) -> bool {
        arriving.iter().any(|(from, message)| {
            let Route { certain_queues, possible_queues, .. } = self.route(it, message);
            arriving[0].0 != *from || certain_queues.iter().chain(&possible_queues).any(|queue| queue != from)
        })
    }

    fn route(&self, it: &Waiting<'_>, message: &Message) -> Route {
        let dead_lettered = self.routing.to_dead_lettered(message, it.name, Reason::Expired, &it.target);
        self.routing.route(&it.target.exchange, &dead_lettered)
    }

    fn certain_destinations(&self, it: &Waiting<'_>, message: &Message) -> BTreeSet<QueueName> {
        self.route(it, message).certain_queues
    }

    /// Returns the rejected messages that certainly reach each of these queues, with the queues that dead-letter them.
    fn rejected_messages(&self, names: &BTreeSet<&QueueName>) -> BTreeMap<QueueName, Vec<(QueueName, Message)>> {
        let mut found: BTreeMap<QueueName, Vec<(QueueName, Message)>> = BTreeMap::new();
        for from in self.routing.topology().queues.keys() {
            let [Some(to)] = self.routing.dead_lettering(from) else { continue };
            for keys in self.keys(from, to) {
                let message = self.routing.to_dead_lettered(&Message::with(keys), from, Reason::Rejected, to);
                let destinations = self.routing.route(&to.exchange, &message).certain_queues;
                for queue in destinations.into_iter().filter(|queue| queue != from && names.contains(queue)) {
                    found.entry(queue).or_default().push((from.clone(), message.clone()));
                }
            }
        }
        found
    }

    /// Returns true if a rejected message certainly returns to the queue that dead-lettered it. If two queues
    /// dead-letter to each other, the queue with the shorter TTL is the waiting queue.
    fn returns_to(&self, it: &Waiting<'_>, from: &QueueName, message: &Message) -> bool {
        let ttl = self.routing.topology().queues.get(from).and_then(message_ttl);
        ttl.is_none_or(|ttl| ttl > it.milliseconds) && self.certain_destinations(it, message).contains(from)
    }

    /// Returns the routing keys of messages that the queue may dead-letter. If no key is known and dead-lettering
    /// replaces the key, returns [`Keys::any`].
    fn keys(&self, queue: &QueueName, to: &DeadLettering) -> BTreeSet<Keys> {
        let keys = self.arrivals.keys_at_queue(queue);
        if keys.is_empty() && to.routing_key.is_some() { [Keys::any()].into() } else { keys.clone() }
    }
}

/// Returns the dead-letter targets of queues without a TTL. A target is an exchange, or a queue behind the default
/// exchange.
fn dead_letter_targets<'a>(routing: &'a Routing<'_>) -> BTreeSet<(&'a str, Option<&'a str>)> {
    let queues = routing.topology().queues.iter().filter(|(_, queue)| message_ttl(queue).is_none());
    let dead_letterings = queues.flat_map(|(name, _)| routing.dead_lettering(name)).flatten();
    dead_letterings
        .map(|it| match it.exchange.as_str() {
            "" => ("", it.routing_key.as_deref()),
            exchange => (exchange, None),
        })
        .collect()
}

/// Returns true if a queue receives only dead-lettered messages and messages that have to wait, according to its name
/// and its bindings. Other queues may contain work.
fn is_for_waiting(
    name: &QueueName,
    routing: &Routing<'_>,
    dead_letter_targets: &BTreeSet<(&str, Option<&str>)>,
) -> bool {
    let mut sources = routing.bindings_to(&Destination::Queue(name.clone())).iter().map(|binding| &binding.source);
    if has_waiting_name(name.as_str()) || dead_letter_targets.contains(&("", Some(name.as_str()))) && sources.len() == 0
    {
        return true;
    }
    sources.len() > 0
        && sources.all(|it| has_waiting_name(it.as_str()) || dead_letter_targets.contains(&(it.as_str(), None)))
}

/// Returns true if the name of a queue, or of an exchange that the queue is bound to, suggests retries.
fn has_retry_name(name: &QueueName, routing: &Routing<'_>) -> bool {
    let suggests_retries = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["retry", "retri", "backoff"].iter().any(|word| name.contains(word))
    };
    suggests_retries(name.as_str())
        || routing
            .bindings_to(&Destination::Queue(name.clone()))
            .iter()
            .any(|binding| suggests_retries(binding.source.as_str()))
}

/// Returns true if a name suggests that messages wait.
pub(super) fn has_waiting_name(name: &str) -> bool {
    let words = ["retry", "retri", "delay", "wait", "backoff", "later", "schedul"];
    let name = name.to_ascii_lowercase();
    words.iter().any(|word| name.contains(word))
}

/// The maximum number of names in a list.
const MAX_NAMES: usize = 3;

/// Joins names into a list such as `a, b, c and 4 more`.
pub(in crate::export) fn join_names(names: &[String]) -> String {
    match names.len().checked_sub(MAX_NAMES) {
        Some(more) if more > 0 => format!("{} and {more} more", names[..MAX_NAMES].join(", ")),
        Some(_) | None => names.join(", "),
    }
}

/// Describes the common destination of the messages from several queues. The default exchange routes messages by queue
/// name.
fn describe_common_destination(target: &DeadLettering) -> String {
    match (target.exchange.as_str(), &target.routing_key) {
        ("", Some(key)) => format!("all go to queue `{key}`"),
        ("", None) => "go to the queue named by their routing key".to_owned(),
        (_, _) => {
            format!("go to {}, which routes them to every queue with a matching binding", describe_target(target))
        }
    }
}

/// Describes a dead-letter target.
fn describe_target(target: &DeadLettering) -> String {
    match (target.exchange.as_str(), &target.routing_key) {
        ("", Some(key)) => format!("queue `{key}`"),
        ("", None) => "the queue named by their routing key".to_owned(),
        (exchange, Some(key)) => format!("exchange `{exchange}` with routing key `{key}`"),
        (exchange, None) => format!("exchange `{exchange}`"),
    }
}
