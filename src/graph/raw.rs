//! Converts a topology into boxes and arrows, with one box for each exchange and queue.

use super::parts;
use super::parts::{Arrow, ArrowKind, DeadLetters, Kind, Label, Mark, Node, VhostGraph};
use crate::model::units::duration;
use crate::model::{
    ArgumentValue, ExchangeName, Family, ObjectId, Queue, QueueName, QueueType, Reach, Strategy, VhostName,
};
use crate::plan::{Desired, PlannedChange, Source};
use crate::rabbitmq::routing::{Arrivals, Fate};
use crate::rabbitmq::{
    BrokerProfile, EffectiveSettings, Governed, Policies, Routing, effective::effective_alternate, predeclared_type,
    routing::DeadLettering,
};
use std::collections::{BTreeMap, BTreeSet};

/// Boxes by object, and the arrows between them.
#[derive(Clone, Debug, Default)]
pub(super) struct Raw {
    pub(super) nodes: BTreeMap<ObjectId, Node>,
    pub(super) links: BTreeSet<Link>,
    /// The effective settings of each queue and exchange. Policies are not drawn, but an object is marked if one of its
    /// effective settings changes.
    pub(super) effective: BTreeMap<ObjectId, BTreeMap<String, ArgumentValue>>,
}

/// A message path from one object to another object, or to itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    pub(super) from: ObjectId,
    pub(super) to: ObjectId,
    pub(super) kind: ArrowKind,
    pub(super) label: Option<String>,
    pub(super) mark: Option<Mark>,
}

/// Maps each generated retry object to the queue whose retries it serves.
pub(super) fn members(desired: &Desired) -> BTreeMap<&ObjectId, &QueueName> {
    desired.scope.families.iter().flat_map(|family| family.members.iter().map(|id| (id, &family.queue))).collect()
}

impl Raw {
    /// Converts the desired topology.
    pub(super) fn of(desired: &Desired, profile: &BrokerProfile) -> Self {
        Self::draw(Drawing::of(desired, profile))
    }

    /// Converts the topology before a plan. The destinations of messages that a deleted queue dead-letters are unknown,
    /// because unmanaged queues may receive these messages.
    pub(super) fn before(before: &Desired, after: &Desired, profile: &BrokerProfile) -> Self {
        let mut drawing = Drawing::of(before, profile);
        drawing.fates.retain(|queue, _| after.topology.queues.contains_key(*queue));
        Self::draw(drawing)
    }

    fn draw(mut drawing: Drawing<'_>) -> Self {
        drawing.add_exchanges();
        drawing.add_queues();
        drawing.add_bindings();
        drawing.add_external_objects();
        drawing.raw
    }

    /// Merges the graphs before and after a plan, and marks the differences.
    pub(super) fn merge(before: &Self, after: Self, changes: &[PlannedChange]) -> Self {
        let is_new = |link: &&Link| !before.links.contains(*link);
        let deleted =
            before.links.difference(&after.links).map(|link| Link { mark: Some(Mark::Deleted), ..link.clone() });
        let new: BTreeSet<Link> = after.links.iter().filter(is_new).cloned().collect();
        let kept = after.links.difference(&new).cloned();
        let created = new.iter().map(|link| Link { mark: Some(Mark::Created), ..link.clone() });
        let links = deleted.chain(kept).chain(created).collect();
        // A deleted object that is still referenced is drawn as it was before the plan.
        let is_deleted = |id: &ObjectId| before.effective.contains_key(id) && !after.effective.contains_key(id);
        let mut nodes = before.nodes.clone();
        nodes.extend(after.nodes.into_iter().filter(|(id, _)| !is_deleted(id)));
        for (id, node) in &mut nodes {
            if let (Some(before_settings), Some(effective)) = (before.effective.get(id), after.effective.get(id)) {
                node.mark = (before_settings != effective).then_some(Mark::Changed);
            }
        }
        for change in changes {
            if let Some(node) = change.id().and_then(|id| nodes.get_mut(&id)) {
                node.mark = Some(Mark::of(change.kind));
            }
        }
        Self { nodes, links, effective: after.effective }
    }

    /// Keeps the nodes that the filter selects, and the links between these nodes.
    pub(super) fn retain(mut self, is_drawn: impl Fn(&ObjectId) -> bool) -> Self {
        self.nodes.retain(|id, _| is_drawn(id));
        self.links.retain(|link| is_drawn(&link.from) && is_drawn(&link.to));
        self
    }

