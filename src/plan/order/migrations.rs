//! The steps of migrations.

use super::Layout;
use crate::model::{ObjectId, QueueName};
use crate::plan::builder::PlanBuilder;
use crate::plan::document::{ChangeKind, PlannedChange};

impl Layout<'_> {
    /// Migrations run beside each other: in one wave, and the steps of each one after another.
    pub(super) fn migrate(&mut self, builder: &PlanBuilder) {
        // What is live is copied for them, and most plans have none.
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
                for todo in migration.remaining(&live, layout.context.properties_keys, is_desired) {
                    layout.push(todo.action, Some(&id));
                    let step = layout.steps.last_mut().expect("it was pushed");
                    step.stage = Some(todo.stage);
                    step.after.extend(before.replace(step.id));
                }
            }
        });
    }
}
