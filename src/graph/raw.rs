//! A topology as boxes and arrows, one for each object, before anything is folded.

use super::{Arrow, ArrowKind, DeadLetters, Kind, Label, Mark, Node, VhostGraph, fold, label};
use crate::model::units::duration;
use crate::model::{
    ArgumentValue, ExchangeName, Family, ObjectId, Queue, QueueName, QueueType, Reach, Strategy, VhostName,
};
use crate::plan::{Desired, PlannedChange, Source};
use crate::rabbitmq::routing::{Arrivals, Fate};
use crate::rabbitmq::{
    BrokerProfile, Governed, Governors, Policies, Routing, effective::effective_alternate, predeclared_type,
    routing::DeadLettering,
};
use std::collections::{BTreeMap, BTreeSet};

/// Boxes by what they stand for, and the arrows between them.
#[derive(Clone, Debug, Default)]
pub(super) struct Raw {
    pub(super) nodes: BTreeMap<ObjectId, Node>,
    pub(super) links: BTreeSet<Link>,
    /// What holds for each queue and exchange, by argument or policy: a policy is not drawn, what it does is marked.
    pub(super) holds: BTreeMap<ObjectId, BTreeMap<String, ArgumentValue>>,
}

/// One way from one object to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    pub(super) from: ObjectId,
    pub(super) to: ObjectId,
    pub(super) kind: ArrowKind,
    pub(super) label: Option<String>,
    pub(super) mark: Option<Mark>,
}

impl Raw {
    /// Of what is desired.
    pub(super) fn of(desired: &Desired, profile: &BrokerProfile) -> Self {
        Self::drawn(Drawing::of(desired, profile))
    }

    /// Of what a plan finds. The plan does not know where the messages of a queue go that it deletes: what the spec does not
    /// declare may take them.
    pub(super) fn before(before: &Desired, after: &Desired, profile: &BrokerProfile) -> Self {
        let mut drawing = Drawing::of(before, profile);
        drawing.fates.retain(|queue, _| after.topology.queues.contains_key(*queue));
        Self::drawn(drawing)
    }

    fn drawn(mut drawing: Drawing<'_>) -> Self {
        drawing.exchanges();
        drawing.queues();
        drawing.bindings();
        drawing.foreign();
        drawing.raw
    }

    /// What was there and what shall be, each marked.
    pub(super) fn changed(before: &Self, after: Self, changes: &[PlannedChange]) -> Self {
        let is_new = |link: &&Link| !before.links.contains(*link);
        let gone = before.links.difference(&after.links).map(|link| Link { mark: Some(Mark::Deleted), ..link.clone() });
        let new: BTreeSet<Link> = after.links.iter().filter(is_new).cloned().collect();
        let kept = after.links.difference(&new).cloned();
        let created = new.iter().map(|link| Link { mark: Some(Mark::Created), ..link.clone() });
        let links = gone.chain(kept).chain(created).collect();
        // What goes away may still be referred to; it is drawn as what it was.
        let is_gone = |id: &ObjectId| before.holds.contains_key(id) && !after.holds.contains_key(id);
        let mut nodes = before.nodes.clone();
        nodes.extend(after.nodes.into_iter().filter(|(id, _)| !is_gone(id)));
        for (id, node) in &mut nodes {
            if let (Some(held), Some(holds)) = (before.holds.get(id), after.holds.get(id)) {
                node.mark = (held != holds).then_some(Mark::Changed);
            }
        }
        for change in changes {
            if let Some(node) = change.id().and_then(|id| nodes.get_mut(&id)) {
                node.mark = Some(Mark::of(change.kind));
            }
        }
        Self { nodes, links, holds: after.holds }
    }

    /// What of it is to be drawn; arrows go with either end.
    pub(super) fn only(mut self, is_drawn: impl Fn(&ObjectId) -> bool) -> Self {
        self.nodes.retain(|id, _| is_drawn(id));
        self.links.retain(|link| is_drawn(&link.from) && is_drawn(&link.to));
        self
    }

