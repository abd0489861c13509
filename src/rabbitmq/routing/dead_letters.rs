//! Dead letters: where a queue sends them, what they are then, and the cycles in which the broker drops them.

use super::{Keys, Message, Route, Routing};
use crate::model::{BrokerVersion, ExchangeName, Queue, QueueName};
use crate::rabbitmq::Governors;
use std::collections::BTreeMap;
use std::fmt;

/// Why a message leaves a queue as a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A consumer did not want it back.
    Rejected,
    /// Its time was up.
    Expired,
    /// It was the oldest in a full queue.
    Maxlen,
    /// It was delivered too often.
    DeliveryLimit,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rejected, Self::Expired, Self::Maxlen, Self::DeliveryLimit];

    /// RabbitMQ's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Maxlen => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where a queue sends its dead letters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadLettering {
    /// To which exchange.
    pub exchange: ExchangeName,
    /// With which key; their own without it.
    pub routing_key: Option<String>,
}

/// The deaths of a message, as the broker keeps them with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deaths {
    /// The newest first, as far as the version keeps that order.
    records: Vec<(QueueName, Reason)>,
}

impl Deaths {
    /// One more. Up to 3.12 the older ones are turned around each time (`rabbit_dead_letter:group_by_queue_and_reason`).
    pub fn record(&mut self, queue: &QueueName, reason: Reason, version: BrokerVersion) {
        if !version.is_at_least(3, 13) {
            self.records.reverse();
        }
        self.records.retain(|(of, why)| (of, *why) != (queue, reason));
        self.records.insert(0, (queue.clone(), reason));
    }

    /// Whether the broker drops a message that has just died so and would come to that queue: it has died there before,
    /// and no consumer had a hand in it since.
    pub fn is_cycle(&self, target: &QueueName) -> bool {
        // A rejection just now is no cycle, whatever was before; it is the first record then.
        let until_there = self.records.iter().position(|(queue, _)| queue == target);
        let is_rejected = |(_, reason): &(QueueName, Reason)| *reason == Reason::Rejected;
        until_there.is_some_and(|at| !self.records[..=at].iter().any(is_rejected))
    }
}

impl Routing<'_> {
    /// Where a queue sends its dead letters; `None` is nowhere. Several where it is not known which policy governs it.
    pub fn dead_lettering(&self, name: &QueueName) -> &[Option<DeadLettering>] {
        let all = self.dead_letterings.get_or_init(|| {
            self.topology.queues.iter().map(|(name, queue)| (name, self.dead_lettering_of(name, queue))).collect()
        });
        all.get(name).map_or(&[], Vec::as_slice)
    }

    fn dead_lettering_of(&self, name: &QueueName, queue: &Queue) -> Vec<Option<DeadLettering>> {
        let governors = Governors::of(&self.policies, self.profile).with_operators(&self.operator_policies);
        let mut found = Vec::new();
        for (_, settings) in governors.possible(name, queue) {
            let dead_lettering = settings.dead_lettering();
            if !found.contains(&dead_lettering) {
                found.push(dead_lettering);
            }
        }
        found
    }

    /// What a message is as a dead letter.
    pub fn as_dead_letter(&self, message: &Message, queue: &QueueName, reason: Reason, to: &DeadLettering) -> Message {
        let mut letter = message.clone();
        if let Some(key) = &to.routing_key {
            letter.keys = Keys::One(key.clone());
        }
        let said = [("reason", reason.as_str()), ("queue", queue.as_str())];
        let is_first = !letter.headers.has("x-first-death-reason");
        let with_last = self.profile.version.is_at_least(3, 13);
        for (which, is_set) in [("first", is_first), ("last", with_last)] {
            if is_set {
                for (what, value) in said {
                    letter.headers.set(&format!("x-{which}-death-{what}"), Some(value.into()));
                }
                // Where it came from is not kept here.
                letter.headers.set(&format!("x-{which}-death-exchange"), None);
            }
        }
        if !with_last {
            letter.headers.set("x-death", None);
        }
        letter
    }

    /// Where a message goes that dies in a queue, by each way that may be the queue's. Without the cycles, which depend on
    /// its earlier deaths.
    pub fn route_dead_letter(
        &self,
        message: &Message,
        queue: &QueueName,
        reason: Reason,
    ) -> BTreeMap<DeadLettering, Route> {
        let ways = self.dead_lettering(queue).iter().flatten();
        ways.map(|to| {
            let route = self.route(&to.exchange, &self.as_dead_letter(message, queue, reason, to));
            (to.clone(), route)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reason::{Expired, Rejected};

    fn deaths(of: &[(&str, Reason)], version: BrokerVersion) -> Deaths {
        let mut deaths = Deaths::default();
        of.iter().for_each(|(queue, reason)| deaths.record(&(*queue).into(), *reason, version));
        deaths
    }

    #[test]
    fn a_cycle_is_one_without_a_rejection() {
        let version = BrokerVersion::new(4, 0, 5);
        for (of, target, expected) in [
            (&[("work", Expired), ("wait", Expired)][..], "work", true),
            (&[("work", Rejected), ("wait", Expired)], "work", false),
            (&[("work", Rejected), ("wait", Expired), ("work", Expired), ("wait", Expired)], "work", true),
            (&[("work", Expired), ("wait", Rejected)], "work", false),
            (&[("work", Expired)], "work", true),
            (&[("work", Expired)], "wait", false),
        ] {
            assert_eq!(deaths(of, version).is_cycle(&target.into()), expected, "{of:?} to {target}");
        }
    }

    #[test]
    fn old_versions_turn_the_older_deaths_around() {
        let of = [("a", Expired), ("b", Rejected), ("c", Expired)];
        // Kept as c, a, b there.
        assert!(deaths(&of, BrokerVersion::new(3, 10, 8)).is_cycle(&"a".into()));
        assert!(!deaths(&of, BrokerVersion::new(3, 13, 0)).is_cycle(&"a".into()));
    }
}
