//! Finds the dead-letter queues of a topology: the final targets of dead-lettered messages.

use super::{Keys, Message, Reason, Routing};
use crate::model::QueueName;
use crate::model::naming::TierName;
use std::collections::{BTreeMap, BTreeSet};

impl Routing<'_> {
    /// Returns the dead-letter queues, each with the queues from which it can receive dead-lettered messages.
    ///
    /// A dead-letter queue receives dead-lettered messages and has no dead-letter target of its own. Delayed retry
    /// queues are neither sources nor targets. Targets that are only possible are included.
    pub fn dead_letter_queues(&self) -> BTreeMap<QueueName, BTreeSet<QueueName>> {
        let mut found: BTreeMap<QueueName, BTreeSet<QueueName>> = BTreeMap::new();
        let is_tier = |name: &QueueName| TierName::parse(name).is_some();
        for source in self.topology.queues.keys().filter(|name| !is_tier(name)) {
            for reason in Reason::ALL {
                for route in self.route_dead_letter(&Message::with(Keys::any()), source, reason).into_values() {
                    for target in route.certain_queues.into_iter().chain(route.possible_queues) {
                        let is_final = self.dead_lettering(&target).iter().all(Option::is_none);
                        if is_final && !is_tier(&target) && self.topology.queues.contains_key(&target) {
                            found.entry(target).or_default().insert(source.clone());
                        }
                    }
                }
            }
        }
        found
    }
}
