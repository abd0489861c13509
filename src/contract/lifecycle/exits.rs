//! Lists the ways in which a message can leave a queue, with the destination of each. Also describes the routing and
//! the `x-death` header of a message that is dead-lettered after its last retry.
//!
//! `tests/live/contract.rs` checks the exits against live brokers.

use super::document::{DeadLetteredProperties, Death, Exit};
use super::{Describer, time};
use crate::contract::document::{Answer, Contract};
use crate::expand::Retry;
use crate::model::units::size;
use crate::model::{QueueType, naming};
use crate::rabbitmq::OverflowBehavior;

impl Describer<'_, '_> {
    pub(super) fn exits(&self) -> Vec<Exit> {
        let mut ways = Vec::new();
        let mut add = |way: &'static str, by: String, to: String| ways.push(Exit { way, by, to });
        match &self.contract {
            Some(_) if self.is_dead_letter_queue() => {
                add(
                    "taken",
                    "basic.ack after a replay or an inspection".to_owned(),
                    "done: the broker deletes the message".to_owned(),
                );
                add("inspected", "an inspection that requeues it".to_owned(), self.describe_requeue());
            }
            Some(contract) => self.add_worker_exits(contract, &mut add),
            None => {
                add("read", "reading does not remove it".to_owned(), "stays".to_owned());
            }
        }
        self.add_broker_exits(&mut add);
        ways
    }

