//! What rules look at: a spec, and what several rules ask of it, worked out once.

use super::place::{self, Place};
use super::ruled::{self, Ruled};
use super::rules;
use super::settled::{self, Settled};
use crate::behaviour::routing::{Arrivals, DeadLettering, Keys};
use crate::behaviour::{Dialect, Ends, Refusal, Routing, refusals};
use crate::expand::Expansion;
use crate::model::{Binding, Destination, Object, ObjectId, Queue, QueueName, QueueType, Topology};
use crate::spec::{PolicySpec, Spec};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

static NOTHING: BTreeSet<ObjectId> = BTreeSet::new();

/// The spec of one vhost, what it stands for, and the broker that it is for.
pub struct Subject<'a> {
    /// What was written.
    pub spec: &'a Spec,
    /// What that stands for.
    pub expansion: &'a Expansion,
    /// How the broker behaves: the one that was asked, or one of the assumed version.
    pub dialect: &'a Dialect,
    live: Option<&'a Topology>,
    /// Whether a queue that is not known can make a finding untrue.
    lacks_passing: bool,
    // A dozen rules ask each of these about every queue: without them most of `validate` is the same answers again.
    settled: OnceCell<Vec<Settled<'a>>>,
    ruled: OnceCell<Vec<Ruled<'a>>>,
    routing: OnceCell<Routing<'a>>,
    arrivals: OnceCell<Arrivals>,
    refusals: OnceCell<BTreeMap<&'a QueueName, Vec<Refusal>>>,
}

impl<'a> Subject<'a> {
    /// What was written, what that stands for, and how the broker behaves.
    pub fn new(spec: &'a Spec, expansion: &'a Expansion, dialect: &'a Dialect) -> Self {
        let (settled, ruled) = (OnceCell::new(), OnceCell::new());
        let (routing, arrivals) = (OnceCell::new(), OnceCell::new());
        let refusals = OnceCell::new();
        Self { spec, expansion, dialect, live: None, lacks_passing: false, settled, ruled, routing, arrivals, refusals }
    }

    /// The same in a vhost that holds more than the spec: messages go where the broker sends them, and not only where the
    /// spec says. `live` holds the objects of the spec, too. `has_passing` is false for a definitions file: it lacks exclusive
    /// and transient queues.
    pub fn amid(self, live: &'a Topology, has_passing: bool) -> Self {
        Self { live: Some(live), lacks_passing: !has_passing, ..self }
    }

    /// Whether a rule says of all queues what a queue that is not known can make untrue.
    pub(super) fn is_unsure(&self, rule: &str) -> bool {
        self.lacks_passing && rules::OF_ALL_QUEUES.contains(&rule)
    }

    /// The queues, generated ones among them, with what holds for them. Left out are those of which that is not certain
    /// (policies of one priority, a pattern that cannot be read here): nothing should be said of them.
    pub(super) fn settled(&self) -> &[Settled<'a>] {
        self.settled.get_or_init(|| settled::settled(self))
    }

    /// Every queue and exchange, generated ones among them.
    pub(super) fn ruled(&self) -> &[Ruled<'a>] {
        self.ruled.get_or_init(|| ruled::ruled(self))
    }

