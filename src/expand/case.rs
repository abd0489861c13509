//! A queue that retries, with all that decides how; and why a strategy cannot carry it.

use super::dead_letter::Target;
use super::holds::Holds;
use crate::behaviour::Dialect;
use crate::model::{ExchangeName, PolicyName, QueueName, QueueType};
use crate::spec::{Diagnostic, Location, PolicySpec, QueueSpec, RetrySpec, Setting};
use std::collections::BTreeMap;

/// A queue that retries.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) name: &'a QueueName,
    pub(super) queue: &'a QueueSpec,
    pub(super) queue_type: &'a Setting<QueueType>,
    pub(super) retry: &'a RetrySpec,
    /// Where its dead letters go, if they go anywhere.
    pub(super) end: Option<&'a End>,
    pub(super) dialect: &'a Dialect,
    /// What it says itself, and what policies of the spec say of it.
    pub(super) holds: &'a Holds,
    /// Those policies.
    pub(super) policies: &'a BTreeMap<PolicyName, PolicySpec>,
}

/// Where a message goes whose tries are used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The exchange.
    pub exchange: ExchangeName,
    /// The key that the message gets; its own without it.
    pub routing_key: Option<String>,
    /// The type of the exchange; `None` where it is somebody else's.
    pub kind: Option<String>,
    /// The dead-letter queue, where the spec names one.
    pub queue: Option<QueueName>,
    /// The dead-letter queue, or the exchange, in a few words.
    pub shown: String,
}

/// Why a strategy cannot carry a queue.
pub(super) struct Refusal {
    pub(super) diagnostic: Box<Diagnostic>,
    /// Whether another strategy is a way out.
    pub(super) is_of_strategy: bool,
}

impl Refusal {
    /// Another strategy may do.
    pub(super) fn of_strategy(diagnostic: Diagnostic) -> Self {
        Self { diagnostic: Box::new(diagnostic), is_of_strategy: true }
    }

    /// Something else has to change.
    pub(super) fn of_setting(diagnostic: Diagnostic) -> Self {
        Self { diagnostic: Box::new(diagnostic), is_of_strategy: false }
    }
}

impl Case<'_> {
    /// Where the way of trying again is said.
    pub(super) fn at(&self) -> Location {
        self.retry.at()
    }

    /// An error about the way of trying again.
    pub(super) fn error(&self, message: String) -> Diagnostic {
        Diagnostic::error("retry-strategy", message, self.at())
    }

    /// Strategies that only a quorum queue counts for.
    pub(super) fn needs_quorum(&self, strategy: &str) -> Result<(), Refusal> {
        if self.queue_type.value == QueueType::Quorum {
            return Ok(());
        }
        let message = format!(
            "strategy `{strategy}` needs a queue that counts deliveries, and queue `{}` is a {} queue",
            self.name, self.queue_type.value
        );
        Err(Refusal::of_strategy(self.error(message).also(self.queue_type.at, "its type is said here")))
    }

    /// What the strategy sets itself may not be said beside it; a default gives way.
    pub(super) fn sets(&self, arguments: &[(&str, &str)]) -> Result<(), Refusal> {
        for (argument, key) in arguments {
            let Some(setting) = self.queue.arguments.get(*argument) else { continue };
            if setting.said_by != crate::spec::SaidBy::Defaults {
                let message = format!("`{key}` is what the retries of queue `{}` set themselves", self.name);
                let diagnostic = Diagnostic::error("said-twice", message, setting.at);
                let diagnostic = diagnostic.also(self.at(), "set by this");
                return Err(Refusal::of_setting(diagnostic.hint("keep one of the two")));
            }
        }
        Ok(())
    }

    /// The waits of a strategy that cannot do without them.
    pub(super) fn delays(&self) -> Result<Vec<i64>, Refusal> {
        let delays = self.retry.delays();
        if delays.is_empty() {
            let message = format!("nothing says how long the retries of queue `{}` wait", self.name);
            return Err(Refusal::of_strategy(self.error(message)));
        }
        Ok(delays)
    }

    /// A retry that comes back to a full queue must not be lost, and there must not be too many tiers.
    pub(super) fn can_have_tiers(&self) -> Result<(), Refusal> {
        let count = self.retry.max_retries.value;
        if count > super::tiers::Tiers::MOST {
            let most = super::tiers::Tiers::MOST;
            let message = format!("{count} retries with delays would be {count} tier queues; {most} is the most");
            let diagnostic = Diagnostic::error("out-of-range", message, self.retry.max_retries.at);
            return Err(Refusal::of_strategy(diagnostic));
        }
        if let Some(overflow) = self.rejects().filter(|_| self.queue_type.value == QueueType::Classic) {
            // Measured on all four versions: the tier's message is refused, and nobody keeps it.
            let message = format!(
                "queue `{}` refuses messages when it is full, and a classic queue would lose a retry that comes back then",
                self.name
            );
            let diagnostic = overflow.error(message, self);
            let hint = "use `type: quorum`, where the retry waits, or `overflow: drop-head`";
            return Err(Refusal::of_setting(diagnostic.hint(hint)));
        }
        Ok(())
    }
}

impl From<&End> for Target {
    fn from(end: &End) -> Self {
        Self { exchange: end.exchange.clone(), routing_key: end.routing_key.clone() }
    }
}
