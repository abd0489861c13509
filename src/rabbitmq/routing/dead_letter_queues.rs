//! Finds the dead-letter queues of a topology: the queues in which dead-lettered messages remain.

use super::{Keys, Message, Reason, Routing};
use crate::model::QueueName;
use crate::model::naming::TierName;
use crate::rabbitmq::effective::ActivePolicies;
use crate::rabbitmq::wiring::has_dead_letter_name;
use std::collections::{BTreeMap, BTreeSet};

impl Routing<'_> {
    /// Returns the dead-letter queues, each with the queues that dead-letter to it. A dead-letter queue receives
    /// dead-lettered messages from other queues and does not dead-letter messages itself.
    ///
    /// Ignores delayed retry queues. A source with a message TTL probably delays messages for its target, so the target
    /// counts as a dead-letter queue only if its name suggests dead-lettering. The result also includes queues that
    /// might not receive dead-lettered messages, and queues that might dead-letter messages.
    pub fn dead_letter_queues(&self) -> BTreeMap<QueueName, BTreeSet<QueueName>> {
        let governors = ActivePolicies::of(&self.policies, self.profile).with_operators(&self.operator_policies);
        let any = Message::with(Keys::any());
        let is_tier = |name: &QueueName| TierName::parse(name).is_some();
        let mut found: BTreeMap<QueueName, BTreeSet<QueueName>> = BTreeMap::new();
        for (source, queue) in &self.topology.queues {
            if is_tier(source) || self.dead_lettering(source).iter().all(Option::is_none) {
                continue;
            }
            let has_ttl = governors.likely(source, queue).has("message-ttl");
            let routes = Reason::ALL.into_iter().flat_map(|reason| self.route_dead_letter(&any, source, reason));
            for target in routes.flat_map(|(_, it)| it.certain_queues.into_iter().chain(it.possible_queues)) {
                let is_final = self.dead_lettering(&target).iter().any(Option::is_none);
                let is_plausible = !has_ttl || has_dead_letter_name(target.as_str());
                if target != *source && is_final && is_plausible && !is_tier(&target) {
                    found.entry(target).or_default().insert(source.clone());
                }
            }
        }
        found
    }
}
