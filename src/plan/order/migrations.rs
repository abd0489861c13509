//! Adds the steps of migrations.

use super::Layout;
use crate::model::{ObjectId, QueueName};
use crate::plan::builder::PlanBuilder;
use crate::plan::document::{ChangeKind, PlannedChange};

impl Layout<'_> {
    /// Adds the steps of all migrations in one wave, so that they run concurrently. The steps of each migration run in
    /// sequence.
    pub(super) fn migrate(&mut self, builder: &PlanBuilder) {
        // Migrations need a copy of the current topology, and most plans have none.
        if builder.migrations.is_empty() {
            return;
        }
        let is_recreated = |queue: &QueueName| {
            let is_it = |change: &PlannedChange| {
                change.kind == ChangeKind::Recreate && change.id() == Some(ObjectId::Queue(queue.clone()))
            };
            builder.changes.iter().any(is_it)
        };
        self.wave(|layout| {
            let mut live = layout.context.current.clone();
            live.bindings.clone_from(&layout.bound);
            for migration in &builder.migrations {
                let id = ObjectId::Queue(migration.queue.clone());
                let is_desired = !is_recreated(&migration.queue);
                let mut before = None;
                for next in migration.remaining(&live, layout.context.properties_keys, is_desired) {
                    layout.push(next.action, Some(&id));
                    let step = layout.steps.last_mut().expect("it was pushed");
                    step.stage = Some(next.stage);
                    step.after.extend(before.replace(step.id));
                }
            }
        });
    }
}
