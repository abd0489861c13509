//! Defines the input for planning one vhost.

use super::activity::{Activity, QueueActivity, RecordFacts};
use super::document::{ChangeKind, Desired, PlannedChange, Source};
use crate::model::{Address, Binding, Destination, ExchangeName, Object, ObjectId, Policy, PolicyName, Topology};
use crate::rabbitmq::{BrokerProfile, Ends, Refusal, binding_refusals};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The input for planning one vhost.
#[derive(Clone, Copy)]
pub struct PlanContext<'a> {
    /// The current topology: all objects except predeclared exchanges, including objects that topo never changes.
    pub current: &'a Topology,
    /// The desired topology and its scope.
    pub desired: &'a Arc<Desired>,
    /// The activity of the vhost.
    pub activity: &'a Activity,
    /// The keys under which the broker lists each current binding; empty for a binding that the management API cannot
    /// delete.
    pub properties_keys: &'a BTreeMap<Binding, Vec<String>>,
    /// Current objects that topo never changes: exclusive, auto-delete, server-named and plugin-owned queues,
    /// auto-delete exchanges, topo's own objects, and all bindings from or to any of these objects.
    pub untouchable: &'a BTreeSet<ObjectId>,
    /// Exchanges that the broker stores without a value for `auto_delete`, after a definitions import before RabbitMQ
    /// 4.2.2. The broker refuses every declaration of such an exchange.
    pub lacks_auto_delete: &'a BTreeSet<ExchangeName>,
    /// Facts about the records, which the broker does not list with the records themselves.
    pub records: &'a RecordFacts,
    /// The behavior of the broker.
    pub profile: &'a BrokerProfile,
}

impl PlanContext<'_> {
    pub(super) fn address(&self, id: &ObjectId) -> Address {
        Address::of(&self.current.vhost, id)
    }

    /// Returns the current operator policies of the vhost.
    pub(super) fn operator_policies(&self) -> BTreeMap<PolicyName, Policy> {
        self.current.operator_policies()
    }

    /// Returns the operator policies after all creations and changes, but before the deletions.
    pub(super) fn operator_policies_before_deletions(&self) -> BTreeMap<PolicyName, Policy> {
        let mut policies = self.operator_policies();
        policies.extend(self.desired.topology.operator_policies());
        policies
    }

    pub(super) fn live(&self, id: &ObjectId) -> Option<&QueueActivity> {
        match id {
            ObjectId::Queue(name) => self.activity.queues.get(name),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => None,
        }
    }

    /// Returns true if topo never changes the object, regardless of flags. Such an object is untouchable, or is a
    /// binding from or to an untouchable object.
    pub(super) fn is_untouchable(&self, id: &ObjectId) -> bool {
        self.untouchable.contains(id)
            || match id {
                ObjectId::Binding(binding) => {
                    self.untouchable.contains(&ObjectId::Exchange(binding.source.clone()))
                        || self.untouchable.contains(&binding.destination.id())
                }
                ObjectId::Vhost
                | ObjectId::Exchange(_)
                | ObjectId::Policy(_)
                | ObjectId::Queue(_)
                | ObjectId::Record(_) => false,
            }
    }

    /// Returns true if the management API cannot delete the object: a binding with an unusable properties key, or a
    /// record whose path would contain an empty segment or a dot segment. A DELETE of a topic permission without an
    /// exchange deletes all topic permissions of the user (3.8 to 4.3).
    pub(super) fn is_undeletable(&self, id: &ObjectId) -> bool {
        match id {
            ObjectId::Binding(binding) => self.properties_keys.get(binding).is_some_and(Vec::is_empty),
            ObjectId::Record(id) => id.key.iter().any(|segment| matches!(segment.as_str(), "" | "." | "..")),
            ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Queue(_) => false,
        }
    }

    /// Returns the reasons why the broker would refuse a binding. The check uses the desired source and destination. If
    /// the spec does not declare one of them, the check uses the current object.
    pub(super) fn binding_refusals(&self, binding: &Binding) -> Vec<Refusal> {
        let desired = &self.desired.topology;
        let source = desired.exchanges.get(&binding.source).or_else(|| self.current.exchanges.get(&binding.source));
        let queue = match &binding.destination {
            Destination::Queue(name) => desired.queues.get(name).or_else(|| self.current.queues.get(name)),
            Destination::Exchange(_) => None,
        };
        let ends = Ends { source: source.map(|exchange| exchange.kind.as_str()), queue };
        binding_refusals(binding, ends, self.profile)
    }

    pub(super) fn source(&self, id: &ObjectId) -> Option<Source> {
        let sources = &self.desired.sources;
        sources.binary_search_by(|(known, _)| known.cmp(id)).ok().map(|index| sources[index].1.clone())
    }

    /// Returns a change in which only the address, kind, source, `before` and `after` are set.
    pub(super) fn change(&self, kind: ChangeKind, before: Option<Object>, after: Option<Object>) -> PlannedChange {
        let id = after.as_ref().or(before.as_ref()).map_or(ObjectId::Vhost, Object::id);
        PlannedChange {
            address: self.address(&id),
            kind,
            source: self.source(&id),
            before,
            after,
            fields: Vec::new(),
            conflict: None,
            live: None,
            kept: None,
            unbound: Vec::new(),
            reason: None,
            retires: None,
        }
    }
}