    /// Adds the exits that a worker causes.
    fn add_worker_exits(&self, contract: &Contract, add: &mut impl FnMut(&'static str, String, String)) {
        add("acked", "basic.ack".to_owned(), "done: the broker deletes the message".to_owned());
        let is_counted_by_queue = matches!(self.queue.retry, Some(Retry::Redeliver(_) | Retry::Delayed(_)));
        let reason = if is_counted_by_queue { "delivery_limit" } else { "rejected" };
        let last = self.end(reason);
        let failed = match contract.deliveries {
            1 => last.clone(),
            many => format!("the next attempt; after attempt {many}, {last}"),
        };
        add("failed", method(&contract.on_failure), failed);
        if contract.on_give_up != contract.on_failure {
            let end = self.dead_letter_destination();
            let to = match (&contract.on_give_up.publish, end) {
                (Some(_), Some(end)) => format!("{end}, without a new x-death entry, because the worker publishes it"),
                (Some(_) | None, _) => self.end("rejected"),
            };
            add("given up", method(&contract.on_give_up), to);
        }
        if is_counted_by_queue {
            let (counted, uncounted) = self.redelivery(contract);
            let counted = format!("redelivered {counted}; uses up one attempt");
            add("crashed", "the worker's channel or connection closes".to_owned(), counted);
            if self.queue.profile.version.is_at_least(4, 3) {
                let to = format!("redelivered {uncounted}, not counted, without limit");
                add("requeued", "basic.nack requeue=true".to_owned(), to);
            }
        } else {
            let by = "requeue=true, or the worker's channel or connection closes".to_owned();
            add("requeued", by, self.describe_requeue());
        }
    }

    /// Returns two descriptions of when a queue that counts deliveries redelivers a message: after a counted delivery,
    /// and after an uncounted delivery.
    ///
    /// The delay applies to every returned message (`x-delayed-retry-type: all`) and grows with the number of counted
    /// deliveries.
    fn redelivery(&self, contract: &Contract) -> (String, String) {
        let immediately = "immediately".to_owned();
        let Some(Retry::Delayed(_)) = self.queue.retry else { return (immediately.clone(), immediately) };
        match &contract.delays[..] {
            [] => (immediately.clone(), immediately),
            [only] => (format!("after {}", only.text), format!("after {}", only.text)),
            [first, .., last] => {
                let counted = format!("after the delay for the attempt ({} to {})", first.text, last.text);
                (counted, format!("after {}", first.text))
            }
        }
    }

    /// Describes the redeliveries of a requeued message.
    fn describe_requeue(&self) -> String {
        let again =
            if self.is_dead_letter_queue() { "stays in the queue" } else { "redelivered immediately (not a retry)" };
        match self.queue.delivery_limit() {
            Some(limit) => {
                let exception =
                    if self.queue.profile.version.is_at_least(4, 3) { " (basic.nack is not counted)" } else { "" };
                format!("{again}; after {limit} redeliveries{exception}, {}", self.end("delivery_limit"))
            }
            None if self.is_dead_letter_queue() => format!("{again}, however often it is requeued"),
            None => format!("{again}, without limit"),
        }
    }

    /// Adds the exits that the broker causes: expiry, overflow and the deletion of the queue.
    fn add_broker_exits(&self, add: &mut impl FnMut(&'static str, String, String)) {
        let it = &self.queue;
        if it.queue_type == QueueType::Stream {
            if let Some(age) = it.effective.get("max-age") {
                add("too old", format!("maxAge {}", age.value), "deleted with its segment".to_owned());
            }
        } else {
            self.add_expiry(add);
        }
        let limits = [
            it.number("max-length").map(|limit| format!("maxLength {limit}")),
            it.number("max-length-bytes")
                .map(|limit| format!("maxLengthBytes {}", size(limit).unwrap_or(limit.to_string()))),
        ];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        if !limits.is_empty() {
            let to = match (it.queue_type, it.overflow_behavior()) {
                (QueueType::Stream, _) => "the oldest segment is deleted".to_owned(),
                (_, OverflowBehavior::DropsOldest) => format!("the oldest message is removed: {}", self.end("maxlen")),
                (_, OverflowBehavior::Rejects) => "new messages are rejected: the publisher gets basic.nack".to_owned(),
                (_, OverflowBehavior::RejectsAndDeadLetters) => {
                    format!("new messages are rejected: {}; the publisher gets basic.nack", self.end("maxlen"))
                }
            };
            add("overflow", limits.join(", "), to);
        }
        if let Some(expires) = it.number("expires") {
            let by = format!("expires {}: the queue has been unused for this long", time(expires));
            add("queue deleted", by, "lost with the queue; not dead-lettered".to_owned());
        }
    }

    fn add_expiry(&self, add: &mut impl FnMut(&'static str, String, String)) {
        let version = self.queue.profile.version;
        if self.queue.queue_type == QueueType::Quorum && !version.is_at_least(3, 10) {
            return;
        }
        // On RabbitMQ 3.13 and later, a guard exchange keeps expired messages out of the tiers. On earlier versions, an
        // expired message enters a tier, and the broker drops the message when the tier returns it.
        let is_unguarded = matches!(self.queue.retry, Some(Retry::Ladder(_))) && !version.is_at_least(3, 13);
        let to = if is_unguarded {
            "lost: it enters a tier, and RabbitMQ versions before 3.13 drop it because of a dead-letter cycle"
                .to_owned()
        } else {
            self.end("expired")
        };
        let by = match self.queue.number("message-ttl") {
            Some(ttl) => format!("messageTtl {}, or the `expiration` of the message", time(ttl)),
            None => "the `expiration` of the message, if set".to_owned(),
        };
        add("expired", by, to);
    }
}

/// Describes a worker's reaction.
fn method(answer: &Answer) -> String {
    let flag = answer.requeue.map_or_else(String::new, |flag| format!(" requeue={flag}"));
    let method = answer.method.as_str();
    match &answer.publish {
        Some(_) => format!("publish a copy, {method}"),
        None => format!("{method}{flag}"),
    }
}

impl Describer<'_, '_> {
    pub(super) fn dead_lettered_message(&self) -> Option<DeadLetteredProperties> {
        let dead_letters = self.queue.reachable_dead_letters()?;
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
                // RabbitMQ 3.13 and earlier keep the `x-death` entries of a published copy.
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
}