    /// Returns the objects that each object is linked to, in either direction.
    pub(super) fn neighbors(&self) -> BTreeMap<&ObjectId, BTreeSet<&ObjectId>> {
        let mut neighbors: BTreeMap<&ObjectId, BTreeSet<&ObjectId>> = BTreeMap::new();
        for link in self.links.iter().filter(|link| link.from != link.to) {
            neighbors.entry(&link.from).or_default().insert(&link.to);
            neighbors.entry(&link.to).or_default().insert(&link.from);
        }
        neighbors
    }

    /// Converts the links into arrows. There is at most one arrow of each kind in each direction between two
    /// boxes.
    pub(super) fn into_graph(mut self, vhost: VhostName) -> VhostGraph {
        // A link from a box to itself becomes a note.
        for link in self.links.iter().filter(|link| link.from == link.to) {
            let note = match link.kind {
                ArrowKind::Binding | ArrowKind::Alternate => "bound to itself",
                ArrowKind::Retry => "returns",
                ArrowKind::DeadLetter => "dead-lettered messages return",
            };
            if let Some(node) = self.nodes.get_mut(&link.from).filter(|node| !node.notes.iter().any(|it| it == note)) {
                node.notes.push(note.to_owned());
            }
        }
        let indexes: BTreeMap<&ObjectId, usize> = self.nodes.keys().zip(0..).collect();
        let mut arrows: BTreeMap<(usize, usize, ArrowKind), Vec<&Link>> = BTreeMap::new();
        for link in self.links.iter().filter(|link| link.from != link.to) {
            if let (Some(from), Some(to)) = (indexes.get(&link.from), indexes.get(&link.to)) {
                arrows.entry((*from, *to, link.kind)).or_default().push(link);
            }
        }
        let arrow = |((from, to, kind), links): ((usize, usize, ArrowKind), Vec<&Link>)| {
            let mark = Mark::join(links.iter().map(|link| link.mark));
            // If other bindings on the arrow have conditions, a binding without a condition also has a label, so that
            // it is visible.
            let has_condition = kind == ArrowKind::Binding && links.iter().any(|link| link.label.is_some());
            let all = has_condition.then_some(parts::EVERY_MESSAGE);
            let text = |link: &Link| link.label.clone().or_else(|| all.map(str::to_owned));
            let labels = links.iter().filter_map(|link| Some(Label { text: text(link)?, mark: link.mark }));
            // An empty label would be invalid in Mermaid.
            let labels = labels.filter(|label| !label.text.is_empty());
            Arrow { from, to, kind, mark, labels: labels.collect::<BTreeSet<_>>().into_iter().collect() }
        };
        let arrows = arrows.into_iter().map(arrow).collect();
        VhostGraph { vhost, mark: None, arrows, nodes: self.nodes.into_values().collect() }
    }
}

/// A graph under construction.
struct Drawing<'a> {
    desired: &'a Desired,
    policies: Policies<'a>,
    /// The effective settings of the queues that have not been drawn yet.
    settings: BTreeMap<&'a QueueName, EffectiveSettings>,
    /// The destinations of dead-lettered messages, by queue.
    fates: BTreeMap<&'a QueueName, Fate>,
    /// The queue of each object that is generated for retries.
    families: BTreeMap<&'a ObjectId, &'a QueueName>,
    sources: BTreeMap<&'a ObjectId, &'a Source>,
    raw: Raw,
}

impl<'a> Drawing<'a> {
    fn of(desired: &'a Desired, profile: &'a BrokerProfile) -> Self {
        let scope = &desired.scope;
        let operator_policies = desired.topology.operator_policies();
        let routing = Routing::new(&desired.topology, &operator_policies, &scope.external, profile)
            .with_external_bindings(&scope.external_dead_letter_queues);
        let arrivals = Arrivals::new(&routing, &desired.scope.families);
        let queues = &desired.topology.queues;
        Self {
            desired,
            fates: queues.keys().filter_map(|name| Some((name, routing.fate(name, &arrivals)?))).collect(),
            settings: queues.iter().map(|(name, queue)| (name, routing.settings_of(name, queue))).collect(),
            policies: Policies::new(&desired.topology.policies, profile.version),
            families: members(desired),
            sources: desired.sources.iter().map(|(id, source)| (id, source)).collect(),
            raw: Raw::default(),
        }
    }

