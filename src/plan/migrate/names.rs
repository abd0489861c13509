//! Names and declares the holding queues, and finds the blockers of a migration.

use super::exchange_constraints;
use super::{Goal, Migration, Unexpected, migrated};
use crate::model::names::LOCK_QUEUE;
use crate::model::naming::{MigrationNames, pattern_of};
use crate::model::{
    ApplyTo, ArgumentValue, Arguments, Binding, Destination, ExchangeName, ObjectId, Policy, PolicyName, Priority,
    Queue, QueueName, QueueType,
};
use crate::plan::Transports;
use crate::plan::context::PlanContext;
use crate::rabbitmq::policy_keys::POLICY_KEYS;
use crate::rabbitmq::routing::DeadLettering;
use crate::rabbitmq::{Governed, Governors, Named, Policies, is_made_by_http};
use std::collections::BTreeMap;

/// Why a queue cannot be migrated, and what lifts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) struct MigrationBlocker {
    pub(in crate::plan) text: String,
    pub(in crate::plan) remedy: Option<String>,
}

/// The migration of a live queue to what is desired.
pub(in crate::plan) fn migration(
    context: &PlanContext<'_>,
    name: &QueueName,
    old: &Queue,
    desired: &Queue,
) -> Result<Migration, MigrationBlocker> {
    let version = context.profile.version;
    let names = MigrationNames::of(name);
    let is_stream = |queue: &Queue| queue.queue_type() == Some(QueueType::Stream);
    if is_stream(old) || is_stream(desired) || old.queue_type().is_none() {
        return Err(MigrationBlocker {
            text: format!(
                "`migrate` cannot move the messages of a {}: reading does not remove them",
                shown_type(old, desired)
            ),
            remedy: Some(
                "give the new queue another name, and move the consumers when they have read the old one".to_owned(),
            ),
        });
    }
    for (id, is_ours) in taken(context, &names, name) {
        if !is_ours {
            return Err(MigrationBlocker {
                text: format!("{id} exists, and no migration created it: `migrate` needs that name"),
                remedy: Some(format!("delete {id} if it is not used")),
            });
        }
    }
    if let Some(obstacle) = exchange_constraints::obstacle(context, name) {
        return Err(obstacle);
    }
    if let Some(obstacle) = immovable_by(&context.activity.transports) {
        return Err(obstacle);
    }
    if context.activity.transports == Transports::Shovel
        && let Some(binding) = typed(context, name, &names)
    {
        return Err(MigrationBlocker {
            text: format!(
                "{} could not be bound again: its arguments have AMQP types that the management API cannot represent",
                ObjectId::Binding(binding.clone())
            ),
            remedy: Some(
                "let topo bind it over AMQP: give topo access to the AMQP port (--amqp-url), and use --transport amqp"
                    .to_owned(),
            ),
        });
    }
    if let Some(limit) = context.activity.queue_limit
        && context.current.queues.len() as u64 + new_queues(context, &names) > limit
    {
        return Err(MigrationBlocker {
            text: format!(
                "the vhost is limited to {limit} queues, and `migrate` temporarily needs 3 more, with the \
                           lock"
            ),
            remedy: Some("raise max-queues of the vhost, or delete queues".to_owned()),
        });
    }
    // By then, policies are as they are desired, and those that go are not gone yet.
    let mut policies: BTreeMap<PolicyName, Policy> = context.current.policies.clone();
    policies.extend(context.desired.topology.policies.clone());
    let after = Policies::new(&policies, version);
    let operator_policies = context.operator_policies_written();
    let operator = Policies::new(&operator_policies, version);
    let policy = after.governing(name.as_str(), Governed::from(old)).likely();
    let settings = Governors::of(&after, context.profile).with_operators(&operator).likely(name, old);
    let mirrored = policy.is_some_and(|named| named.policy.definition.contains_key("ha-mode"));
    let quorum = old.queue_type() == Some(QueueType::Quorum) || mirrored;
    let mut arguments = Arguments::new();
    let kind = if quorum { QueueType::Quorum } else { QueueType::Classic };
    arguments.insert("x-queue-type".to_owned(), ArgumentValue::Text(kind.as_str().to_owned()));
    // A routing key without an exchange is refused.
    if let Some(DeadLettering { exchange, routing_key }) = settings.dead_lettering() {
        arguments.insert("x-dead-letter-exchange".to_owned(), exchange.as_str().into());
        arguments.extend(routing_key.map(|key| ("x-dead-letter-routing-key".to_owned(), key.as_str().into())));
    }
    // What expires meanwhile waits for its exchange as it would have in the queue. Without a limit nothing is refused.
    if settings.is_at_least_once() {
        arguments.insert("x-dead-letter-strategy".to_owned(), "at-least-once".into());
        arguments.insert("x-overflow".to_owned(), "reject-publish".into());
    }
    // A transport that dies counts as a delivery, and from 4.0 on the 21st is the last; before, -1 would be one.
    if quorum && version.is_at_least(4, 0) {
        arguments.insert("x-delivery-limit".to_owned(), ArgumentValue::Integer(-1));
    }
    let holding = Queue { durable: true, auto_delete: false, exclusive: false, arguments };
    let shield = shield(&names, &holding, &after, &operator)?;
    let migration = Migration { queue: name.clone(), desired: desired.clone(), goal: Goal::Recreate, holding, shield };
    match forged(&migration, context) {
        Some(obstacle) => Err(obstacle),
        None => Ok(migration),
    }
}

