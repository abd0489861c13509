//! Derives the remaining actions of a migration from the current state. The plan, the run and a run that resumes an
//! interrupted migration use the same pure function.

use super::{BEFORE, Goal, MIGRATES, Migration, Stage};
use crate::model::naming::MigrationNames;
use crate::model::{ArgumentValue, Arguments, Binding, Destination, Exchange, ExchangeName, QueueName, Topology};
use crate::plan::action::{Action, Guard, Level};
use crate::plan::request::properties_key;
use std::collections::{BTreeMap, BTreeSet};

/// An action of a migration, with its stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextAction {
    /// The stage.
    pub stage: Stage,
    /// The action.
    pub action: Action,
}

impl Migration {
    /// Returns all remaining actions, in order. Returns an empty list if the migration is complete, or if the goal is
    /// a rollback and the queue no longer exists.
    ///
    /// `live` is the current topology, and `keys` are the keys under which the broker lists each binding. `is_desired`
    /// is true if the current queue matches the desired queue; the value has no effect if the queue does not exist.
    ///
    /// A run can be killed after any action. In that case, another call returns the actions that are still required.
    pub fn remaining_actions(
        &self,
        live: &Topology,
        keys: &BTreeMap<Binding, Vec<String>>,
        is_desired: bool,
    ) -> Vec<NextAction> {
        let mut list =
            List { migration: self, names: self.names(), live, keys, bound: BTreeSet::new(), actions: Vec::new() };
        let involves = |binding: &&Binding| {
            let fanouts = list.fanouts();
            binding.leads_to_queue(&self.queue) || fanouts.iter().any(|fanout| binding.touches_exchange(fanout))
        };
        list.bound = live.bindings.iter().filter(involves).cloned().collect();
        let exists = live.queues.contains_key(&self.queue);
        if exists && !is_desired && self.goal == Goal::Recreate {
            list.finish_rollback();
            list.prepare();
            list.tap();
            list.drain();
            list.swap();
        } else if !exists && self.goal == Goal::Recreate {
            list.declare();
        }
        if exists || self.goal == Goal::Recreate {
            // If there was never a tap, the holding queues are empty, and only the cleanup is required. However, if no
            // binding routes to the queue, the tap may have been deleted.
            let was_tapped = [&list.names.tap, &list.names.back].iter().any(|name| list.has_exchange(name));
            let is_unrouted = list.has_exchange(&ExchangeName::new(&list.names.drained))
                && list.bindings_to(&list.queue()).is_empty();
            if self.goal == Goal::Recreate || was_tapped || is_unrouted {
                list.return_messages();
            }
            list.clean();
        }
        list.actions
    }
}

/// The actions so far, and the bindings after these actions.
struct List<'a> {
    migration: &'a Migration,
    names: MigrationNames,
    live: &'a Topology,
    keys: &'a BTreeMap<Binding, Vec<String>>,
    /// The bindings of the queue and of the migration objects, after the actions so far.
    bound: BTreeSet<Binding>,
    actions: Vec<NextAction>,
}

