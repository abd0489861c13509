//! Describes the headers of a dead-lettered message after its last retry, and how to replay it. Measured on all
//! versions: `tests/live/contract.rs`.

use super::Describer;
use super::document::{DeadLetteredProperties, Death, Replay};
use crate::contract::Publish;
use crate::expand::Retry;
use crate::model::{ExchangeName, naming};

impl Describer<'_, '_> {
    pub(super) fn dead_lettered_message(&self) -> Option<DeadLetteredProperties> {
        let dead_letters = self.queue.arriving()?;
        let queue = self.queue.name;
        let death = |queue: &crate::model::QueueName, reason, count| Death { queue: queue.clone(), reason, count };
        let (mut exchange, mut routing_key) = (dead_letters.exchange.clone(), dead_letters.routing_key.clone());
        let mut may_have_more = false;
        let x_death = match self.queue.retry {
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
                // Up to 3.13, RabbitMQ keeps the `x-death` entries of a published copy.
                may_have_more = !self.queue.profile.version.is_at_least(4, 0) && republish.tiers.is_some();
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
        Some(DeadLetteredProperties { exchange, routing_key, x_death, may_have_more })
    }

    pub(super) fn replay(&self) -> Option<Replay> {
        self.queue.arriving()?;
        let contract = self.contract.as_ref()?;
        let queue = self.queue.name;
        let mut without: Vec<String> = vec!["x-death".to_owned()];
        without.extend(contract.counter.as_ref().and_then(|counter| counter.header.clone()));
        let mut warnings = Vec::new();
        if let Some(Retry::Ladder(ladder)) = self.queue.retry {
            let last = naming::retry_key(queue, ladder.tiers.last());
            warnings.push(format!("if the copy keeps the routing key {last}, its first failure dead-letters it again"));
        }
        if let Some(Retry::Republish(_)) = self.queue.retry {
            warnings.push("if the copy keeps x-retry-count, its first failure dead-letters it again".to_owned());
        }
        warnings.push(
            "publishing to the original exchange routes the copy to every queue that is bound there, not only to this one"
                .to_owned(),
        );
        let publish = Publish { exchange: ExchangeName::new(""), routing_keys: vec![queue.to_string()] };
        Some(Replay { publish, without_headers: without, warnings })
    }
}
