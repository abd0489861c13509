//! Adds the hazards for transient objects that `--prune` deletes while clients are using them. Transient objects
//! include the queues that a framework declares for its own use.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, PlannedChange};
use super::hazard::{Hazard, HazardKind};
use crate::diff::DeleteReason;
use crate::model::count::count;
use crate::model::known_clients::owner_of_transient;
use crate::model::{Destination, ExchangeName, Object, QueueName};
use crate::rabbitmq::dead_lettering;
use std::collections::{BTreeMap, BTreeSet};

/// Adds a hazard for each transient queue and exchange that the plan prunes and that clients use.
pub(super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let is_pruned = |it: &&PlannedChange| it.kind == ChangeKind::Delete && it.reason == Some(DeleteReason::Unmanaged);
    let pruned = builder.changes.iter().filter(is_pruned);
    let found: Vec<Hazard> = pruned
        .filter_map(|change| {
            let text = format!("{}; to keep it, add its name to `ignore`", use_of(context, change.before.as_ref()?)?);
            let (kind, address) = (HazardKind::ConsumerDisruption, change.address.clone());
            Some(Hazard { kind, address, text, messages: None, must_be_allowed: true })
        })
        .collect();
    builder.hazards.extend(found);
}

/// Describes a transient object and how it is used; `None` for other objects and for unused objects.
fn use_of(context: &PlanContext<'_>, object: &Object) -> Option<String> {
    match object {
        Object::Queue(name, queue) => {
            let owner = owner_of_transient(name.as_str(), queue.expires());
            let origin = match owner {
                Some((client, _)) => format!("a transient queue of {}", client.name),
                None if queue.expires() => "a queue that expires when unused".to_owned(),
                None => return None,
            };
            if let Some(consumers) = consumers(context, name).filter(|count| *count > 0) {
                return Some(format!("it is {origin}, in use by {}", count(consumers, "consumer")));
            }
            owner?;
            let reached = Reached::default().with_queue(context, name);
            Some(format!("it is {origin}, and its messages reach {}", in_use(context, &reached.queues, name)?))
        }
        Object::Exchange(name, exchange) => {
            let origin = match owner_of_transient(name.as_str(), false) {
                Some((client, _)) => format!("a transient exchange of {}", client.name),
                None if !exchange.durable => "a transient exchange".to_owned(),
                None => return None,
            };
            let reached = Reached::default().with_exchange(context, name.clone());
            let no_queue = QueueName::from("");
            Some(format!("it is {origin}, and its messages reach {}", in_use(context, &reached.queues, &no_queue)?))
        }
        Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) | Object::Record(_) => None,
    }
}

/// Describes the queues, other than `except`, that have consumers. Returns `None` if there are none. A queue whose
/// consumers are unknown counts as used.
fn in_use(context: &PlanContext<'_>, queues: &BTreeSet<QueueName>, except: &QueueName) -> Option<String> {
    let used = |name: &&QueueName| *name != except && consumers(context, name) != Some(0);
    let mut used = queues.iter().filter(used);
    let first = used.next()?;
    let consumers = match consumers(context, first) {
        Some(known) => format!("which has {}", count(known, "consumer")),
        None => "whose consumers the broker does not report".to_owned(),
    };
    let more = match used.count() as u64 {
        0 => String::new(),
        more => format!(", and {} with consumers", count(more, "other queue")),
    };
    Some(format!("queue {first}, {consumers}{more}"))
}

/// Returns the number of consumers on a queue; `None` if the number is unknown.
fn consumers(context: &PlanContext<'_>, name: &QueueName) -> Option<u64> {
    context.activity.queues.get(name)?.consumer_count()
}

/// The exchanges and queues that messages can reach through bindings and dead-lettering. Ignores routing keys.
#[derive(Default)]
struct Reached {
    exchanges: BTreeSet<ExchangeName>,
    queues: BTreeSet<QueueName>,
}

impl Reached {
    fn with_exchange(mut self, context: &PlanContext<'_>, name: ExchangeName) -> Self {
        let mut by_source: BTreeMap<&ExchangeName, Vec<&Destination>> = BTreeMap::new();
        for binding in &context.current.bindings {
            by_source.entry(&binding.source).or_default().push(&binding.destination);
        }
        let mut pending = vec![name];
        while let Some(name) = pending.pop() {
            for destination in by_source.get(&name).into_iter().flatten() {
                match destination {
                    Destination::Exchange(next) => {
                        pending.extend((!self.exchanges.contains(next)).then(|| next.clone()))
                    }
                    Destination::Queue(queue) => pending.extend(self.add_queue(context, queue)),
                }
            }
            self.exchanges.insert(name);
        }
        self
    }

    fn with_queue(mut self, context: &PlanContext<'_>, name: &QueueName) -> Self {
        match self.add_queue(context, name) {
            Some(exchange) => self.with_exchange(context, exchange),
            None => self,
        }
    }

    /// Adds a queue, and the queues to which it dead-letters through the default exchange. Returns the next dead-letter
    /// exchange, unless that exchange has already been added.
    fn add_queue(&mut self, context: &PlanContext<'_>, name: &QueueName) -> Option<ExchangeName> {
        let mut next = Some(name.clone());
        while let Some(name) = next.take() {
            if !self.queues.insert(name.clone()) {
                break;
            }
            let to = dead_lettering(&context.current.queues.get(&name)?.arguments, "x-")?;
            if !to.exchange.as_str().is_empty() {
                return (!self.exchanges.contains(&to.exchange)).then_some(to.exchange);
            }
            // The default exchange routes to the queue whose name is the routing key.
            next = to.routing_key.map(QueueName::new);
        }
        None
    }
}