    /// What each object is linked to, either way.
    pub(super) fn neighbours(&self) -> BTreeMap<&ObjectId, BTreeSet<&ObjectId>> {
        let mut neighbours: BTreeMap<&ObjectId, BTreeSet<&ObjectId>> = BTreeMap::new();
        for link in self.links.iter().filter(|link| link.from != link.to) {
            neighbours.entry(&link.from).or_default().insert(&link.to);
            neighbours.entry(&link.to).or_default().insert(&link.from);
        }
        neighbours
    }

    /// With one arrow of a kind between two boxes.
    pub(super) fn picture(mut self, vhost: VhostName) -> VhostGraph {
        // A circle around one box is hard to draw and easy to say.
        for link in self.links.iter().filter(|link| link.from == link.to) {
            let said = match link.kind {
                ArrowKind::Binding | ArrowKind::Alternate => "bound to itself",
                ArrowKind::Retry => "comes back",
                ArrowKind::DeadLetter => "dead-lettered messages come back",
            };
            if let Some(node) = self.nodes.get_mut(&link.from).filter(|node| !node.notes.iter().any(|it| it == said)) {
                node.notes.push(said.to_owned());
            }
        }
        let places: BTreeMap<&ObjectId, usize> = self.nodes.keys().zip(0..).collect();
        let mut arrows: BTreeMap<(usize, usize, ArrowKind), Vec<&Link>> = BTreeMap::new();
        for link in self.links.iter().filter(|link| link.from != link.to) {
            if let (Some(from), Some(to)) = (places.get(&link.from), places.get(&link.to)) {
                arrows.entry((*from, *to, link.kind)).or_default().push(link);
            }
        }
        let arrow = |((from, to, kind), links): ((usize, usize, ArrowKind), Vec<&Link>)| {
            let mark = Mark::joined(links.iter().map(|link| link.mark));
            // Beside what asks for something, a binding that asks for nothing would not be seen.
            let is_said = kind == ArrowKind::Binding && links.iter().any(|link| link.label.is_some());
            let all = is_said.then_some(label::EVERY_MESSAGE);
            let text = |link: &Link| link.label.clone().or_else(|| all.map(str::to_owned));
            let said = links.iter().filter_map(|link| Some(Label { text: text(link)?, mark: link.mark }));
            // No format can write an empty one.
            let said = said.filter(|label| !label.text.is_empty());
            Arrow { from, to, kind, mark, labels: said.collect::<BTreeSet<_>>().into_iter().collect() }
        };
        let arrows = arrows.into_iter().map(arrow).collect();
        VhostGraph { vhost, mark: None, arrows, nodes: self.nodes.into_values().collect() }
    }
}

/// A picture while it is made.
struct Drawing<'a> {
    desired: &'a Desired,
    profile: &'a BrokerProfile,
    policies: Policies<'a>,
    /// Where the dead-lettered messages of each queue arrive.
    fates: BTreeMap<&'a QueueName, Fate>,
    /// The queue for whose retries an object was made.
    families: BTreeMap<&'a ObjectId, &'a QueueName>,
    sources: BTreeMap<&'a ObjectId, &'a Source>,
    raw: Raw,
}

impl<'a> Drawing<'a> {
    fn of(desired: &'a Desired, profile: &'a BrokerProfile) -> Self {
        let scope = &desired.scope;
        let routing = Routing::new(&desired.topology, [], &scope.external, profile)
            .with_bound_by_others(&scope.external_dead_letter_queues);
        let arrivals = Arrivals::new(&routing, &desired.scope.families);
        let queues = desired.topology.queues.keys();
        Self {
            desired,
            profile,
            fates: queues.filter_map(|name| Some((name, routing.fate(name, &arrivals)?))).collect(),
            policies: Policies::new(&desired.topology.policies, profile.version),
            families: fold::members(desired),
            sources: desired.sources.iter().map(|(id, source)| (id, source)).collect(),
            raw: Raw::default(),
        }
    }

