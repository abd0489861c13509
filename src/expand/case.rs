//! Defines the input that decides the strategy of a queue with retries, and the reasons why a strategy does not work. The
//! input includes the effective settings of the queue, from its arguments and the spec policy that applies to it.

use super::Expander;
use crate::model::{ExchangeName, PolicyName, QueueName, QueueType};
use crate::rabbitmq::{ActivePolicies, BrokerProfile, Effective, EffectiveSettings, Policies, Source};
use crate::spec::{Diagnostic, Location, PolicySpec, QueueSpec, RetrySpec, Setting};
use std::collections::BTreeMap;

/// A queue with retries, and the input that decides its strategy.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) name: &'a QueueName,
    pub(super) queue: &'a QueueSpec,
    pub(super) queue_type: &'a Setting<QueueType>,
    pub(super) retry: &'a RetrySpec,
    /// The final target of its dead-lettered messages, if there is one.
    pub(super) end: Option<&'a FinalTarget>,
    pub(super) profile: &'a BrokerProfile,
    /// The effective settings, from its arguments and the policies of the spec.
    pub(super) possible_settings: &'a PossibleSettings,
    /// The policies of the spec.
    pub(super) policies: &'a BTreeMap<PolicyName, PolicySpec>,
}

/// The final target of messages that have no retries left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalTarget {
    /// The exchange.
    pub exchange: ExchangeName,
    /// The routing key that the message gets; `None` if it keeps its own key.
    pub routing_key: Option<String>,
    /// The type of the exchange; `None` if it is external.
    pub kind: Option<String>,
    /// The dead-letter queue, if the spec names one.
    pub queue: Option<QueueName>,
    /// A short description of the dead-letter queue or the exchange.
    pub shown: String,
}

/// The reason why a strategy does not work for a queue.
pub(super) struct Refusal {
    pub(super) diagnostic: Box<Diagnostic>,
    /// True if another strategy could work.
    pub(super) another_strategy_may_work: bool,
}

impl Refusal {
    /// Creates a refusal that another strategy could resolve.
    pub(super) fn of_strategy(diagnostic: Diagnostic) -> Self {
        Self { diagnostic: Box::new(diagnostic), another_strategy_may_work: true }
    }

    /// Creates a refusal that only another setting can resolve.
    pub(super) fn of_setting(diagnostic: Diagnostic) -> Self {
        Self { diagnostic: Box::new(diagnostic), another_strategy_may_work: false }
    }
}

impl Case<'_> {
    /// Returns the position of the retries.
    pub(super) fn at(&self) -> Location {
        self.retry.at()
    }

    /// Creates an error about the retries.
    pub(super) fn error(&self, message: String) -> Diagnostic {
        Diagnostic::error("retry-strategy", message, self.at())
    }

    /// Rejects a strategy that needs a quorum queue if the queue has a different type.
    pub(super) fn check_quorum(&self, strategy: &str) -> Result<(), Refusal> {
        if self.queue_type.value == QueueType::Quorum {
            return Ok(());
        }
        let message = format!(
            "strategy `{strategy}` needs a queue that counts deliveries, but queue `{}` is a {} queue",
            self.name, self.queue_type.value
        );
        Err(Refusal::of_strategy(self.error(message).also(self.queue_type.at, "the type is set here")))
    }

    /// Refuses explicit settings that the strategy sets itself; a default is overridden.
    pub(super) fn check_conflicts(&self, arguments: &[(&str, &str)]) -> Result<(), Refusal> {
        for (argument, key) in arguments {
            let Some(setting) = self.queue.arguments.get(*argument) else { continue };
            if setting.set_by != crate::spec::SetBy::Defaults {
                let message = format!("`{key}` conflicts with the retries of queue `{}`, which set it", self.name);
                let diagnostic = Diagnostic::error("said-twice", message, setting.at);
                let diagnostic = diagnostic.also(self.at(), "set by these retries");
                return Err(Refusal::of_setting(diagnostic.hint("keep one of the two")));
            }
        }
        Ok(())
    }

    /// Returns the delays of a strategy that needs them.
    pub(super) fn delays(&self) -> Result<Vec<i64>, Refusal> {
        let delays = self.retry.delays();
        if delays.is_empty() {
            let message = format!("the retries of queue `{}` have no delays", self.name);
            return Err(Refusal::of_strategy(self.error(message)));
        }
        Ok(delays)
    }

    /// Checks that a full queue does not lose returning retries, and that there are not too many delayed retry queues.
    pub(super) fn check_tiers(&self) -> Result<(), Refusal> {
        let count = self.retry.max_retries.value;
        if count > super::tiers::Tiers::MAX {
            let max = super::tiers::Tiers::MAX;
            let message =
                format!("{count} retries with delays need {count} delayed retry queues; the maximum is {max}");
            let diagnostic = Diagnostic::error("out-of-range", message, self.retry.max_retries.at);
            return Err(Refusal::of_strategy(diagnostic));
        }
        if let Some(overflow) = self.rejecting_overflow().filter(|_| self.queue_type.value == QueueType::Classic) {
            // Measured on all four versions: the queue rejects the message that the delayed retry queue returns, and
            // the message is lost.
            let message = format!(
                "queue `{}` rejects messages when it is full, and a classic queue would lose the retries that return then",
                self.name
            );
            let diagnostic = overflow.error(message, self);
            let hint = "use `type: quorum`, where retries wait until there is room, or `overflow: drop-head`";
            return Err(Refusal::of_setting(diagnostic.hint(hint)));
        }
        Ok(())
    }
}

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
