//! Expands dead-lettering. An entry in `deadLetterQueues` becomes a queue, an exchange and a binding. `deadLetter`
//! becomes queue arguments or a generated policy.

use super::case::FinalTarget;
use super::origin::CreatedFor;
use super::{Expander, text};
use crate::model::{
    Arguments, Binding, Destination, Exchange, ExchangeName, ObjectId, Queue, QueueName, QueueType, naming,
};
use crate::rabbitmq::{Governed, Policies, predeclared_type, wiring_policy};
use crate::spec::{DeadLetter, DeadLetterQueueSpec, Diagnostic, QueueSpec, Wiring};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The exchange and the routing key with which a queue dead-letters messages.
pub(super) struct Target {
    pub(super) exchange: ExchangeName,
    pub(super) routing_key: Option<String>,
}

impl Expander<'_> {
    /// Creates the exchange and the binding of each dead-letter queue.
    pub(super) fn dead_letter_queues(&mut self) {
        let mut generated: BTreeMap<ExchangeName, SharedExchange<'_>> = BTreeMap::new();
        for (name, declaration) in &self.spec.dead_letter_queues {
            let exchange = declaration.exchange(name);
            let at = declaration.exchange_name.as_ref().map_or(declaration.queue.at, |it| it.at);
            if declaration.queue.is_external {
                self.scope.external.insert(ObjectId::Exchange(exchange.clone()));
                self.scope.external_dead_letter_queues.insert(name.clone(), exchange);
                continue;
            }
            if declaration.is_exchange_declared {
                continue;
            }
            let exchange_settings = Exchange {
                kind: declaration.exchange_type.value.clone(),
                durable: true,
                auto_delete: false,
                internal: declaration.exchange_internal,
                arguments: Arguments::new(),
            };
            let binding = Binding {
                source: exchange.clone(),
                destination: Destination::Queue(name.clone()),
                routing_key: binding_key(name, declaration),
                arguments: Arguments::new(),
            };
            match generated.entry(exchange.clone()) {
                Entry::Vacant(vacant) => {
                    vacant.insert(SharedExchange::new(name, declaration));
                    let because = CreatedFor::DeadLetterExchange(name.clone());
                    self.add_generated_exchange(exchange, exchange_settings, at, because);
                }
                Entry::Occupied(shared) => {
                    if let Err((other, message, hint)) = shared.into_mut().add(name, declaration) {
                        let other_at = self.spec.dead_letter_queues.get(other).map_or(at, |it| it.queue.at);
                        let diagnostic = Diagnostic::error("generated-name", message, at);
                        self.diagnostics.push(diagnostic.also(other_at, "this queue uses the exchange").hint(hint));
                    }
                }
            }
            // If the spec also declares this binding, the declaration remains its origin.
            if self.topology.bindings.insert(binding.clone()) {
                let because = CreatedFor::DeadLetterBinding(name.clone());
                self.record_origin(ObjectId::Binding(binding), declaration.queue.at, because);
            }
        }
    }

    /// Disables the delivery limit of a quorum dead-letter queue on RabbitMQ 4.0 and later, unless the spec sets a
    /// limit.
    ///
    /// On 4.0 and later, a quorum queue without an explicit limit drops a message after 21 deliveries (measured on
    /// 4.0). Repeated inspections that requeue a dead-lettered message would therefore delete the message. On 4.3, a
    /// message even keeps its delivery count when it is dead-lettered. Before 4.0, a limit of -1 allows one delivery.
    pub(super) fn disable_delivery_limit(&mut self, name: &QueueName, queue: &mut Queue) {
        const LIMIT: &str = "x-delivery-limit";
        let is_quorum = queue.queue_type() == Some(QueueType::Quorum);
        if is_quorum && self.profile.version.is_at_least(4, 0) && !queue.arguments.contains_key(LIMIT) {
            queue.arguments.insert(LIMIT.to_owned(), (-1).into());
            self.scope.optional.entry(name.clone()).or_default().insert(LIMIT.to_owned());
        }
    }

    /// Returns the dead-letter arguments of a queue. Returns no arguments if the queue has no dead-letter target, or if
    /// a policy sets the target.
    pub(super) fn dead_letter_arguments(&self, name: &QueueName, queue: &QueueSpec) -> Arguments {
        match self.target(name, queue, Wiring::Arguments) {
            Some(target) => wiring(target, "x-"),
            None => Arguments::new(),
        }
    }

    /// Creates the dead-letter policy of each queue with `wiring: policy`. The policy also contains the other keys of
    /// the declared policy that governs the queue. `plan::wiring` recomputes the policy based on the policies on the
    /// broker.
    pub(super) fn wiring_policies(&mut self) {
        let declared = self.topology.policies.clone();
        let policies = Policies::new(&declared, self.profile.version);
        let dead_letter_queues = self.spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
        for (name, queue) in self.spec.queues.iter().chain(dead_letter_queues) {
            let Some((target, setting)) = self.target(name, queue, Wiring::Policy).zip(queue.dead_letter.as_ref())
            else {
                continue;
            };
            let kind = queue.queue_type.as_ref().map(|it| it.value);
            let matching = policies.matching(name.as_str(), Governed::Queue(kind));
            if let Some(uncertain) = matching.iter().find(|it| !it.is_certain) {
                let policy = uncertain.named.name;
                let at = self.spec.policies.get(policy).map_or(setting.at, |it| it.pattern.at);
                let message = format!("topo cannot evaluate the pattern of policy `{policy}`");
                let hint = format!(
                    "topo must merge this policy into the one that it generates for queue `{name}`: use \
                     `wiring: arguments` for the queue, or a simpler pattern"
                );
                let diagnostic =
                    Diagnostic::error("pattern", message, at).also(setting.at, "this queue uses `wiring: policy`");
                self.diagnostics.push(diagnostic.hint(hint));
                continue;
            }
            let policy = wiring_policy(name, &matching, wiring(target, ""));
            self.add_generated_policy(naming::dead_letter_policy(name), policy, setting.at, name);
        }
    }

    /// Returns the dead-letter target of a queue. Returns `None` if the queue has no target or does not use `wiring`.
    fn target(&self, name: &QueueName, queue: &QueueSpec, wiring: Wiring) -> Option<Target> {
        queue.dead_letter.as_ref().filter(|setting| setting.value.wiring() == Some(wiring))?;
        match self.guard_exchange(name) {
            // Without a dead-letter routing key, a retried message keeps its own key, which contains the retry number.
            Some(exchange) => Some(Target { exchange, routing_key: None }),
            None => self.final_target(queue).as_ref().map(Target::from),
        }
    }

    /// Returns the final target of the messages that a queue dead-letters. Returns `None` if the queue has no target.
    pub(super) fn final_target(&self, queue: &QueueSpec) -> Option<FinalTarget> {
        match &queue.dead_letter.as_ref()?.value {
            DeadLetter::Nowhere => None,
            DeadLetter::Exchange { exchange, routing_key, .. } => {
                let description = match exchange.as_str() {
                    "" => format!("queue {}", routing_key.as_deref().unwrap_or("named by the routing key")),
                    name => format!("exchange {name}"),
                };
                let kind = self.kind_of(exchange);
                Some(FinalTarget {
                    exchange: exchange.clone(),
                    routing_key: routing_key.clone(),
                    kind,
                    queue: None,
                    description,
                })
            }
            DeadLetter::Queue { name, .. } => {
                let declaration = self.spec.dead_letter_queues.get(name)?;
                // Without a dead-letter routing key, messages keep their own keys, and a direct exchange would not
                // route them.
                let is_direct = declaration.exchange_type.value == "direct";
                let routing_key =
                    (is_direct || declaration.routing_key.is_some()).then(|| binding_key(name, declaration));
                let exchange = declaration.exchange(name);
                Some(FinalTarget {
                    exchange,
                    routing_key,
                    kind: Some(declaration.exchange_type.value.clone()),
                    queue: Some(name.clone()),
                    description: name.to_string(),
                })
            }
        }
    }

    /// Returns the type of an exchange that the spec declares, that a dead-letter queue uses, or that the broker
    /// predeclares. Returns `None` for all other exchanges.
    fn kind_of(&self, exchange: &ExchangeName) -> Option<String> {
        let spec = self.spec;
        let declared = spec.exchanges.get(exchange).filter(|it| !it.is_external).map(|it| it.kind.value.clone());
        let of_dead_letter_queue = || {
            let mut entries = spec.dead_letter_queues.iter();
            let entry = entries.find(|(name, declaration)| declaration.exchange(name) == *exchange);
            entry.map(|(_, declaration)| declaration.exchange_type.value.clone())
        };
        declared.or_else(of_dead_letter_queue).or_else(|| predeclared_type(exchange).map(str::to_owned))
    }
}

