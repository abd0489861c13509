//! All that a plan of one vhost is computed from.

use super::document::{ChangeKind, Desired, PlannedChange, Source};
use super::{Activity, QueueActivity};
use crate::model::{Address, Binding, Destination, ExchangeName, Object, ObjectId, Policy, PolicyName, Topology};
use crate::rabbitmq::{BrokerProfile, Ends, Refusal, binding_refusals};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All that a plan of one vhost is computed from.
#[derive(Clone, Copy)]
pub struct PlanContext<'a> {
    /// What is live; every object, also those that are not to be touched, but predeclared exchanges.
    pub current: &'a Topology,
    /// What the spec wants.
    pub desired: &'a Arc<Desired>,
    /// What the live queues were doing.
    pub activity: &'a Activity,
    /// The broker's own keys of each live binding; none for one that they do not delete.
    pub properties_keys: &'a BTreeMap<Binding, Vec<String>>,
    /// Live objects that topo never touches: exclusive, auto-delete, server-named, a plugin's, topo's own.
    pub untouchable: &'a BTreeSet<ObjectId>,
    /// Exchanges that the broker stores without `auto_delete`, after an import up to 4.2. It refuses every declare of them.
    pub lacks_auto_delete: &'a BTreeSet<ExchangeName>,
    /// How the broker behaves.
    pub profile: &'a BrokerProfile,
}

impl PlanContext<'_> {
    pub(super) fn address(&self, id: &ObjectId) -> Address {
        Address::of(&self.current.vhost, id)
    }

    /// The operator policies that the vhost has now.
    pub(super) fn operator_policies(&self) -> BTreeMap<PolicyName, Policy> {
        self.current.operator_policies()
    }

    /// The operator policies once all that are created or changed are written; those that are deleted still exist.
    pub(super) fn operator_policies_written(&self) -> BTreeMap<PolicyName, Policy> {
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

    /// Whether topo leaves it alone, whatever the flags: it is such an object itself, or bound to one.
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

    /// Whether the broker has a binding that no request of the management API deletes: it has no key for it.
    pub(super) fn is_undeletable(&self, id: &ObjectId) -> bool {
        match id {
            ObjectId::Binding(binding) => self.properties_keys.get(binding).is_some_and(Vec::is_empty),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Queue(_)
            | ObjectId::Record(_) => false,
        }
    }

    /// What stands against making this binding, between its ends as they are desired, or else as they are.
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

    /// A change with nothing but its ends.
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
