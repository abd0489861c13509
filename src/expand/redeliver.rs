//! Redeliver: a quorum queue counts deliveries and delivers again at once. All of it is an argument of the queue.

use super::case::{Case, End, Refusal};
use crate::model::{Arguments, QueueName};

/// The redelivery of one queue's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redeliver {
    /// The queue.
    pub queue: QueueName,
    /// How often, after the first attempt.
    pub retries: u32,
    /// Where the queue's dead letters go, if they go anywhere.
    pub end: Option<End>,
}

impl Redeliver {
    pub(super) fn of(case: &Case<'_>) -> Result<Self, Refusal> {
        case.needs_quorum("redeliver")?;
        if case.retry.max_retries.value > 0 && case.retry.schedule.is_some() {
            let message = format!("the retries of queue `{}` wait, which `redeliver` does not", case.name);
            return Err(Refusal::of_strategy(case.error(message)));
        }
        case.sets(&[("x-delivery-limit", "deliveryLimit")])?;
        Ok(Self { queue: case.name.clone(), retries: case.retry.max_retries.value, end: case.end.cloned() })
    }

    /// What the queue itself gets. Limit N is N redeliveries on every version (measured).
    pub fn arguments(&self) -> Arguments {
        [("x-delivery-limit".to_owned(), i64::from(self.retries).into())].into()
    }
}
