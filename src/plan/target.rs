//! `--target`: keeps only what the addresses match, and what that needs to exist.

use super::builder::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, Options, PlannedChange};
use super::retries;
use crate::model::{Address, ApplyTo, Arguments, Destination, ExchangeName, Object, ObjectId, QueueName, Topology};
use crate::rabbitmq::Pattern;
use std::collections::{BTreeMap, BTreeSet};

/// Drops every change that no target asks for. A queue or an exchange brings the bindings into it, and a queue the policies
/// that are for it alone, such as the one that wires its dead letters; what is created brings what it needs: the vhost,
/// both ends of a binding, all of a queue's retries, and its alternate or dead-letter exchange with all ways on from
/// there: without these, what comes there would be dropped in silence.
pub(super) fn restrict(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    if options.targets.is_empty() {
        return;
    }
    let matches = |address: &Address| options.targets.iter().any(|target| target.matches(address.as_str()));
    let all = Related::of(&builder.changes, &context.desired.topology);
    let mut kept: BTreeSet<ObjectId> = BTreeSet::new();
    for (id, change) in &all.changes {
        let asked_for = match id {
            ObjectId::Binding(binding) => matches(&context.address(&binding.destination.id())),
            ObjectId::Policy(_) => all.only_queue(id).is_some_and(|queue| matches(&context.address(&queue))),
            ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Queue(_) | ObjectId::Record(_) => false,
        };
        if asked_for || matches(&change.address) {
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
            let others = family.iter().filter(|other| all.changes.contains_key(*other));
            open.extend(others.filter(|other| kept.insert((*other).clone())).cloned().collect::<Vec<_>>());
        }
        let Some(change) = all.changes.get(&id).filter(|change| change.kind != ChangeKind::Delete) else { continue };
        for needed in all.needs(change) {
            if all.can_bring(&needed) && kept.insert(needed.clone()) {
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
    let desired = |address: &Address| addresses.contains(address) || matches(address);
    builder.blocks.retain(|block| desired(&block.address));
    builder.hazards.retain(|hazard| desired(&hazard.address));
    builder.infos.retain(|info| desired(&info.address));
    builder.unmanaged.retain(|unmanaged| desired(&unmanaged.address));
    if !dropped.is_empty() {
        let address = context.address(&ObjectId::Vhost);
        builder.info(&address, format!("--target excludes {} of the changes", dropped.len()));
    }
}

/// Changes by what they are about, and by what they come along with.
struct Related<'a> {
    changes: BTreeMap<ObjectId, &'a PlannedChange>,
    bindings_from: BTreeMap<&'a ExchangeName, Vec<ObjectId>>,
    /// The policies whose pattern is for one queue alone.
    policies_for: BTreeMap<QueueName, Vec<ObjectId>>,
    only_queue: BTreeMap<ObjectId, QueueName>,
    /// Where exchanges send on to others, as the spec wants it: over bindings and alternates. Also those that are there
    /// already, behind which something may be missing.
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

    /// What is there can be relied on as it is; but a queue's own policy must say what the spec says.
    fn can_bring(&self, id: &ObjectId) -> bool {
        match self.changes.get(id).map(|change| change.kind) {
            Some(ChangeKind::Create) => true,
            Some(ChangeKind::Change) => matches!(id, ObjectId::Policy(_)),
            Some(ChangeKind::Delete | ChangeKind::Recreate | ChangeKind::Conflict) | None => false,
        }
    }

    fn needs(&self, change: &PlannedChange) -> Vec<ObjectId> {
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
        for exchange in self.ways_on(next.into_iter().flatten()) {
            needed.extend(self.bindings_from.get(&exchange).into_iter().flatten().cloned());
            needed.push(ObjectId::Exchange(exchange));
        }
        needed
    }

    /// These exchanges and all to which they send on.
    fn ways_on<'n>(&'n self, from: impl Iterator<Item = &'n str>) -> impl Iterator<Item = ExchangeName> {
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
