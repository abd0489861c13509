//! Adds the steps that recreate and migrate objects, including the remaining steps of interrupted runs.

use super::layout::Layout;
use crate::model::count::count;
use crate::model::{Binding, Destination, ExchangeName, Object, ObjectId, QueueName, TopicPermission};
use crate::plan::action::{Action, Guard};
use crate::plan::activity::TopicPermissions;
use crate::plan::changes_by_kind::PlanBuilder;
use crate::plan::document::{ChangeKind, Options, PlannedChange};
use crate::plan::keeps::{self, Kept};
use crate::plan::topic_permissions;
use std::collections::BTreeSet;
use std::fmt::Write;

impl Layout<'_> {
    /// Completes the recreations that a killed run left incomplete: restores the contents of their keeps, and deletes
    /// the keeps.
    pub(super) fn complete_interrupted_recreations(&mut self, builder: &mut PlanBuilder, options: &Options) {
        for (name, Kept { id, bindings, topic_permissions }) in keeps::leftover_keeps(self.context, options) {
            let address = self.context.address(&id);
            let missing = bindings.iter().filter(|binding| !self.state.bindings.contains(*binding)).count();
            let mut text =
                format!("an earlier recreation of {id} was interrupted; {missing} of its bindings will be restored");
            let lost = topic_permissions::missing_permissions(self.context, topic_permissions.clone());
            if !lost.is_empty() {
                let _ = write!(text, ", and {}", topic_permissions::describe(&lost));
            }
            builder.info(&address, text);
            let is_hidden = self.context.activity.topic_permissions == TopicPermissions::Hidden;
            if is_hidden && !topic_permissions.is_empty() {
                let count = count(topic_permissions.len() as u64, "topic permission");
                let text = format!(
                    "an earlier recreation of {id} was interrupted, and only an administrator can restore {count} on it"
                );
                builder.block(&address, text, Some("apply as a user with the administrator tag".to_owned()));
            }
            topic_permissions::restore_hazard(builder, self.context, &id, &lost);
            self.restore_topic_permissions(&id, lost);
            // Adds the declared bindings, too: the keep may have the last binding from an auto-delete exchange, and the
            // broker would delete the exchange together with the keep.
            let declared = self.context.desired.topology.bindings.iter().filter(|binding| binding.involves(&id));
            self.wave(|layout| {
                for binding in bindings.iter().chain(declared) {
                    layout.bind(binding, Some(&id));
                }
            });
            self.wave(|layout| layout.push(Action::DeleteExchange { name: name.clone() }, Some(&id)));
        }
    }

    /// Adds the steps that restore topic permissions on a recreated exchange.
    fn restore_topic_permissions(&mut self, id: &ObjectId, permissions: Vec<TopicPermission>) {
        self.wave(|layout| {
            for permission in permissions {
                layout.push(Action::PutTopicPermission { permission }, Some(id));
            }
        });
    }

    /// Adds the steps that recreate an object: delete, declare, bind. Also adds a keep if the object has unmanaged
    /// bindings, topic permissions, or the last binding from an auto-delete exchange.
    pub(super) fn recreate(&mut self, object: &Object, desired: &mut BTreeSet<Binding>) {
        let id = object.id();
        let (delete, mut declare, permissions) = match object {
            Object::Queue(name, queue) => (
                Action::DeleteQueue { name: name.clone(), guard: Guard::Empty },
                Action::DeclareQueue { name: name.clone(), queue: queue.clone() },
                Vec::new(),
            ),
            Object::Exchange(name, exchange) => (
                Action::DeleteExchange { name: name.clone() },
                Action::declare_exchange(name, exchange),
                topic_permissions::on_exchange(self.context, name),
            ),
            Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) | Object::Record(_) => return,
        };
        let involves = |binding: &&Binding| binding.involves(&id);
        let lost: BTreeSet<Binding> = self.state.bindings.iter().filter(involves).cloned().collect();
        let mut restored: BTreeSet<Binding> = lost.difference(&self.undesired).cloned().collect();
        let declared = &self.context.desired.topology.bindings;
        let unmanaged: Vec<Binding> = restored.difference(declared).cloned().collect();
        restored.extend(desired.iter().filter(involves).cloned());
        let sources_to_keep = self.only_bound_sources(&lost);

        let needs_keep = !unmanaged.is_empty() || !sources_to_keep.is_empty() || !permissions.is_empty();
        let keep = needs_keep.then(|| keeps::keep(&id, &unmanaged, &permissions));
        if let Some((name, exchange)) = &keep {
            self.wave(|layout| layout.push(Action::declare_exchange(name, exchange), Some(&id)));
            self.wave(|layout| {
                for source in sources_to_keep {
                    let binding = Binding {
                        source,
                        destination: Destination::Exchange(name.clone()),
                        routing_key: String::new(),
                        arguments: crate::model::Arguments::new(),
                    };
                    layout.bind(&binding, Some(&id));
                }
            });
        }
        self.wave(|layout| layout.push(delete, Some(&id)));
        if !permissions.is_empty() {
            // Declares the exchange without bindings: it must not route messages until its topic permissions are
            // restored.
        } else if let Action::DeclareExchange { bindings, .. } = &mut declare {
            let is_possible = |binding: &&Binding| {
                let required = [ObjectId::Exchange(binding.source.clone()), binding.destination.id()];
                !binding.breaks_bindings_list() && required.iter().all(|one| *one == id || self.has_object(one))
            };
            bindings.extend(restored.iter().filter(is_possible).cloned());
        }
        self.wave(|layout| layout.push(declare, Some(&id)));
        self.restore_topic_permissions(&id, permissions);
        self.wave(|layout| {
            for binding in &restored {
                layout.bind(binding, Some(&id));
            }
        });
        if let Some((name, _)) = keep {
            self.wave(|layout| layout.push(Action::DeleteExchange { name }, Some(&id)));
        }
        desired.retain(|binding| !self.state.bindings.contains(binding));
    }

    /// Returns the auto-delete exchanges that would lose their last binding. All versions delete such an exchange, so
    /// the exchange requires another binding while the object is being recreated.
    fn only_bound_sources(&self, lost: &BTreeSet<Binding>) -> Vec<ExchangeName> {
        let sources: BTreeSet<&ExchangeName> = lost.iter().map(|binding| &binding.source).collect();
        sources
            .into_iter()
            // Reads the setting as it will be at this step, because an earlier recreation may change it.
            .filter(|source| self.state.exchanges.get(*source).is_some_and(|exchange| exchange.auto_delete))
            .filter(|source| !self.state.bindings.iter().any(|other| other.source == **source && !lost.contains(other)))
            .cloned()
            .collect()
    }
}

impl Layout<'_> {
    /// Adds the steps of all migrations in one wave, so that they run concurrently. The steps of each migration run in
    /// sequence.
    pub(super) fn migrate(&mut self, builder: &PlanBuilder) {
        // Copying the vhost is expensive, and most plans contain no migration.
        if builder.migrations.is_empty() {
            return;
        }
        let is_recreated = |queue: &QueueName| {
            let is_recreation = |change: &PlannedChange| {
                change.kind == ChangeKind::Recreate && change.id() == Some(ObjectId::Queue(queue.clone()))
            };
            builder.changes.iter().any(is_recreation)
        };
        self.wave(|layout| {
            let live = layout.state.clone();
            for migration in &builder.migrations {
                let id = ObjectId::Queue(migration.queue.clone());
                let is_desired = !is_recreated(&migration.queue);
                let mut before = None;
                for next in migration.remaining_actions(&live, layout.context.properties_keys, is_desired) {
                    layout.push(next.action, Some(&id));
                    let step = layout.steps.last_mut().expect("`push` adds a step");
                    step.stage = Some(next.stage);
                    step.after.extend(before.replace(step.id));
                }
            }
        });
    }
}
