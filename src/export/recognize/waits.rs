//! Recognizes queues in which messages wait and move on by themselves: manual retries. No spec key generates exactly
//! these objects, so they stay plain queues, and a comment explains them.

use super::Recognized;
use crate::export::Live;
use crate::model::units::duration;
use crate::model::{ArgumentValue, Destination, ObjectId, Queue, QueueName, QueueType, Topology};
use crate::rabbitmq::routing::{Arrivals, DeadLettering, Keys, Message, Reason, Route};
use crate::rabbitmq::{Routing, dead_lettering};
use std::collections::{BTreeMap, BTreeSet};

/// A queue whose messages die of age, and go somewhere then.
struct Waiting<'a> {
    name: &'a QueueName,
    milliseconds: i64,
    on: DeadLettering,
}

/// What is said of such a queue.
pub(in crate::export) struct Note {
    pub(in crate::export) of: ObjectId,
    pub(in crate::export) text: String,
    /// Whether messages come to it to wait, and not to be worked on.
    pub(in crate::export) is_for_waiting: bool,
    /// Whether it says that they go on to somewhere.
    pub(in crate::export) goes_on: bool,
}

/// What each is for. All that is live is looked at, as the broker does.
pub(in crate::export) fn notes(recognized: &Recognized, live: &Live<'_>, kept: &Topology) -> Vec<Note> {
    let is_plain = |name: &QueueName| !recognized.made.contains_key(&ObjectId::Queue(name.clone()));
    let is_shown = |on: &DeadLettering| recognized.dead_letter_queues.values().any(|it| it.exchange == on.exchange);
    let waiting = kept.queues.iter().filter(|(name, _)| is_plain(name)).filter_map(|(name, queue)| {
        let on = dead_lettering(&queue.arguments, "x-").filter(|on| !is_shown(on))?;
        Some(Waiting { name, milliseconds: age(queue)?, on })
    });
    let waiting: Vec<Waiting<'_>> = waiting.collect();
    if waiting.is_empty() {
        return Vec::new();
    }
    let nothing = BTreeSet::new();
    let operator_policies = live.topology.operator_policies();
    let routing = Routing::new(live.topology, &operator_policies, &nothing, live.profile);
    let arrivals = Arrivals::new(&routing, &[]);
    let ways = Ways { routing: &routing, arrivals: &arrivals };
    let names: BTreeSet<&QueueName> = waiting.iter().map(|it| it.name).collect();
    let (rejected, sinks) = (ways.rejected(&names), sinks(&routing));
    let mut notes = Vec::new();
    let mut ladders: BTreeMap<QueueName, BTreeSet<(i64, &QueueName)>> = BTreeMap::new();
    for it in &waiting {
        let Some(wait) = duration(it.milliseconds) else { continue };
        if ways.after(it).any(|queues| queues.contains(it.name)) {
            // Nobody means that, and a rule says so.
            continue;
        }
        let comes: &[(QueueName, Message)] = rejected.get(it.name).map_or(&[], Vec::as_slice);
        let back_to = comes.iter().find(|(from, letter)| ways.goes_back(it, from, letter)).map(|(from, _)| from);
        let is_shared = ways.is_shared(it, comes);
        let is_for_waiting = back_to.is_some() || is_for_waiting(it.name, &routing, &sinks);
        // What waits elsewhere may be work that was to be done later.
        let is_retry = back_to.is_some() || is_called_retry(it.name, &routing);
        if is_for_waiting
            && is_retry
            && !is_shared
            && let [only] = ways.only_after(it).as_slice()
        {
            ladders.entry(only.clone()).or_default().insert((it.milliseconds, it.name));
        }
        let text = match back_to {
            Some(_) if is_shared => format!(
                "a manual retry that queues share: messages that {} wait here {wait}, and then {}",
                rejecting(comes),
                returning(&it.on)
            ),
            Some(target) => format!(
                "a manual retry: messages that `{target}` rejects wait here {wait} and go back, without limit unless \
                 the worker counts"
            ),
            None if is_for_waiting => format!("messages wait here {wait}, and then go to {}", shown(&it.on)),
            None => format!("messages that are not consumed within {wait} go to {}", shown(&it.on)),
        };
        let goes_on = back_to.is_none();
        notes.push(Note { of: ObjectId::Queue(it.name.clone()), text, is_for_waiting, goes_on });
    }
    let is_shown = |target: &QueueName| {
        let retries = recognized.tiered.contains_key(target) || recognized.counted.contains(target);
        kept.queues.get(target).is_some_and(|queue| queue.queue_type() != Some(QueueType::Stream))
            && is_plain(target)
            && !retries
            && !names.contains(target)
    };
    notes.extend(ladders.iter().filter(|(target, _)| is_shown(target)).filter_map(|(target, waits)| {
        let text = ladder(waits)?;
        Some(Note { of: ObjectId::Queue(target.clone()), text, is_for_waiting: false, goes_on: false })
    }));
    notes
}