    /// Where messages go.
    pub(super) fn routing(&self) -> &Routing<'a> {
        let external = &self.expansion.scope.external;
        let is_live = |live: &Topology, id: &ObjectId| match id {
            ObjectId::Exchange(name) if name.is_predeclared() => true,
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Queue(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_) => live.object(id).is_some(),
        };
        let (topology, external) = match self.live {
            // The bindings of live external objects are known; a missing one is not judged.
            Some(live) if external.iter().all(|id| is_live(live, id)) => (live, &NOTHING),
            Some(live) => (live, external),
            None => (&self.expansion.topology, external),
        };
        self.routing.get_or_init(|| Routing::new(topology, [], external, self.dialect))
    }

    /// The topology of the spec, and the broker's, if there is one.
    pub(super) fn topologies(&self) -> impl Iterator<Item = &'a Topology> {
        std::iter::once(&self.expansion.topology).chain(self.live)
    }

    /// Bindings that are live, and that the spec does not say.
    pub(super) fn other_bindings(&self) -> impl Iterator<Item = &'a Binding> {
        let said = &self.expansion.topology.bindings;
        self.live.into_iter().flat_map(|live| &live.bindings).filter(|binding| !said.contains(*binding))
    }

    /// Why the broker refuses a queue, in the order in which it looks.
    pub(super) fn refusals_of(&self, queue: &QueueName) -> &[Refusal] {
        let refused = |(name, queue): (&'a QueueName, &Queue)| {
            let found = refusals(&Object::Queue(name.clone(), queue.clone()), self.dialect);
            (!found.is_empty()).then_some((name, found))
        };
        let all = || self.expansion.topology.queues.iter().filter_map(refused).collect();
        self.refusals.get_or_init(all).get(queue).map_or(&[], Vec::as_slice)
    }

    /// The messages that come to each queue.
    pub(super) fn arrivals(&self) -> &Arrivals {
        self.arrivals.get_or_init(|| Arrivals::new(self.routing(), &self.expansion.scope.families))
    }

    /// With which keys messages come to a queue.
    pub(super) fn keys_at(&self, queue: &QueueName) -> &BTreeSet<Keys> {
        self.arrivals().at_queue(queue)
    }

    /// With which keys a queue dead-letters messages; none where no binding brings any, and the queue sets no key.
    pub(super) fn keys_of_dead_letters(&self, queue: &QueueName, to: &DeadLettering) -> BTreeSet<Keys> {
        if self.keys_at(queue).is_empty() && to.routing_key.is_none() {
            return BTreeSet::new();
        }
        self.arrivals().dead_lettered(queue, to)
    }

    /// All that would be declared, generated objects among them, but for queues and bindings; copies, so one by one.
    pub(super) fn objects(&self) -> impl Iterator<Item = Object> {
        let topology = &self.expansion.topology;
        let vhost = topology.settings.iter().map(|settings| Object::Vhost(settings.clone()));
        let exchanges = topology.exchanges.iter().map(|(name, it)| Object::Exchange(name.clone(), it.clone()));
        let policies = topology.policies.iter().map(|(name, it)| Object::Policy(name.clone(), it.clone()));
        vhost.chain(exchanges).chain(policies)
    }

    /// What the spec says of both ends of a binding; of external ones it says nothing.
    pub(super) fn ends(&self, binding: &Binding) -> Ends<'a> {
        let topology = &self.expansion.topology;
        let queue = match &binding.destination {
            Destination::Queue(name) => topology.queues.get(name),
            Destination::Exchange(_) => None,
        };
        let source = topology.exchanges.get(&binding.source);
        Ends { source: source.map(|exchange| exchange.kind.as_str()), queue }
    }

    /// The queues that would be declared, dead-letter queues among them.
    pub(super) fn queues(&self) -> impl Iterator<Item = (ObjectId, &'a Queue)> {
        let by_id = |(name, queue): (&QueueName, &'a Queue)| (ObjectId::Queue(name.clone()), queue);
        self.expansion.topology.queues.iter().map(by_id)
    }

    /// Those of one type.
    pub(super) fn queues_of(&self, queue_type: QueueType) -> impl Iterator<Item = (ObjectId, &'a Queue)> {
        self.queues().filter(move |(_, queue)| queue.queue_type() == Some(queue_type))
    }

    /// The policies that are written in the spec; those of dead-letter wiring only repeat them.
    pub(super) fn policies(&self) -> impl Iterator<Item = (ObjectId, &'a PolicySpec)> {
        self.spec.policies.iter().map(|(name, policy)| (ObjectId::Policy(name.clone()), policy))
    }

    /// Whether the broker is of that version or a later one.
    pub(super) fn is_at_least(&self, major: u16, minor: u16) -> bool {
        self.dialect.version.is_at_least(major, minor)
    }

    /// Where a setting of an object is written.
    pub(super) fn place(&self, object: &ObjectId, setting: &str) -> Place {
        place::place(self, object, setting)
    }
}
