//! Defines the input that decides the strategy of a queue with retries, and the reasons why a strategy does not work.

use super::dead_letter::Target;
use super::effective::PossibleSettings;
use crate::model::{ExchangeName, PolicyName, QueueName, QueueType};
use crate::rabbitmq::BrokerProfile;
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
            let hint = "use `type: quorum`, where retries wait for room, or `overflow: drop-head`";
            return Err(Refusal::of_setting(diagnostic.hint(hint)));
        }
        Ok(())
    }
}

impl From<&FinalTarget> for Target {
    fn from(end: &FinalTarget) -> Self {
        Self { exchange: end.exchange.clone(), routing_key: end.routing_key.clone() }
    }
}
