//! Republish: the worker counts, in a header, and publishes a failed message again: to the tier that it chooses, or to the
//! back of the queue where there are no delays.

use super::case::{Case, End, Refusal};
use super::objects::Objects;
use super::tiers::Tiers;
use crate::model::{Destination, QueueName};
use crate::rabbitmq::BrokerProfile;

/// The republishing of one queue's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Republish {
    /// The queue.
    pub queue: QueueName,
    /// How often, after the first attempt.
    pub retries: u32,
    /// One a retry; `None`: to the back of the queue.
    pub tiers: Option<Tiers>,
    /// By how many milliseconds the worker may shorten a wait.
    pub jitter: Option<i64>,
    /// Where the queue's dead letters go, if they go anywhere.
    pub end: Option<End>,
}

impl Republish {
    pub(super) fn of(case: &Case<'_>) -> Result<Self, Refusal> {
        let delays = case.retry.delays();
        if !delays.is_empty() {
            case.can_have_tiers()?;
        }
        let tiers = Tiers {
            queue: case.name.clone(),
            queue_type: case.queue_type.value,
            durable: case.queue.durable.as_ref().is_none_or(|it| it.value),
            delays,
        };
        Ok(Self {
            queue: case.name.clone(),
            retries: case.retry.max_retries.value,
            tiers: Some(tiers).filter(|tiers| !tiers.delays.is_empty()),
            jitter: case.retry.jitter.as_ref().map(|it| it.value),
            end: case.end.cloned(),
        })
    }

    /// All that it needs on a broker of that kind; nothing without tiers.
    pub fn objects(&self, profile: &BrokerProfile) -> Objects {
        let mut objects = Objects::default();
        let Some(tiers) = &self.tiers else { return objects };
        // The alternate of the latter, `Q.retry.first`, is a ladder's: here it is never made, and to the broker an alternate
        // exchange that is not there is none. It is named all the same: left out, a change to `ladder` and back would be
        // another argument of a live exchange, which is a conflict.
        let (retry, over) = tiers.add_entrance(&mut objects);
        // A number past the last is a dead letter. An exchange that asks for another key would not know that number, so its
        // queue takes it; and nothing can be bound to the default exchange.
        if let Some(end) = self.end.as_ref().filter(|end| !end.exchange.as_str().is_empty()) {
            let asks_for_a_key = match end.kind.as_deref() {
                Some("direct") => true,
                Some("topic") => end.routing_key.as_deref().is_some_and(|key| key != "#"),
                Some(_) | None => false,
            };
            let queue = end.queue.clone().filter(|_| asks_for_a_key).map(Destination::Queue);
            let destination = queue.unwrap_or_else(|| Destination::Exchange(end.exchange.clone()));
            objects.bind(&over, "#".to_owned(), destination);
        }
        for (number, name) in tiers.names() {
            objects.bind(&retry, number.to_string(), Destination::Queue(name));
        }
        tiers.add_to(&mut objects, profile);
        objects
    }
}
