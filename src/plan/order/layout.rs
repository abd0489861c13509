//! Collects the steps of a plan, and tracks which objects and bindings exist after each step. Deleting an object also
//! deletes its bindings and possibly auto-delete exchanges.

use crate::model::{
    Binding, Destination, Exchange, ExchangeName, ObjectId, Policy, PolicyName, Queue, QueueName, Topology,
};
use crate::plan::action::Action;
use crate::plan::context::PlanContext;
use crate::plan::document::Step;
use crate::plan::request::{properties_key, request};
use crate::plan::retries::Switch;
use crate::plan::{simulate, topic_permissions};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The steps so far, and the vhost after these steps.
pub(super) struct Layout<'a> {
    pub(super) context: &'a PlanContext<'a>,
    pub(super) steps: Vec<Step>,
    /// The number of the current wave or, between waves, of the last wave.
    pub(super) wave: usize,
    /// The step that creates each object.
    pub(super) created_by: BTreeMap<ObjectId, usize>,
    /// The bindings that steps create, by destination.
    pub(super) bound_to: BTreeMap<Destination, Vec<ObjectId>>,
    /// The vhost after the steps so far.
    pub(super) state: Cow<'a, Topology>,
    /// The exchanges that the broker deletes together with their last binding, each with the bindings to the exchange.
    pub(super) auto_deleted: Vec<(ExchangeName, BTreeSet<Binding>)>,
    /// The bindings that separate steps delete.
    pub(super) undesired: BTreeSet<Binding>,
}

