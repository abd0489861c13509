//! Divides the times of a topology and of published messages by a number.

use crate::model::record_kinds::RecordKind;
use crate::model::{ArgumentValue, Arguments, QueueName, Topology};
use crate::rabbitmq::routing::Routing;
use crate::simulation::Publication;
use std::collections::{BTreeMap, BTreeSet};

/// The minimum delay, and the minimum TTL of a queue without a worker, in milliseconds, after the division. A message
/// is never early, but it can be late. On a busy machine with two processors, messages on RabbitMQ 4.3.6 were up to
/// 148 ms late. The comparison accepts late deliveries.
const MIN_TIME: i64 = 25;
/// The minimum TTL for a queue with a worker, in milliseconds. With a shorter time, a message can expire before
/// the broker delivers it.
const MIN_TIME_WITH_WORKER: i64 = 1_000;

/// The time that topo takes to publish a message and receive the confirm, in milliseconds. topo must publish all
/// messages of a case before the first message expires.
const PUBLISH_TIME: i64 = 100;

/// The policy keys whose values, in milliseconds, are divided. The corresponding arguments have the prefix `x-`.
const TIMES: [&str; 3] = ["message-ttl", "delayed-retry-min", "delayed-retry-max"];

/// The number by which times are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(u64);

impl Scale {
    /// The scale that leaves times unchanged.
    pub const NONE: Self = Self(1);

    /// Creates a scale; 0 becomes 1.
    pub fn new(divisor: u64) -> Self {
        Self(divisor.max(1))
    }

    /// Returns the number by which times are divided.
    pub fn divisor(self) -> u64 {
        self.0
    }

    /// Returns the largest scale at which the results are reliable. `workers` contains the queues that have a worker in
    /// at least one case. `counts` contains, for each queue, the largest number of messages that a case publishes and
    /// that reach the queue. `publications` contains, for each case, the publication and whether the case has workers.
    pub(super) fn largest<'p>(
        routing: &Routing<'_>,
        workers: &BTreeSet<&QueueName>,
        counts: &BTreeMap<QueueName, u64>,
        publications: impl Iterator<Item = (&'p Publication, bool)>,
    ) -> Self {
        let mut limits = Vec::new();
        let mut limit = |time: Option<i64>, min: i64| limits.extend(time.filter(|time| *time > 0).map(|it| it / min));
        for (name, queue) in &routing.topology().queues {
            let settings = routing.settings_of(name, queue);
            let has_worker = workers.contains(name);
            let min = min_time_for(counts.get(name).copied().unwrap_or(1));
            limit(settings.integer("message-ttl"), if has_worker { MIN_TIME_WITH_WORKER } else { min });
            limit(settings.integer("delayed-retry-min"), MIN_TIME);
        }
        for (publication, has_workers) in publications {
            let min = min_time_for(publication.count);
            limit(publication.expiration, if has_workers { MIN_TIME_WITH_WORKER } else { min });
        }
        let lowest = limits.into_iter().min().and_then(|limit| u64::try_from(limit).ok());
        Self::new(lowest.unwrap_or(1))
    }

    /// Divides a time in milliseconds. A positive time stays positive.
    fn divide(self, time: i64) -> i64 {
        let divisor = i64::try_from(self.0).unwrap_or(i64::MAX);
        if time > 0 { (time / divisor).max(1) } else { time }
    }

    /// Returns the publication with its expiration divided.
    pub(super) fn publication(self, publication: &Publication) -> Publication {
        let expiration = publication.expiration.map(|time| self.divide(time));
        Publication { expiration, ..publication.clone() }
    }

    /// Divides the times of a topology. Removes the settings that could cause the broker to delete a queue or an
    /// exchange between two cases: `expires` and `autoDelete`.
    pub(super) fn apply(self, topology: &mut Topology) {
        for queue in topology.queues.values_mut() {
            queue.auto_delete = false;
            queue.arguments.remove("x-expires");
            self.divide_in(&mut queue.arguments, "x-");
        }
        for exchange in topology.exchanges.values_mut() {
            exchange.auto_delete = false;
        }
        for policy in topology.policies.values_mut() {
            policy.definition.remove("expires");
            self.divide_in(&mut policy.definition, "");
        }
        for record in topology.records.values_mut().filter(|it| it.id.kind == RecordKind::OperatorPolicy) {
            if let Some(ArgumentValue::Table(definition)) = record.fields.get_mut("definition") {
                definition.remove("expires");
                self.divide_in(definition, "");
            }
        }
    }

    fn divide_in(self, settings: &mut Arguments, prefix: &str) {
        for name in TIMES {
            if let Some(ArgumentValue::Integer(time)) = settings.get_mut(&format!("{prefix}{name}")) {
                *time = self.divide(*time);
            }
        }
    }
}

/// Returns the minimum TTL in milliseconds for a queue without a worker that receives `messages` messages.
fn min_time_for(messages: u64) -> i64 {
    match i64::try_from(messages) {
        Ok(messages) if messages > 1 => PUBLISH_TIME.saturating_mul(messages),
        Ok(_) | Err(_) => MIN_TIME,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_divided_and_stay_positive() {
        assert_eq!([0, 1, 999, 60_000].map(|time| Scale::new(1_000).divide(time)), [0, 1, 1, 60]);
        assert_eq!(Scale::new(0), Scale::NONE);
        let mut arguments: Arguments =
            [("x-message-ttl".to_owned(), 60_000.into()), ("x-max-length".to_owned(), 60_000.into())].into();
        Scale::new(100).divide_in(&mut arguments, "x-");
        assert_eq!(arguments["x-message-ttl"], ArgumentValue::Integer(600));
        assert_eq!(arguments["x-max-length"], ArgumentValue::Integer(60_000));
    }

    #[test]
    fn several_messages_need_time() {
        assert_eq!([1, 2, 10].map(min_time_for), [25, 200, 1_000]);
    }
}
