//! Builds a migration: checks the preconditions, and determines the declaration of the holding queues and the shield
//! policy. Returns a blocker if the migration is not possible.

use super::blockers::{MigrationBlocker, source_blocker, transport_blocker};
use super::{Goal, Migration, Unexpected, migrated_queue};
use crate::model::names::LOCK_QUEUE;
use crate::model::naming::{MigrationNames, pattern_of};
use crate::model::{
    ApplyTo, ArgumentValue, Arguments, Binding, Destination, ExchangeName, ObjectId, Policy, PolicyName, Priority,
    Queue, QueueName, QueueType,
};
use crate::plan::activity::Transports;
use crate::plan::context::PlanContext;
use crate::rabbitmq::policy_keys::POLICY_KEYS;
use crate::rabbitmq::routing::DeadLettering;
use crate::rabbitmq::{ActivePolicies, Governed, Named, Policies, is_reproducible_over_http};
use std::collections::BTreeMap;

/// Builds the migration of a current queue to the desired queue.
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
                "`migrate` does not support the queue type {}: it moves messages only between classic and quorum \
                 queues",
                stream_or_unknown_type(old, desired)
            ),
            remedy: Some(
                "give the new queue a different name, and move the consumers once they have drained the old queue"
                    .to_owned(),
            ),
        });
    }
    for (id, is_ours) in existing_objects(context, &names, name) {
        if !is_ours {
            return Err(MigrationBlocker {
                text: format!("{id} exists, and no migration created it: `migrate` requires this name"),
                remedy: Some(format!("delete {id} if it is not used")),
            });
        }
    }
    if let Some(blocker) = source_blocker(context, name) {
        return Err(blocker);
    }
    if let Some(blocker) = transport_blocker(&context.activity.transports) {
        return Err(blocker);
    }
    if context.activity.transports == Transports::Shovel
        && let Some(binding) = unrepresentable_binding(context, name, &names)
    {
        return Err(MigrationBlocker {
            text: format!(
                "topo could not restore {} over HTTP: its arguments have AMQP types that the management API cannot \
                 represent",
                ObjectId::Binding(binding.clone())
            ),
            remedy: Some(
                "let topo create the binding over AMQP: give topo access to the AMQP port (--amqp-url), and use \
                 --transport amqp"
                    .to_owned(),
            ),
        });
    }
    let additional = new_queues(context, &names);
    if let Some(limit) = context.activity.queue_limit
        && context.current.queues.len() as u64 + additional > limit
    {
        return Err(MigrationBlocker {
            text: format!("the vhost is limited to {limit} queues, and `migrate` temporarily needs {additional} more"),
            remedy: Some("raise the max-queues limit of the vhost, or delete queues".to_owned()),
        });
    }
    // During the migration, policies have their desired settings, and policies to delete still exist.
    let mut policies: BTreeMap<PolicyName, Policy> = context.current.policies.clone();
    policies.extend(context.desired.topology.policies.clone());
    let after = Policies::new(&policies, version);
    let operator_policies = context.operator_policies_before_deletions();
    let operator = Policies::new(&operator_policies, version);
    let policy = after.governing(name.as_str(), Governed::from(old)).likely();
    let settings = ActivePolicies::of(&after, context.profile).with_operators(&operator).likely(name, old);
    let is_mirrored = policy.is_some_and(|named| named.policy.definition.contains_key("ha-mode"));
    let is_quorum = old.queue_type() == Some(QueueType::Quorum) || is_mirrored;
    let mut arguments = Arguments::new();
    let kind = if is_quorum { QueueType::Quorum } else { QueueType::Classic };
    arguments.insert("x-queue-type".to_owned(), ArgumentValue::Text(kind.as_str().to_owned()));
    // The broker refuses a routing key without an exchange.
    if let Some(DeadLettering { exchange, routing_key }) = settings.dead_lettering() {
        arguments.insert("x-dead-letter-exchange".to_owned(), exchange.as_str().into());
        arguments.extend(routing_key.map(|key| ("x-dead-letter-routing-key".to_owned(), key.as_str().into())));
    }
    // With at-least-once dead-lettering, messages that expire in a holding queue wait for a confirm, as they would in
    // the original queue. A holding queue has no limit, so it rejects no publishes.
    if settings.is_at_least_once() {
        arguments.insert("x-dead-letter-strategy".to_owned(), "at-least-once".into());
        arguments.insert("x-overflow".to_owned(), "reject-publish".into());
    }
    // Each transport failure increments the delivery count. By default, RabbitMQ 4.0 and later deliver a message at
    // most 21 times. RabbitMQ 3.13 and earlier would treat -1 as a limit.
    if is_quorum && version.is_at_least(4, 0) {
        arguments.insert("x-delivery-limit".to_owned(), ArgumentValue::Integer(-1));
    }
    let holding = Queue { durable: true, auto_delete: false, exclusive: false, arguments };
    let shield = shield(&names, &holding, &after, &operator)?;
    let migration = Migration { queue: name.clone(), desired: desired.clone(), goal: Goal::Recreate, holding, shield };
    match unexpected_object(&migration, context) {
        Some(blocker) => Err(blocker),
        None => Ok(migration),
    }
}

