//! Determines a worker's reaction to a message that it failed to process, and the headers of the published copy.

use super::document::{Answer, Contract, Participant, Publish};
use crate::model::message_headers::{ORIGINAL_EXCHANGE, ORIGINAL_ROUTING_KEY, RETRY_COUNT};
use crate::model::{ArgumentValue, Arguments};

/// The reaction to a failed delivery.
#[derive(Clone, Copy, Debug)]
pub struct Reaction<'c> {
    /// The copy to publish, and the method to call.
    pub answer: &'c Answer,
    /// True if the worker increments the number of retries in the copy.
    is_counted: bool,
    retries: u32,
}

impl Contract {
    /// Returns the reaction after `retries` retries. A worker that counts the retries reads this number from the
    /// [`RETRY_COUNT`](crate::model::message_headers::RETRY_COUNT) header, and gives up after the last retry. If
    /// `gives_up` is true, the worker gives up regardless of the number of retries.
    pub fn reaction(&self, retries: u32, gives_up: bool) -> Reaction<'_> {
        let is_worker = self.counter.as_ref().is_some_and(|it| it.counted_by == Participant::Worker);
        let gives_up = gives_up || is_worker && retries >= self.max_retries;
        let answer = if gives_up { &self.on_give_up } else { &self.on_failure };
        Reaction { answer, is_counted: is_worker && !gives_up, retries }
    }
}

impl Reaction<'_> {
    /// Returns the routing key of the copy.
    pub fn routing_key<'p>(&self, publish: &'p Publish) -> &'p str {
        let last = publish.routing_keys.len().saturating_sub(1);
        let index = usize::try_from(self.retries).unwrap_or(usize::MAX).min(last);
        publish.routing_keys.get(index).map_or("", String::as_str)
    }

    /// Returns the headers that the worker sets in the copy of a message with this exchange and routing key. Empty if
    /// the worker gives up, or does not count the retries.
    pub fn headers(&self, exchange: &str, routing_key: &str) -> Arguments {
        if !self.is_counted {
            return Arguments::new();
        }
        let next = i64::from(self.retries.saturating_add(1));
        let mut headers: Arguments = [(RETRY_COUNT.to_owned(), next.into())].into();
        if self.retries == 0 {
            headers.insert(ORIGINAL_EXCHANGE.to_owned(), ArgumentValue::from(exchange));
            headers.insert(ORIGINAL_ROUTING_KEY.to_owned(), ArgumentValue::from(routing_key));
        }
        headers
    }
}
