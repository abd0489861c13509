//! Blocks changes of super streams that would change the partition of existing routing keys. Clients select a partition by
//! the position of a routing key, or by a hash and the number of partitions. topo adds partitions at the end, but removes
//! and reorders none.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use crate::model::names::PARTITION_ORDER;
use crate::model::{Binding, ObjectId};

/// Blocks the plan if a declared super stream has a partition on the broker that the spec does not declare at the same
/// position.
pub(super) fn check(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    for name in context.desired.scope.super_streams.keys() {
        let is_partition =
            |binding: &&Binding| binding.source == *name && binding.arguments.contains_key(PARTITION_ORDER);
        let live: Vec<&Binding> = context.current.bindings.iter().filter(is_partition).collect();
        let declared = &context.desired.topology.bindings;
        let mut others: Vec<String> = live
            .iter()
            .filter(|binding| !declared.contains(*binding))
            .map(|binding| format!("{} (position {})", binding.destination.name(), binding.arguments[PARTITION_ORDER]))
            .collect();
        if others.is_empty() {
            continue;
        }
        others.sort();
        let text = format!(
            "the broker has partitions of super stream {name} that the spec does not declare at the same position: {}; topo \
             does not remove or reorder partitions, because messages with the same routing key would go to a different \
             partition",
            others.join(", ")
        );
        let remedy = "declare these partitions at the same positions, and add new partitions only at the end; or create a super \
                      stream with another name";
        builder.block(&context.address(&ObjectId::Exchange(name.clone())), text, Some(remedy.to_owned()));
    }
}
