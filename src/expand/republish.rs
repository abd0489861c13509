//! Expands strategy `republish`: the worker counts attempts in a header and publishes a failed message again. It publishes to
//! the tier of the next retry, or to the back of the queue if there are no delays.

use super::case::{Case, End, Refusal};
use super::objects::Objects;
use super::tiers::Tiers;
use crate::model::{Destination, QueueName};
use crate::rabbitmq::BrokerProfile;

/// The republishing of the messages of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Republish {
    /// The queue.
    pub queue: QueueName,
    /// The number of retries after the first attempt.
    pub retries: u32,
    /// The tiers, one for each retry; `None` if the worker publishes to the back of the queue.
    pub tiers: Option<Tiers>,
    /// The maximum time in milliseconds by which the worker may shorten a delay.
    pub jitter: Option<i64>,
    /// The final target of its dead-lettered messages, if there is one.
    pub end: Option<End>,
}

impl Republish {
    pub(super) fn of(case: &Case<'_>) -> Result<Self, Refusal> {
        let delays = case.retry.delays();
        if !delays.is_empty() {
            case.check_tiers()?;
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

    /// Returns the objects that it needs on this broker; none without tiers.
    pub fn objects(&self, profile: &BrokerProfile) -> Objects {
        let mut objects = Objects::default();
        let Some(tiers) = &self.tiers else { return objects };
        // The alternate exchange of `over` is `Q.retry.first`, which only a ladder creates. The broker ignores an alternate
        // exchange that does not exist. It is set anyway: otherwise a change between `ladder` and `republish` would change an
        // argument of an existing exchange, which is a conflict.
        let (retry, over) = tiers.add_entrance(&mut objects);
        // A message whose number exceeds the last retry goes to the dead-letter target. An exchange that needs another key
        // does not route that number, so the queue itself is bound. The default exchange cannot be bound.
        if let Some(end) = self.end.as_ref().filter(|end| !end.exchange.as_str().is_empty()) {
            let needs_key = match end.kind.as_deref() {
                Some("direct") => true,
                Some("topic") => end.routing_key.as_deref().is_some_and(|key| key != "#"),
                Some(_) | None => false,
            };
            let queue = end.queue.clone().filter(|_| needs_key).map(Destination::Queue);
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
