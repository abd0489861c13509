//! Describes the headers of a dead-lettered message after its last retry, and how to replay it. Measured on all
//! versions: `tests/live/contract.rs`.

use super::Describer;
use super::document::{Carried, Death, Replay};
use crate::contract::Publish;
use crate::expand::Retry;
use crate::model::{ExchangeName, naming};

impl Describer<'_, '_> {
    pub(super) fn dead_lettered_message(&self) -> Option<Carried> {
        let dead_letters = self.in_force.arriving()?;
        let queue = self.in_force.name;
        let death = |queue: &crate::model::QueueName, reason, count| Death { queue: queue.clone(), reason, count };
        let (mut exchange, mut routing_key) = (dead_letters.exchange.clone(), dead_letters.routing_key.clone());
        let mut may_have_more = false;
        let x_death = match self.in_force.retry {
            None => vec![death(queue, "rejected", 1)],
            Some(Retry::Redeliver(_) | Retry::Delayed(_)) => vec![death(queue, "delivery_limit", 1)],
            Some(Retry::Ladder(ladder)) => {
                exchange = naming::guard_exchange(queue);
                routing_key = Some(naming::retry_key(queue, ladder.tiers.last()));
                let mut deaths = vec![death(queue, "rejected", ladder.tiers.last().saturating_add(1))];
                let tiers: Vec<_> = ladder.tiers.names().collect();
                deaths.extend(tiers.iter().rev().map(|(_, tier)| death(tier, "expired", 1)));
                deaths
            }
            Some(Retry::Republish(republish)) => {
                // Up to 3.13, what a copy brings in `x-death` counts.
                may_have_more = !self.in_force.profile.version.is_at_least(4, 0) && republish.tiers.is_some();
                let last = republish.tiers.as_ref().and_then(|tiers| tiers.names().last());
                routing_key = routing_key.or_else(|| match &last {
                    Some((number, _)) => Some(naming::retry_key(queue, *number)),
                    None => Some(queue.to_string()),
                });
                let mut deaths = vec![death(queue, "rejected", 1)];
                deaths.extend(last.map(|(_, tier)| death(&tier, "expired", 1)));
                deaths
            }
        };
        Some(Carried { exchange, routing_key, x_death, may_have_more })
    }

    pub(super) fn replay(&self) -> Option<Replay> {
        self.in_force.arriving()?;
        let contract = self.contract.as_ref()?;
        let queue = self.in_force.name;
        let mut without: Vec<String> = vec!["x-death".to_owned()];
        without.extend(contract.counter.as_ref().and_then(|counter| counter.header.clone()));
        let mut warnings = Vec::new();
        if let Some(Retry::Ladder(ladder)) = self.in_force.retry {
            let last = naming::retry_key(queue, ladder.tiers.last());
            warnings.push(format!("with its current key, {last}, its first failure dead-letters it again"));
        }
        if let Some(Retry::Republish(_)) = self.in_force.retry {
            warnings.push("with its x-retry-count, its first failure dead-letters it again".to_owned());
        }
        warnings.push(
            "its original exchange and key route it to every queue that is bound there, not only to this one"
                .to_owned(),
        );
        let publish = Publish { exchange: ExchangeName::new(""), routing_keys: vec![queue.to_string()] };
        Some(Replay { publish, without_headers: without, warnings })
    }
}
