//! Orders the steps of a plan: exchanges (alternates first), policies, queues, the bindings of dead-letter exchanges,
//! recreates, the other bindings, deletions. Queues come after policies and dead-letter exchanges, so that a new queue
//! is governed and can dead-letter from the start. A changed binding is added before the old one is deleted.
//!
//! The layout tracks bindings, because a deletion also deletes bindings.

mod deletions;
mod recreates;

use super::changes_by_kind::ChangesByKind;
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{Options, Step};
use super::request::{properties_key, request};
use super::retries::{self, Switch};
use super::wiring::dead_letter_exchanges;
use super::{Action, auto_delete, topic_permissions};
use crate::model::{
    Binding, Destination, Exchange, ExchangeName, Object, ObjectId, Policy, PolicyName, QueueName, naming,
};
use deletions::Moment;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the steps of all changes that are not conflicts.
pub(super) fn steps(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) -> Vec<Step> {
    let mut changes = ChangesByKind::sort(&builder.changes);
    let is_abort = !options.abort.is_empty();
    let mut layout = Layout {
        context,
        steps: Vec::with_capacity(builder.changes.len()),
        wave: 0,
        created_by: BTreeMap::new(),
        bound_to: BTreeMap::new(),
        bound: context.current.bindings.clone(),
        exchanges: context.current.exchanges.iter().map(|(name, it)| (name.clone(), it.auto_delete)).collect(),
        auto_deleted: Vec::new(),
        queues: context.current.queues.keys().cloned().collect(),
        undesired: deletions::unbound(builder),
    };
    if is_abort {
        layout.migrate(builder);
        return layout.steps;
    }
    if let Some(vhost) = changes.vhost {
        layout.wave(|layout| layout.push(Action::PutVhost { vhost }, None));
    }
    layout.records(&builder.changes, Moment::WithVhost);
    layout.exchanges(&changes.exchanges);
    let recreated: BTreeSet<ObjectId> = changes.recreates.iter().map(Object::id).collect();
    let wires_live = |name: &PolicyName| {
        let queue = naming::queue_of_dead_letter_policy(name);
        queue.is_some_and(|queue| layout.queues.contains(&queue) && !recreated.contains(&ObjectId::Queue(queue)))
    };
    let (rewiring, policies): (BTreeMap<_, _>, BTreeMap<_, _>) =
        std::mem::take(&mut changes.policies).into_iter().partition(|(name, _)| wires_live(name));
    layout.policies(policies);
    layout.records(&builder.changes, Moment::WithPolicies);
    // The migration of a queue that no longer exists declares it.
    changes.queues.retain(|name, _| !builder.migrations.iter().any(|migration| migration.queue == *name));
    layout.wave(|layout| {
        for (name, queue) in &changes.queues {
            layout.push(Action::DeclareQueue { name: name.clone(), queue: queue.clone() }, None);
        }
    });
    layout.interrupted(builder, options);
    // The bindings of dead-letter exchanges come first: a message can be rejected as soon as a queue is bound, or wired
    // to them.
    let switches = retries::switches(builder);
    let ends = retries::ends(builder, context);
    let dead_letter_exchanges = dead_letter_exchanges(&context.desired.topology, &context.desired.scope.families);
    layout.wave(|layout| {
        let is_first = |binding: &&Binding| {
            dead_letter_exchanges.contains(&binding.source)
                && !recreated.iter().any(|id| binding.touches(id))
                && !switches.iter().any(|switch| switch.new == **binding)
                && !ends.after_wiring.contains(*binding)
        };
        for binding in changes.bindings.iter().filter(is_first) {
            layout.bind(binding, None);
        }
    });
    layout.switches(&switches);
    layout.wave(|layout| ends.before_wiring.iter().for_each(|binding| layout.unbind_one(binding)));
    layout.policies(rewiring);
    layout.migrate(builder);
    let is_migrated = |object: &Object| {
        builder.migrations.iter().any(|migration| object.id() == ObjectId::Queue(migration.queue.clone()))
    };
    changes.recreates.retain(|object| !is_migrated(object));
    for object in &changes.recreates {
        layout.recreate(object, &mut changes.bindings);
    }
    layout.wave(|layout| {
        for binding in &changes.bindings {
            layout.bind(binding, None);
        }
    });
    layout.wave(|layout| ends.instead_of_tiers.iter().for_each(|binding| layout.bind(binding, None)));
    layout.wave(Layout::unbind);
    layout.deletions(&changes.deletions, &deletions::retiring(builder));
    layout.records(&builder.changes, Moment::Last);
    layout.restore_auto_deleted();
    layout.steps
}

