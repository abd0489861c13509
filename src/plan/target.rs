//! Restricts a plan to the objects that `--target` matches, and to their dependencies.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, Options, PlannedChange};
use super::retries;
use crate::model::{Address, ApplyTo, Arguments, Destination, ExchangeName, Object, ObjectId, QueueName, Topology};
use crate::rabbitmq::Pattern;
use std::collections::{BTreeMap, BTreeSet};

/// Drops every change that no target requires. A targeted queue or exchange includes the bindings to it. A targeted
/// queue also includes the policies that match only this queue, such as the policy that wires its dead-lettering.
///
/// A targeted change to a queue or its retries includes all changes to the queue's retries. A targeted change that is
/// not a deletion also includes its dependencies: the vhost, the source and destination of a binding, and an alternate
/// or dead-letter exchange, with its bindings and all exchanges to which it routes. Without these exchanges, the broker
/// would silently drop messages.
pub(super) fn restrict(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    if options.targets.is_empty() {
        return;
    }
    let matches = |address: &Address| options.targets.iter().any(|target| target.matches(address.as_str()));
    let all = Related::of(&builder.changes, &context.desired.topology);
    let mut kept: BTreeSet<ObjectId> = BTreeSet::new();
    for (id, change) in &all.changes {
        let is_requested = match id {
            ObjectId::Binding(binding) => matches(&context.address(&binding.destination.id())),
            ObjectId::Policy(_) => all.only_queue(id).is_some_and(|queue| matches(&context.address(&queue))),
            ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Queue(_) | ObjectId::Record(_) => false,
        };
        if is_requested || matches(&change.address) {
            kept.insert(id.clone());
        }
    }
    let families = retries::families(builder, context.desired);
    for family in families.iter().filter(|family| family.iter().any(|id| matches(&context.address(id)))) {
        kept.extend(family.iter().filter(|id| all.changes.contains_key(*id)).cloned());
    }
    let mut open: Vec<ObjectId> = kept.iter().cloned().collect();
    while let Some(id) = open.pop() {
        for family in families.iter().filter(|family| family.contains(&id)) {
            let changed = family.iter().filter(|member| all.changes.contains_key(*member));
            open.extend(changed.filter(|member| kept.insert((*member).clone())).cloned().collect::<Vec<_>>());
        }
        let Some(change) = all.changes.get(&id).filter(|change| change.kind != ChangeKind::Delete) else { continue };
        for needed in all.dependencies(change) {
            if all.can_add(&needed) && kept.insert(needed.clone()) {
                open.push(needed);
            }
        }
    }
    drop(all);
    let dropped: Vec<PlannedChange> = {
        let (keep, drop) = std::mem::take(&mut builder.changes)
            .into_iter()
            .partition(|change| change.id().is_some_and(|id| kept.contains(&id)));
        builder.changes = keep;
        drop
    };
    let addresses: BTreeSet<Address> = builder.changes.iter().map(|change| change.address.clone()).collect();
    let is_kept = |address: &Address| addresses.contains(address) || matches(address);
    builder.blocks.retain(|block| is_kept(&block.address));
    builder.hazards.retain(|hazard| is_kept(&hazard.address));
    builder.infos.retain(|info| is_kept(&info.address));
    builder.unmanaged.retain(|unmanaged| is_kept(&unmanaged.address));
    if !dropped.is_empty() {
        let address = context.address(&ObjectId::Vhost);
        builder.info(&address, format!("--target excludes {} of the changes", dropped.len()));
    }
}

