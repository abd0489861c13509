//! Orders changes to the bindings that route messages after their last retry. At every moment, every message must have
//! a destination. A message may have two destinations only while the destination after the last retry is
//! changing.

use super::super::context::PlanContext;
use super::super::document::ChangeKind;
use super::super::hazard::HazardKind;
use super::leftovers::queue_of_exchange;
use crate::model::{ArgumentValue, Arguments, Binding, Destination, ExchangeName, Object, ObjectId, QueueName, naming};
use crate::plan::changes_by_kind::PlanBuilder;
use std::collections::BTreeSet;

/// The bindings that a plan creates or deletes in a separate stage. They route messages after the last retry.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct FinalBindings {
    /// The bindings that replace the first tier when all tiers are retired. From then on, rejected messages are
    /// dead-lettered.
    pub(in super::super) instead_of_tiers: BTreeSet<Binding>,
    /// Bindings that would divert first failures from a ladder. They are deleted before the queue is wired to the
    /// ladder.
    pub(in super::super) before_wiring: BTreeSet<Binding>,
    /// Bindings that would divert first failures from a ladder. They are created once the queue is no longer wired to
    /// the ladder.
    pub(in super::super) after_wiring: BTreeSet<Binding>,
}

/// Returns the bindings of a plan that require a separate stage.
pub(in super::super) fn final_bindings(builder: &PlanBuilder, context: &PlanContext<'_>) -> FinalBindings {
    let (live, desired) = (&context.current, &context.desired.topology);
    let mut final_bindings = FinalBindings::default();
    // A binding with the key `#` matches every routing key, including the keys of first failures.
    let matches_all =
        |binding: &Binding| naming::queue_of_exhausted_exchange(&binding.source).filter(|_| binding.routing_key == "#");
    for change in &builder.changes {
        match (change.kind, &change.before, &change.after) {
            (ChangeKind::Delete, Some(Object::Binding(old)), _) => {
                let is_ladder = |queue: QueueName| desired.exchanges.contains_key(&naming::first_exchange(&queue));
                if matches_all(old).is_some_and(is_ladder) {
                    final_bindings.before_wiring.insert(old.clone());
                }
            }
            (ChangeKind::Create, _, Some(Object::Binding(new))) => {
                let is_ladder = |queue: QueueName| live.exchanges.contains_key(&naming::first_exchange(&queue));
                if matches_all(new).is_some_and(is_ladder) {
                    final_bindings.after_wiring.insert(new.clone());
                }
            }
            (ChangeKind::Delete, Some(Object::Exchange(first, _)), _) if change.retires.is_some() => {
                final_bindings.instead_of_tiers.extend(naming::queue_of_first_exchange(first).and_then(|queue| {
                    let source = naming::switch_exchange(first);
                    let destination = current_final_binding(context, &queue)?.destination.clone();
                    let exists = live.exchanges.contains_key(&source);
                    let (routing_key, arguments) = (String::new(), Arguments::new());
                    exists.then_some(Binding { source, destination, routing_key, arguments })
                }));
            }
            (_, _, _) => {}
        }
    }
    final_bindings
}

/// Returns the binding of a current ladder that routes messages after the last retry; `None` if there is no such
/// binding.
pub(in super::super) fn current_final_binding<'a>(context: &PlanContext<'a>, queue: &QueueName) -> Option<&'a Binding> {
    let (exhausted, key) = (naming::exhausted_exchange(queue), naming::retry_key_pattern(queue)?);
    let is_final = |binding: &&Binding| binding.source == exhausted && binding.routing_key == key;
    context
        .current
        .bindings
        .iter()
        .find(|binding| is_final(binding) && matches!(binding.destination, Destination::Exchange(_)))
}

/// Adds the hazards and blocks that concern messages after their last retry.
pub(in super::super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    report_changed_destinations(builder, context);
    block_retired_destinations(builder, context);
}

/// Adds a hazard if dead-lettered messages will be routed to a different exchange. Temporarily, both exchanges are
/// bound, so that no message is lost.
fn report_changed_destinations(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    for family in &context.desired.scope.families {
        let queue = &family.queue;
        let Some(old) = current_final_binding(context, queue) else { continue };
        let has_same_key = |new: &&Binding| new.source == old.source && new.routing_key == old.routing_key;
        let Some(new) = context.desired.topology.bindings.iter().find(has_same_key) else { continue };
        if new.destination != old.destination {
            let (from, to) = (old.destination.name(), new.destination.name());
            let text = format!(
                "the dead-lettered messages from queue {queue} will go to {to} instead of {from}: a message that is \
                 dead-lettered at that moment will go to both"
            );
            builder.hazard(HazardKind::Duplicates, &context.address(&ObjectId::Queue(queue.clone())), text, None);
        }
    }
}

/// Blocks the plan if a queue dead-letters to an exchange of retired retries, because its messages would be lost. If
/// the spec marks the guard exchange as external, the guard exchange stays, but it routes nothing without the other
/// exchanges.
fn block_retired_destinations(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let PlanContext { current, desired, .. } = context;
    let deleted = builder.deleted_ids();
    let retired: BTreeSet<QueueName> = builder.changes.iter().filter_map(|change| change.retires.clone()).collect();
    let is_retired = |exchange: &ExchangeName| {
        let id = ObjectId::Exchange(exchange.clone());
        let is_desired = desired.scope.families.iter().any(|family| family.members.contains(&id));
        let of = current.exchanges.get(exchange).and_then(|live| queue_of_exchange(exchange, live));
        !is_desired && of.is_some_and(|queue| retired.contains(&queue))
    };
    for (name, live) in &current.queues {
        let id = ObjectId::Queue(name.clone());
        let queue = desired.topology.queues.get(name).unwrap_or(live);
        let exchange = queue.arguments.get("x-dead-letter-exchange").and_then(ArgumentValue::as_text);
        let Some(exchange) = exchange.map(ExchangeName::from).filter(|it| !deleted.contains(&id) && is_retired(it))
        else {
            continue;
        };
        let text = format!(
            "the dead-lettered messages from {id} go to exchange {exchange}, which belongs to retired retries: they \
             would be dropped"
        );
        let remedy = format!("set a different dead-letter exchange for {id}, or keep the retries");
        builder.block(&context.address(&id), text, Some(remedy));
    }
}