impl Layout<'_> {
    /// Adds a wave that contains the steps that `fill` adds. Adds no wave if there are no such steps.
    pub(super) fn wave(&mut self, fill: impl FnOnce(&mut Self)) {
        self.wave += 1;
        let before = self.steps.len();
        fill(self);
        if self.steps.len() == before {
            self.wave -= 1;
        }
    }

    pub(super) fn push(&mut self, action: Action, recreate: Option<&ObjectId>) {
        let id = self.steps.len() + 1;
        let object = action.object();
        let mut after: Vec<usize> =
            self.prerequisites(&action).iter().filter_map(|id| self.created_by.get(id)).copied().collect();
        after.extend(recreate.and_then(|_| self.steps.last()).filter(|last| last.wave < self.wave).map(|last| last.id));
        after.sort_unstable();
        after.dedup();
        match &action {
            Action::Bind { binding } => {
                self.created_by.insert(object.clone(), id);
                self.bound_to.entry(binding.destination.clone()).or_default().push(object.clone());
            }
            Action::DeclareExchange { .. }
            | Action::DeclareQueue { .. }
            | Action::PutVhost { .. }
            | Action::PutPolicy { .. }
            | Action::PutRecord { .. } => {
                self.created_by.insert(object.clone(), id);
            }
            Action::DeleteExchange { .. }
            | Action::DeleteQueue { .. }
            | Action::Unbind { .. }
            | Action::PutTopicPermission { .. }
            | Action::DeletePolicy { .. }
            | Action::MoveMessages { .. }
            | Action::DeleteRecord { .. } => {}
        }
        // `simulate::check` reports an impossible step.
        if let Ok(deleted) = simulate::perform(self.state.to_mut(), &action) {
            self.auto_deleted.extend(deleted);
        }
        self.steps.push(Step {
            is_deferred: false,
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

    pub(super) fn queues(&mut self, queues: BTreeMap<QueueName, Queue>) {
        self.wave(|layout| {
            for (name, queue) in queues {
                layout.push(Action::DeclareQueue { name, queue }, None);
            }
        });
    }

    /// Adds the bindings that do not exist yet and whose source and destination exist.
    pub(super) fn bindings<'b>(&mut self, bindings: impl IntoIterator<Item = &'b Binding>) {
        self.wave(|layout| {
            for binding in bindings {
                layout.bind(binding, None);
            }
        });
    }

    pub(super) fn policies(&mut self, policies: BTreeMap<PolicyName, Policy>) {
        self.wave(|layout| {
            for (name, policy) in policies {
                layout.push(Action::PutPolicy { name, policy }, None);
            }
        });
    }

    /// Switches routing keys to different tiers. All keys are switched in the same waves, and each key is switched
    /// atomically (see `retries::generations`).
    pub(super) fn switches(&mut self, switches: &[Switch]) {
        let ready: Vec<&Switch> =
            switches.iter().filter(|switch| self.has_source_and_destination(&switch.temporary)).collect();
        // A binding that an interrupted change left on a switch exchange is stale. Such a binding would also route
        // messages as soon as messages with its key reach the switch exchange.
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

    /// Restores the declared exchanges that the broker deletes together with an undesired binding. Also restores the
    /// topic permissions on these exchanges, and the bindings to them. No desired binding has such an exchange as its
    /// source, because such a binding would prevent the deletion.
    pub(super) fn restore_auto_deleted(&mut self) {
        let declared = &self.context.desired.topology.exchanges;
        let mut auto_deleted = std::mem::take(&mut self.auto_deleted);
        auto_deleted.retain(|(name, _)| declared.contains_key(name));
        let exchanges = auto_deleted.iter().map(|(name, _)| (name.clone(), declared[name].clone())).collect();
        self.exchanges(&exchanges);
        let context = self.context;
        self.wave(|layout| {
            for permission in auto_deleted.iter().flat_map(|(name, _)| topic_permissions::on_exchange(context, name)) {
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

    /// Returns the objects that must be created before the action, if the plan creates them.
    pub(super) fn prerequisites(&self, action: &Action) -> Vec<ObjectId> {
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
            // A binding that replaces the deleted binding is created first.
            Action::Unbind { binding, .. } => self.bound_to.get(&binding.destination).cloned().unwrap_or_default(),
            Action::DeleteQueue { .. }
            | Action::DeleteExchange { .. }
            | Action::DeletePolicy { .. }
            | Action::MoveMessages { .. }
            | Action::DeleteRecord { .. } => Vec::new(),
        }
    }

    pub(super) fn bind(&mut self, binding: &Binding, recreate: Option<&ObjectId>) {
        if !self.state.bindings.contains(binding) && self.has_source_and_destination(binding) {
            self.push(Action::Bind { binding: binding.clone() }, recreate);
        }
    }

    pub(super) fn has_source_and_destination(&self, binding: &Binding) -> bool {
        self.has_object(&ObjectId::Exchange(binding.source.clone())) && self.has_object(&binding.destination.id())
    }

    /// Returns true if an exchange or a queue exists after the steps so far. Returns false for other objects.
    pub(super) fn has_object(&self, id: &ObjectId) -> bool {
        match id {
            ObjectId::Exchange(name) => name.is_predeclared() || self.state.exchanges.contains_key(name),
            ObjectId::Queue(name) => self.state.queues.contains_key(name),
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => false,
        }
    }

    /// Declares exchanges, each in a later wave than its alternate exchange. Exchanges whose alternate exchanges form a
    /// cycle are declared together in the last wave.
    pub(super) fn exchanges(&mut self, desired: &BTreeMap<ExchangeName, Exchange>) {
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

    pub(super) fn unbind(&mut self) {
        for binding in self.undesired.clone() {
            self.unbind_one(&binding);
        }
    }

    pub(super) fn unbind_one(&mut self, binding: &Binding) {
        if !self.state.bindings.contains(binding) {
            return;
        }
        // JSON does not distinguish int32 from int64 arguments, so several bindings on the broker can have the same
        // JSON. Each of these bindings has its own key.
        let known = self.context.properties_keys.get(binding).cloned();
        // A binding that an earlier step created has no arguments.
        for properties_key in known.unwrap_or_else(|| vec![properties_key(&binding.routing_key)]) {
            self.push(Action::Unbind { binding: binding.clone(), properties_key }, None);
        }
    }
}
