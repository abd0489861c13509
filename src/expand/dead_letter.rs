//! Dead letters: an entry of `deadLetterQueues` into an exchange and a binding beside its queue, and `deadLetter` into
//! arguments of the queue, or into a policy of its own.

use super::origin::Because;
use super::{Expander, naming, text};
use crate::behaviour::governing::chosen;
use crate::behaviour::{Governed, Policies};
use crate::model::{
    ApplyTo, Arguments, Binding, BrokerVersion, Destination, Exchange, ExchangeName, ObjectId, Policy, Priority,
    QueueName,
};
use crate::spec::{DeadLetter, DeadLetterQueueSpec, Diagnostic, QueueSpec, Wiring};

/// What a generated policy has where the spec has none that matches: above the 0 of most.
const LEAST_PRIORITY: f64 = 1.0;

/// Where dead letters go, resolved.
struct Target {
    exchange: ExchangeName,
    routing_key: Option<String>,
}

impl Expander<'_> {
    /// The exchanges of dead-letter queues, and the bindings from them.
    pub(super) fn dead_letter_queues(&mut self) {
        for (name, written) in &self.spec.dead_letter_queues {
            let exchange = exchange_of(name, written);
            let at = written.exchange_name.as_ref().map_or(written.queue.at, |it| it.at);
            if written.queue.is_external {
                self.scope.external.insert(ObjectId::Exchange(exchange));
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
            self.add_generated_exchange(exchange, generated, at, Because::DeadLetterExchange(name.clone()));
            // The same binding may be declared; then the declaration is its origin.
            if self.topology.bindings.insert(binding.clone()) {
                let because = Because::DeadLetterBinding(name.clone());
                self.note(ObjectId::Binding(binding), written.queue.at, because);
            }
        }
    }

    /// The arguments that say where a queue's dead letters go; none where a policy says it.
    pub(super) fn dead_letter_arguments(&self, queue: &QueueSpec) -> Arguments {
        match self.target(queue, Wiring::Arguments) {
            Some(target) => wire(target, "x-"),
            None => Arguments::new(),
        }
    }

    /// A policy for each queue with `wiring: policy`. Only one policy applies to a queue, so each holds what the policy
    /// of the spec that governs the queue holds.
    pub(super) fn wiring_policies(&mut self) {
        // Without a broker, the newest one is meant; a plan against another says where its rules differ.
        let declared = self.topology.policies.clone();
        let policies = Policies::new(&declared, BrokerVersion::NEWEST_KNOWN);
        let dead_letter_queues = self.spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
        for (name, queue) in self.spec.queues.iter().chain(dead_letter_queues) {
            let Some((target, setting)) = self.target(queue, Wiring::Policy).zip(queue.dead_letter.as_ref()) else {
                continue;
            };
            let kind = queue.queue_type.as_ref().map(|it| it.value);
            let fitting = policies.fitting(name.as_str(), Governed::Queue(kind));
            if let Some(unclear) = fitting.iter().find(|fit| !fit.is_certain) {
                let policy = unclear.named.name;
                let at = self.spec.policies.get(policy).map_or(setting.at, |it| it.pattern.at);
                let message = format!("the pattern of policy `{policy}` cannot be evaluated here");
                let hint = format!(
                    "queue `{name}` needs a policy that is merged with it: use \
                     `wiring: arguments` there, or a plainer pattern"
                );
                let diagnostic = Diagnostic::error("pattern", message, at).also(setting.at, "wired by a policy here");
                self.diagnostics.push(diagnostic.hint(hint));
                continue;
            }
            // Above all that match, also above those that the queue's type does not take: they are less surprising so.
            let highest = fitting.first().map(|fit| fit.named.policy.priority.0.floor() + 1.0);
            let governing = chosen(&fitting).likely();
            let mut definition = governing.map_or_else(Arguments::new, |named| named.policy.definition.clone());
            // A key of the governing policy would send dead letters elsewhere.
            definition.remove("dead-letter-routing-key");
            definition.extend(wire(target, ""));
            let policy = Policy {
                pattern: naming::pattern_of(name),
                apply_to: ApplyTo::Queues,
                priority: Priority(highest.unwrap_or(LEAST_PRIORITY).max(LEAST_PRIORITY)),
                definition,
            };
            self.add_generated_policy(naming::dead_letter_policy(name), policy, setting.at, name);
        }
    }

    /// Where a queue's dead letters go, if they go anywhere by that wiring.
    fn target(&self, queue: &QueueSpec, by: Wiring) -> Option<Target> {
        let setting = queue.dead_letter.as_ref().filter(|setting| setting.value.wiring() == Some(by))?;
        match &setting.value {
            DeadLetter::Nowhere => None,
            DeadLetter::Exchange { exchange, routing_key, .. } => {
                Some(Target { exchange: exchange.clone(), routing_key: routing_key.clone() })
            }
            DeadLetter::Queue { name, .. } => {
                let written = self.spec.dead_letter_queues.get(name)?;
                // Dead letters keep their own keys, which a direct exchange would not know.
                let is_direct = written.exchange_type.value == "direct";
                let routing_key = (is_direct || written.routing_key.is_some()).then(|| binding_key(name, written));
                Some(Target { exchange: exchange_of(name, written), routing_key })
            }
        }
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

/// The two settings, as arguments (`x-…`) or as keys of a policy.
fn wire(target: Target, prefix: &str) -> Arguments {
    let mut arguments = Arguments::new();
    arguments.insert(format!("{prefix}dead-letter-exchange"), text(target.exchange.as_str()));
    if let Some(key) = target.routing_key {
        arguments.insert(format!("{prefix}dead-letter-routing-key"), text(&key));
    }
    arguments
}
