//! What goes wrong where a worker does something else than its contract says: measured, see `tests/live`.

use super::in_force::InForce;
use crate::expand::{Republish, Retry};
use crate::model::QueueType;

const NO_RETRY: &str = "requeue=true, or a crash, is no retry";

/// The sentences, most important first; without full stops.
pub(super) fn beware(it: &InForce<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    match it.retry {
        Some(Retry::Ladder(_)) => {
            sentences.push(format!("{NO_RETRY}: the message comes back at once, {}", requeued(it)));
            if it.queue_type == QueueType::Quorum {
                sentences.push(
                    "basic.reject with requeue=false climbs, too, but counts towards the delivery limit of RabbitMQ 4.3"
                        .to_owned(),
                );
            }
        }
        Some(Retry::Republish(_)) => {
            sentences.push(
                "publish first, wait for the confirm, then basic.ack: the other way round a crash in between loses the \
                 message; this way it may come twice"
                    .to_owned(),
            );
            sentences.push(format!("{NO_RETRY}: the message comes back at once, {}", requeued(it)));
        }
        Some(Retry::Redeliver(_) | Retry::Delayed(_)) => {
            let nack = if it.dialect.version.is_at_least(4, 3) {
                "basic.nack with requeue=true is not counted by RabbitMQ 4.3: the message comes back for ever"
            } else {
                "basic.nack with requeue=true is counted up to RabbitMQ 4.2, and not from 4.3 on: basic.reject always is"
            };
            sentences.push(nack.to_owned());
            sentences.push("requeue=false is no retry: it gives up".to_owned());
            sentences.push("a worker that crashes, or loses its connection, has used up one attempt".to_owned());
        }
        None => {
            sentences.push(format!("{NO_RETRY}: the message comes back at once, {}", requeued(it)));
        }
    }
    if let Some(Retry::Republish(Republish { tiers: Some(_), jitter, .. })) = it.retry {
        let expiration = match jitter {
            Some(_) => "the copy's `expiration` is at least the delay less the jitter, or not set",
            None => "the copy has no `expiration`",
        };
        sentences.push(format!("{expiration}: a shorter one would wait behind the messages before it all the same"));
    }
    if it.dead_letters.is_none() {
        sentences.push(dropped(it));
    }
    sentences
}

/// What is lost where no dead-letter exchange takes it, and whether that is meant.
fn dropped(it: &InForce<'_>) -> String {
    let mut what = vec!["what is given up"];
    what.extend(it.number("message-ttl").map(|_| "what expires"));
    let is_limited = ["max-length", "max-length-bytes"].iter().any(|key| it.number(key).is_some());
    what.extend((is_limited && !it.rejects_when_full()).then_some("the oldest of a full queue"));
    let why = if it.is_drop_meant() { "`deadLetter: none` says so" } else { "there is no dead-letter exchange" };
    let (last, before) = what.split_last().map_or(("", &[][..]), |(last, before)| (*last, before));
    let what = if before.is_empty() { last.to_owned() } else { format!("{} and {last}", before.join(", ")) };
    let verb = if before.is_empty() { "is" } else { "are" };
    format!("{what} {verb} dropped: {why}")
}

/// What becomes of a message that is always requeued.
fn requeued(it: &InForce<'_>) -> String {
    let end = if it.dead_letters.is_some() { "a dead letter" } else { "dropped" };
    match (it.queue_type, it.delivery_limit()) {
        (QueueType::Quorum, Some(limit)) if it.dialect.version.is_at_least(4, 3) => {
            format!("with basic.nack for ever, else {limit} times, and is {end} then")
        }
        (QueueType::Quorum, Some(limit)) => format!("{limit} times, and is {end} then"),
        (QueueType::Quorum, None) | (QueueType::Classic | QueueType::Stream, _) => "for ever".to_owned(),
    }
}
