//! What the holding queues must be, what stands against a migration, and what it cannot promise.

use super::{Goal, Migration, migrated};
use crate::behaviour::{Governed, Named, Policies, effective};
use crate::model::names::LOCK_QUEUE;
use crate::model::naming::{Beside, pattern_of};
use crate::model::{
    Address, ApplyTo, ArgumentValue, Arguments, ExchangeName, ObjectId, Policy, PolicyName, Priority, Queue, QueueName,
    QueueType,
};
use crate::plan::draft::Draft;
use crate::plan::hazard::{Hazard, HazardKind};
use crate::plan::situation::Situation;
use crate::plan::{Movers, QueueActivity};
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
    if let Movers::None { reasons } = &situation.activity.movers {
        return Err(Obstacle {
            text: format!("nothing can move its messages: {}", reasons.join("; ")),
            lift: Some(
                "open the AMQP port to topo (--amqp-url), or enable rabbitmq_shovel and rabbitmq_shovel_management"
                    .to_owned(),
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
    // A mover that dies counts as a delivery, and from 4.0 on the 21st is the last; before, -1 would be one.
    if quorum && version.is_at_least(4, 0) {
        arguments.insert("x-delivery-limit".to_owned(), ArgumentValue::Integer(-1));
    }
    let holding = Queue { durable: true, auto_delete: false, exclusive: false, arguments };
    let shield = shield(&beside, &holding, &after, &operator)?;
    Ok(Migration { queue: name.clone(), wanted: wanted.clone(), goal: Goal::Recreate, holding, shield })
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

/// The policy that is needed so that no other takes messages from what holds them.
fn shield(
    beside: &Beside,
    holding: &Queue,
    after: &Policies<'_>,
    operator: &Policies<'_>,
) -> Result<Option<Policy>, Obstacle> {
    let eats = |named: &Named<'_>| EATS.iter().find(|key| named.policy.definition.contains_key(**key)).copied();
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
    Ok(above.map(|highest| Policy {
        pattern: format!(
            "{}|{}",
            pattern_of(&QueueName::new(&beside.hold)),
            pattern_of(&QueueName::new(&beside.drained))
        ),
        apply_to: ApplyTo::Queues,
        priority: highest.above(),
        // A policy must say something; this is the default, and without a limit it has no effect.
        definition: [("overflow".to_owned(), ArgumentValue::Text("drop-head".to_owned()))].into(),
    }))
}

/// What a migration cannot promise, in words; `single` is a queue with a single active consumer.
pub(in crate::plan) fn hazards(
    draft: &mut Draft,
    address: &Address,
    migration: &Migration,
    old: &Queue,
    live: Option<&QueueActivity>,
) {
    let quorum = old.queue_type() == Some(QueueType::Quorum);
    let gap = "publishers that use the default exchange, and dead letters that go straight to it, cannot be redirected: \
               while it is exchanged their messages can be lost, even though confirmed; all others are held and come back";
    draft.hazard(HazardKind::RoutingGap, address, gap.to_owned(), None);
    let pause = if quorum || migration.wanted.queue_type() == Some(QueueType::Quorum) {
        "and get nothing for some 13 to 25 s"
    } else {
        "and get nothing for about 1 s"
    };
    let who = match live.and_then(|live| live.consumers.as_deref()) {
        Some([]) => None,
        Some([one]) => Some(format!("1 consumer is cancelled once ({one}) {pause}")),
        Some(several) => Some(format!("{} consumers are cancelled once {pause}", several.len())),
        None => Some(format!("whether anybody consumes from it is not known; consumers are cancelled once {pause}")),
    };
    if let Some(who) = who {
        let text = format!(
            "{who}; one that declares it with the old arguments gets 406 until it is updated, \
                            and one that comes in the moment of the swap can lose its connection"
        );
        draft.hazard(HazardKind::ConsumerDisruption, address, text, None);
    }
    let is_single =
        |queue: &Queue| queue.arguments.get("x-single-active-consumer") == Some(&ArgumentValue::Boolean(true));
    let must_be_allowed = is_single(old) || is_single(&migration.wanted);
    let mut shown = |kind, text: &str| {
        let (address, text) = (address.clone(), text.to_owned());
        draft.hazards.push(Hazard { kind, address, text, messages: None, must_be_allowed });
    };
    if live.and_then(|live| live.consumers.as_deref()).is_none_or(|consumers| consumers.len() > 1) {
        shown(HazardKind::Reorder, "with competing consumers, or after an abort, the order is not kept");
    }
    shown(
        HazardKind::Duplicates,
        "if topo or its connection breaks off, or a shovel is stopped, what is under way (at most 1,000 messages) may come \
         twice; so does what is published while an application binds the queue again by itself",
    );
}
