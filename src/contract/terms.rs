//! Computes the contract of a queue according to its retry strategy.

use super::context::EffectiveQueue;
use super::declaration::Declaration;
use super::document::{
    Answer, Arrival, Contract, Counter, DeadLetterHeader, DeadLetteredMessage, Method, Original, Participant, Publish,
    Wait,
};
use super::replay::replay;
use super::warnings::warnings;
use crate::expand::{Republish, Retry};
use crate::model::message_headers::{
    DELIVERY_COUNT, LAST_ERROR, LAST_FAILED_AT, ORIGINAL_EXCHANGE, ORIGINAL_ROUTING_KEY, RETRY_COUNT, SOURCE_QUEUE,
};
use crate::model::{ExchangeName, QueueName, naming};

/// The reaction that rejects a message without requeueing it.
const NACK: Answer = Answer { publish: None, method: Method::Nack, requeue: Some(false) };
/// The reaction that rejects a message so that the queue counts the delivery and redelivers the message.
const REJECT_AND_REQUEUE: Answer = Answer { publish: None, method: Method::Reject, requeue: Some(true) };

/// Computes the contract of a queue.
pub(crate) fn contract_of(it: &EffectiveQueue<'_, '_>) -> Contract {
    let retries = it.retries();
    let mut contract = Contract {
        queue_type: it.queue_type,
        declaration: Declaration::of(it.name, it.queue),
        strategy: it.retry.map(Retry::strategy),
        max_retries: retries,
        deliveries: retries.saturating_add(1),
        delays: it
            .retry
            .map_or(&[][..], Retry::delays)
            .iter()
            .take(usize::try_from(retries).unwrap_or(usize::MAX))
            .map(|delay| Wait::of(*delay))
            .collect(),
        jitter: None,
        on_failure: NACK,
        on_give_up: NACK,
        counter: None,
        retry_arrives: None,
        original: None,
        dead_letters: it.dead_letters.clone(),
        is_drop_intended: it.is_drop_intended(),
        dead_lettered_message: dead_lettered_message(it),
        replay: replay(it),
        warnings: warnings(it),
    };
    match it.retry {
        None => {}
        Some(Retry::Ladder(_)) => complete_ladder(&mut contract, it),
        Some(Retry::Republish(republish)) => complete_republish(&mut contract, republish),
        Some(Retry::Redeliver(_) | Retry::Delayed(_)) => complete_counted_deliveries(&mut contract),
    }
    contract
}

fn retry_keys(queue: &QueueName, retries: u32) -> Vec<String> {
    (1..=retries).map(|number| naming::retry_key(queue, number)).collect()
}

/// Completes the contract of a queue that has a retry ladder.
fn complete_ladder(contract: &mut Contract, it: &EffectiveQueue<'_, '_>) {
    let queue = it.name;
    // If the broker may drop messages at the end of the ladder, the worker must not publish a copy and acknowledge the
    // original. It rejects the original instead, and the broker retries the message.
    if let Some(publish) = give_up_publish(it) {
        contract.on_give_up = Answer { publish: Some(publish), method: Method::Ack, requeue: None };
    }
    let text = format!(
        "on retry N the routing key is {}; any other key means the first attempt",
        format_args!("{queue}.retry.N")
    );
    contract.counter = Some(Counter { counted_by: Participant::Broker, header: None, text });
    contract.retry_arrives = Some(Arrival {
        exchange: naming::return_exchange(queue),
        routing_keys: retry_keys(queue, contract.max_retries),
    });
    // An `x-death` entry keeps the exchange and the routing keys of the first dead-lettering (`rabbit_dead_letter`, all
    // versions).
    let entry = format!("x-death[queue={}, reason=rejected]", queue.as_str());
    contract.original = Some(Original {
        written_by: Participant::Broker,
        exchange: format!("{entry}.exchange"),
        routing_key: format!("{entry}.routing-keys[0]"),
    });
}

/// Returns the publish that skips the rest of the ladder; `None` if the broker drops or may drop the message.
///
/// The publish does not use the routing key of the last retry, because that key routes to a tier as soon as the spec
/// adds a retry.
fn give_up_publish(it: &EffectiveQueue<'_, '_>) -> Option<Publish> {
    let routing_keys = vec![naming::give_up_key(it.name)];
    Some(Publish { exchange: naming::retry_exchange(it.name), routing_keys }).filter(|publish| is_routable(it, publish))
}

