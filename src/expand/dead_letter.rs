//! Dead letters: an entry of `deadLetterQueues` into an exchange and a binding beside its queue, and `deadLetter` into
//! arguments of the queue, or into a policy of its own.

use super::case::End;
use super::origin::CreatedFor;
use super::{Expander, text};
use crate::model::naming;
use crate::model::{Arguments, Binding, Destination, Exchange, ExchangeName, ObjectId, Queue, QueueName, QueueType};
use crate::rabbitmq::{Governed, Policies, predeclared_type, wiring_policy};
use crate::spec::{DeadLetter, DeadLetterQueueSpec, Diagnostic, QueueSpec, Wiring};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Where a queue sends its dead letters.
pub(super) struct Target {
    pub(super) exchange: ExchangeName,
    pub(super) routing_key: Option<String>,
}

impl Expander<'_> {
    /// The exchanges of dead-letter queues, and the bindings from them.
    pub(super) fn dead_letter_queues(&mut self) {
        let mut made: BTreeMap<ExchangeName, Behind<'_>> = BTreeMap::new();
        for (name, written) in &self.spec.dead_letter_queues {
            let exchange = exchange_of(name, written);
            let at = written.exchange_name.as_ref().map_or(written.queue.at, |it| it.at);
            if written.queue.is_external {
                self.scope.external.insert(ObjectId::Exchange(exchange.clone()));
                self.scope.external_dead_letter_queues.insert(name.clone(), exchange);
                continue;
            }
            let generated = Exchange {
                kind: written.exchange_type.value.clone(),
                durable: true,
                auto_delete: false,
                internal: written.exchange_internal,
                arguments: Arguments::new(),
            };
            let binding = Binding {
                source: exchange.clone(),
                destination: Destination::Queue(name.clone()),
                routing_key: binding_key(name, written),
                arguments: Arguments::new(),
            };
            match made.entry(exchange.clone()) {
                Entry::Vacant(vacant) => {
                    vacant.insert(Behind::new(name, written));
                    let because = CreatedFor::DeadLetterExchange(name.clone());
                    self.add_generated_exchange(exchange, generated, at, because);
                }
                Entry::Occupied(behind) => {
                    if let Err((other, message, hint)) = behind.into_mut().share(name, written) {
                        let other_at = self.spec.dead_letter_queues.get(other).map_or(at, |it| it.queue.at);
                        let diagnostic = Diagnostic::error("generated-name", message, at);
                        self.diagnostics.push(diagnostic.also(other_at, "this queue uses the exchange").hint(hint));
                    }
                }
            }
            // The same binding may be declared; then the declaration is its origin.
            if self.topology.bindings.insert(binding.clone()) {
                let because = CreatedFor::DeadLetterBinding(name.clone());
                self.note(ObjectId::Binding(binding), written.queue.at, because);
            }
        }
    }

    /// From 4.0 a quorum queue drops what was delivered 21 times, unless it is told otherwise: people who look at a dead
    /// letter and put it back would destroy it (measured on 4.0; on 4.3 the count even travels with the message). Before
    /// 4.0, -1 means one delivery.
    pub(super) fn keep_dead_letters(&mut self, name: &QueueName, queue: &mut Queue) {
        const LIMIT: &str = "x-delivery-limit";
        let is_quorum = queue.queue_type() == Some(QueueType::Quorum);
        if is_quorum && self.profile.version.is_at_least(4, 0) && !queue.arguments.contains_key(LIMIT) {
            queue.arguments.insert(LIMIT.to_owned(), (-1).into());
            self.scope.optional.entry(name.clone()).or_default().insert(LIMIT.to_owned());
        }
    }

    /// Returns the dead-letter arguments of a queue; none if a policy sets them.
    pub(super) fn dead_letter_arguments(&self, name: &QueueName, queue: &QueueSpec) -> Arguments {
        match self.target(name, queue, Wiring::Arguments) {
            Some(target) => wire(target, "x-"),
            None => Arguments::new(),
        }
    }

    /// A policy for each queue with `wiring: policy`, beside the policies of the spec. What else is live is known when it
    /// is planned (`plan::wiring`).
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
            let fitting = policies.fitting(name.as_str(), Governed::Queue(kind));
            if let Some(unclear) = fitting.iter().find(|fit| !fit.is_certain) {
                let policy = unclear.named.name;
                let at = self.spec.policies.get(policy).map_or(setting.at, |it| it.pattern.at);
                let message = format!("the pattern of policy `{policy}` cannot be evaluated here");
                let hint = format!(
                    "topo must merge this policy with the one for queue `{name}`: use \
                     `wiring: arguments` there, or a simpler pattern"
                );
                let diagnostic =
                    Diagnostic::error("pattern", message, at).also(setting.at, "this queue uses `wiring: policy`");
                self.diagnostics.push(diagnostic.hint(hint));
                continue;
            }
            let policy = wiring_policy(name, &fitting, wire(target, ""));
            self.add_generated_policy(naming::dead_letter_policy(name), policy, setting.at, name);
        }
    }

    /// Returns the dead-letter target of a queue with this wiring, if it has one.
    fn target(&self, name: &QueueName, queue: &QueueSpec, by: Wiring) -> Option<Target> {
        queue.dead_letter.as_ref().filter(|setting| setting.value.wiring() == Some(by))?;
        match self.guard_of(name) {
            // No key: the one that a message has says how often it was tried.
            Some(exchange) => Some(Target { exchange, routing_key: None }),
            None => self.end(queue).as_ref().map(Target::from),
        }
    }

    /// Returns the final dead-letter target of a queue, if it has one.
    pub(super) fn end(&self, queue: &QueueSpec) -> Option<End> {
        match &queue.dead_letter.as_ref()?.value {
            DeadLetter::Nowhere => None,
            DeadLetter::Exchange { exchange, routing_key, .. } => {
                let shown = match exchange.as_str() {
                    "" => format!("queue {}", routing_key.as_deref().unwrap_or("of the key")),
                    name => format!("exchange {name}"),
                };
                let kind = self.kind_of(exchange);
                Some(End { exchange: exchange.clone(), routing_key: routing_key.clone(), kind, queue: None, shown })
            }
            DeadLetter::Queue { name, .. } => {
                let written = self.spec.dead_letter_queues.get(name)?;
                // Dead letters keep their own keys, which a direct exchange would not know.
                let is_direct = written.exchange_type.value == "direct";
                let routing_key = (is_direct || written.routing_key.is_some()).then(|| binding_key(name, written));
                let exchange = exchange_of(name, written);
                Some(End {
                    exchange,
                    routing_key,
                    kind: Some(written.exchange_type.value.clone()),
                    queue: Some(name.clone()),
                    shown: name.to_string(),
                })
            }
        }
    }

    /// The type of an exchange, as far as the spec or the broker says it.
    fn kind_of(&self, exchange: &ExchangeName) -> Option<String> {
        let spec = self.spec;
        let declared = spec.exchanges.get(exchange).filter(|it| !it.is_external).map(|it| it.kind.value.clone());
        let of_dead_letter_queue = || {
            let mut entries = spec.dead_letter_queues.iter();
            let entry = entries.find(|(name, written)| exchange_of(name, written) == *exchange);
            entry.map(|(_, written)| written.exchange_type.value.clone())
        };
        declared.or_else(of_dead_letter_queue).or_else(|| predeclared_type(exchange).map(str::to_owned))
    }
}

