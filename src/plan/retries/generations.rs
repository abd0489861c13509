//! Selects the generations of tiers. The name of a tier contains its delay, but not its other settings. If such a
//! setting changes, a tier of a new generation, such as `orders.work.retry.1.5s~2`, replaces the current tier, which is
//! retired. Therefore, a tier is never in conflict, and is never recreated while it contains messages.
//!
//! topo switches a routing key to a different tier atomically, so that every message is routed to exactly one of the
//! tiers. A bind and an unbind are two requests: between them, a rejected message would be routed to both tiers, or
//! would start again at the first tier. Therefore, topo first binds the new tier to the switch, which is the alternate
//! of the exchange and receives only messages whose keys the exchange does not match. Unbinding the old tier then
//! switches the key atomically. Finally, topo binds the new tier to the exchange itself, and unbinds it from the
//! switch. The exchange and the switch route the key to the same queue, so no message is delivered twice.

use super::leftovers::is_tier;
use crate::diff::{Field, fields};
use crate::model::naming::{self, TierName};
use crate::model::{Binding, Destination, Object, ObjectId, Queue, QueueName};
use crate::plan::changes_by_kind::PlanBuilder;
use crate::plan::context::PlanContext;
use crate::plan::document::{ChangeKind, Desired};
use crate::plan::verdict::{Verdict, verdict};
use crate::rabbitmq::with_default_type;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The current generations of each tier, oldest first.
type Generations = BTreeMap<TierName, Vec<u32>>;

/// Returns the desired topology with tier generations that are adapted to the current topology.
pub(in super::super) fn adapt<'a>(context: &PlanContext<'a>) -> Cow<'a, Desired> {
    let desired = context.desired;
    let members = desired.scope.families.iter().flat_map(|family| &family.members);
    let tiers = members.filter_map(|id| match id {
        ObjectId::Queue(name) => Some(name),
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => {
            None
        }
    });
    let mut live = Generations::new();
    for tier in context.current.queues.keys().filter_map(TierName::parse) {
        live.entry(first_generation(&tier)).or_default().push(tier.generation);
    }
    live.values_mut().for_each(|generations| generations.sort_unstable());
    let renamed: BTreeMap<QueueName, QueueName> = tiers
        .filter_map(|name| {
            let matching = matching_generation(context, &live, name)?;
            (matching != *name).then(|| (name.clone(), matching))
        })
        .collect();
    if renamed.is_empty() { Cow::Borrowed(desired) } else { Cow::Owned(with_names(desired, &renamed)) }
}

fn first_generation(tier: &TierName) -> TierName {
    TierName { generation: 1, ..tier.clone() }
}

/// Returns the current generation that matches the desired tier. If there is no such generation, returns the first
/// generation that does not exist. Returns `None` if the name is not the name of a desired tier.
fn matching_generation(context: &PlanContext<'_>, live: &Generations, name: &QueueName) -> Option<QueueName> {
    let desired = context.desired.topology.queues.get(name)?;
    let first = first_generation(&TierName::parse(name)?);
    let named = |generation: &u32| TierName { generation: *generation, ..first.clone() }.name();
    let live = live.get(&first).map_or(&[][..], Vec::as_slice);
    let as_desired = live.iter().map(named).find(|it| is_equal(context, it, (name, desired)));
    as_desired.or_else(|| (1..=u32::MAX).find(|generation| !live.contains(generation)).as_ref().map(named))
}

/// Returns true if the current queue requires no change to match the desired queue. `spec_name` is the name of the
/// queue in the spec.
fn is_equal(context: &PlanContext<'_>, name: &QueueName, (spec_name, desired): (&QueueName, &Queue)) -> bool {
    let Some(live) = context.current.queues.get(name) else { return false };
    let scope = &context.desired.scope;
    let desired = with_default_type(desired, context.profile).into_owned();
    let (before, after) = (Object::Queue(name.clone(), live.clone()), Object::Queue(name.clone(), desired));
    let may_lack = |field: &Field| field.argument().is_some_and(|argument| scope.is_optional(spec_name, argument));
    fields(&before, &after).iter().all(|change| {
        change.before.is_none() && may_lack(&change.field)
            || matches!(verdict(change, &before, &after, context.profile), Verdict::Equal | Verdict::Unknown)
    })
}

fn with_names(desired: &Desired, renamed: &BTreeMap<QueueName, QueueName>) -> Desired {
    let queue = |name: &QueueName| renamed.get(name).unwrap_or(name).clone();
    let binding = |binding: &Binding| Binding {
        destination: match &binding.destination {
            Destination::Queue(name) => Destination::Queue(queue(name)),
            Destination::Exchange(_) => binding.destination.clone(),
        },
        ..binding.clone()
    };
    let id = |id: &ObjectId| match id {
        ObjectId::Queue(name) => ObjectId::Queue(queue(name)),
        ObjectId::Binding(it) => ObjectId::Binding(binding(it)),
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Record(_) => id.clone(),
    };
    let mut desired = desired.clone();
    let topology = &mut desired.topology;
    topology.queues = std::mem::take(&mut topology.queues).into_iter().map(|(name, it)| (queue(&name), it)).collect();
    topology.bindings = topology.bindings.iter().map(binding).collect();
    let scope = &mut desired.scope;
    scope.optional = std::mem::take(&mut scope.optional).into_iter().map(|(name, it)| (queue(&name), it)).collect();
    for family in &mut scope.families {
        family.members = family.members.iter().map(id).collect();
    }
    for (source, _) in &mut desired.sources {
        *source = id(source);
    }
    desired.sources.sort();
    desired
}

/// A change of tier for the messages with one routing key, or with every routing key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Switch {
    /// The current binding.
    pub(in super::super) old: Binding,
    /// The desired binding.
    pub(in super::super) new: Binding,
    /// The binding from the switch exchange, which exists only during the change.
    pub(in super::super) temporary: Binding,
}

/// Returns the tier switches in a plan.
pub(in super::super) fn switches(builder: &PlanBuilder) -> Vec<Switch> {
    let mut retired: BTreeMap<(_, _), &Binding> = BTreeMap::new();
    let mut created: Vec<&Binding> = Vec::new();
    for change in &builder.changes {
        match (change.kind, &change.before, &change.after, &change.retires) {
            (ChangeKind::Delete, Some(Object::Binding(old)), _, Some(queue)) if is_tier(queue, &old.destination) => {
                retired.insert((&old.source, &old.routing_key), old);
            }
            (ChangeKind::Create, _, Some(Object::Binding(new)), _) => created.push(new),
            (_, _, _, _) => {}
        }
    }
    let switch = |new: &Binding| {
        let old = (*retired.get(&(&new.source, &new.routing_key))?).clone();
        let temporary = Binding { source: naming::switch_exchange(&new.source), ..new.clone() };
        Some(Switch { old, new: new.clone(), temporary })
    };
    created.into_iter().filter_map(switch).collect()
}