/// Why existing holding objects cannot be used, if that is so.
pub(super) fn forged(migration: &Migration, context: &PlanContext<'_>) -> Option<MigrationBlocker> {
    let Unexpected { object, difference } = migration.unexpected(context.current)?;
    let text =
        format!("{object} would hold messages of the migration, but it differs from what topo declares: {difference}");
    let remedy = format!("find out who declared {object}; move its messages elsewhere, delete it, and plan again");
    Some(MigrationBlocker { text, remedy: Some(remedy) })
}

/// Why no message can be moved, if that is so.
pub(super) fn immovable_by(transports: &Transports) -> Option<MigrationBlocker> {
    let Transports::None { reasons } = transports else { return None };
    let remedy = "give topo access to the AMQP port (--amqp-url), or enable rabbitmq_shovel and \
                rabbitmq_shovel_management";
    let text = format!("topo cannot move its messages: {}", reasons.join("; "));
    Some(MigrationBlocker { text, remedy: Some(remedy.to_owned()) })
}

/// A binding that would have to be made again, and that HTTP cannot make.
fn typed<'a>(context: &'a PlanContext<'_>, name: &QueueName, names: &MigrationNames) -> Option<&'a Binding> {
    let (queue, tap) = (Destination::Queue(name.clone()), Destination::Exchange(names.tap.clone()));
    let is_other = |binding: &Binding, key: &String| is_made_by_http(key, &binding.arguments) == Some(false);
    let leads_there = |binding: &Binding| binding.destination == queue || binding.destination == tap;
    let mut bindings = context.properties_keys.iter().filter(|(binding, _)| leads_there(binding));
    bindings.find(|(binding, keys)| keys.iter().any(|key| is_other(binding, key))).map(|(binding, _)| binding)
}

fn shown_type<'a>(old: &'a Queue, desired: &'a Queue) -> &'a str {
    if old.queue_type().is_some_and(|kind| kind != QueueType::Stream) { desired.type_name() } else { old.type_name() }
}

/// What has a name that the migration needs, and whether a migration of this queue made it.
fn taken<'a>(
    context: &'a PlanContext<'_>,
    names: &'a MigrationNames,
    name: &'a QueueName,
) -> impl Iterator<Item = (ObjectId, bool)> + 'a {
    let live = context.current;
    let queues = [&names.hold, &names.drained, &names.probe].map(QueueName::new);
    let exchanges =
        [ExchangeName::new(&names.hold), ExchangeName::new(&names.drained), names.tap.clone(), names.back.clone()];
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

fn new_queues(context: &PlanContext<'_>, names: &MigrationNames) -> u64 {
    let is_new = |name: &&String| !context.current.queues.contains_key(&QueueName::new(name.as_str()));
    // The lock of the run is a queue, too, and not there yet when it is planned for people.
    [&names.hold, &names.drained, &LOCK_QUEUE.to_owned()].into_iter().filter(is_new).count() as u64
}

/// The key by which a policy takes messages from what holds them, if it does.
pub(super) fn eats(named: &Named<'_>) -> Option<&'static str> {
    let affecting = POLICY_KEYS.iter().filter(|key| key.affects_messages).map(|key| key.name);
    affecting.into_iter().find(|key| named.policy.definition.contains_key(*key))
}

/// The policy that is needed so that no other takes messages from what holds them.
fn shield(
    names: &MigrationNames,
    holding: &Queue,
    after: &Policies<'_>,
    operator: &Policies<'_>,
) -> Result<Option<Policy>, MigrationBlocker> {
    let own = |named: &Named<'_>| *named.name == names.shield;
    let mut above: Option<Priority> = None;
    for name in [&names.hold, &names.drained] {
        let governing = operator.governing(name, Governed::from(holding));
        if let Some((named, key)) = governing.possible().iter().flatten().find_map(|named| Some((named, eats(named)?)))
        {
            return Err(MigrationBlocker {
                text: format!(
                    "operator policy {} sets {key} on {name}, which would hold its messages, and topo cannot override \
                     it",
                    named.name
                ),
                remedy: Some(
                    "ask the operator to exclude names with `.topo.`, or wait until the queue is empty (ifEmpty)"
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
            pattern_of(&QueueName::new(&names.hold)),
            pattern_of(&QueueName::new(&names.drained))
        ),
        apply_to: ApplyTo::Queues,
        priority: highest.above(),
        // A policy must say something; without a limit this has no effect, but that at-least-once wants the one.
        definition: [("overflow".to_owned(), overflow)].into(),
    }))
}
