//! Simulates dead-lettering: the dead-letter target of a queue, the changes to a message, and the cycles in which the
//! broker drops messages.

use super::message::Message;
use super::sender_selected::SenderSelected;
use super::{Keys, Route, Routing};
use crate::model::message_headers::CC;
use crate::model::{BrokerVersion, Queue, QueueName};
use crate::rabbitmq::effective::{ActivePolicies, EffectiveSettings, OverflowBehavior};
use crate::rabbitmq::wiring::DeadLettering;
use std::collections::BTreeMap;
use std::fmt;

/// The reason why a queue dead-letters a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A consumer rejected the message without requeueing it.
    Rejected,
    /// The TTL of the message expired.
    Expired,
    /// The queue was full, and removed or rejected the message.
    Maxlen,
    /// The message exceeded the delivery limit.
    DeliveryLimit,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Rejected, Self::Expired, Self::Maxlen, Self::DeliveryLimit];

    /// Returns the reasons other than a rejection for which a queue with these settings can dead-letter messages.
    /// Ignores the TTLs that publishers set on messages.
    pub fn without_rejection(settings: &EffectiveSettings) -> impl Iterator<Item = Self> {
        let is_limited = settings.has("max-length") || settings.has("max-length-bytes");
        let drops = settings.overflow_behavior() != OverflowBehavior::Rejects;
        let expired = settings.has("message-ttl").then_some(Self::Expired);
        let maxlen = (is_limited && drops).then_some(Self::Maxlen);
        let limited = settings.delivery_limit().map(|_| Self::DeliveryLimit);
        [expired, maxlen, limited].into_iter().flatten()
    }

    /// Returns the name that RabbitMQ uses.
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

/// The dead-lettering history of a message, as the broker stores it in its headers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeathHistory {
    /// The queues that dead-lettered the message, each with the reason. The first record is the newest. The order of
    /// the other records depends on the version.
    records: Vec<(QueueName, Reason)>,
}

impl DeathHistory {
    /// Adds a record, which replaces an earlier record with the same queue and reason. RabbitMQ 3.12 and earlier also
    /// reverse the older records (`rabbit_dead_letter:group_by_queue_and_reason`).
    pub fn record(&mut self, queue: &QueueName, reason: Reason, version: BrokerVersion) {
        if !version.is_at_least(3, 13) {
            self.records.reverse();
        }
        self.records.retain(|(of, why)| (of, *why) != (queue, reason));
        self.records.insert(0, (queue.clone(), reason));
    }

    /// Returns true if the broker drops a message that has just been dead-lettered and would reach `target`.
    ///
    /// The broker drops the message if `target` has dead-lettered it before, and neither that record nor a newer one is
    /// a rejection.
    pub fn is_cycle(&self, target: &QueueName) -> bool {
        // If the newest record is a rejection, there is no cycle, regardless of older records.
        let newest_of_target = self.records.iter().position(|(queue, _)| queue == target);
        let is_rejected = |(_, reason): &(QueueName, Reason)| *reason == Reason::Rejected;
        newest_of_target.is_some_and(|at| !self.records[..=at].iter().any(is_rejected))
    }
}