/// Returns true if a worker can safely publish this copy and acknowledge the original.
fn is_routable(it: &EffectiveQueue<'_, '_>, publish: &Publish) -> bool {
    publish.routing_keys.iter().all(|key| it.context.is_routable(&publish.exchange, key))
}

/// Completes the contract of a queue whose worker republishes failed messages.
fn complete_republish(contract: &mut Contract, republish: &Republish) {
    let queue = &republish.queue;
    let back = Publish { exchange: ExchangeName::new(""), routing_keys: vec![queue.as_str().to_owned()] };
    let (publish, arrival) = match &republish.tiers {
        Some(tiers) => {
            let routing_keys = (1..=tiers.last()).map(|number| number.to_string()).collect();
            let arrival =
                Arrival { exchange: naming::return_exchange(queue), routing_keys: retry_keys(queue, tiers.last()) };
            (Publish { exchange: naming::retry_exchange(queue), routing_keys }, arrival)
        }
        None => (back.clone(), Arrival { exchange: back.exchange, routing_keys: back.routing_keys }),
    };
    contract.on_failure = Answer { publish: Some(publish), method: Method::Ack, requeue: None };
    contract.jitter = republish.jitter.map(Wait::of);
    contract.counter = Some(Counter {
        counted_by: Participant::Worker,
        header: Some(RETRY_COUNT.to_owned()),
        text: format!(
            "{RETRY_COUNT} is the number of retries so far (0 if absent); increment it in the copy; give up at {}",
            contract.max_retries
        ),
    });
    contract.retry_arrives = Some(arrival);
    contract.original = Some(Original {
        written_by: Participant::Worker,
        exchange: ORIGINAL_EXCHANGE.to_owned(),
        routing_key: ORIGINAL_ROUTING_KEY.to_owned(),
    });
}

/// Completes the contract of a queue that counts deliveries itself.
fn complete_counted_deliveries(contract: &mut Contract) {
    contract.on_failure = REJECT_AND_REQUEUE;
    contract.counter = Some(Counter {
        counted_by: Participant::Broker,
        header: Some(DELIVERY_COUNT.to_owned()),
        text: format!("{DELIVERY_COUNT} is the number of retries so far; absent or 0 means the first attempt"),
    });
}

/// Returns the headers of a dead-lettered message, and the publish that a worker uses to send one; `None` if no
/// dead-lettered message reaches a queue.
fn dead_lettered_message(it: &EffectiveQueue<'_, '_>) -> Option<DeadLetteredMessage> {
    let dead_letters = it.reachable_dead_letters()?;
    let header = |name: &str, meaning: &str, value: Option<String>| DeadLetterHeader {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        value,
    };
    let headers = vec![
        header(SOURCE_QUEUE, "the queue in which it failed", Some(it.name.as_str().to_owned())),
        header("x-first-failed-at", "time of the first failure (RFC 3339)", None),
        header(LAST_FAILED_AT, "time of the last failure (RFC 3339)", None),
        header(RETRY_COUNT, "the number of retries", None),
        header(LAST_ERROR, "the error from the last attempt", None),
        header("x-consumer-version", "the version of the worker that made the last failed attempt", None),
        // A replay needs these headers, because the copy has a different routing key.
        header(ORIGINAL_EXCHANGE, "the exchange to which it was first published", None),
        header(ORIGINAL_ROUTING_KEY, "the routing key with which it was first published", None),
    ];
    let direct =
        |queue: &QueueName| Publish { exchange: ExchangeName::new(""), routing_keys: vec![queue.as_str().to_owned()] };
    let by_exchange = || {
        let key = dead_letters.routing_key.clone().unwrap_or_else(|| it.name.as_str().to_owned());
        Publish { exchange: dead_letters.exchange.clone(), routing_keys: vec![key] }
    };
    let publish = match it.retry {
        Some(Retry::Ladder(_)) => give_up_publish(it),
        // The broker refuses publishes to an internal exchange.
        Some(_) | None => {
            Some(by_exchange()).filter(|publish| !it.is_dead_letter_exchange_internal && is_routable(it, publish))
        }
    };
    let publish = publish.or_else(|| dead_letters.queue.as_ref().map(direct));
    Some(DeadLetteredMessage { publish, headers })
}