impl List<'_> {
    fn push(&mut self, stage: Stage, action: Action) {
        self.actions.push(NextAction { stage, action });
    }

    fn fanouts(&self) -> [ExchangeName; 4] {
        let MigrationNames { hold, drained, tap, back, .. } = &self.names;
        [tap.clone(), back.clone(), ExchangeName::new(hold), ExchangeName::new(drained)]
    }

    /// Returns the holding queues. The first holding queue marks the migration as incomplete, so it is created first
    /// and deleted last.
    fn holding_queues(&self) -> [QueueName; 2] {
        [QueueName::new(&self.names.hold), QueueName::new(&self.names.drained)]
    }

    fn has_queue(&self, name: &QueueName) -> bool {
        self.live.queues.contains_key(name)
            || self.has_action(|action| matches!(action, Action::DeclareQueue { name: made, .. } if made == name))
    }

    fn has_exchange(&self, name: &ExchangeName) -> bool {
        self.live.exchanges.contains_key(name)
            || self.has_action(|action| matches!(action, Action::DeclareExchange { name: made, .. } if made == name))
    }

    fn has_action(&self, matches: impl Fn(&Action) -> bool) -> bool {
        self.actions.iter().any(|next| matches(&next.action))
    }

    fn bind(&mut self, stage: Stage, binding: Binding) {
        if self.bound.insert(binding.clone()) {
            self.push(stage, Action::Bind { binding });
        }
    }

    fn unbind(&mut self, stage: Stage, binding: &Binding) {
        if !self.bound.remove(binding) {
            return;
        }
        // JSON does not distinguish int32 from int64 arguments, so several bindings on the broker can have the same
        // JSON. Each of these bindings has its own key.
        let keys = self.keys.get(binding).cloned().unwrap_or_else(|| vec![properties_key(&binding.routing_key)]);
        for properties_key in keys {
            self.push(stage, Action::Unbind { binding: binding.clone(), properties_key });
        }
    }

    /// Returns the bindings to a destination, except bindings from the migration's own exchanges.
    fn bindings_to(&self, destination: &Destination) -> Vec<Binding> {
        let fanouts = self.fanouts();
        let is_source = |binding: &&Binding| binding.destination == *destination && !fanouts.contains(&binding.source);
        self.bound.iter().filter(is_source).cloned().collect()
    }

    fn queue(&self) -> Destination {
        Destination::Queue(self.migration.queue.clone())
    }

    /// Completes a rollback in progress before the queue is drained again. The rollback has already returned the oldest
    /// messages to the queue. Draining the queue first would place these messages behind newer messages.
    fn finish_rollback(&mut self) {
        let returning = plain_binding(&self.names.back, self.queue());
        if !self.bound.contains(&returning) {
            return;
        }
        let [_, drained] = self.holding_queues();
        if self.has_queue(&drained) {
            let to = self.names.back.clone();
            self.push(Stage::Prepare, Action::MoveMessages { from: drained, to, until: Level::Empty });
        }
        self.unbind(Stage::Prepare, &returning);
    }

    /// Creates and binds the holding objects before the tap, because the broker silently drops messages if the tap's
    /// alternate exchange is missing.
    fn prepare(&mut self) {
        let Migration { queue, holding, shield, .. } = self.migration;
        if let Some(shield) = shield
            && self.live.policies.get(&self.names.shield) != Some(shield)
        {
            self.push(Stage::Prepare, Action::PutPolicy { name: self.names.shield.clone(), policy: shield.clone() });
        }
        let before =
            self.live.queues.get(queue).map(|old| {
                (BEFORE, ArgumentValue::Text(serde_json::to_string(old).expect("JSON can represent a queue")))
            });
        let [hold, drained] = self.holding_queues();
        for (name, more) in [(&hold, before), (&drained, None)] {
            if !self.has_queue(name) {
                if *name == drained {
                    self.probe();
                }
                let mut holding = holding.clone();
                holding.arguments.insert(MIGRATES.to_owned(), ArgumentValue::Text(queue.as_str().to_owned()));
                holding.arguments.extend(more.map(|(name, value)| (name.to_owned(), value)));
                self.push(Stage::Prepare, Action::DeclareQueue { name: name.clone(), queue: holding });
            }
            let exchange = ExchangeName::new(name.as_str());
            self.declare_fanout(Stage::Prepare, &exchange, &exchange);
            self.bind(Stage::Prepare, plain_binding(&exchange, Destination::Queue(name.clone())));
        }
        let tap = self.names.tap.clone();
        self.declare_fanout(Stage::Prepare, &tap, &ExchangeName::new(&self.names.hold));
        // If the tap is already bound to a source, new messages may already be routed to the holding queue. In that
        // case, the queue must not be bound to the tap again.
        if self.bindings_to(&Destination::Exchange(tap.clone())).is_empty() {
            self.bind(Stage::Prepare, plain_binding(&tap, self.queue()));
        }
    }

    /// Declares the new queue under a different name, as a probe, and deletes the probe. If the broker refuses the new
    /// queue, for example because of a missing permission for its dead-letter exchange, the migration stops before
    /// clients are affected.
    ///
    /// The probe is declared after the first holding queue, which marks the migration as incomplete, and before the
    /// second holding queue. The migration therefore never requires more than two additional queues at a time.
    fn probe(&mut self) {
        let Migration { queue, desired, .. } = self.migration;
        let name = QueueName::new(&self.names.probe);
        if self.has_queue(&name) {
            self.delete_probe(Stage::Prepare);
        }
        let mut probe = desired.clone();
        probe.arguments.insert(MIGRATES.to_owned(), ArgumentValue::Text(queue.as_str().to_owned()));
        self.push(Stage::Prepare, Action::DeclareQueue { name, queue: probe });
        self.delete_probe(Stage::Prepare);
    }

    /// Deletes the probe, which has no bindings and is therefore empty.
    fn delete_probe(&mut self, stage: Stage) {
        let name = QueueName::new(&self.names.probe);
        self.push(stage, Action::DeleteQueue { name, guard: Guard::Nothing });
    }

    /// Declares a fanout exchange. An argument sets the alternate exchange, because arguments take precedence over
    /// policies. If the exchange is its own alternate, the broker returns unroutable messages to the transport.
    fn declare_fanout(&mut self, stage: Stage, name: &ExchangeName, alternate: &ExchangeName) {
        if !self.has_exchange(name) {
            self.push(stage, Action::declare_exchange(name, &fanout(&self.migration.queue, alternate)));
        }
    }

    /// Moves the bindings to the tap. While both bindings exist, the broker routes each message to the queue only once.
    fn tap(&mut self) {
        self.move_bindings(Stage::Tap, self.queue(), Destination::Exchange(self.names.tap.clone()));
    }

    /// Moves all bindings from one destination to another. Creates all new bindings before it deletes the first old
    /// binding, so that a single read after the binds can detect concurrent changes.
    fn move_bindings(&mut self, stage: Stage, from: Destination, to: Destination) {
        let bindings = self.bindings_to(&from);
        for binding in &bindings {
            self.bind(stage, Binding { destination: to.clone(), ..binding.clone() });
        }
        for binding in &bindings {
            self.unbind(stage, binding);
        }
    }

    fn drain(&mut self) {
        self.unbind(Stage::Drain, &plain_binding(&self.names.tap, self.queue()));
        let to = ExchangeName::new(&self.names.drained);
        self.push(Stage::Drain, Action::MoveMessages { from: self.migration.queue.clone(), to, until: Level::Empty });
    }

    fn swap(&mut self) {
        let name = self.migration.queue.clone();
        self.bound.retain(|binding| !binding.leads_to_queue(&name));
        self.push(Stage::Swap, Action::DeleteQueue { name, guard: Guard::Empty });
        self.declare();
    }

    fn declare(&mut self) {
        let Migration { queue: name, desired, .. } = self.migration;
        self.push(Stage::Swap, Action::DeclareQueue { name: name.clone(), queue: desired.clone() });
    }

    fn return_messages(&mut self) {
        let [hold, drained] = self.holding_queues();
        let MigrationNames { tap, back, .. } = self.names.clone();
        let held: Vec<(QueueName, Level)> = [(drained, Level::Empty), (hold.clone(), Level::NearlyEmpty)]
            .into_iter()
            .filter(|(name, _)| self.has_queue(name))
            .collect();
        if !held.is_empty() {
            self.declare_fanout(Stage::Return, &back, &back);
            self.bind(Stage::Return, plain_binding(&back, self.queue()));
            for (from, until) in held {
                self.push(Stage::Return, Action::MoveMessages { from, to: back.clone(), until });
            }
        }
        if self.has_exchange(&tap) {
            self.bind(Stage::Return, plain_binding(&tap, self.queue()));
            self.move_bindings(Stage::Return, Destination::Exchange(tap), self.queue());
        }
        if self.has_queue(&hold) {
            self.push(Stage::Return, Action::MoveMessages { from: hold, to: back, until: Level::Empty });
        }
    }

    fn clean(&mut self) {
        let [hold, drained] = self.holding_queues();
        let MigrationNames { tap, back, shield, probe, .. } = self.names.clone();
        let probe = QueueName::new(probe);
        for name in [tap, ExchangeName::new(hold.as_str()), ExchangeName::new(drained.as_str()), back] {
            if self.has_exchange(&name) {
                self.push(Stage::Clean, Action::DeleteExchange { name });
            }
        }
        let is_probed = self.has_action(|action| matches!(action, Action::DeleteQueue { name, .. } if *name == probe));
        if self.live.queues.contains_key(&probe) && !is_probed {
            self.delete_probe(Stage::Clean);
        }
        let delete = |name: QueueName| Action::DeleteQueue { name, guard: Guard::Empty };
        if self.has_queue(&drained) {
            self.push(Stage::Clean, delete(drained));
        }
        let is_shielded = self.live.policies.contains_key(&shield)
            || self.has_action(|action| matches!(action, Action::PutPolicy { .. }));
        if is_shielded {
            self.push(Stage::Clean, Action::DeletePolicy { name: shield });
        }
        if self.has_queue(&hold) {
            self.push(Stage::Clean, delete(hold));
        }
    }
}

/// Returns a fanout exchange for the migration of `queue`, with this alternate exchange.
pub(super) fn fanout(queue: &QueueName, alternate: &ExchangeName) -> Exchange {
    let text = |it: &str| ArgumentValue::Text(it.to_owned());
    let arguments = [(MIGRATES, queue.as_str()), ("alternate-exchange", alternate.as_str())];
    let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), text(value))).collect();
    Exchange { kind: "fanout".to_owned(), durable: true, auto_delete: false, internal: false, arguments }
}

fn plain_binding(source: &ExchangeName, destination: Destination) -> Binding {
    Binding { source: source.clone(), destination, routing_key: String::new(), arguments: Arguments::new() }
}