    fn add(&mut self, id: ObjectId, kind: Kind, words: String, notes: Vec<String>) {
        let at = self.sources.get(&id).map(|source| format!("{}:{}", source.file, source.line));
        let name = id.name().unwrap_or_default().to_owned();
        let (mark, retries, alike, is_copy) = (None, None, Vec::new(), false);
        let fate = match &id {
            ObjectId::Queue(queue) => self.fates.get(queue).cloned(),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => None,
        };
        let dead_letters = fate.map(DeadLetters::from);
        self.raw.nodes.insert(id, Node { name, kind, words, notes, at, mark, retries, dead_letters, alike, is_copy });
    }

    fn link(&mut self, from: &ObjectId, to: &ObjectId, kind: ArrowKind, label: Option<String>) {
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
            // Of a family only what is over comes out.
            ArrowKind::Binding if from_family.is_some() => ArrowKind::DeadLetter,
            ArrowKind::Binding | ArrowKind::DeadLetter | ArrowKind::Alternate | ArrowKind::Retry => kind,
        };
        // An arrow would show messages arriving that the broker drops: a note at the queue says so.
        let queue = from_family.as_ref().unwrap_or(from);
        if kind == ArrowKind::DeadLetter && matches!(queue, ObjectId::Queue(queue) if self.drops(queue)) {
            return;
        }
        self.raw.links.insert(Link { from: from.clone(), to: to.clone(), kind, label, mark: None });
    }

    /// Whether no dead-lettered message of a queue arrives anywhere.
    fn drops(&self, queue: &QueueName) -> bool {
        self.fates.get(queue).is_some_and(|fate| fate.reach == Reach::Never)
    }

    fn exchanges(&mut self) {
        let topology = &self.desired.topology;
        for (name, exchange) in &topology.exchanges {
            let id = ObjectId::Exchange(name.clone());
            let governing = self.policies.governing(name.as_str(), Governed::Exchange).likely();
            let alternate = effective_alternate(exchange, governing);
            let held = alternate.iter().map(|it| ("alternate-exchange".to_owned(), it.value.clone()));
            self.raw.holds.insert(id.clone(), held.collect());
            if let Some(alternate) = alternate.as_ref().and_then(|it| it.value.as_text()) {
                let to = ExchangeName::from(alternate);
                // What is made for retries names one that only a ladder has; to the broker that is none.
                if topology.exchanges.contains_key(&to) || !self.families.contains_key(&id) {
                    self.link(&id, &ObjectId::Exchange(to), ArrowKind::Alternate, None);
                }
            }
            self.add(id, Kind::Exchange, format!("{} exchange", exchange.kind), Vec::new());
        }
    }

    fn queues(&mut self) {
        let families: BTreeMap<&QueueName, &Family> =
            self.desired.scope.families.iter().map(|family| (&family.queue, family)).collect();
        for (name, queue) in &self.desired.topology.queues {
            let id = ObjectId::Queue(name.clone());
            let settings = Governors::of(&self.policies, self.profile).likely(name, queue);
            let held = settings.iter().map(|(key, it)| (key.to_owned(), it.value.clone()));
            self.raw.holds.insert(id.clone(), held.collect());
            if let Some(DeadLettering { exchange, routing_key }) = settings.dead_lettering() {
                let (to, label) = match (exchange.as_str(), routing_key.as_deref()) {
                    // To the default exchange with a key is to the queue of that name.
                    ("", Some(key)) => (ObjectId::Queue(QueueName::from(key)), None),
                    (exchange, key) => (ObjectId::Exchange(ExchangeName::from(exchange)), key.map(label::of_key)),
                };
                // The key of a tier says which retry it was, and nothing to a reader.
                let label = label.filter(|_| !self.families.contains_key(&id));
                self.link(&id, &to, ArrowKind::DeadLetter, label);
            }
            let mut notes: Vec<String> =
                families.get(name).and_then(|family| in_the_queue(family)).into_iter().collect();
            let ttl = settings.integer("message-ttl").filter(|ttl| *ttl >= 0);
            // With 0, only a consumer that is ready gets a message.
            notes.extend(ttl.map(|ttl| format!("ttl {}", duration(ttl).unwrap_or_else(|| "0".to_owned()))));
            notes.extend(self.drops(name).then(|| "dead-lettered messages are unroutable".to_owned()));
            let (kind, words) = self.kind(&id, queue);
            self.add(id, kind, words, notes);
        }
    }

    fn kind(&self, id: &ObjectId, queue: &Queue) -> (Kind, String) {
        let of_type = queue.type_name();
        let keeps_dead_letters = self.sources.get(id).is_some_and(|source| source.part_of.is_some());
        match queue.queue_type() {
            _ if self.families.contains_key(id) => (Kind::Tier, format!("{of_type} tier")),
            _ if keeps_dead_letters => (Kind::DeadLetterQueue, format!("{of_type} dead-letter queue")),
            Some(QueueType::Stream) => (Kind::Stream, of_type.to_owned()),
            Some(QueueType::Classic | QueueType::Quorum) | None => (Kind::Queue, format!("{of_type} queue")),
        }
    }

    fn bindings(&mut self) {
        for binding in &self.desired.topology.bindings {
            let kind = self.desired.topology.exchanges.get(&binding.source).map(|exchange| exchange.kind.as_str());
            let label = label::of_binding(binding, kind.or_else(|| predeclared_type(&binding.source)));
            let source = ObjectId::Exchange(binding.source.clone());
            self.link(&source, &binding.destination.id(), ArrowKind::Binding, label);
        }
        for (queue, exchange) in &self.desired.scope.external_dead_letter_queues {
            let (source, queue) = (ObjectId::Exchange(exchange.clone()), ObjectId::Queue(queue.clone()));
            self.link(&source, &queue, ArrowKind::Binding, None);
        }
    }

    /// What is somebody else's, and what is only referred to.
    fn foreign(&mut self) {
        let ends: BTreeSet<ObjectId> =
            self.raw.links.iter().flat_map(|link| [link.from.clone(), link.to.clone()]).collect();
        let external = &self.desired.scope.external;
        for id in external.iter().cloned().chain(ends) {
            if self.raw.nodes.contains_key(&id) {
                continue;
            }
            let whose = if external.contains(&id) { "external" } else { "unmanaged" };
            let (kind, words) = match &id {
                ObjectId::Exchange(name) if name.as_str().is_empty() => {
                    (Kind::ForeignExchange, "to the queue that the key names".to_owned())
                }
                ObjectId::Exchange(name) => match predeclared_type(name) {
                    Some(of_type) => (Kind::ForeignExchange, format!("{of_type} exchange of the broker")),
                    None => (Kind::ForeignExchange, format!("{whose} exchange")),
                },
                ObjectId::Queue(_) => (Kind::ForeignQueue, format!("{whose} queue")),
                ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => continue,
            };
            let is_default = id.name() == Some("");
            self.add(id.clone(), kind, words, Vec::new());
            if let Some(node) = self.raw.nodes.get_mut(&id).filter(|_| is_default) {
                node.name = "default exchange".to_owned();
            }
        }
    }
}

/// Retries for which nothing is made: the queue's own box says them.
fn in_the_queue(family: &Family) -> Option<String> {
    let counted = |adjective: &str| match family.retries {
        1 => format!("1 {adjective}retry"),
        many => format!("{many} {adjective}retries"),
    };
    let times = counted("");
    match (family.strategy, family.members.is_empty()) {
        (_, false) => None,
        (Strategy::Redeliver, true) => Some(counted("immediate ")),
        (Strategy::Republish, true) => Some(format!("{times} to the back")),
        (Strategy::Delayed | Strategy::Ladder, true) => {
            let waits = family.path.rsplit_once(" → ").map_or(family.path.as_str(), |(waits, _)| waits);
            Some(format!("{times}: {waits}"))
        }
    }
}