/// Returns a blocker if an existing migration object differs from the object that topo declares.
pub(super) fn unexpected_object(migration: &Migration, context: &PlanContext<'_>) -> Option<MigrationBlocker> {
    let Unexpected { object, difference } = migration.unexpected_object(context.current)?;
    let text = format!(
        "{object} would hold messages of the migration, but differs from the object that topo declares: {difference}"
    );
    let remedy = format!("find out who declared {object}; move its messages elsewhere, delete it, and plan again");
    Some(MigrationBlocker { text, remedy: Some(remedy) })
}

/// Returns a binding that the migration must restore but that cannot be created over HTTP; `None` if all bindings can
/// be created over HTTP.
fn unrepresentable_binding<'a>(
    context: &'a PlanContext<'_>,
    name: &QueueName,
    names: &MigrationNames,
) -> Option<&'a Binding> {
    let (queue, tap) = (Destination::Queue(name.clone()), Destination::Exchange(names.tap.clone()));
    let is_unrepresentable =
        |binding: &Binding, key: &String| is_reproducible_over_http(key, &binding.arguments) == Some(false);
    let is_restored = |binding: &Binding| binding.destination == queue || binding.destination == tap;
    let mut bindings = context.properties_keys.iter().filter(|(binding, _)| is_restored(binding));
    bindings.find(|(binding, keys)| keys.iter().any(|key| is_unrepresentable(binding, key))).map(|(binding, _)| binding)
}

fn stream_or_unknown_type<'a>(old: &'a Queue, desired: &'a Queue) -> &'a str {
    if old.queue_type().is_some_and(|kind| kind != QueueType::Stream) { desired.type_name() } else { old.type_name() }
}

/// Returns the existing objects with names that the migration requires, each with a flag that is true if a migration of
/// this queue created the object.
fn existing_objects<'a>(
    context: &'a PlanContext<'_>,
    names: &'a MigrationNames,
    name: &'a QueueName,
) -> impl Iterator<Item = (ObjectId, bool)> + 'a {
    let live = context.current;
    let queues = [&names.hold, &names.drained, &names.probe].map(QueueName::new);
    let exchanges =
        [ExchangeName::new(&names.hold), ExchangeName::new(&names.drained), names.tap.clone(), names.back.clone()];
    let is_ours = move |arguments: &Arguments| migrated_queue(arguments).as_ref() == Some(name);
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
    // The apply lock is also a queue, and does not exist while topo only creates a plan.
    [&names.hold, &names.drained, &LOCK_QUEUE.to_owned()].into_iter().filter(is_new).count() as u64
}

/// Returns the first key of a policy that would remove messages from a holding queue; `None` if the policy has no such
/// key.
pub(super) fn removing_key(named: &Named<'_>) -> Option<&'static str> {
    let affecting = POLICY_KEYS.iter().filter(|key| key.affects_messages).map(|key| key.name);
    affecting.into_iter().find(|key| named.policy.definition.contains_key(*key))
}

/// Returns the policy that prevents other policies from removing messages from the holding queues; `None` if no other
/// policy would remove messages. Returns a blocker if an operator policy would remove messages.
fn shield(
    names: &MigrationNames,
    holding: &Queue,
    after: &Policies<'_>,
    operator: &Policies<'_>,
) -> Result<Option<Policy>, MigrationBlocker> {
    let is_shield = |named: &Named<'_>| *named.name == names.shield;
    let mut above: Option<Priority> = None;
    for name in [&names.hold, &names.drained] {
        let governing = operator.governing(name, Governed::from(holding));
        if let Some((named, key)) =
            governing.possible().iter().flatten().find_map(|named| Some((named, removing_key(named)?)))
        {
            return Err(MigrationBlocker {
                text: format!(
                    "operator policy {} sets {key} on {name}, which would hold the messages of the queue, and topo \
                     cannot override operator policies",
                    named.name
                ),
                remedy: Some(
                    "ask the operator to exclude names that contain `.topo.`, or wait until the queue is empty (ifEmpty)"
                        .to_owned(),
                ),
            });
        }
        let governing = after.governing(name, Governed::from(holding));
        if !governing.possible().iter().flatten().any(|named| !is_shield(named) && removing_key(named).is_some()) {
            continue;
        }
        let candidates = after.matching(name, Governed::from(holding));
        let highest = candidates
            .iter()
            .filter(|candidate| !is_shield(&candidate.named))
            .map(|candidate| candidate.named.policy.priority)
            .max();
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
        // A policy must have at least one setting. Without a limit, `overflow` has no effect. However, at-least-once
        // dead-lettering requires the value `reject-publish`.
        definition: [("overflow".to_owned(), overflow)].into(),
    }))
}
