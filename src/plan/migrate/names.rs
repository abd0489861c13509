//! Builds a migration: names and declares the holding queues, and returns the blocker if the migration is not possible.

use super::blockers::{MigrationBlocker, source_blocker, transport_blocker};
use super::{Goal, Migration, Unexpected, migrated};
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
use crate::rabbitmq::{ActivePolicies, Governed, Named, Policies, is_made_by_http};
use std::collections::BTreeMap;

/// Builds the migration of a current queue to the desired one.
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
                "give the new queue a different name, and move the consumers when they have read the old \
                 one"
                .to_owned(),
            ),
        });
    }
    for (id, is_ours) in existing_objects(context, &names, name) {
        if !is_ours {
            return Err(MigrationBlocker {
                text: format!("{id} exists, and no migration created it: `migrate` needs that name"),
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
                "the vhost is limited to {limit} queues, and `migrate` temporarily needs 3 more, including the lock"
            ),
            remedy: Some("raise max-queues of the vhost, or delete queues".to_owned()),
        });
    }
    // During the migration, policies have their desired settings, and policies to delete still exist.
    let mut policies: BTreeMap<PolicyName, Policy> = context.current.policies.clone();
    policies.extend(context.desired.topology.policies.clone());
    let after = Policies::new(&policies, version);
    let operator_policies = context.operator_policies_written();
    let operator = Policies::new(&operator_policies, version);
    let policy = after.governing(name.as_str(), Governed::from(old)).likely();
    let settings = ActivePolicies::of(&after, context.profile).with_operators(&operator).likely(name, old);
    let mirrored = policy.is_some_and(|named| named.policy.definition.contains_key("ha-mode"));
    let quorum = old.queue_type() == Some(QueueType::Quorum) || mirrored;
    let mut arguments = Arguments::new();
    let kind = if quorum { QueueType::Quorum } else { QueueType::Classic };
    arguments.insert("x-queue-type".to_owned(), ArgumentValue::Text(kind.as_str().to_owned()));
    // The broker refuses a routing key without an exchange.
    if let Some(DeadLettering { exchange, routing_key }) = settings.dead_lettering() {
        arguments.insert("x-dead-letter-exchange".to_owned(), exchange.as_str().into());
        arguments.extend(routing_key.map(|key| ("x-dead-letter-routing-key".to_owned(), key.as_str().into())));
    }
    // Messages that expire in the holding queue wait for their exchange, as they would in the original queue. Without a
    // limit, the holding queue rejects nothing.
    if settings.is_at_least_once() {
        arguments.insert("x-dead-letter-strategy".to_owned(), "at-least-once".into());
        arguments.insert("x-overflow".to_owned(), "reject-publish".into());
    }
    // A transport that fails counts as a delivery, and from 4.0 on, the 21st delivery is the last. Before 4.0, -1 would
    // be a limit.
    if quorum && version.is_at_least(4, 0) {
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

/// Returns a blocker if an existing object of a migration differs from what topo declares.
pub(super) fn unexpected_object(migration: &Migration, context: &PlanContext<'_>) -> Option<MigrationBlocker> {
    let Unexpected { object, difference } = migration.unexpected(context.current)?;
    let text =
        format!("{object} would hold messages of the migration, but it differs from what topo declares: {difference}");
    let remedy = format!("find out who declared {object}; move its messages elsewhere, delete it, and plan again");
    Some(MigrationBlocker { text, remedy: Some(remedy) })
}

/// Returns a binding that the migration has to restore, and that cannot be created over HTTP.
fn unrepresentable_binding<'a>(
    context: &'a PlanContext<'_>,
    name: &QueueName,
    names: &MigrationNames,
) -> Option<&'a Binding> {
    let (queue, tap) = (Destination::Queue(name.clone()), Destination::Exchange(names.tap.clone()));
    let is_other = |binding: &Binding, key: &String| is_made_by_http(key, &binding.arguments) == Some(false);
    let leads_there = |binding: &Binding| binding.destination == queue || binding.destination == tap;
    let mut bindings = context.properties_keys.iter().filter(|(binding, _)| leads_there(binding));
    bindings.find(|(binding, keys)| keys.iter().any(|key| is_other(binding, key))).map(|(binding, _)| binding)
}

fn shown_type<'a>(old: &'a Queue, desired: &'a Queue) -> &'a str {
    if old.queue_type().is_some_and(|kind| kind != QueueType::Stream) { desired.type_name() } else { old.type_name() }
}

/// Returns the existing objects whose names the migration needs, and true for each that a migration of this queue
/// created.
fn existing_objects<'a>(
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
    // The lock of the run is a queue, too, and does not exist yet when a plan is only shown.
    [&names.hold, &names.drained, &LOCK_QUEUE.to_owned()].into_iter().filter(is_new).count() as u64
}

/// Returns the key by which a policy removes messages from the holding queues, if any.
pub(super) fn removing_key(named: &Named<'_>) -> Option<&'static str> {
    let affecting = POLICY_KEYS.iter().filter(|key| key.affects_messages).map(|key| key.name);
    affecting.into_iter().find(|key| named.policy.definition.contains_key(*key))
}

/// Returns the policy that is needed so that no other policy removes messages from the holding queues.
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
        if let Some((named, key)) =
            governing.possible().iter().flatten().find_map(|named| Some((named, removing_key(named)?)))
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
        if !governing.possible().iter().flatten().any(|named| !own(named) && removing_key(named).is_some()) {
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
        // A policy must have a setting. Without a limit, `overflow` has no effect, except that at-least-once requires
        // its value.
        definition: [("overflow".to_owned(), overflow)].into(),
    }))
}
