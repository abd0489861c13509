//! What the holding queues must be, and what stands against a migration.

use super::around;
use super::{Goal, Migration, Unexpected, migrated};
use crate::behaviour::{Governed, Named, Policies, effective, is_made_by_http};
use crate::model::names::LOCK_QUEUE;
use crate::model::naming::{Beside, pattern_of};
use crate::model::{
    ApplyTo, ArgumentValue, Arguments, Binding, Destination, ExchangeName, ObjectId, Policy, PolicyName, Priority,
    Queue, QueueName, QueueType,
};
use crate::plan::Movers;
use crate::plan::situation::Situation;
use std::collections::BTreeMap;

/// Policy keys that take messages from a queue, delete it, or make it refuse messages.
const EATS: [&str; 9] = [
    "message-ttl",
    "expires",
    "max-length",
    "max-length-bytes",
    "overflow",
    "delivery-limit",
    "dead-letter-exchange",
    "dead-letter-routing-key",
    "dead-letter-strategy",
];

/// Why a queue cannot be migrated, and what lifts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) struct Obstacle {
    pub(in crate::plan) text: String,
    pub(in crate::plan) lift: Option<String>,
}

/// The migration of a live queue to what is wanted.
pub(in crate::plan) fn migration(
    situation: &Situation<'_>,
    name: &QueueName,
    old: &Queue,
    wanted: &Queue,
) -> Result<Migration, Obstacle> {
    let version = situation.dialect.version;
    let beside = Beside::of(name);
    let is_stream = |queue: &Queue| queue.queue_type() == Some(QueueType::Stream);
    if is_stream(old) || is_stream(wanted) || old.queue_type().is_none() {
        return Err(Obstacle {
            text: format!(
                "`migrate` cannot move what a {} holds: reading removes nothing from it",
                shown_type(old, wanted)
            ),
            lift: Some(
                "give the new queue another name, and move the consumers when they have read the old one".to_owned(),
            ),
        });
    }
    for (id, is_ours) in taken(situation, &beside, name) {
        if !is_ours {
            return Err(Obstacle {
                text: format!("{id} exists, and no migration made it: `migrate` would need that name"),
                lift: Some(format!("delete {id}, if nobody needs it")),
            });
        }
    }
    if let Some(obstacle) = around::obstacle(situation, name) {
        return Err(obstacle);
    }
    if let Some(obstacle) = immovable_by(&situation.activity.movers) {
        return Err(obstacle);
    }
    if situation.activity.movers == Movers::Shovel
        && let Some(binding) = typed(situation, name, &beside)
    {
        return Err(Obstacle {
            text: format!(
                "{} could not be bound again: its arguments have AMQP types that the management API cannot carry",
                ObjectId::Binding(binding.clone())
            ),
            lift: Some(
                "let topo bind it over AMQP: open that port to it (--amqp-url), and use --mover amqp".to_owned(),
            ),
        });
    }
    if let Some(limit) = situation.activity.queue_limit
        && situation.current.queues.len() as u64 + new_queues(situation, &beside) > limit
    {
        return Err(Obstacle {
            text: format!("the vhost may have {limit} queues, and `migrate` needs 3 more for a while, with the lock"),
            lift: Some("raise the vhost's max-queues, or make room".to_owned()),
        });
    }
    // By then, policies are as they are wanted, and those that go are not gone yet.
    let mut policies: BTreeMap<PolicyName, Policy> = situation.current.policies.clone();
    policies.extend(situation.wanted.topology.policies.clone());
    let after = Policies::new(&policies, version);
    let operator = Policies::new(situation.operator_policies, version);
    let policy = after.governing(name.as_str(), Governed::from(old)).likely();
    let bound = operator.governing(name.as_str(), Governed::from(old)).likely();
    let holds = effective(old, policy, bound, situation.dialect);
    let mirrored = policy.is_some_and(|named| named.policy.definition.contains_key("ha-mode"));
    let quorum = old.queue_type() == Some(QueueType::Quorum) || mirrored;
    let mut arguments = Arguments::new();
    let kind = if quorum { QueueType::Quorum } else { QueueType::Classic };
    arguments.insert("x-queue-type".to_owned(), ArgumentValue::Text(kind.as_str().to_owned()));
    for key in ["dead-letter-exchange", "dead-letter-routing-key"] {
        if let Some(effective) = holds.get(key) {
            arguments.insert(format!("x-{key}"), effective.value.clone());
        }
    }
    // A routing key without an exchange is refused.
    if !arguments.contains_key("x-dead-letter-exchange") {
        arguments.remove("x-dead-letter-routing-key");
    }
    // What expires meanwhile waits for its exchange as it would have in the queue. Without a limit nothing is refused.
    let is = |key: &str, text: &str| holds.get(key).is_some_and(|it| it.value.as_text() == Some(text));
    let waits = is("dead-letter-strategy", "at-least-once") && is("overflow", "reject-publish");
    if quorum && waits && arguments.contains_key("x-dead-letter-exchange") {
        arguments.insert("x-dead-letter-strategy".to_owned(), "at-least-once".into());
        arguments.insert("x-overflow".to_owned(), "reject-publish".into());
    }
    // A mover that dies counts as a delivery, and from 4.0 on the 21st is the last; before, -1 would be one.
    if quorum && version.is_at_least(4, 0) {
        arguments.insert("x-delivery-limit".to_owned(), ArgumentValue::Integer(-1));
    }
    let holding = Queue { durable: true, auto_delete: false, exclusive: false, arguments };
    let shield = shield(&beside, &holding, &after, &operator)?;
    let migration = Migration { queue: name.clone(), wanted: wanted.clone(), goal: Goal::Recreate, holding, shield };
    match forged(&migration, situation) {
        Some(obstacle) => Err(obstacle),
        None => Ok(migration),
    }
}