fn exchange_of(name: &QueueName, written: &DeadLetterQueueSpec) -> ExchangeName {
    written.exchange_name.as_ref().map_or_else(|| naming::dead_letter_exchange(name), |it| it.value.clone())
}

/// The key that binds a dead-letter queue to its exchange.
fn binding_key(name: &QueueName, written: &DeadLetterQueueSpec) -> String {
    match (&written.routing_key, written.exchange_type.value.as_str()) {
        (Some(key), _) => key.clone(),
        (None, "topic") => "#".to_owned(),
        (None, "direct") => name.as_str().to_owned(),
        (None, _) => String::new(),
    }
}

/// The dead-letter queues behind one exchange.
struct Behind<'a> {
    first: (&'a QueueName, &'a DeadLetterQueueSpec),
    /// Those that are bound with a key of their own.
    by_key: BTreeMap<String, &'a QueueName>,
}

impl<'a> Behind<'a> {
    fn new(name: &'a QueueName, written: &'a DeadLetterQueueSpec) -> Self {
        Self { first: (name, written), by_key: own_key(name, written).map(|key| (key, name)).into_iter().collect() }
    }

    /// Adds a queue, or returns the queue that it conflicts with, the reason and a hint.
    fn share(
        &mut self,
        name: &'a QueueName,
        written: &DeadLetterQueueSpec,
    ) -> Result<(), (&'a QueueName, String, &'static str)> {
        let exchange = exchange_of(name, written);
        let (first, of_first) = self.first;
        let settings = |it: &DeadLetterQueueSpec| (it.exchange_type.value.clone(), it.exchange_internal);
        if settings(written) != settings(of_first) {
            let message = format!("dead-letter queue `{first}` uses exchange `{exchange}` with other settings");
            return Err((
                first,
                message,
                "set the same `type` and `internal` for both, or give each an exchange of its own",
            ));
        }
        // Without a key of its own the first gets all, and so does this one.
        let other = match own_key(name, written) {
            Some(key) if !self.by_key.is_empty() => self.by_key.insert(key, name),
            Some(_) | None => Some(first),
        };
        let Some(other) = other else { return Ok(()) };
        let message =
            format!("exchange `{exchange}` would route every dead-lettered message for `{other}` to this queue too");
        let hint =
            "give each an exchange of its own, or set `type: direct` for both and a different `routingKey` for each";
        Err((other, message, hint))
    }
}

/// The key by which an exchange tells a dead-letter queue from others behind it, if it does: dead letters have the key of the
/// queue that they are sent to, and that is bound with it.
fn own_key(name: &QueueName, written: &DeadLetterQueueSpec) -> Option<String> {
    match written.exchange_type.value.as_str() {
        "direct" => Some(binding_key(name, written)),
        "topic" => written.routing_key.clone().filter(|key| !key.contains(['*', '#'])),
        _ => None,
    }
}

/// Returns both settings, as arguments (`x-…`) or as keys of a policy.
fn wire(target: Target, prefix: &str) -> Arguments {
    let mut arguments = Arguments::new();
    arguments.insert(format!("{prefix}dead-letter-exchange"), text(target.exchange.as_str()));
    if let Some(key) = target.routing_key {
        arguments.insert(format!("{prefix}dead-letter-routing-key"), text(&key));
    }
    arguments
}
