//! Defines the inputs that determine the retry strategy of a queue, and the refusal of a strategy. The inputs include
//! the effective settings of the queue, which are determined by its arguments and the policies in the spec.

use super::Expander;
use crate::model::{ExchangeName, PolicyName, QueueName, QueueType};
use crate::rabbitmq::{ActivePolicies, BrokerProfile, Effective, EffectiveSettings, Policies, Source};
use crate::spec::{Diagnostic, Location, PolicySpec, QueueSpec, RetrySpec, Setting};
use std::collections::BTreeMap;

/// A queue with retries, and the inputs that determine its strategy.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) name: &'a QueueName,
    pub(super) queue: &'a QueueSpec,
    pub(super) queue_type: &'a Setting<QueueType>,
    pub(super) retry: &'a RetrySpec,
    /// The final target of the queue's dead-lettered messages; `None` if the queue has none.
    pub(super) final_target: Option<&'a FinalTarget>,
    pub(super) profile: &'a BrokerProfile,
    /// The effective settings of the queue under each policy in the spec that can govern it.
    pub(super) possible_settings: &'a PossibleSettings,
    /// The policies in the spec.
    pub(super) policies: &'a BTreeMap<PolicyName, PolicySpec>,
}

/// The final target of messages that have no retries left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalTarget {
    /// The dead-letter exchange.
    pub exchange: ExchangeName,
    /// The dead-letter routing key; `None` if messages keep their own routing keys.
    pub routing_key: Option<String>,
    /// The type of the exchange; `None` if the type is unknown, for example because the exchange is external.
    pub kind: Option<String>,
    /// The dead-letter queue; `None` if the spec specifies only an exchange.
    pub queue: Option<QueueName>,
    /// A short description of the dead-letter queue or the exchange.
    pub description: String,
}

/// The reason why a strategy does not work for a queue.
pub(super) struct Refusal {
    pub(super) diagnostic: Box<Diagnostic>,
    /// True if a different strategy can work.
    pub(super) is_strategy_specific: bool,
}

impl Refusal {
    /// Creates a refusal that a different strategy can avoid.
    pub(super) fn of_strategy(diagnostic: Diagnostic) -> Self {
        Self { diagnostic: Box::new(diagnostic), is_strategy_specific: true }
    }

    /// Creates a refusal that only a change to a setting can avoid.
    pub(super) fn of_setting(diagnostic: Diagnostic) -> Self {
        Self { diagnostic: Box::new(diagnostic), is_strategy_specific: false }
    }
}

impl Case<'_> {
    /// Returns the position of the retry settings in the spec.
    pub(super) fn at(&self) -> Location {
        self.retry.at()
    }

    /// Creates an error at the position of the retry settings.
    pub(super) fn error(&self, message: String) -> Diagnostic {
        Diagnostic::error("retry-strategy", message, self.at())
    }

    /// Refuses a strategy that needs a quorum queue if the queue has a different type.
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

    /// Refuses explicit settings that the strategy sets itself. The strategy overrides values from `defaults`.
    pub(super) fn check_conflicts(&self, arguments: &[(&str, &str)]) -> Result<(), Refusal> {
        for (argument, key) in arguments {
            let Some(setting) = self.queue.arguments.get(*argument) else { continue };
            if setting.set_by != crate::spec::SetBy::Defaults {
                let message = format!("`{key}` conflicts with the retries of queue `{}`, which set it", self.name);
                let diagnostic = Diagnostic::error("set-twice", message, setting.at);
                let diagnostic = diagnostic.also(self.at(), "set by these retries");
                return Err(Refusal::of_setting(diagnostic.hint("keep one of the two")));
            }
        }
        Ok(())
    }

    /// Returns the delays in milliseconds, or refuses the strategy if there are none.
    pub(super) fn delays(&self) -> Result<Vec<i64>, Refusal> {
        let delays = self.retry.delays();
        if delays.is_empty() {
            let message = format!("the retries of queue `{}` have no delays", self.name);
            return Err(Refusal::of_strategy(self.error(message)));
        }
        Ok(delays)
    }

    /// Checks that the number of tiers does not exceed the maximum, and that a full queue does not lose messages that
    /// return from the tiers.
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
            // On all tested versions, the full queue rejects the message that the tier returns, and the message is
            // lost.
            let message = format!(
                "classic queue `{}` rejects messages when it is full, and would lose messages that return for a retry",
                self.name
            );
            let diagnostic = overflow.error(message, self);
            let hint = "use `type: quorum`, where retries wait until the queue has room, or `overflow: drop-head`";
            return Err(Refusal::of_setting(diagnostic.hint(hint)));
        }
        Ok(())
    }
}

