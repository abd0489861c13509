//! Defines the input of lint rules: a spec, and derived data that several rules need. The derived data is computed
//! once.

use super::effective::{self, EffectiveQueue};
use super::policy_targets::{self, PolicyTarget};
use super::position::{self, Position};
use crate::expand::Expansion;
use crate::model::{Binding, Destination, ExchangeName, Object, ObjectId, Queue, QueueName, QueueType, Topology};
use crate::rabbitmq::routing::{Arrivals, DeadLettering, Keys};
use crate::rabbitmq::{BrokerProfile, Ends, Refusal, Routing, refusals};
use crate::spec::{PolicySpec, Spec};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

static NOTHING: BTreeSet<ObjectId> = BTreeSet::new();
static NO_EXTERNAL_BINDINGS: BTreeMap<QueueName, ExchangeName> = BTreeMap::new();

/// The spec of one vhost, its expansion, and the broker profile.
pub struct Subject<'a> {
    /// The spec.
    pub spec: &'a Spec,
    /// The expansion of the spec.
    pub expansion: &'a Expansion,
    /// The profile of the connected broker, or of the assumed version.
    pub profile: &'a BrokerProfile,
    live: Option<&'a Topology>,
    /// True if there may be queues that `live` does not contain. In that case, findings might be wrong.
    lacks_transient_queues: bool,
    // A dozen rules need the following values for every queue. Without this cache, `topo validate` would spend most of
    // its time recomputing them.
    effective_queues: OnceCell<Vec<EffectiveQueue<'a>>>,
    policy_targets: OnceCell<Vec<PolicyTarget<'a>>>,
    routing: OnceCell<Routing<'a>>,
    arrivals: OnceCell<Arrivals>,
    refusals: OnceCell<BTreeMap<&'a QueueName, Vec<Refusal>>>,
}

impl<'a> Subject<'a> {
    /// Creates a subject from a spec, its expansion and a broker profile.
    pub fn new(spec: &'a Spec, expansion: &'a Expansion, profile: &'a BrokerProfile) -> Self {
        let (effective_queues, policy_targets) = (OnceCell::new(), OnceCell::new());
        let (routing, arrivals) = (OnceCell::new(), OnceCell::new());
        let refusals = OnceCell::new();
        Self {
            spec,
            expansion,
            profile,
            live: None,
            lacks_transient_queues: false,
            effective_queues,
            policy_targets,
            routing,
            arrivals,
            refusals,
        }
    }

    /// Adds the live topology of the vhost, so that the simulated routing matches the broker. `live` contains the
    /// objects in the spec and all other objects in the vhost. `includes_transient_queues` is false for a definitions
    /// file, which does not contain exclusive or transient queues.
    pub fn with_live_topology(self, live: &'a Topology, includes_transient_queues: bool) -> Self {
        Self { live: Some(live), lacks_transient_queues: !includes_transient_queues, ..self }
    }

    /// Returns true if there may be queues that the live topology does not contain. In that case, findings might be
    /// wrong.
    pub(super) fn lacks_transient_queues(&self) -> bool {
        self.lacks_transient_queues
    }