/// What is said above the queue to which messages come back, by how long they wait.
fn ladder(waits: &BTreeSet<(i64, &QueueName)>) -> Option<String> {
    let delays: BTreeSet<i64> = waits.iter().map(|(wait, _)| *wait).collect();
    let delays: Vec<String> = delays.into_iter().map(duration).collect::<Option<_>>()?;
    let names: Vec<String> = waits.iter().map(|(_, name)| format!("`{name}`")).collect();
    let (names, delays) = (listed(&names), delays.join(", "));
    Some(format!(
        "manual retries: messages that waited in {names} come here; `retry: {{delays: [{delays}]}}` would do the \
         same, and count"
    ))
}

/// `` `a` rejects``, `` `a`, `b` reject``.
fn rejecting(comes: &[(QueueName, Message)]) -> String {
    let names: BTreeSet<&QueueName> = comes.iter().map(|(from, _)| from).collect();
    let verb = if names.len() == 1 { "rejects" } else { "reject" };
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    format!("{} {verb}", listed(&names))
}

fn age(queue: &Queue) -> Option<i64> {
    queue.arguments.get("x-message-ttl").and_then(ArgumentValue::as_integer).filter(|age| *age > 0)
}

struct Ways<'r, 'a> {
    routing: &'r Routing<'a>,
    arrivals: &'r Arrivals,
}

impl Ways<'_, '_> {
    /// The queues that surely get what has waited, for each kind of key with which it came.
    fn after(&self, it: &Waiting<'_>) -> impl Iterator<Item = BTreeSet<QueueName>> {
        self.keys(it.name, &it.on).into_iter().map(|keys| self.on(it, &Message::with(keys)))
    }

    /// The queues that get what has waited, if they are the same for all that comes, and no other queue may get it.
    fn only_after(&self, it: &Waiting<'_>) -> Vec<QueueName> {
        let routes = self.keys(it.name, &it.on).into_iter().map(|keys| self.route(it, &Message::with(keys)));
        let mut all = BTreeSet::new();
        for route in routes {
            if !route.perhaps.is_empty() {
                return Vec::new();
            }
            all.insert(route.surely);
        }
        if all.len() == 1 { all.pop_first().into_iter().flatten().collect() } else { Vec::new() }
    }

    /// Whether several queues reject to this one, or what one rejected may also go to others afterwards.
    fn is_shared(&self, it: &Waiting<'_>, comes: &[(QueueName, Message)]) -> bool {
        comes.iter().any(|(from, letter)| {
            let Route { surely, perhaps, .. } = self.route(it, letter);
            comes[0].0 != *from || surely.iter().chain(&perhaps).any(|queue| queue != from)
        })
    }

    fn route(&self, it: &Waiting<'_>, message: &Message) -> Route {
        let letter = self.routing.as_dead_letter(message, it.name, Reason::Expired, &it.on);
        self.routing.route(&it.on.exchange, &letter)
    }

    fn on(&self, it: &Waiting<'_>, message: &Message) -> BTreeSet<QueueName> {
        self.route(it, message).surely
    }

    /// What surely comes to each of these queues when others reject it, and from which: asked once for all of them.
    fn rejected(&self, names: &BTreeSet<&QueueName>) -> BTreeMap<QueueName, Vec<(QueueName, Message)>> {
        let mut found: BTreeMap<QueueName, Vec<(QueueName, Message)>> = BTreeMap::new();
        for from in self.routing.topology().queues.keys() {
            let [Some(to)] = self.routing.dead_lettering(from) else { continue };
            for keys in self.keys(from, to) {
                let letter = self.routing.as_dead_letter(&Message::with(keys), from, Reason::Rejected, to);
                let comes = self.routing.route(&to.exchange, &letter).surely;
                for queue in comes.into_iter().filter(|queue| queue != from && names.contains(queue)) {
                    found.entry(queue).or_default().push((from.clone(), letter.clone()));
                }
            }
        }
        found
    }

