//! Divides the times of a topology and of published messages by a number.

use crate::model::record_kinds::RecordKind;
use crate::model::{ArgumentValue, Arguments, QueueName, Topology};
use crate::rabbitmq::routing::Routing;
use crate::simulation::Publication;
use std::collections::BTreeSet;

/// The minimum time of a queue without a worker, in milliseconds. A message can be late, but never early (up to 148 ms on a
/// busy machine with two processors, measured on 4.3.6), and the comparison accepts late deliveries.
const LEAST: i64 = 25;
/// The minimum time to live in a queue with a worker, in milliseconds. With a shorter time, a message can expire before the
/// broker delivers it.
const LEAST_WITH_WORKER: i64 = 1_000;

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

    /// Returns the largest scale with which the times are still exact enough. `workers` are the queues with a worker in some
    /// case.
    pub(super) fn largest<'p>(
        routing: &Routing<'_>,
        workers: &BTreeSet<&QueueName>,
        publications: impl Iterator<Item = (&'p Publication, bool)>,
    ) -> Self {
        let mut limits = Vec::new();
        let mut limit =
            |time: Option<i64>, least: i64| limits.extend(time.filter(|time| *time > 0).map(|it| it / least));
        for (name, queue) in &routing.topology().queues {
            let settings = routing.settings_of(name, queue);
            let has_worker = workers.contains(name);
            limit(settings.integer("message-ttl"), if has_worker { LEAST_WITH_WORKER } else { LEAST });
            limit(settings.integer("delayed-retry-min"), LEAST);
        }
        for (publication, has_workers) in publications {
            limit(publication.expiration, if has_workers { LEAST_WITH_WORKER } else { LEAST });
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
