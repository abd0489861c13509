//! Expands strategy `delayed`: a quorum queue of RabbitMQ 4.3 counts deliveries and delays each one. All settings are
//! arguments of the queue.

use super::case::{Case, End, Refusal};
use crate::model::known_arguments::KnownArgument;
use crate::model::{Arguments, QueueName, QueueType};

/// The delayed redelivery of the messages of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delayed {
    /// The queue.
    pub queue: QueueName,
    /// The delay of each retry, in milliseconds. Each delay is longer than the previous one by the first delay, up to the last.
    pub delays: Vec<i64>,
    /// The final target of its dead-lettered messages, if there is one.
    pub end: Option<End>,
}

impl Delayed {
    pub(super) fn of(case: &Case<'_>) -> Result<Self, Refusal> {
        case.check_quorum("delayed")?;
        let known = KnownArgument::named("x-delayed-retry-type");
        let version = case.profile.version;
        if !known.is_some_and(|known| known.is_taken(QueueType::Quorum, version)) {
            let message = format!("strategy `delayed` needs RabbitMQ 4.3; the broker is {version}");
            return Err(Refusal::of_strategy(case.error(message)));
        }
        let delays = if case.retry.max_retries.value > 0 { case.delays()? } else { Vec::new() };
        if !crate::spec::is_even(&delays) {
            let message =
                format!("strategy `delayed` needs delays that grow linearly; those of queue `{}` do not", case.name);
            return Err(Refusal::of_strategy(case.error(message)));
        }
        case.check_conflicts(&[
            ("x-delivery-limit", "deliveryLimit"),
            ("x-delayed-retry-type", "delayedRetryType"),
            ("x-delayed-retry-min", "delayedRetryMin"),
            ("x-delayed-retry-max", "delayedRetryMax"),
        ])?;
        Ok(Self { queue: case.name.clone(), delays, end: case.end.cloned() })
    }

    /// Returns the number of retries after the first attempt.
    pub fn retries(&self) -> u32 {
        u32::try_from(self.delays.len()).unwrap_or(u32::MAX)
    }

    /// Returns the arguments of the queue. The k-th delay is k times the minimum, up to the maximum (measured on 4.3.6).
    pub fn arguments(&self) -> Arguments {
        let mut arguments: Arguments = [("x-delivery-limit".to_owned(), i64::from(self.retries()).into())].into();
        if let (Some(first), Some(last)) = (self.delays.first(), self.delays.last()) {
            arguments.insert("x-delayed-retry-type".to_owned(), "all".into());
            arguments.insert("x-delayed-retry-min".to_owned(), (*first).into());
            arguments.insert("x-delayed-retry-max".to_owned(), (*last).into());
        }
        arguments
    }
}