/// Returns the routing key that binds a dead-letter queue to its exchange.
fn binding_key(name: &QueueName, declaration: &DeadLetterQueueSpec) -> String {
    match (&declaration.routing_key, declaration.exchange_type.value.as_str()) {
        (Some(key), _) => key.clone(),
        (None, "topic") => "#".to_owned(),
        (None, "direct") => name.as_str().to_owned(),
        (None, _) => String::new(),
    }
}

/// The dead-letter queues that are bound to one exchange.
struct SharedExchange<'a> {
    first: (&'a QueueName, &'a DeadLetterQueueSpec),
    /// The queues that the exchange distinguishes by routing key, indexed by that key.
    by_key: BTreeMap<String, &'a QueueName>,
}

impl<'a> SharedExchange<'a> {
    fn new(name: &'a QueueName, declaration: &'a DeadLetterQueueSpec) -> Self {
        Self {
            first: (name, declaration),
            by_key: distinct_key(name, declaration).map(|key| (key, name)).into_iter().collect(),
        }
    }

    /// Adds a queue. If the queue conflicts with an earlier queue, returns the earlier queue, the reason and a hint.
    fn add(
        &mut self,
        name: &'a QueueName,
        declaration: &DeadLetterQueueSpec,
    ) -> Result<(), (&'a QueueName, String, &'static str)> {
        let exchange = declaration.exchange(name);
        let (first, first_entry) = self.first;
        let settings = |it: &DeadLetterQueueSpec| (it.exchange_type.value.clone(), it.exchange_internal);
        if settings(declaration) != settings(first_entry) {
            let message = format!("dead-letter queue `{first}` uses exchange `{exchange}` with different settings");
            return Err((
                first,
                message,
                "set the same `type` and `internal` for both queues, or use a separate exchange for each",
            ));
        }
        // A queue without a distinct key receives messages for other queues too.
        let other = match distinct_key(name, declaration) {
            Some(key) if !self.by_key.is_empty() => self.by_key.insert(key, name),
            Some(_) | None => Some(first),
        };
        let Some(other) = other else { return Ok(()) };
        let message =
            format!("exchange `{exchange}` would route every dead-lettered message for `{other}` to this queue too");
        let hint = "use a separate exchange for each queue, or set `type: direct` for both queues and a different \
                    `routingKey` for each";
        Err((other, message, hint))
    }
}

/// Returns the routing key by which an exchange distinguishes a dead-letter queue from other queues. Returns `None` if
/// the exchange does not distinguish the queues. topo sets this key as the dead-letter routing key.
fn distinct_key(name: &QueueName, declaration: &DeadLetterQueueSpec) -> Option<String> {
    match declaration.exchange_type.value.as_str() {
        "direct" => Some(binding_key(name, declaration)),
        "topic" => declaration.routing_key.clone().filter(|key| !key.contains(['*', '#'])),
        _ => None,
    }
}

/// Returns the dead-letter exchange and routing key as queue arguments (prefix `x-`) or as policy keys (no prefix).
fn wiring(target: Target, prefix: &str) -> Arguments {
    let mut arguments = Arguments::new();
    arguments.insert(format!("{prefix}dead-letter-exchange"), text(target.exchange.as_str()));
    if let Some(key) = target.routing_key {
        arguments.insert(format!("{prefix}dead-letter-routing-key"), text(&key));
    }
    arguments
}

impl From<&FinalTarget> for Target {
    fn from(target: &FinalTarget) -> Self {
        Self { exchange: target.exchange.clone(), routing_key: target.routing_key.clone() }
    }
}
