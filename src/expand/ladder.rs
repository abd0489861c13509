//! The ladder: the broker counts and waits, the worker only rejects. A rejected message climbs from tier to tier; the key
//! with which it comes back from one says which is next. Any other death is final.

use super::case::{Case, End, Refusal};
use super::objects::Objects;
use super::text;
use super::tiers::Tiers;
use crate::model::naming;
use crate::model::{Arguments, Binding, Destination};
use crate::rabbitmq::BrokerProfile;
use crate::spec::{Diagnostic, Location, Wiring};

/// Deaths that were no rejection. A message that leaves the queue by one of them and comes back from a tier is dropped by
/// the broker as a cycle (measured on 3.10, 4.0 and 4.3), so it must not enter a tier.
const FINAL_DEATHS: [&str; 3] = ["delivery_limit", "expired", "maxlen"];

/// The ladder of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// One a retry.
    pub tiers: Tiers,
    /// Where the last key leads.
    pub end: End,
    /// The topic pattern of all keys of its retries.
    pub over: String,
}

impl Ladder {
    pub(super) fn of(case: &Case<'_>) -> Result<Self, Refusal> {
        let delays = case.delays()?;
        case.can_have_tiers()?;
        unguarded(case)?;
        keeps_keys(case)?;
        let end = end(case)?;
        let Some(over) = naming::retry_key_pattern(case.name) else {
            let message = format!(
                "the name of queue `{}` contains a topic wildcard as a word, and a ladder uses topic bindings",
                case.name
            );
            return Err(Refusal::of_strategy(Diagnostic::error("generated-name", message, case.at())));
        };
        let tiers = Tiers {
            queue: case.name.clone(),
            queue_type: case.queue_type.value,
            durable: case.queue.durable.as_ref().is_none_or(|it| it.value),
            delays,
        };
        Ok(Self { tiers, end, over })
    }

    /// All that it needs on a broker of that kind. Each exchange is the alternate of the one before it, so that the first
    /// that knows a message takes it, and no other: that is how a key can change its tier without a message in both, or
    /// in none (`plan/switches.rs`).
    pub fn objects(&self, profile: &BrokerProfile) -> Objects {
        let queue = &self.tiers.queue;
        let (guard, first) = (naming::guard_exchange(queue), naming::first_exchange(queue));
        let end = Destination::Exchange(self.end.exchange.clone());
        let mut objects = Objects::default();
        let (retry, over) = self.tiers.add_entrance(&mut objects);
        objects.exchange(guard.clone(), "headers", Some(&retry));
        objects.exchange(first.clone(), "fanout", Some(&naming::switch_of(&first)));
        objects.exchange(naming::switch_of(&first), "fanout", None);
        // 3.8 refuses `all-with-x` (`rabbit_exchange_type_headers:validate_binding`); the header is there from 3.13 on.
        // Between the two they match nothing, and are there so that an upgrade changes nothing.
        if profile.version.is_at_least(3, 10) {
            for death in FINAL_DEATHS {
                let arguments: Arguments = [("x-match", "all-with-x"), ("x-last-death-reason", death)]
                    .map(|(k, v)| (k.to_owned(), text(v)))
                    .into();
                let routing_key = String::new();
                objects.bindings.insert(Binding {
                    source: guard.clone(),
                    destination: end.clone(),
                    routing_key,
                    arguments,
                });
            }
        }
        for (number, name) in self.tiers.names() {
            // The key of a retry leads to the next one's tier; any key that is none of a retry, to the first.
            match number.checked_sub(1) {
                Some(before) if before > 0 => {
                    objects.bind(&retry, naming::retry_key(queue, before), Destination::Queue(name));
                }
                Some(_) | None => objects.bind(&first, String::new(), Destination::Queue(name)),
            }
        }
        // The key of the last retry, and of those that there were before there were fewer.
        objects.bind(&over, self.over.clone(), end);
        self.tiers.add_to(&mut objects, profile);
        objects
    }
}

/// Below 3.13 nothing tells a rejection from another death, so there must be no other.
fn unguarded(case: &Case<'_>) -> Result<(), Refusal> {
    let version = case.profile.version;
    if version.is_at_least(3, 13) {
        return Ok(());
    }
    let drops = |key| case.said(key).filter(|_| case.rejects().is_none());
    let found = [
        ("messageTtl", case.said("message-ttl")),
        ("maxLength", drops("max-length")),
        ("maxLengthBytes", drops("max-length-bytes")),
        ("deliveryLimit", case.said("delivery-limit")),
    ];
    match found.into_iter().find_map(|(key, said)| said.map(|said| (key, said))) {
        None => Ok(()),
        Some((key, said)) => {
            let message = format!(
                "a ladder on RabbitMQ {version} does not support `{key}`: before 3.13, the broker drops a message as a \
                 cycle if this setting dead-letters it after a retry"
            );
            Err(Refusal::of_strategy(said.error(message, case)))
        }
    }
}

/// A ladder tells retries apart by the key of a message, so no policy may replace it.
fn keeps_keys(case: &Case<'_>) -> Result<(), Refusal> {
    let is_by_policy = case.queue.dead_letter.as_ref().is_some_and(|it| it.value.wiring() == Some(Wiring::Policy));
    match case.said("dead-letter-routing-key").filter(|_| !is_by_policy) {
        None => Ok(()),
        Some(said) => {
            let message = format!(
                "a dead-letter routing key replaces the routing keys that count the retries of queue `{}`: every retry would \
                 be the first",
                case.name
            );
            let hint = "use `deadLetter: {…, wiring: policy}`, which displaces that policy; or a pattern that does not \
                        match the queue";
            Err(Refusal::of_setting(said.error(message, case).hint(hint)))
        }
    }
}

/// The last key must lead somewhere, whatever key the message has: the ladder's own on the last retry, the publisher's
/// when it dies another death.
fn end(case: &Case<'_>) -> Result<End, Refusal> {
    let name = case.name;
    let place: Option<Location> = case.queue.dead_letter.as_ref().map(|it| it.at);
    let refused = |message: String, hint: &str| {
        let diagnostic = Diagnostic::error("retry-strategy", message, place.unwrap_or(case.at()));
        Err(Refusal::of_setting(diagnostic.also(case.at(), format!("the retries of queue `{name}`")).hint(hint)))
    };
    let Some(end) = case.end else {
        let message =
            format!("the ladder of queue `{name}` needs a dead-letter queue for messages that have no retries left");
        let hint = "add `deadLetter:` with an entry of `deadLetterQueues`; or use another strategy";
        return refused(message, hint);
    };
    let fanout = "use a fanout exchange (the default), or strategy `republish` or `redeliver`";
    if end.exchange.as_str().is_empty() {
        let message = "the dead-lettered messages of a ladder cannot go to the default exchange, which cannot be bound"
            .to_owned();
        return refused(message, "use an entry of `deadLetterQueues`, which has its own exchange");
    }
    match (end.kind.as_deref(), &end.routing_key) {
        (Some("direct"), _) => {
            let message = format!(
                "the dead-lettered messages of a ladder keep their own keys, which direct exchange `{}` does not route",
                end.exchange
            );
            refused(message, fanout)
        }
        (Some("fanout" | "headers"), _) | (_, None) => Ok(end.clone()),
        (Some(_) | None, Some(key)) => {
            let message =
                format!("the dead-lettered messages of a ladder keep their own keys and cannot get the key {key:?}");
            refused(message, "remove the routing key, and bind the dead-letter queue for all keys")
        }
    }
}