    /// Returns the queue whose retries require an object; `None` if the object exists for a different reason.
    pub(super) fn retry_owner(&self, id: &ObjectId) -> Option<&'a QueueName> {
        self.expansion.retry_owner(id)
    }

    /// Returns the queues, including generated queues, with their effective settings.
    ///
    /// Omits queues with uncertain settings, because no rule should report them. The settings are uncertain if several
    /// matching policies have the highest priority, or if topo cannot evaluate a pattern.
    pub(super) fn effective_queues(&self) -> &[EffectiveQueue<'a>] {
        self.effective_queues.get_or_init(|| {
            effective::effective_queues(self.spec, self.expansion, self.routing().policies(), self.profile)
        })
    }

    /// Returns every queue and exchange, including generated objects, with the declared policies that match it.
    pub(super) fn policy_targets(&self) -> &[PolicyTarget<'a>] {
        self.policy_targets
            .get_or_init(|| policy_targets::policy_targets(self.spec, self.expansion, self.routing().policies()))
    }

    /// Returns the simulated routing of the live topology, or of the expansion if the live topology is not known.
    pub(super) fn routing(&self) -> &Routing<'a> {
        let external = &self.expansion.scope.external;
        let is_live = |live: &Topology, id: &ObjectId| match id {
            ObjectId::Exchange(name) if name.is_predeclared() => true,
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Queue(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => live.object(id).is_some(),
        };
        let external_bindings = &self.expansion.scope.external_dead_letter_queues;
        let (topology, external, external_bindings) = match self.live {
            // If all external objects exist, `live` contains their bindings. Otherwise, some bindings are unknown.
            Some(live) if external.iter().all(|id| is_live(live, id)) => (live, &NOTHING, &NO_EXTERNAL_BINDINGS),
            Some(live) => (live, external, external_bindings),
            None => (&self.expansion.topology, external, external_bindings),
        };
        self.routing.get_or_init(|| {
            Routing::new(topology, [], external, self.profile).with_external_bindings(external_bindings)
        })
    }

    /// Returns the topology of the expansion, and the live topology if it is known.
    pub(super) fn topologies(&self) -> impl Iterator<Item = &'a Topology> {
        std::iter::once(&self.expansion.topology).chain(self.live)
    }

    /// Returns the bindings in the live topology that the expansion does not contain; empty without a live topology.
    pub(super) fn unmanaged_bindings(&self) -> impl Iterator<Item = &'a Binding> {
        let declared = &self.expansion.topology.bindings;
        self.live.into_iter().flat_map(|live| &live.bindings).filter(|binding| !declared.contains(*binding))
    }

    /// Returns the predicted refusals of a queue's declaration, in the order of the broker's checks.
    pub(super) fn refusals_of(&self, queue: &QueueName) -> &[Refusal] {
        let refusals_by_name = |(name, queue): (&'a QueueName, &Queue)| {
            let found = refusals(&Object::Queue(name.clone(), queue.clone()), self.profile);
            (!found.is_empty()).then_some((name, found))
        };
        let all = || self.expansion.topology.queues.iter().filter_map(refusals_by_name).collect();
        self.refusals.get_or_init(all).get(queue).map_or(&[], Vec::as_slice)
    }

    /// Returns the routing keys with which messages reach each queue.
    pub(super) fn arrivals(&self) -> &Arrivals {
        self.arrivals.get_or_init(|| Arrivals::new(self.routing(), &self.expansion.scope.families))
    }

    /// Returns the routing keys with which messages reach a queue.
    pub(super) fn keys_at(&self, queue: &QueueName) -> &BTreeSet<Keys> {
        self.arrivals().keys_at_queue(queue)
    }

    /// Returns the routing keys of the messages that a queue dead-letters. Empty if no messages are known to reach the
    /// queue and the queue sets no dead-letter routing key.
    pub(super) fn dead_lettered_keys(&self, queue: &QueueName, to: &DeadLettering) -> BTreeSet<Keys> {
        if self.keys_at(queue).is_empty() && to.routing_key.is_none() {
            return BTreeSet::new();
        }
        self.arrivals().dead_lettered_keys(queue, to)
    }

    /// Returns copies of all objects in the expansion, including generated objects, except queues and bindings.
    pub(super) fn objects(&self) -> impl Iterator<Item = Object> {
        let topology = &self.expansion.topology;
        let vhost = topology.settings.iter().map(|settings| Object::Vhost(settings.clone()));
        let exchanges = topology.exchanges.iter().map(|(name, it)| Object::Exchange(name.clone(), it.clone()));
        let policies = topology.policies.iter().map(|(name, it)| Object::Policy(name.clone(), it.clone()));
        vhost.chain(exchanges).chain(policies).chain(topology.records.values().cloned().map(Object::Record))
    }

    /// Returns the type of a binding's source exchange, and the destination queue. The type is `None` if the expansion
    /// does not declare the exchange. The queue is `None` if the expansion does not declare the queue, or if the
    /// destination is an exchange.
    pub(super) fn ends(&self, binding: &Binding) -> Ends<'a> {
        let topology = &self.expansion.topology;
        let queue = match &binding.destination {
            Destination::Queue(name) => topology.queues.get(name),
            Destination::Exchange(_) => None,
        };
        let source = topology.exchanges.get(&binding.source);
        Ends { source: source.map(|exchange| exchange.kind.as_str()), queue }
    }

    /// Returns all queues in the expansion, including dead-letter queues and generated queues.
    pub(super) fn queues(&self) -> impl Iterator<Item = (ObjectId, &'a Queue)> {
        let by_id = |(name, queue): (&QueueName, &'a Queue)| (ObjectId::Queue(name.clone()), queue);
        self.expansion.topology.queues.iter().map(by_id)
    }

    /// Returns the queues of one type.
    pub(super) fn queues_of(&self, queue_type: QueueType) -> impl Iterator<Item = (ObjectId, &'a Queue)> {
        self.queues().filter(move |(_, queue)| queue.queue_type() == Some(queue_type))
    }

    /// Returns the policies that the spec declares. Omits generated dead-letter policies, which copy the keys of a
    /// declared policy.
    pub(super) fn policies(&self) -> impl Iterator<Item = (ObjectId, &'a PolicySpec)> {
        self.spec.policies.iter().map(|(name, policy)| (ObjectId::Policy(name.clone()), policy))
    }

    /// Returns true if the broker runs this version or a later version.
    pub(super) fn is_at_least(&self, major: u16, minor: u16) -> bool {
        self.profile.version.is_at_least(major, minor)
    }

    /// Returns the position of an object's setting.
    pub(super) fn position(&self, object: &ObjectId, setting: &str) -> Position {
        position::position(self.spec, self.expansion, object, setting)
    }
}