    fn add_node(&mut self, id: ObjectId, kind: Kind, words: String, notes: Vec<String>) {
        let at = self.sources.get(&id).map(|source| format!("{}:{}", source.file, source.line));
        let name = id.name().unwrap_or_default().to_owned();
        let (mark, retries, stacks, is_copy) = (None, None, Vec::new(), false);
        let fate = match &id {
            ObjectId::Queue(queue) => self.fates.get(queue).cloned(),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => None,
        };
        let dead_letters = fate.map(DeadLetters::from);
        self.raw.nodes.insert(id, Node { name, kind, words, notes, at, mark, retries, dead_letters, stacks, is_copy });
    }

    fn add_link(&mut self, from: &ObjectId, to: &ObjectId, kind: ArrowKind, label: Option<String>) {
        let family = |id: &ObjectId| self.families.get(id).map(|queue| ObjectId::Queue((*queue).clone()));
        let (from_family, to_family) = (family(from), family(to));
        let is_inside = match (&from_family, &to_family) {
            (Some(one), Some(other)) => one == other,
            (Some(one), None) => one == to,
            (None, Some(other)) => other == from,
            (None, None) => false,
        };
        let kind = match kind {
            ArrowKind::Binding | ArrowKind::DeadLetter if is_inside => ArrowKind::Retry,
            // A binding from a generated exchange to an object outside the family routes only messages that are not
            // retried again.
            ArrowKind::Binding if from_family.is_some() => ArrowKind::DeadLetter,
            ArrowKind::Binding | ArrowKind::DeadLetter | ArrowKind::Alternate | ArrowKind::Retry => kind,
        };
        // No queue receives these messages, so an arrow would be wrong. The queue has a note instead.
        let queue = from_family.as_ref().unwrap_or(from);
        if kind == ArrowKind::DeadLetter && matches!(queue, ObjectId::Queue(queue) if self.drops(queue)) {
            return;
        }
        self.raw.links.insert(Link { from: from.clone(), to: to.clone(), kind, label, mark: None });
    }

    /// Returns true if no dead-lettered message of the queue reaches any queue.
    fn drops(&self, queue: &QueueName) -> bool {
        self.fates.get(queue).is_some_and(|fate| fate.reach == Reach::Never)
    }

    fn add_exchanges(&mut self) {
        let topology = &self.desired.topology;
        for (name, exchange) in &topology.exchanges {
            let id = ObjectId::Exchange(name.clone());
            let governing = self.policies.governing(name.as_str(), Governed::Exchange).likely();
            let alternate = effective_alternate(exchange, governing);
            let effective = alternate.iter().map(|it| ("alternate-exchange".to_owned(), it.value.clone()));
            self.raw.effective.insert(id.clone(), effective.collect());
            if let Some(alternate) = alternate.as_ref().and_then(|it| it.value.as_text()) {
                let to = ExchangeName::from(alternate);
                // A generated exchange references an alternate exchange that exists only for ladders. Without a ladder,
                // the broker ignores the reference.
                if topology.exchanges.contains_key(&to) || !self.families.contains_key(&id) {
                    self.add_link(&id, &ObjectId::Exchange(to), ArrowKind::Alternate, None);
                }
            }
            self.add_node(id, Kind::Exchange, format!("{} exchange", exchange.kind), Vec::new());
        }
    }

    fn add_queues(&mut self) {
        let families: BTreeMap<&QueueName, &Family> =
            self.desired.scope.families.iter().map(|family| (&family.queue, family)).collect();
        for (name, queue) in &self.desired.topology.queues {
            let id = ObjectId::Queue(name.clone());
            let Some(settings) = self.settings.remove(name) else { continue };
            let effective = settings.iter().map(|(key, it)| (key.to_owned(), it.value.clone()));
            self.raw.effective.insert(id.clone(), effective.collect());
            if let Some(DeadLettering { exchange, routing_key }) = settings.dead_lettering() {
                let (to, label) = match (exchange.as_str(), routing_key.as_deref()) {
                    // The default exchange routes a message to the queue whose name is the routing key.
                    ("", Some(key)) => (ObjectId::Queue(QueueName::from(key)), None),
                    (exchange, key) => (ObjectId::Exchange(ExchangeName::from(exchange)), key.map(parts::of_key)),
                };
                // The dead-letter routing key of a tier contains the number of the retry, which does not help readers.
                let label = label.filter(|_| !self.families.contains_key(&id));
                self.add_link(&id, &to, ArrowKind::DeadLetter, label);
            }
            let mut notes: Vec<String> = families.get(name).and_then(|family| retry_note(family)).into_iter().collect();
            let ttl = settings.integer("message-ttl").filter(|ttl| *ttl >= 0);
            // With a TTL of 0, a message expires unless the queue can deliver it immediately.
            notes.extend(ttl.map(|ttl| format!("ttl {}", duration(ttl).unwrap_or_else(|| "0".to_owned()))));
            notes.extend(self.drops(name).then(|| "dead-lettered messages are unroutable".to_owned()));
            let (kind, words) = self.kind(&id, queue);
            self.add_node(id, kind, words, notes);
        }
    }

