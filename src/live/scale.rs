//! Divides the times of a topology and of published messages by a number.

use crate::model::record_kinds::RecordKind;
use crate::model::{ArgumentValue, Arguments, QueueName, Topology};
use crate::rabbitmq::routing::Routing;
use crate::simulation::Publication;
use std::collections::{BTreeMap, BTreeSet};

/// The minimum TTL or delay after the division, in milliseconds, for a queue without a worker. A message can be late: up to
/// 148 ms on a busy machine with two processors (measured on 4.3.6). It is never early. The comparison accepts late
/// deliveries.
const LEAST: i64 = 25;
/// The minimum time to live in a queue with a worker, in milliseconds. With a shorter time, a message can expire before the
/// broker delivers it.
const LEAST_WITH_WORKER: i64 = 1_000;

/// The time in which a message is published and confirmed, in milliseconds. All messages of a case must be published before
/// the first one expires.
const PUBLISH_TIME: i64 = 100;

/// The settings that are times, in milliseconds, as policies name them. Arguments have the prefix `x-`.
const TIMES: [&str; 3] = ["message-ttl", "delayed-retry-min", "delayed-retry-max"];

/// The number by which times are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(u64);

impl Scale {
    /// Times as in the spec.
    pub const NONE: Self = Self(1);

    /// Creates a scale; 0 becomes 1.
    pub fn new(divisor: u64) -> Self {
        Self(divisor.max(1))
    }

    /// Returns the number by which times are divided.
    pub fn divisor(self) -> u64 {
        self.0
    }

    /// Returns the largest scale at which the results are reliable. `workers` contains the queues that have a worker in at
    /// least one case, and `counts` the largest number of messages that one case publishes to a queue.
    pub(super) fn largest<'p>(
        routing: &Routing<'_>,
        workers: &BTreeSet<&QueueName>,
        counts: &BTreeMap<QueueName, u64>,
        publications: impl Iterator<Item = (&'p Publication, bool)>,
    ) -> Self {
        let mut limits = Vec::new();
        let mut limit =
            |time: Option<i64>, least: i64| limits.extend(time.filter(|time| *time > 0).map(|it| it / least));
        for (name, queue) in &routing.topology().queues {
            let settings = routing.settings_of(name, queue);
            let has_worker = workers.contains(name);
            let least = least_for(counts.get(name).copied().unwrap_or(1));
            limit(settings.integer("message-ttl"), if has_worker { LEAST_WITH_WORKER } else { least });
            limit(settings.integer("delayed-retry-min"), LEAST);
        }
        for (publication, has_workers) in publications {
            let least = least_for(publication.count);
            limit(publication.expiration, if has_workers { LEAST_WITH_WORKER } else { least });
        }
        let least = limits.into_iter().min().and_then(|least| u64::try_from(least).ok());
        Self::new(least.unwrap_or(1))
    }

    /// Divides a time in milliseconds. A positive time stays positive.
    fn divide(self, time: i64) -> i64 {
        let divisor = i64::try_from(self.0).unwrap_or(i64::MAX);
        if time > 0 { (time / divisor).max(1) } else { time }
    }

    /// Returns the publication with a divided expiration.
    pub(super) fn publication(self, publication: &Publication) -> Publication {
        let expiration = publication.expiration.map(|time| self.divide(time));
        Publication { expiration, ..publication.clone() }
    }

    /// Divides the times of a topology. Removes the settings that delete a queue or an exchange between two cases:
    /// `expires` and `autoDelete`.
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

/// Returns the minimum time to live of a queue that receives this number of messages.
fn least_for(messages: u64) -> i64 {
    match i64::try_from(messages) {
        Ok(messages) if messages > 1 => PUBLISH_TIME.saturating_mul(messages),
        Ok(_) | Err(_) => LEAST,
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
        assert_eq!([1, 2, 10].map(least_for), [25, 200, 1_000]);
    }
}