/// Why existing holding objects cannot be used, if that is so.
pub(super) fn forged(migration: &Migration, situation: &Situation<'_>) -> Option<Obstacle> {
    let Unexpected { object, difference } = migration.unexpected(situation.current)?;
    let text =
        format!("{object} would hold messages of the migration, and topo did not declare it like this: {difference}");
    let lift = format!("find out who declared {object}; move its messages elsewhere, delete it, and plan again");
    Some(Obstacle { text, lift: Some(lift) })
}

/// Why no message can be moved, if that is so.
pub(super) fn immovable_by(movers: &Movers) -> Option<Obstacle> {
    let Movers::None { reasons } = movers else { return None };
    let lift = "open the AMQP port to topo (--amqp-url), or enable rabbitmq_shovel and rabbitmq_shovel_management";
    let text = format!("nothing can move its messages: {}", reasons.join("; "));
    Some(Obstacle { text, lift: Some(lift.to_owned()) })
}

/// A binding that would have to be made again, and that HTTP cannot make.
fn typed<'a>(situation: &'a Situation<'_>, name: &QueueName, beside: &Beside) -> Option<&'a Binding> {
    let (queue, tap) = (Destination::Queue(name.clone()), Destination::Exchange(beside.tap.clone()));
    let is_other = |binding: &Binding, key: &String| is_made_by_http(key, &binding.arguments) == Some(false);
    let leads_there = |binding: &Binding| binding.destination == queue || binding.destination == tap;
    let mut bindings = situation.properties_keys.iter().filter(|(binding, _)| leads_there(binding));
    bindings.find(|(binding, keys)| keys.iter().any(|key| is_other(binding, key))).map(|(binding, _)| binding)
}

fn shown_type<'a>(old: &'a Queue, wanted: &'a Queue) -> &'a str {
    if old.queue_type().is_some_and(|kind| kind != QueueType::Stream) { wanted.type_name() } else { old.type_name() }
}

/// What has a name that the migration needs, and whether a migration of this queue made it.
fn taken<'a>(
    situation: &'a Situation<'_>,
    beside: &'a Beside,
    name: &'a QueueName,
) -> impl Iterator<Item = (ObjectId, bool)> + 'a {
    let live = situation.current;
    let queues = [&beside.hold, &beside.drained, &beside.probe].map(QueueName::new);
    let exchanges =
        [ExchangeName::new(&beside.hold), ExchangeName::new(&beside.drained), beside.tap.clone(), beside.back.clone()];
    let is_ours = move |arguments: &Arguments| migrated(arguments).as_ref() == Some(name);
    let queues = queues.into_iter().filter_map(move |queue| {
        let ours = is_ours(&live.queues.get(&queue)?.arguments);
        Some((ObjectId::Queue(queue), ours))
    });
    let exchanges = exchanges.into_iter().filter_map(move |exchange| {
        let ours = is_ours(&live.exchanges.get(&exchange)?.arguments);
        Some((ObjectId::Exchange(exchange), ours))
    });
    queues.chain(exchanges)
}

fn new_queues(situation: &Situation<'_>, beside: &Beside) -> u64 {
    let is_new = |name: &&String| !situation.current.queues.contains_key(&QueueName::new(name.as_str()));
    // The lock of the run is a queue, too, and not there yet when it is planned for people.
    [&beside.hold, &beside.drained, &LOCK_QUEUE.to_owned()].into_iter().filter(is_new).count() as u64
}

/// The key by which a policy takes messages from what holds them, if it does.
pub(super) fn eats(named: &Named<'_>) -> Option<&'static str> {
    EATS.iter().find(|key| named.policy.definition.contains_key(**key)).copied()
}

/// The policy that is needed so that no other takes messages from what holds them.
fn shield(
    beside: &Beside,
    holding: &Queue,
    after: &Policies<'_>,
    operator: &Policies<'_>,
) -> Result<Option<Policy>, Obstacle> {
    let own = |named: &Named<'_>| *named.name == beside.shield;
    let mut above: Option<Priority> = None;
    for name in [&beside.hold, &beside.drained] {
        let governing = operator.governing(name, Governed::from(holding));
        if let Some((named, key)) = governing.possible().iter().flatten().find_map(|named| Some((named, eats(named)?)))
        {
            return Err(Obstacle {
                text: format!(
                    "operator policy {} sets {key} on {name}, which would hold its messages, and nothing shields it from that",
                    named.name
                ),
                lift: Some(
                    "have the operator leave out names with `.topo.`, or wait until the queue is empty (ifEmpty)"
                        .to_owned(),
                ),
            });
        }
        let governing = after.governing(name, Governed::from(holding));
        if !governing.possible().iter().flatten().any(|named| !own(named) && eats(named).is_some()) {
            continue;
        }
        let fitting = after.fitting(name, Governed::from(holding));
        let highest = fitting.iter().filter(|fit| !own(&fit.named)).map(|fit| fit.named.policy.priority).max();
        above = above.max(highest);
    }
    let default = || ArgumentValue::Text("drop-head".to_owned());
    let overflow = holding.arguments.get("x-overflow").cloned().unwrap_or_else(default);
    Ok(above.map(|highest| Policy {
        pattern: format!(
            "{}|{}",
            pattern_of(&QueueName::new(&beside.hold)),
            pattern_of(&QueueName::new(&beside.drained))
        ),
        apply_to: ApplyTo::Queues,
        priority: highest.above(),
        // A policy must say something; without a limit this has no effect, but that at-least-once wants the one.
        definition: [("overflow".to_owned(), overflow)].into(),
    }))
}
