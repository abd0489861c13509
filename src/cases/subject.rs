//! Combines the topology under test with its routing and with the contracts of its queues. The topology is that of the
//! spec, or another topology.

use crate::contract::{Contract, contracts};
use crate::expand::Expansion;
use crate::model::{Arguments, Destination, ExchangeName, ObjectId, Policy, PolicyName, QueueName, Scope, Topology};
use crate::rabbitmq::BrokerProfile;
use crate::rabbitmq::routing::Routing;
use crate::simulation::{Publication, Simulation};
use crate::spec::{Location, QueueSpec, Setting, Spec};
use std::collections::{BTreeMap, BTreeSet};

/// A topology under test other than the topology of the spec.
#[derive(Clone, Debug)]
pub struct OtherTopology {
    topology: Topology,
    operator_policies: BTreeMap<PolicyName, Policy>,
    external: BTreeSet<ObjectId>,
    external_dead_letter_queues: BTreeMap<QueueName, ExchangeName>,
    is_complete: bool,
}

impl OtherTopology {
    /// Creates a topology that contains all objects of the vhost. If `lacks_internal` is true, the topology lacks
    /// internal exchanges. In that case, a missing exchange to which an object refers counts as external.
    pub fn complete(topology: Topology, lacks_internal: bool) -> Self {
        let external = if lacks_internal { undeclared_exchanges(&topology) } else { BTreeSet::new() };
        Self { is_complete: true, external, ..Self::of_spec(topology, Scope::default()) }
    }

    /// Returns true if the topology contains all objects of the vhost.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Creates the topology of another spec. It does not contain the external objects in `scope`.
    pub fn of_spec(topology: Topology, scope: Scope) -> Self {
        let Scope { external, external_dead_letter_queues, .. } = scope;
        let operator_policies = topology.operator_policies();
        Self { topology, operator_policies, external, external_dead_letter_queues, is_complete: false }
    }
}

/// Returns the exchanges to which bindings, alternate exchanges and dead-letter settings refer, but which the topology
/// does not contain. Excludes predeclared exchanges.
fn undeclared_exchanges(topology: &Topology) -> BTreeSet<ObjectId> {
    let of_bindings = topology.bindings.iter().flat_map(|binding| {
        let destination = match &binding.destination {
            Destination::Exchange(name) => Some(name.clone()),
            Destination::Queue(_) => None,
        };
        destination.into_iter().chain([binding.source.clone()])
    });
    let of_arguments = |arguments: &Arguments| {
        let keys = ["alternate-exchange", "dead-letter-exchange", "x-dead-letter-exchange"];
        let names = keys.into_iter().filter_map(|key| arguments.get(key)?.as_text()).map(ExchangeName::new);
        names.collect::<Vec<_>>()
    };
    let operator_policies = topology.operator_policies();
    let exchanges = topology.exchanges.values().map(|exchange| &exchange.arguments);
    let queues = topology.queues.values().map(|queue| &queue.arguments);
    let policies = topology.policies.values().chain(operator_policies.values()).map(|policy| &policy.definition);
    let targets = exchanges.chain(queues).chain(policies).flat_map(of_arguments);
    let all =
        of_bindings.chain(targets).filter(|name| !topology.exchanges.contains_key(name) && !name.is_predeclared());
    all.filter(|name| !name.as_str().is_empty()).map(ObjectId::Exchange).collect()
}

/// The topology under test.
pub struct Subject<'a> {
    /// The spec.
    pub spec: &'a Spec,
    pub(super) expansion: &'a Expansion,
    pub(super) profile: &'a BrokerProfile,
    pub(super) routing: Routing<'a>,
    pub(super) contracts: BTreeMap<QueueName, Contract>,
    operator_policies: &'a BTreeMap<PolicyName, Policy>,
    /// True if the routing is not the routing of the spec.
    pub(super) is_other: bool,
}

impl<'a> Subject<'a> {
    /// Creates the subject from a spec and its expansion, with the operator policies from the expansion.
    pub fn new(
        (spec, expansion): (&'a Spec, &'a Expansion),
        operator_policies: &'a BTreeMap<PolicyName, Policy>,
        profile: &'a BrokerProfile,
    ) -> Self {
        let scope = &expansion.scope;
        let routing = Routing::new(&expansion.topology, operator_policies, &scope.external, profile)
            .with_external_bindings(&scope.external_dead_letter_queues);
        let contracts = contracts(spec, expansion, profile).queues;
        Self { spec, expansion, profile, routing, contracts, operator_policies, is_other: false }
    }