/// The effective settings of a queue under each policy that can govern it.
pub(super) type PossibleSettings = Vec<EffectiveSettings>;

/// The position of an effective setting in the spec, and the policy that sets it.
pub(super) struct EffectiveSetting {
    at: Location,
    /// The name of the policy; `None` if an argument of the queue sets the value.
    policy: Option<String>,
}

impl Expander<'_> {
    /// Returns the effective settings of a queue under each policy in the spec that can govern it.
    pub(super) fn possible_settings(
        &self,
        name: &QueueName,
        declaration: &QueueSpec,
        policies: &Policies<'_>,
    ) -> PossibleSettings {
        let mut queue = self.queue(name, declaration);
        // Omits generated arguments, because the retry strategy, which determines some of them, is not known yet.
        queue
            .arguments
            .retain(|argument, _| argument == "x-queue-type" || declaration.arguments.contains_key(argument));
        let possible = ActivePolicies::of(policies, self.profile).possible(name, &queue);
        possible.into_iter().map(|(_, settings)| settings).collect()
    }
}

impl Case<'_> {
    /// Returns the effective setting of a policy key under the policy that most likely governs the queue. Returns
    /// `None` if the setting has no position in the spec, or the key is unset, under at least one possible policy.
    pub(super) fn effective(&self, key: &str) -> Option<EffectiveSetting> {
        let each: Option<Vec<EffectiveSetting>> =
            self.possible_settings.iter().map(|settings| self.locate(key, settings.get(key)?)).collect();
        each?.into_iter().next()
    }

    /// Returns the `overflow` setting if a full queue rejects messages under every possible policy.
    pub(super) fn rejecting_overflow(&self) -> Option<EffectiveSetting> {
        self.effective("overflow")
            .filter(|_| self.possible_settings.iter().all(|settings| settings.overflow_behavior().rejects()))
    }

    /// Returns the position of an effective setting and the policy that sets it. Returns `None` if the setting has no
    /// position in the spec, for example because it is a default.
    fn locate(&self, key: &str, effective: &Effective) -> Option<EffectiveSetting> {
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
    /// Creates an error about a conflict between this setting and the retries of a queue.
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

    /// Returns the first error for a queue with these keys and policies, with its labels. Returns an empty string if
    /// there is no error.
    fn error(version: &str, keys: &str, policies: &str) -> String {
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
        let found = error("3.10.8", LADDER, "ttl: {pattern: '^w', definition: {messageTtl: 1h}}");
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
            assert!(error("3.10.8", keys, &policy).contains("does not support"), "{keys} with {definition}");
            assert_eq!(error("3.13.0", keys, &policy), "", "{keys} with {definition}");
        }
    }

    #[test]
    fn policy_that_is_not_effective_is_ignored() {
        for policies in [
            "p: {pattern: '^x', definition: {messageTtl: 1h}}",
            "p: {pattern: '^w', definition: {messageTtl: 1h}}, q: {pattern: '^w', priority: 1, definition: {expires: 1h}}",
            "p: {pattern: '^w', definition: {maxLength: 5, deliveryLimit: 5}}",
            // Both policies have the same priority, so either can govern the queue.
            "p: {pattern: '^w', definition: {messageTtl: 1h}}, q: {pattern: '^w', definition: {expires: 1h}}",
            "p: {pattern: '^w', applyTo: exchanges, definition: {messageTtl: 1h}}",
        ] {
            assert_eq!(error("3.10.8", LADDER, policies), "", "{policies}");
        }
    }

    #[test]
    fn policy_must_not_make_a_classic_queue_reject_its_retries() {
        let policy = "full: {pattern: '^w$', definition: {maxLength: 5, overflow: reject-publish}}";
        let found = error("4.3.0", LADDER, policy);
        assert!(
            found.starts_with("overflow: classic queue `w` rejects messages when it is full, and would lose messages")
        );
        assert!(found.contains("\nw: policy `full` governs queue `w`\n"), "{found}");
        // The argument takes precedence on a classic queue.
        assert_eq!(error("4.3.0", &format!("overflow: drop-head, {LADDER}"), policy), "");
    }
}
