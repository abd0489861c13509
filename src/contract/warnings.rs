//! Generates warnings about workers that deviate from their contract. The tests in `tests/live` verify the
//! consequences that the warnings describe.

use super::context::EffectiveQueue;
use super::document::DeadLetters;
use crate::expand::{Republish, Retry};
use crate::model::{QueueType, Reach};

/// The maximum number of routing keys in a warning.
const MAX_KEYS: usize = 3;

const NO_RETRY: &str =
    "requeue=true or a crash does not count as a retry: the broker redelivers the message immediately";

/// Returns the warnings, most important first. The sentences do not end with a period.
pub(super) fn warnings(it: &EffectiveQueue<'_, '_>) -> Vec<String> {
    let mut sentences = Vec::new();
    match it.retry {
        Some(Retry::Ladder(_)) => {
            sentences.push(format!("{NO_RETRY}, {}", redeliveries(it)));
            if it.queue_type == QueueType::Quorum {
                sentences.push(
                    "basic.reject with requeue=false also moves the message to the next tier, but RabbitMQ 4.3 \
                     counts it toward the delivery limit"
                        .to_owned(),
                );
            }
        }
        Some(Retry::Republish(_)) => {
            sentences.push(
                "publish first, wait for the confirm, then call basic.ack: in the reverse order, a crash can lose the \
                 message; in this order, the message may be delivered twice"
                    .to_owned(),
            );
            sentences.push(
                "remove the CC and BCC headers from the copy: the broker also routes the copy by their keys".to_owned(),
            );
            sentences.push(format!("{NO_RETRY}, {}", redeliveries(it)));
        }
        Some(Retry::Redeliver(_) | Retry::Delayed(_)) => {
            let nack = if it.profile.version.is_at_least(4, 3) {
                "basic.nack with requeue=true is not counted by RabbitMQ 4.3: the message is redelivered without limit"
            } else {
                "basic.nack with requeue=true is counted by RabbitMQ 4.2 and earlier, but not by 4.3 and later; basic.reject \
                 is always counted"
            };
            sentences.push(nack.to_owned());
            sentences.push("requeue=false is not a retry: it gives up".to_owned());
            sentences.push("a worker that crashes, or loses its connection, uses up one attempt".to_owned());
        }
        None => {
            sentences.push(format!("{NO_RETRY}, {}", redeliveries(it)));
        }
    }
    if let Some(Retry::Republish(Republish { tiers: Some(_), jitter, .. })) = it.retry {
        let expiration = match jitter {
            Some(_) => "set an `expiration` on the copy only to add jitter, and never below the delay minus the jitter",
            None => "do not set an `expiration` on the copy",
        };
        let effect = "a message with a shorter `expiration` still waits behind earlier messages";
        sentences.push(format!("{expiration}: {effect}"));
    }
    match &it.dead_letters {
        None => sentences.push(drop_warning(it, None)),
        Some(to) if to.reach == Reach::Never => sentences.push(drop_warning(it, Some(to))),
        Some(to) if !to.dropped_keys.is_empty() => sentences.push(dropped_keys_warning(it, to)),
        Some(_) => {}
    }
    sentences
}

/// Describes the dead-letter exchange.
fn exchange(to: &DeadLetters) -> String {
    match to.exchange.as_str() {
        "" => "the default exchange".to_owned(),
        name => format!("exchange {name}"),
    }
}

/// Describes the messages that the dead-letter exchange routes to no queue because of their routing keys.
fn dropped_keys_warning(it: &EffectiveQueue<'_, '_>, to: &DeadLetters) -> String {
    let listed: Vec<String> = to.dropped_keys.iter().take(MAX_KEYS).map(|key| format!("{key:?}")).collect();
    let more = if to.dropped_keys.len() > MAX_KEYS { ", …" } else { "" };
    let fate = if it.keeps_unroutable_messages() { "stays in the queue" } else { "is dropped" };
    format!(
        "a message that is given up with key {}{more} {fate}: {} routes it to no queue",
        listed.join(", "),
        exchange(to)
    )
}

/// Describes the messages that reach no queue, and the reason. Such messages are dropped or, with at-least-once
/// dead-lettering, stay in the queue.
fn drop_warning(it: &EffectiveQueue<'_, '_>, to: Option<&DeadLetters>) -> String {
    let mut what = vec!["a message that is given up"];
    what.extend(it.number("message-ttl").map(|_| "a message that expires"));
    let is_limited = ["max-length", "max-length-bytes"].iter().any(|key| it.number(key).is_some());
    what.extend((is_limited && !it.overflow_behavior().rejects()).then_some("the oldest message of a full queue"));
    let why = match to {
        Some(to) => format!("{} routes dead-lettered messages to no queue", exchange(to)),
        None if it.is_drop_intended() => "`deadLetter: none` is set".to_owned(),
        None => "there is no dead-letter exchange".to_owned(),
    };
    let (last, before) = what.split_last().map_or(("", &[][..]), |(last, before)| (*last, before));
    let what = if before.is_empty() { last.to_owned() } else { format!("{} and {last}", before.join(", ")) };
    let verb = if before.is_empty() { "is" } else { "are" };
    match to {
        Some(_) if it.keeps_unroutable_messages() => {
            let stays = if before.is_empty() { "stays" } else { "stay" };
            format!("{what} {stays} in the queue and {verb} not redelivered: {why}")
        }
        Some(_) | None => format!("{what} {verb} dropped: {why}"),
    }
}

/// Describes the redeliveries of a message that a worker requeues repeatedly.
fn redeliveries(it: &EffectiveQueue<'_, '_>) -> String {
    let end = match &it.dead_letters {
        _ if it.reachable_dead_letters().is_some() => "is dead-lettered",
        Some(_) if it.keeps_unroutable_messages() => "stays in the queue",
        Some(_) | None => "is dropped",
    };
    match (it.queue_type, it.delivery_limit()) {
        (QueueType::Quorum, Some(limit)) if it.profile.version.is_at_least(4, 3) => {
            format!(
                "without limit (basic.nack), or up to {limit} times (basic.reject or a crash), after which it {end}"
            )
        }
        (QueueType::Quorum, Some(limit)) => format!("up to {limit} times, after which it {end}"),
        (QueueType::Quorum, None) | (QueueType::Classic | QueueType::Stream, _) => "without limit".to_owned(),
    }
}