/// The changes by object, with the relations between the objects.
struct Related<'a> {
    changes: BTreeMap<ObjectId, &'a PlannedChange>,
    bindings_from: BTreeMap<&'a ExchangeName, Vec<ObjectId>>,
    /// For each queue, the policies whose pattern matches only this queue.
    policies_for: BTreeMap<QueueName, Vec<ObjectId>>,
    /// For each policy whose pattern matches only one queue, the queue.
    only_queue: BTreeMap<ObjectId, QueueName>,
    /// For each exchange in the spec, the exchanges to which it routes through bindings or as its alternate exchange.
    /// Includes existing exchanges, because they may route to missing exchanges.
    onward: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Related<'a> {
    fn of(changes: &'a [PlannedChange], desired: &'a Topology) -> Self {
        let mut all = Self {
            changes: BTreeMap::new(),
            bindings_from: BTreeMap::new(),
            policies_for: BTreeMap::new(),
            only_queue: BTreeMap::new(),
            onward: BTreeMap::new(),
        };
        for (name, exchange) in &desired.exchanges {
            all.onward.entry(name.as_str()).or_default().extend(exchange.alternate_exchange());
        }
        for binding in &desired.bindings {
            if let Destination::Exchange(next) = &binding.destination {
                all.onward.entry(binding.source.as_str()).or_default().push(next.as_str());
            }
        }
        for change in changes {
            let Some(id) = change.id() else { continue };
            match change.after.as_ref().or(change.before.as_ref()) {
                Some(Object::Binding(binding)) => {
                    all.bindings_from.entry(&binding.source).or_default().push(id.clone());
                }
                Some(Object::Policy(_, policy)) if policy.apply_to != ApplyTo::Exchanges => {
                    if let Some(name) = Pattern::new(&policy.pattern).only_name().map(QueueName::from) {
                        all.policies_for.entry(name.clone()).or_default().push(id.clone());
                        all.only_queue.insert(id.clone(), name);
                    }
                }
                Some(
                    Object::Vhost(_)
                    | Object::Exchange(..)
                    | Object::Policy(..)
                    | Object::Queue(..)
                    | Object::Record(_),
                )
                | None => {}
            }
            all.changes.insert(id, change);
        }
        all
    }

    fn only_queue(&self, policy: &ObjectId) -> Option<ObjectId> {
        self.only_queue.get(policy).cloned().map(ObjectId::Queue)
    }

    /// Returns true if the plan can include the object's change as a dependency. Existing dependencies stay unchanged,
    /// except policies, which must match the spec.
    fn can_add(&self, id: &ObjectId) -> bool {
        match self.changes.get(id).map(|change| change.kind) {
            Some(ChangeKind::Create) => true,
            Some(ChangeKind::Change) => matches!(id, ObjectId::Policy(_)),
            Some(ChangeKind::Delete | ChangeKind::Recreate | ChangeKind::Conflict) | None => false,
        }
    }

    fn dependencies(&self, change: &PlannedChange) -> Vec<ObjectId> {
        let mut needed = vec![ObjectId::Vhost];
        let text = |arguments: &'a Arguments, key: &str| arguments.get(key).and_then(|value| value.as_text());
        let after = self.changes.get(&change.id().unwrap_or(ObjectId::Vhost)).and_then(|change| change.after.as_ref());
        let next = match after {
            Some(Object::Exchange(_, made)) => [made.alternate_exchange(), None],
            Some(Object::Queue(name, queue)) => {
                needed.extend(self.policies_for.get(name).into_iter().flatten().cloned());
                [text(&queue.arguments, "x-dead-letter-exchange"), None]
            }
            Some(Object::Policy(_, policy)) => {
                [text(&policy.definition, "dead-letter-exchange"), text(&policy.definition, "alternate-exchange")]
            }
            Some(Object::Binding(binding)) => {
                needed.push(ObjectId::Exchange(binding.source.clone()));
                needed.push(binding.destination.id());
                match &binding.destination {
                    Destination::Exchange(name) => [Some(name.as_str()), None],
                    Destination::Queue(_) => [None, None],
                }
            }
            Some(Object::Vhost(_) | Object::Record(_)) | None => [None, None],
        };
        for exchange in self.with_onward(next.into_iter().flatten()) {
            needed.extend(self.bindings_from.get(&exchange).into_iter().flatten().cloned());
            needed.push(ObjectId::Exchange(exchange));
        }
        needed
    }

    /// Returns these exchanges, and all exchanges to which they route directly or indirectly.
    fn with_onward<'n>(&'n self, from: impl Iterator<Item = &'n str>) -> impl Iterator<Item = ExchangeName> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&str> = from.collect();
        while let Some(name) = open.pop() {
            if found.insert(name) {
                open.extend(self.onward.get(name).into_iter().flatten());
            }
        }
        found.into_iter().map(ExchangeName::from)
    }
}