impl Routing<'_> {
    /// Returns the possible dead-letter targets of a queue; a `None` entry means no target. The list can have several
    /// entries if topo cannot determine which policy governs the queue. The list is empty if the topology does not
    /// contain the queue.
    pub fn dead_lettering(&self, name: &QueueName) -> &[Option<DeadLettering>] {
        let all = self.dead_letterings.get_or_init(|| {
            self.topology.queues.iter().map(|(name, queue)| (name, self.dead_lettering_of(name, queue))).collect()
        });
        all.get(name).map_or(&[], Vec::as_slice)
    }

    fn dead_lettering_of(&self, name: &QueueName, queue: &Queue) -> Vec<Option<DeadLettering>> {
        let governors = ActivePolicies::of(&self.policies, self.profile).with_operators(&self.operator_policies);
        let mut found = Vec::new();
        for (_, settings) in governors.possible(name, queue) {
            let dead_lettering = settings.dead_lettering();
            if !found.contains(&dead_lettering) {
                found.push(dead_lettering);
            }
        }
        found
    }

    /// Returns a copy of a message with the routing keys and the headers that the broker sets when it dead-letters the
    /// message.
    pub fn to_dead_lettered(
        &self,
        message: &Message,
        queue: &QueueName,
        reason: Reason,
        to: &DeadLettering,
    ) -> Message {
        let mut dead_lettered = message.clone();
        if let Some(key) = &to.routing_key {
            dead_lettered.keys = Keys::One(key.clone());
            dead_lettered.more_keys = SenderSelected::default();
            if !self.profile.version.is_at_least(3, 13) {
                dead_lettered.headers.remove(CC);
            }
        }
        let values = [("reason", reason.as_str()), ("queue", queue.as_str())];
        let is_first = !dead_lettered.headers.has("x-first-death-reason");
        let with_last = self.profile.version.is_at_least(3, 13);
        for (which, is_set) in [("first", is_first), ("last", with_last)] {
            if is_set {
                for (name, value) in values {
                    dead_lettered.headers.set(&format!("x-{which}-death-{name}"), Some(value.into()));
                }
                // The original exchange is unknown here.
                dead_lettered.headers.set(&format!("x-{which}-death-exchange"), None);
            }
        }
        if !with_last {
            dead_lettered.headers.set("x-death", None);
        }
        dead_lettered
    }

    /// Returns the route of a message that a queue dead-letters, for each possible target of the queue. Ignores cycles,
    /// because they depend on the history of the message.
    pub fn route_dead_letter(
        &self,
        message: &Message,
        queue: &QueueName,
        reason: Reason,
    ) -> BTreeMap<DeadLettering, Route> {
        let targets = self.dead_lettering(queue).iter().flatten();
        targets
            .map(|to| {
                let route = self.route(&to.exchange, &self.to_dead_lettered(message, queue, reason, to));
                (to.clone(), route)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ArgumentValue, Arguments, Topology};
    use crate::rabbitmq::BrokerProfile;
    use Reason::{Expired, Rejected};
    use std::collections::BTreeSet;

    fn deaths(of: &[(&str, Reason)], version: BrokerVersion) -> DeathHistory {
        let mut deaths = DeathHistory::default();
        of.iter().for_each(|(queue, reason)| deaths.record(&(*queue).into(), *reason, version));
        deaths
    }

    #[test]
    fn dead_letter_routing_key_replaces_cc_keys() {
        let audit = ArgumentValue::List(vec!["audit".into()]);
        let message = Message::published("work", &Arguments::from([(CC.to_owned(), audit)]));
        let (topology, external) = (Topology::missing("shop".into()), BTreeSet::new());
        for (version, routing_key, keeps_keys, keeps_header) in [
            (BrokerVersion::new(3, 12, 14), Some("dead"), false, false),
            (BrokerVersion::new(3, 13, 0), Some("dead"), false, true),
            (BrokerVersion::new(3, 12, 14), None, true, true),
            (BrokerVersion::new(3, 13, 0), None, true, true),
        ] {
            let profile = BrokerProfile::of(version);
            let routing = Routing::new(&topology, [], &external, &profile);
            let to = DeadLettering { exchange: "dlx".into(), routing_key: routing_key.map(str::to_owned) };
            let dead_lettered = routing.to_dead_lettered(&message, &"work".into(), Rejected, &to);
            let kept = (!dead_lettered.more_keys.is_empty(), dead_lettered.headers.has(CC));
            assert_eq!(kept, (keeps_keys, keeps_header), "{version:?} {routing_key:?}");
        }
    }

    #[test]
    fn cycle_has_no_rejection() {
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
    fn old_versions_reverse_older_records() {
        let of = [("a", Expired), ("b", Rejected), ("c", Expired)];
        // RabbitMQ 3.10.8 stores the order c, a, b.
        assert!(deaths(&of, BrokerVersion::new(3, 10, 8)).is_cycle(&"a".into()));
        assert!(!deaths(&of, BrokerVersion::new(3, 13, 0)).is_cycle(&"a".into()));
    }
}
