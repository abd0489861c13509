//! Blocks super stream changes that would assign existing routing keys to different partitions. Clients select a
//! partition by the position of a routing key, or by a hash and the number of partitions. topo adds partitions at the
//! end, but never removes or reorders partitions.
//!
//! The broker treats each stream that is bound to the exchange of a super stream as a partition, with or without a
//! position (`rabbit_stream_manager:super_stream_partitions`).

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::Options;
use crate::model::names::PARTITION_ORDER;
use crate::model::{Binding, Destination, ExchangeName, ObjectId, QueueName, QueueType};
use std::collections::BTreeSet;

/// Blocks the plan if a declared super stream has a partition on the broker that the spec does not declare at the same
/// position, or if the spec binds another stream to the super stream. With `--target`, checks only the super streams
/// that the plan changes.
pub(super) fn check(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    for (name, streams) in &context.desired.scope.super_streams {
        if !options.targets.is_empty() && !is_changed(builder, name, streams) {
            continue;
        }
        let declared = &context.desired.topology.bindings;
        let of_stream = |binding: &&Binding| binding.source == *name && is_stream(context, binding);
        let mut undeclared: Vec<String> = context
            .current
            .bindings
            .iter()
            .filter(of_stream)
            .filter(|it| !declared.contains(*it))
            .map(describe)
            .collect();
        undeclared.sort();
        let address = context.address(&ObjectId::Exchange(name.clone()));
        if !undeclared.is_empty() {
            let text = format!(
                "the broker has partitions of super stream {name} that the spec does not declare at the same position: \
                 {}; topo does not remove or reorder partitions, because messages with the same routing key would go \
                 to a different partition",
                undeclared.join(", ")
            );
            let remedy = "declare these partitions at the same positions, and add new partitions only at the end; or \
                          create a super stream with another name";
            builder.block(&address, text, Some(remedy.to_owned()));
        }
        let is_extra = |binding: &&Binding| !binding.arguments.contains_key(PARTITION_ORDER);
        for binding in declared.iter().filter(of_stream).filter(is_extra) {
            let stream = binding.destination.name();
            let text = format!("the binding `{binding}` would make stream {stream} a partition of super stream {name}");
            let remedy = "remove the binding, or bind the stream to another exchange".to_owned();
            builder.block(&address, text, Some(remedy));
        }
    }
}

/// Returns true if the plan changes the exchange, a stream or a binding of a super stream.
fn is_changed(builder: &PlanBuilder, name: &ExchangeName, streams: &BTreeSet<QueueName>) -> bool {
    builder.changes.iter().filter_map(|change| change.id()).any(|id| match &id {
        ObjectId::Exchange(exchange) => exchange == name,
        ObjectId::Queue(queue) => streams.contains(queue),
        ObjectId::Binding(binding) => binding.source == *name,
        ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Record(_) => false,
    })
}

/// Returns true if the destination of a binding is a stream, on the broker or in the spec.
pub(super) fn is_stream(context: &PlanContext<'_>, binding: &Binding) -> bool {
    let Destination::Queue(name) = &binding.destination else { return false };
    let queue = context.current.queues.get(name).or_else(|| context.desired.topology.queues.get(name));
    queue.is_some_and(|queue| queue.queue_type() == Some(QueueType::Stream))
}

/// Describes a partition: `invoices-2 (position 2)`.
fn describe(binding: &Binding) -> String {
    match binding.arguments.get(PARTITION_ORDER) {
        Some(order) => format!("{} (position {order})", binding.destination.name()),
        None => format!("{} (no position)", binding.destination.name()),
    }
}
