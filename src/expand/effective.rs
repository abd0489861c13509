//! Computes the effective settings of a queue with retries from its arguments and the spec policy that applies to it.
//! Also defines the objects that a retry strategy needs on the broker, before their names are checked.

use super::Expander;
use super::case::Case;
use crate::model::{Arguments, Binding, Destination, Exchange, ExchangeName, ObjectId, Queue, QueueName};
use crate::rabbitmq::{ActivePolicies, Effective, EffectiveSettings, Policies, Source};
use crate::spec::{Diagnostic, Location, QueueSpec};
use std::collections::{BTreeMap, BTreeSet};

/// Effective settings by policy key, for each policy that may apply.
pub(super) type PossibleSettings = Vec<EffectiveSettings>;

/// An effective setting with its position.
pub(super) struct EffectiveSetting {
    at: Location,
    policy: Option<String>,
}

impl Expander<'_> {
    /// Returns the effective settings of a queue for each policy that may apply, from the settings of the spec.
    pub(super) fn possible_settings(
        &self,
        name: &QueueName,
        declaration: &QueueSpec,
        policies: &Policies<'_>,
    ) -> PossibleSettings {
        let mut queue = self.queue(name, declaration);
        // The settings of the retries are not known yet.
        queue
            .arguments
            .retain(|argument, _| argument == "x-queue-type" || declaration.arguments.contains_key(argument));
        let possible = ActivePolicies::of(policies, self.profile).possible(name, &queue);
        possible.into_iter().map(|(_, settings)| settings).collect()
    }
}

impl Case<'_> {
    /// Returns the effective setting of a policy key, if every possible policy leaves it set.
    pub(super) fn effective(&self, key: &str) -> Option<EffectiveSetting> {
        let each: Option<Vec<EffectiveSetting>> =
            self.possible_settings.iter().map(|settings| self.set_by(key, settings.get(key)?)).collect();
        each?.into_iter().next()
    }

    /// Returns the `overflow` with which a full queue rejects messages, if it is set.
    pub(super) fn rejecting_overflow(&self) -> Option<EffectiveSetting> {
        self.effective("overflow")
            .filter(|_| self.possible_settings.iter().all(|settings| settings.overflow_behavior().rejects()))
    }

    fn set_by(&self, key: &str, effective: &Effective) -> Option<EffectiveSetting> {
        let (at, policy) = match &effective.source {
            Source::Argument => (self.queue.arguments.get(&format!("x-{key}"))?.at, None),
            Source::Policy(name) => {
                let declaration = self.policies.get(name)?.definition.get(key)?;
                (declaration.key_at, Some(name.to_string()))
            }
            Source::Default | Source::OperatorPolicy(_) => return None,
        };
        Some(EffectiveSetting { at, policy })
    }
}

impl EffectiveSetting {
    /// Creates an error about a conflict with the retries of a queue.
    pub(super) fn error(&self, message: String, case: &Case<'_>) -> Diagnostic {
        let diagnostic = Diagnostic::error("retry-strategy", message, self.at);
        match &self.policy {
            None => diagnostic,
            Some(policy) => diagnostic.also(case.queue.at, format!("policy `{policy}` governs queue `{}`", case.name)),
        }
        .also(case.at(), format!("the retries of queue `{}`", case.name))
    }
}

/// Generated objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Exchanges.
    pub exchanges: BTreeMap<ExchangeName, Exchange>,
    /// Queues.
    pub queues: BTreeMap<QueueName, Queue>,
    /// Bindings.
    pub bindings: BTreeSet<Binding>,
    /// Optional arguments of the queues: a current queue can lack them without a conflict.
    pub optional: BTreeMap<QueueName, BTreeSet<String>>,
}

impl Objects {
    /// Adds an exchange. It is not internal: the broker would refuse applications that declare it, and newer brokers do
    /// not export internal exchanges to definitions.
    pub(super) fn exchange(&mut self, name: ExchangeName, kind: &str, alternate: Option<&ExchangeName>) {
        let alternate = alternate.map(|alternate| ("alternate-exchange".to_owned(), alternate.as_str().into()));
        let exchange = Exchange {
            kind: kind.to_owned(),
            durable: true,
            auto_delete: false,
            internal: false,
            arguments: alternate.into_iter().collect(),
        };
        self.exchanges.insert(name, exchange);
    }