/// The steps so far, and the state of the vhost after them.
struct Layout<'a> {
    context: &'a PlanContext<'a>,
    steps: Vec<Step>,
    wave: usize,
    /// The step that creates each object.
    created_by: BTreeMap<ObjectId, usize>,
    /// The bindings that steps create, by destination.
    bound_to: BTreeMap<Destination, Vec<ObjectId>>,
    bound: BTreeSet<Binding>,
    /// The exchanges, with true for those that the broker deletes with their last binding.
    exchanges: BTreeMap<ExchangeName, bool>,
    /// The exchanges that the broker deletes with their last binding, each with the bindings to it.
    auto_deleted: Vec<(ExchangeName, BTreeSet<Binding>)>,
    queues: BTreeSet<QueueName>,
    undesired: BTreeSet<Binding>,
}

impl Layout<'_> {
    /// Opens a wave, and drops it if it stays empty.
    fn wave(&mut self, fill: impl FnOnce(&mut Self)) {
        self.wave += 1;
        let before = self.steps.len();
        fill(self);
        if self.steps.len() == before {
            self.wave -= 1;
        }
    }

    fn push(&mut self, action: Action, recreate: Option<&ObjectId>) {
        let id = self.steps.len() + 1;
        let object = action.object();
        let mut after: Vec<usize> =
            self.needs(&action).iter().filter_map(|need| self.created_by.get(need)).copied().collect();
        after.extend(recreate.and_then(|_| self.steps.last()).filter(|last| last.wave < self.wave).map(|last| last.id));
        after.sort_unstable();
        after.dedup();
        match &action {
            Action::DeclareExchange { name, exchange, .. } => {
                self.exchanges.insert(name.clone(), exchange.auto_delete);
                self.created_by.insert(object.clone(), id);
            }
            Action::DeclareQueue { name, .. } => {
                self.queues.insert(name.clone());
                self.created_by.insert(object.clone(), id);
            }
            Action::DeleteExchange { name } => {
                self.exchanges.remove(name);
                self.remove_bindings(auto_delete::matching(&self.bound, |binding| binding.touches_exchange(name)));
            }
            Action::DeleteQueue { name, .. } => {
                self.queues.remove(name);
                self.remove_bindings(auto_delete::matching(&self.bound, |binding| binding.touches_queue(name)));
            }
            Action::Bind { binding } => {
                self.bound.insert(binding.clone());
                self.created_by.insert(object.clone(), id);
                self.bound_to.entry(binding.destination.clone()).or_default().push(object.clone());
            }
            Action::Unbind { binding, .. } => self.remove_bindings(vec![binding.clone()]),
            Action::PutVhost { .. } | Action::PutPolicy { .. } | Action::PutRecord { .. } => {
                self.created_by.insert(object.clone(), id);
            }
            Action::PutTopicPermission { .. }
            | Action::DeletePolicy { .. }
            | Action::MoveMessages { .. }
            | Action::DeleteRecord { .. } => {}
        }
        self.steps.push(Step {
            id,
            wave: self.wave,
            after,
            recreate: recreate.cloned(),
            stage: None,
            address: self.context.address(&object),
            request: request(&self.context.current.vhost, &action),
            action,
        });
    }

    fn policies(&mut self, policies: BTreeMap<PolicyName, Policy>) {
        self.wave(|layout| {
            for (name, policy) in policies {
                layout.push(Action::PutPolicy { name, policy }, None);
            }
        });
    }

    /// Switches routing keys to another tier, all together, each atomically (`retries::switches`).
    fn switches(&mut self, switches: &[Switch]) {
        let ready: Vec<&Switch> = switches.iter().filter(|switch| self.has_both_ends(&switch.temporary)).collect();
        // An interrupted change left a binding on a switch. That binding would also receive the message as soon as the
        // exchange no longer matches the key.
        let is_stale = |binding: &&Binding| {
            let has_same_key =
                |other: &Binding| other.source == binding.source && other.routing_key == binding.routing_key;
            ready.iter().any(|switch| has_same_key(&switch.temporary) && switch.temporary != **binding)
        };
        let stale: Vec<Binding> = self.undesired.iter().filter(is_stale).cloned().collect();
        self.wave(|layout| stale.iter().for_each(|binding| layout.unbind_one(binding)));
        self.wave(|layout| ready.iter().for_each(|switch| layout.bind(&switch.temporary, None)));
        self.wave(|layout| ready.iter().for_each(|switch| layout.unbind_one(&switch.old)));
        self.wave(|layout| ready.iter().for_each(|switch| layout.bind(&switch.new, None)));
        self.wave(|layout| ready.iter().for_each(|switch| layout.unbind_one(&switch.temporary)));
    }

    fn remove_bindings(&mut self, lost: Vec<Binding>) {
        let Self { bound, exchanges, auto_deleted, .. } = self;
        let deleted = auto_delete::unbind(bound, lost, |name| exchanges.get(name) == Some(&true));
        for (name, _) in &deleted {
            exchanges.remove(name);
        }
        auto_deleted.extend(deleted);
    }

    /// Restores declared exchanges that the broker deleted with an undesired binding, and the bindings to them. No
    /// desired binding leads away from such an exchange, because it would have kept the exchange.
    fn restore_auto_deleted(&mut self) {
        let declared = &self.context.desired.topology.exchanges;
        let mut auto_deleted = std::mem::take(&mut self.auto_deleted);
        auto_deleted.retain(|(name, _)| declared.contains_key(name));
        let exchanges = auto_deleted.iter().map(|(name, _)| (name.clone(), declared[name].clone())).collect();
        self.exchanges(&exchanges);
        let context = self.context;
        self.wave(|layout| {
            for permission in auto_deleted.iter().flat_map(|(name, _)| topic_permissions::on(context, name)) {
                layout.push(Action::PutTopicPermission { permission }, None);
            }
        });
        self.wave(|layout| {
            for binding in auto_deleted.iter().flat_map(|(_, into)| into) {
                if !layout.undesired.contains(binding) {
                    layout.bind(binding, None);
                }
            }
        });
    }

    /// Returns the objects that an action needs.
    fn needs(&self, action: &Action) -> Vec<ObjectId> {
        let exchange = |name: &str| ObjectId::Exchange(ExchangeName::from(name));
        match action {
            Action::PutVhost { .. } => Vec::new(),
            Action::DeclareExchange { exchange: made, .. } => {
                let alternate = made.alternate_exchange().map(exchange);
                [ObjectId::Vhost].into_iter().chain(alternate).collect()
            }
            Action::DeclareQueue { queue, .. } => {
                let dead_letters = queue.arguments.get("x-dead-letter-exchange").and_then(|value| value.as_text());
                [ObjectId::Vhost].into_iter().chain(dead_letters.map(exchange)).collect()
            }
            Action::PutTopicPermission { .. } => vec![action.object()],
            Action::PutPolicy { .. } | Action::PutRecord { .. } => vec![ObjectId::Vhost],
            Action::Bind { binding } => {
                vec![ObjectId::Exchange(binding.source.clone()), binding.destination.id()]
            }
            // The replacement of a binding comes first.
            Action::Unbind { binding, .. } => self.bound_to.get(&binding.destination).cloned().unwrap_or_default(),
            Action::DeleteQueue { .. }
            | Action::DeleteExchange { .. }
            | Action::DeletePolicy { .. }
            | Action::MoveMessages { .. }
            | Action::DeleteRecord { .. } => Vec::new(),
        }
    }

    fn bind(&mut self, binding: &Binding, recreate: Option<&ObjectId>) {
        if !self.bound.contains(binding) && self.has_both_ends(binding) {
            self.push(Action::Bind { binding: binding.clone() }, recreate);
        }
    }

    fn has_both_ends(&self, binding: &Binding) -> bool {
        self.is_there(&ObjectId::Exchange(binding.source.clone())) && self.is_there(&binding.destination.id())
    }

    /// Returns true if an end of a binding exists after these steps.
    fn is_there(&self, id: &ObjectId) -> bool {
        match id {
            ObjectId::Exchange(name) => name.is_predeclared() || self.exchanges.contains_key(name),
            ObjectId::Queue(name) => self.queues.contains(name),
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => false,
        }
    }

    /// Declares exchanges in one wave for each link of a chain of alternates. Exchanges in a cycle come last, together.
    fn exchanges(&mut self, desired: &BTreeMap<ExchangeName, Exchange>) {
        let mut rest: Vec<&ExchangeName> = desired.keys().collect();
        while !rest.is_empty() {
            let open: BTreeSet<&str> = rest.iter().map(|name| name.as_str()).collect();
            let waits = |name: &ExchangeName| {
                desired[name].alternate_exchange().is_some_and(|alternate| open.contains(alternate))
            };
            let (later, mut now): (Vec<_>, Vec<_>) = rest.iter().copied().partition(|name| waits(name));
            rest = later;
            if now.is_empty() {
                now = std::mem::take(&mut rest);
            }
            self.wave(|layout| {
                for name in now {
                    layout.push(Action::declare_exchange(name, &desired[name]), None);
                }
            });
        }
    }

    fn unbind(&mut self) {
        for binding in self.undesired.clone() {
            self.unbind_one(&binding);
        }
    }

    fn unbind_one(&mut self, binding: &Binding) {
        if !self.bound.contains(binding) {
            return;
        }
        // The same JSON can describe several bindings on the broker (int32 and int64), each with its own key.
        let known = self.context.properties_keys.get(binding).cloned();
        // A binding that these steps create has no arguments.
        for properties_key in known.unwrap_or_else(|| vec![properties_key(&binding.routing_key)]) {
            self.push(Action::Unbind { binding: binding.clone(), properties_key }, None);
        }
    }
}