    /// Whether what has waited surely goes back to where it was rejected. Of two that lead to each other, messages wait in the
    /// one that keeps them for a shorter time.
    fn goes_back(&self, it: &Waiting<'_>, from: &QueueName, letter: &Message) -> bool {
        let keeps = self.routing.topology().queues.get(from).and_then(age);
        keeps.is_none_or(|age| age > it.milliseconds) && self.on(it, letter).contains(from)
    }

    /// With which keys messages come to a queue that may die there: it does not matter where dead letters get one.
    fn keys(&self, queue: &QueueName, to: &DeadLettering) -> BTreeSet<Keys> {
        let keys = self.arrivals.at_queue(queue);
        if keys.is_empty() && to.routing_key.is_some() { [Keys::any()].into() } else { keys.clone() }
    }
}

/// The exchanges and, by the default exchange, queues to which dead letters go that have not just waited.
fn sinks<'a>(routing: &'a Routing<'_>) -> BTreeSet<(&'a str, Option<&'a str>)> {
    let queues = routing.topology().queues.iter().filter(|(_, queue)| age(queue).is_none());
    let letters = queues.flat_map(|(name, _)| routing.dead_lettering(name)).flatten();
    letters
        .map(|it| match it.exchange.as_str() {
            "" => ("", it.routing_key.as_deref()),
            exchange => (exchange, None),
        })
        .collect()
}

/// Whether nothing comes to a queue but dead letters and what is to wait, as far as that can be seen: others may hold work.
fn is_for_waiting(name: &QueueName, routing: &Routing<'_>, sinks: &BTreeSet<(&str, Option<&str>)>) -> bool {
    let mut sources = routing.bindings_to(&Destination::Queue(name.clone())).iter().map(|binding| &binding.source);
    if is_called_waiting(name.as_str()) || sinks.contains(&("", Some(name.as_str()))) && sources.len() == 0 {
        return true;
    }
    sources.len() > 0 && sources.all(|it| is_called_waiting(it.as_str()) || sinks.contains(&(it.as_str(), None)))
}

/// Whether it, or an exchange that leads to it, has a name that says that messages are tried again.
fn is_called_retry(name: &QueueName, routing: &Routing<'_>) -> bool {
    let says = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["retry", "retri", "backoff"].iter().any(|word| name.contains(word))
    };
    says(name.as_str())
        || routing.bindings_to(&Destination::Queue(name.clone())).iter().any(|binding| says(binding.source.as_str()))
}

/// Whether a name says that messages are to wait.
pub(super) fn is_called_waiting(name: &str) -> bool {
    let words = ["retry", "retri", "delay", "wait", "backoff", "later", "schedul"];
    let name = name.to_ascii_lowercase();
    words.iter().any(|word| name.contains(word))
}

/// So many names are told of several.
const MOST_NAMES: usize = 3;

/// `a, b, c and 4 more`.
pub(in crate::export) fn listed(names: &[String]) -> String {
    match names.len().checked_sub(MOST_NAMES) {
        Some(more) if more > 0 => format!("{} and {more} more", names[..MOST_NAMES].join(", ")),
        Some(_) | None => names.join(", "),
    }
}

/// Where the messages of several queues go together. The default exchange routes by the name of a queue.
fn returning(letters: &DeadLettering) -> String {
    match (letters.exchange.as_str(), &letters.routing_key) {
        ("", Some(key)) => format!("all go to queue `{key}`"),
        ("", None) => "go to the queue that their routing key names".to_owned(),
        (_, _) => format!("go to {}, which routes them to every queue with a matching binding", shown(letters)),
    }
}

fn shown(letters: &DeadLettering) -> String {
    match (letters.exchange.as_str(), &letters.routing_key) {
        ("", Some(key)) => format!("queue `{key}`"),
        ("", None) => "the queue of their key".to_owned(),
        (exchange, Some(key)) => format!("exchange `{exchange}` with the key `{key}`"),
        (exchange, None) => format!("exchange `{exchange}`"),
    }
}