    fn kind(&self, id: &ObjectId, queue: &Queue) -> (Kind, String) {
        let type_name = queue.type_name();
        let is_dead_letter_queue = self.sources.get(id).is_some_and(|source| source.part_of.is_some());
        match queue.queue_type() {
            _ if self.families.contains_key(id) => (Kind::Tier, format!("{type_name} tier")),
            _ if is_dead_letter_queue => (Kind::DeadLetterQueue, format!("{type_name} dead-letter queue")),
            Some(QueueType::Stream) => (Kind::Stream, type_name.to_owned()),
            Some(QueueType::Classic | QueueType::Quorum) | None => (Kind::Queue, format!("{type_name} queue")),
        }
    }

    fn add_bindings(&mut self) {
        for binding in &self.desired.topology.bindings {
            let kind = self.desired.topology.exchanges.get(&binding.source).map(|exchange| exchange.kind.as_str());
            let label = parts::of_binding(binding, kind.or_else(|| predeclared_type(&binding.source)));
            let source = ObjectId::Exchange(binding.source.clone());
            self.add_link(&source, &binding.destination.id(), ArrowKind::Binding, label);
        }
        for (queue, exchange) in &self.desired.scope.external_dead_letter_queues {
            let (source, queue) = (ObjectId::Exchange(exchange.clone()), ObjectId::Queue(queue.clone()));
            self.add_link(&source, &queue, ArrowKind::Binding, None);
        }
    }

    /// Adds nodes for the objects that the spec does not define: external objects and objects that are only referenced.
    fn add_external_objects(&mut self) {
        let linked: BTreeSet<ObjectId> =
            self.raw.links.iter().flat_map(|link| [link.from.clone(), link.to.clone()]).collect();
        let external = &self.desired.scope.external;
        for id in external.iter().cloned().chain(linked) {
            if self.raw.nodes.contains_key(&id) {
                continue;
            }
            let status = if external.contains(&id) { "external" } else { "unmanaged" };
            let (kind, words) = match &id {
                ObjectId::Exchange(name) if name.as_str().is_empty() => {
                    (Kind::ForeignExchange, "routing key = queue name".to_owned())
                }
                ObjectId::Exchange(name) => match predeclared_type(name) {
                    Some(type_name) => (Kind::ForeignExchange, format!("predeclared {type_name} exchange")),
                    None => (Kind::ForeignExchange, format!("{status} exchange")),
                },
                ObjectId::Queue(_) => (Kind::ForeignQueue, format!("{status} queue")),
                ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => continue,
            };
            let is_default = id.name() == Some("");
            self.add_node(id.clone(), kind, words, Vec::new());
            if let Some(node) = self.raw.nodes.get_mut(&id).filter(|_| is_default) {
                node.name = "default exchange".to_owned();
            }
        }
    }
}

/// Returns the note for retries without generated objects, or `None` if topo generates objects for the retries.
fn retry_note(family: &Family) -> Option<String> {
    let counted = |adjective: &str| match family.retries {
        1 => format!("1 {adjective}retry"),
        many => format!("{many} {adjective}retries"),
    };
    let times = counted("");
    match (family.strategy, family.members.is_empty()) {
        (_, false) => None,
        (Strategy::Redeliver, true) => Some(counted("immediate ")),
        (Strategy::Republish, true) => Some(format!("{times} at the back of the queue")),
        (Strategy::Delayed | Strategy::Ladder, true) => {
            let waits = family.path.rsplit_once(" → ").map_or(family.path.as_str(), |(waits, _)| waits);
            Some(format!("{times}: {waits}"))
        }
    }
}
