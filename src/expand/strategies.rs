//! Expands the retry strategies other than `ladder`:
//!
//! - `republish`: the worker counts the attempts in a header and publishes a copy of a failed message to the tier of
//!   the next retry. Without delays, the worker publishes the copy to the back of the queue.
//! - `delayed`: a quorum queue on RabbitMQ 4.3 and later counts the deliveries and delays each redelivery. topo sets
//!   only queue arguments.
//! - `redeliver`: a quorum queue counts the deliveries and redelivers messages immediately. topo sets only one queue
//!   argument.

use super::case::{Case, FinalTarget, Refusal};
use super::tiers::{Objects, Tiers};
use crate::model::known_arguments::KnownArgument;
use crate::model::{Arguments, Destination, QueueName, QueueType};
use crate::rabbitmq::BrokerProfile;

/// The `republish` strategy for one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Republish {
    /// The queue whose messages are retried.
    pub queue: QueueName,
    /// The number of retries after the first attempt.
    pub retries: u32,
    /// The tiers, one for each retry; `None` if the worker publishes to the back of the queue.
    pub tiers: Option<Tiers>,
    /// The maximum time in milliseconds by which the worker may shorten a delay; `None` without jitter.
    pub jitter: Option<i64>,
    /// The final target of messages that have no retries left; `None` if the broker drops them.
    pub end: Option<FinalTarget>,
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
            end: case.final_target.cloned(),
        })
    }

    /// Returns the objects that the strategy needs on this broker. Returns no objects if there are no tiers.
    pub fn objects(&self, profile: &BrokerProfile) -> Objects {
        let mut objects = Objects::default();
        let Some(tiers) = &self.tiers else { return objects };
        // The alternate exchange of `exhausted` is `Q.retry.first`, which only a ladder creates. The broker ignores an
        // alternate exchange that does not exist. Without this argument, a switch between `ladder` and `republish`
        // would change an argument of an existing exchange, which is a conflict.
        let (retry, exhausted) = tiers.add_entry_exchanges(&mut objects);
        // If a worker publishes a copy with a retry number that has no tier, this binding routes the copy to the
        // dead-letter target. If the dead-letter exchange requires a specific key, it would not route the number, so
        // the binding routes to the dead-letter queue instead. The default exchange does not support bindings.
        if let Some(end) = self.end.as_ref().filter(|end| !end.exchange.as_str().is_empty()) {
            let needs_key = match end.kind.as_deref() {
                Some("direct") => true,
                Some("topic") => end.routing_key.as_deref().is_some_and(|key| key != "#"),
                Some(_) | None => false,
            };
            let queue = end.queue.clone().filter(|_| needs_key).map(Destination::Queue);
            let destination = queue.unwrap_or_else(|| Destination::Exchange(end.exchange.clone()));
            objects.bind(&exhausted, "#".to_owned(), destination);
        }
        for (number, name) in tiers.names() {
            objects.bind(&retry, number.to_string(), Destination::Queue(name));
        }
        tiers.add_to(&mut objects, profile);
        objects
    }
}

/// The `delayed` strategy for one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delayed {
    /// The queue whose messages are retried.
    pub queue: QueueName,
    /// The delay of each retry, in milliseconds: the k-th delay is k times the first delay, up to the last delay.
    pub delays: Vec<i64>,
    /// The final target of messages that have no retries left; `None` if the broker drops them.
    pub end: Option<FinalTarget>,
}

impl Delayed {
    pub(super) fn of(case: &Case<'_>) -> Result<Self, Refusal> {
        case.check_quorum("delayed")?;
        let known = KnownArgument::named("x-delayed-retry-type");
        let version = case.profile.version;
        if !known.is_some_and(|known| known.is_accepted(QueueType::Quorum, version)) {
            let message = format!("strategy `delayed` requires RabbitMQ 4.3; the broker is {version}");
            return Err(Refusal::of_strategy(case.error(message)));
        }
        let delays = if case.retry.max_retries.value > 0 { case.delays()? } else { Vec::new() };
        if !crate::spec::is_linear(&delays) {
            let message = format!(
                "strategy `delayed` needs delays that grow linearly; the delays of queue `{}` do not",
                case.name
            );
            return Err(Refusal::of_strategy(case.error(message)));
        }
        case.check_conflicts(&[
            ("x-delivery-limit", "deliveryLimit"),
            ("x-delayed-retry-type", "delayedRetryType"),
            ("x-delayed-retry-min", "delayedRetryMin"),
            ("x-delayed-retry-max", "delayedRetryMax"),
        ])?;
        Ok(Self { queue: case.name.clone(), delays, end: case.final_target.cloned() })
    }

    /// Returns the number of retries after the first attempt.
    pub fn retries(&self) -> u32 {
        u32::try_from(self.delays.len()).unwrap_or(u32::MAX)
    }

    /// Returns the queue arguments that the strategy sets. The broker delays the k-th retry by k times the minimum, up
    /// to the maximum (measured on 4.3.6).
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

/// The `redeliver` strategy for one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redeliver {
    /// The queue whose messages are retried.
    pub queue: QueueName,
    /// The number of retries after the first attempt.
    pub retries: u32,
    /// The final target of messages that have no retries left; `None` if the broker drops them.
    pub end: Option<FinalTarget>,
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
        Ok(Self { queue: case.name.clone(), retries: case.retry.max_retries.value, end: case.final_target.cloned() })
    }

    /// Returns the queue arguments that the strategy sets. A limit of N allows N redeliveries (measured on all
    /// supported versions).
    pub fn arguments(&self) -> Arguments {
        [("x-delivery-limit".to_owned(), i64::from(self.retries).into())].into()
    }
}