    /// Adds a binding without arguments.
    pub(super) fn bind(&mut self, source: &ExchangeName, routing_key: String, destination: Destination) {
        self.bindings.insert(Binding { source: source.clone(), destination, routing_key, arguments: Arguments::new() });
    }

    /// Returns the IDs of all objects.
    pub fn ids(&self) -> BTreeSet<ObjectId> {
        let exchanges = self.exchanges.keys().cloned().map(ObjectId::Exchange);
        let queues = self.queues.keys().cloned().map(ObjectId::Queue);
        exchanges.chain(queues).chain(self.bindings.iter().cloned().map(ObjectId::Binding)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::expand::expand;
    use crate::expand::tests::spec;
    use crate::rabbitmq::BrokerProfile;

    /// Returns the error for a queue with these keys and policies, with all positions; empty if there is none.
    fn refused(version: &str, keys: &str, policies: &str) -> String {
        let text = format!(
            "queues: {{w: {{{keys}, deadLetter: dead}}}}\ndeadLetterQueues: {{dead: {{type: classic}}}}\npolicies: {{{policies}}}\n"
        );
        let whole = format!("version: 1\nvhost: shop\n{text}");
        let profile = BrokerProfile::of(version.parse().unwrap());
        let Err(found) = expand(&spec(&text), &profile) else { return String::new() };
        let one = found.iter().next().expect("an error");
        let also = one.secondary.iter().map(|(at, label)| format!("\n{}: {label}", &whole[at.start..at.end]));
        format!("{}: {}{}", &whole[one.primary.start..one.primary.end], one.message, also.collect::<String>())
    }

    const LADDER: &str = "type: classic, retry: {delays: [1s]}";

    #[test]
    fn policy_that_conflicts_with_a_ladder_is_refused_like_an_argument() {
        let found = refused("3.10.8", LADDER, "ttl: {pattern: '^w', definition: {messageTtl: 1h}}");
        assert_eq!(
            found,
            "messageTtl: a ladder on RabbitMQ 3.10.8 does not support `messageTtl`: before 3.13, the broker drops a message as \
             a cycle if this setting dead-letters it after a retry\n\
             w: policy `ttl` governs queue `w`\n\
             delays: the retries of queue `w`"
        );
        for (keys, definition) in [
            (LADDER, "maxLength: 5"),
            (LADDER, "maxLengthBytes: 1KiB"),
            ("type: quorum, retry: {delays: [1s]}", "deliveryLimit: 5"),
            // The policy takes precedence on a quorum queue.
            ("type: quorum, maxLength: 5, overflow: reject-publish, retry: {delays: [1s]}", "overflow: drop-head"),
        ] {
            let policy = format!("p: {{pattern: '^w$', definition: {{{definition}}}}}");
            assert!(refused("3.10.8", keys, &policy).contains("does not support"), "{keys} with {definition}");
            assert_eq!(refused("3.13.0", keys, &policy), "", "{keys} with {definition}");
        }
    }

    #[test]
    fn policy_that_is_not_effective_refuses_nothing() {
        for policies in [
            "p: {pattern: '^x', definition: {messageTtl: 1h}}",
            "p: {pattern: '^w', definition: {messageTtl: 1h}}, q: {pattern: '^w', priority: 1, definition: {expires: 1h}}",
            "p: {pattern: '^w', definition: {maxLength: 5, deliveryLimit: 5}}",
            // Either policy may apply.
            "p: {pattern: '^w', definition: {messageTtl: 1h}}, q: {pattern: '^w', definition: {expires: 1h}}",
            "p: {pattern: '^w', applyTo: exchanges, definition: {messageTtl: 1h}}",
        ] {
            assert_eq!(refused("3.10.8", LADDER, policies), "", "{policies}");
        }
    }

    #[test]
    fn policy_must_not_make_a_classic_queue_reject_its_retries() {
        let policy = "full: {pattern: '^w$', definition: {maxLength: 5, overflow: reject-publish}}";
        let found = refused("4.3.0", LADDER, policy);
        assert!(
            found.starts_with("overflow: queue `w` rejects messages when it is full, and a classic queue would lose")
        );
        assert!(found.contains("\nw: policy `full` governs queue `w`\n"), "{found}");
        // The argument takes precedence on a classic queue.
        assert_eq!(refused("4.3.0", &format!("overflow: drop-head, {LADDER}"), policy), "");
    }
}