    /// Replaces the routing with the routing of another topology. The workers still follow the contracts of the spec.
    pub fn in_other(self, other: &'a OtherTopology) -> Self {
        let OtherTopology { topology, operator_policies, external, external_dead_letter_queues, is_complete } = other;
        let routing = Routing::new(topology, operator_policies, external, self.profile)
            .with_external_bindings(external_dead_letter_queues);
        let routing = if *is_complete { routing.complete() } else { routing };
        Self { routing, is_other: true, ..self }
    }

    /// Returns the routing of the topology.
    pub fn routing(&self) -> &Routing<'a> {
        &self.routing
    }

    /// Returns the contracts of the queues.
    pub fn contracts(&self) -> &BTreeMap<QueueName, Contract> {
        &self.contracts
    }

    /// Returns the simulation of the topology.
    pub fn simulation(&self) -> Simulation<'_, 'a> {
        Simulation::new(&self.routing, &self.contracts, self.profile)
    }

    /// Returns the routing of a changed topology with the same external objects.
    pub(super) fn routing_of<'b>(&'b self, topology: &'b Topology) -> Routing<'b> {
        let scope = &self.expansion.scope;
        Routing::new(topology, self.operator_policies, &scope.external, self.profile)
            .with_external_bindings(&scope.external_dead_letter_queues)
    }

    pub(super) fn is_external_queue(&self, queue: &QueueName) -> bool {
        self.expansion.scope.external.contains(&ObjectId::Queue(queue.clone()))
    }

    fn declared(&self, queue: &QueueName) -> Option<&'a QueueSpec> {
        let dead_letter_queue = || self.spec.dead_letter_queues.get(queue).map(|it| &it.queue);
        self.spec.queues.get(queue).or_else(dead_letter_queue)
    }

    /// Returns true if another topology is being tested, and neither this topology nor its external objects contain the
    /// queue.
    pub(super) fn lacks_queue(&self, queue: &QueueName) -> bool {
        self.is_other && !self.routing.has_queue(queue)
    }

    /// Returns the position of a queue in the spec; `None` if the spec does not declare the queue.
    pub(super) fn position(&self, queue: &QueueName) -> Option<Location> {
        self.declared(queue).map(|declared| declared.at)
    }

    /// Returns `maxRetries` for a queue that has retries. Returns `None` if another topology is being tested, because
    /// its retries may differ.
    pub(super) fn max_retries(&self, queue: &QueueName) -> Option<&'a Setting<u32>> {
        self.declared(queue).filter(|_| !self.is_other)?.retry.as_ref().map(|it| &it.max_retries)
    }

    /// Describes the binding that routes a message to a queue, with the binding's position in the spec; `None` if no
    /// binding on the message's route leads to the queue.
    pub(super) fn binding_to(&self, queue: &QueueName, published: &Publication) -> Option<(String, Option<Location>)> {
        let message = published.message();
        let taken = self.routing.taken(&published.exchange, &message);
        let binding = taken.bindings.into_iter().find(|it| it.destination == Destination::Queue(queue.clone()))?;
        let arguments: Vec<String> = binding.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let what = match (binding.routing_key.as_str(), arguments.is_empty()) {
            ("", false) => arguments.join(", "),
            (key, _) => format!("routing key `{key}`"),
        };
        let at = self.location(&ObjectId::Binding(binding.clone()));
        Some((format!("{queue} is bound to {} with {what}", binding.source), at))
    }

    /// Explains that no binding of the exchange matches a message, with the position of the exchange in the spec.
    /// Returns `None` if a binding matches. For the default exchange, the caller must know that the message does not
    /// reach the expected queue.
    pub(super) fn unmatched(&self, published: &Publication) -> Option<(String, Option<Location>)> {
        let exchange = &published.exchange;
        if exchange.as_str().is_empty() {
            return Some(("no routing key of the message is the name of the queue".to_owned(), None));
        }
        let taken = self.routing.taken(exchange, &published.message());
        let at = self.location(&ObjectId::Exchange(exchange.clone()));
        taken.bindings.is_empty().then(|| (format!("no binding of {exchange} matches the message"), at))
    }

    /// Returns the file that declares an object; `None` if unknown.
    pub(super) fn file_of(&self, id: &ObjectId) -> Option<&str> {
        self.expansion.origins.get(id).map(|origin| origin.file.as_str())
    }

    /// Returns the position of an object's origin in the spec; `None` if the object has no origin in the spec.
    pub(super) fn location(&self, id: &ObjectId) -> Option<Location> {
        let origin = self.expansion.origins.get(id)?;
        let file = self.spec.files.iter().position(|file| *file == origin.file)?;
        Some(Location { file, line: origin.line, column: origin.column, ..Location::start_of(file) })
    }
}
