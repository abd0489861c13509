//! The last way of messages whose retries change: there must be one at every moment, and for most of them only one.

use super::super::builder::PlanBuilder;
use super::super::context::PlanContext;
use super::super::document::{ChangeKind, PlannedChange};
use super::super::hazard::HazardKind;
use super::leftovers::certain;
use crate::model::{ArgumentValue, Arguments, Binding, Destination, ExchangeName, Object, ObjectId, QueueName, naming};
use std::collections::BTreeSet;

/// Bindings of the last way that have to come, or to go, at a moment of their own.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Ends {
    /// In place of a first tier that goes with all others: what is rejected from then on is a dead letter.
    pub(in super::super) instead_of_tiers: BTreeSet<Binding>,
    /// They would take first failures away from a ladder: they go before the queue is wired to it …
    pub(in super::super) before_wiring: BTreeSet<Binding>,
    /// … and come after the queue is no longer wired to it.
    pub(in super::super) after_wiring: BTreeSet<Binding>,
}

/// Those of a plan.
pub(in super::super) fn ends(builder: &PlanBuilder, context: &PlanContext<'_>) -> Ends {
    let (live, desired) = (&context.current, &context.desired.topology);
    let mut ends = Ends::default();
    // Every key, the keys of first failures too.
    let takes_all =
        |binding: &Binding| naming::queue_of_over_exchange(&binding.source).filter(|_| binding.routing_key == "#");
    for change in &builder.changes {
        match (change.kind, &change.before, &change.after) {
            (ChangeKind::Delete, Some(Object::Binding(old)), _) => {
                let is_ladder = |queue: QueueName| desired.exchanges.contains_key(&naming::first_exchange(&queue));
                if takes_all(old).is_some_and(is_ladder) {
                    ends.before_wiring.insert(old.clone());
                }
            }
            (ChangeKind::Create, _, Some(Object::Binding(new))) => {
                let is_ladder = |queue: QueueName| live.exchanges.contains_key(&naming::first_exchange(&queue));
                if takes_all(new).is_some_and(is_ladder) {
                    ends.after_wiring.insert(new.clone());
                }
            }
            (ChangeKind::Delete, Some(Object::Exchange(first, _)), _) if change.retires.is_some() => {
                ends.instead_of_tiers.extend(naming::queue_of_first_exchange(first).and_then(|queue| {
                    let source = naming::switch_of(first);
                    let destination = live_end(context, &queue)?.destination.clone();
                    let is_there = live.exchanges.contains_key(&source);
                    let (routing_key, arguments) = (String::new(), Arguments::new());
                    is_there.then_some(Binding { source, destination, routing_key, arguments })
                }));
            }
            (_, _, _) => {}
        }
    }
    ends
}

/// The binding by which a live ladder ends.
pub(in super::super) fn live_end<'a>(context: &PlanContext<'a>, queue: &QueueName) -> Option<&'a Binding> {
    let (over, key) = (naming::over_exchange(queue), naming::retry_key_pattern(queue)?);
    let is_end = |binding: &&Binding| binding.source == over && binding.routing_key == key;
    context
        .current
        .bindings
        .iter()
        .find(|binding| is_end(binding) && matches!(binding.destination, Destination::Exchange(_)))
}

/// What has to be said of the last way of messages.
pub(in super::super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    turned(builder, context);
    taken_apart(builder, context);
}

/// Dead letters that come while they turn to another exchange: bound to both, and never to none.
fn turned(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    for family in &context.desired.scope.families {
        let queue = &family.queue;
        let Some(old) = live_end(context, queue) else { continue };
        let same_way = |new: &&Binding| new.source == old.source && new.routing_key == old.routing_key;
        let Some(new) = context.desired.topology.bindings.iter().find(same_way) else { continue };
        if new.destination != old.destination {
            let (from, to) = (old.destination.name(), new.destination.name());
            let text = format!(
                "the dead-lettered messages of queue {queue} go to {to} instead of {from}: a message that is \
                 dead-lettered at that moment goes to both"
            );
            builder.hazard(HazardKind::Duplicates, &context.address(&ObjectId::Queue(queue.clone())), text, None);
        }
    }
}

/// A queue whose dead letters go to a part of retries that are taken apart would lose them: the guard may stay, because
/// it is said to be somebody else's, but it leads nowhere without the rest.
fn taken_apart(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let PlanContext { current, desired, .. } = context;
    let deleted: BTreeSet<ObjectId> = builder
        .changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Delete)
        .filter_map(PlannedChange::id)
        .collect();
    let going: BTreeSet<QueueName> = builder.changes.iter().filter_map(|change| change.retires.clone()).collect();
    let goes = |exchange: &ExchangeName| {
        let id = ObjectId::Exchange(exchange.clone());
        let is_desired = desired.scope.families.iter().any(|family| family.members.contains(&id));
        let of = current.exchanges.get(exchange).and_then(|live| certain(exchange, live));
        !is_desired && of.is_some_and(|queue| going.contains(&queue))
    };
    for (name, live) in &current.queues {
        let id = ObjectId::Queue(name.clone());
        let queue = desired.topology.queues.get(name).unwrap_or(live);
        let exchange = queue.arguments.get("x-dead-letter-exchange").and_then(ArgumentValue::as_text);
        let Some(exchange) = exchange.map(ExchangeName::from).filter(|it| !deleted.contains(&id) && goes(it)) else {
            continue;
        };
        let text = format!(
            "the dead-lettered messages of {id} go to exchange {exchange}, which belongs to retired retries: they \
             would be dropped"
        );
        let remedy = format!("set another dead-letter exchange for {id}, or keep the retries");
        builder.block(&context.address(&id), text, Some(remedy));
    }
}
