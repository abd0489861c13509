//! Expands strategy `redeliver`: a quorum queue counts deliveries and redelivers immediately. The only setting is an argument
//! of the queue.

use super::case::{Case, End, Refusal};
use crate::model::{Arguments, QueueName};

/// The redelivery of the messages of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redeliver {
    /// The queue.
    pub queue: QueueName,
    /// The number of retries after the first attempt.
    pub retries: u32,
    /// The final target of its dead-lettered messages, if there is one.
    pub end: Option<End>,
}

impl Redeliver {
    pub(super) fn of(case: &Case<'_>) -> Result<Self, Refusal> {
        case.check_quorum("redeliver")?;
        if case.retry.max_retries.value > 0 && case.retry.schedule.is_some() {
            let message = format!(
                "the retries of queue `{}` have delays, which strategy `redeliver` does not support",
                case.name
            );
            return Err(Refusal::of_strategy(case.error(message)));
        }
        case.check_conflicts(&[("x-delivery-limit", "deliveryLimit")])?;
        Ok(Self { queue: case.name.clone(), retries: case.retry.max_retries.value, end: case.end.cloned() })
    }

    /// Returns the arguments of the queue. A limit of N allows N redeliveries on every version (measured).
    pub fn arguments(&self) -> Arguments {
        [("x-delivery-limit".to_owned(), i64::from(self.retries).into())].into()
    }
}
