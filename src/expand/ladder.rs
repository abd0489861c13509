//! Expands the `ladder` strategy. The broker counts the attempts and delays the retries. The worker only rejects failed
//! messages.
//!
//! Each rejection moves a message to the next tier. The next tier depends on the routing key with which the message
//! returned from the previous tier. A message that is dead-lettered for any other reason is not retried.

use super::case::{Case, FinalTarget, Refusal};
use super::text;
use super::tiers::{Objects, Tiers};
use crate::model::{Arguments, Binding, Destination, naming};
use crate::rabbitmq::BrokerProfile;
use crate::spec::{Diagnostic, Location, Wiring};

/// The dead-lettering reasons other than rejection. A message that is dead-lettered for one of these reasons must not
/// enter a tier. The broker would drop the message as a cycle when the tier returns it (measured on 3.10, 4.0 and 4.3).
const FINAL_REASONS: [&str; 3] = ["delivery_limit", "expired", "maxlen"];

/// The ladder of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// The tiers, one for each retry.
    pub tiers: Tiers,
    /// The target of messages that have no retries left.
    pub end: FinalTarget,
    /// The topic pattern that matches the routing key of every retry.
    pub retry_key_pattern: String,
}

impl Ladder {
    pub(super) fn of(case: &Case<'_>) -> Result<Self, Refusal> {
        let delays = case.delays()?;
        case.check_tiers()?;
        check_reasons(case)?;
        check_routing_key(case)?;
        let end = final_target(case)?;
        let Some(retry_key_pattern) = naming::retry_key_pattern(case.name) else {
            let message = format!(
                "the name of queue `{}` contains a topic wildcard as a word, but a ladder uses the name in topic bindings",
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
        Ok(Self { tiers, end, retry_key_pattern })
    }

    /// Returns the objects that the ladder needs on this broker.
    ///
    /// All exchanges except the return exchange form a chain of alternate exchanges, so only the first exchange with a
    /// matching binding routes a message. Therefore, `plan::retries::generations` can move a routing key to a different
    /// tier without sending a message to both tiers or to neither tier.
    pub fn objects(&self, profile: &BrokerProfile) -> Objects {
        let queue = &self.tiers.queue;
        let (guard, first) = (naming::guard_exchange(queue), naming::first_exchange(queue));
        let end = Destination::Exchange(self.end.exchange.clone());
        let mut objects = Objects::default();
        let (retry, exhausted) = self.tiers.add_entry_exchanges(&mut objects);
        objects.add_exchange(guard.clone(), "headers", Some(&retry));
        objects.add_exchange(first.clone(), "fanout", Some(&naming::switch_exchange(&first)));
        objects.add_exchange(naming::switch_exchange(&first), "fanout", None);
        // RabbitMQ 3.8 refuses `all-with-x` (`rabbit_exchange_type_headers:validate_binding`). RabbitMQ 3.13 and later
        // set the `x-last-death-reason` header. On earlier versions, the bindings match no message, but their presence
        // means that an upgrade to 3.13 requires no new bindings.
        if profile.version.is_at_least(3, 10) {
            for reason in FINAL_REASONS {
                let arguments: Arguments = [("x-match", "all-with-x"), ("x-last-death-reason", reason)]
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
            // The routing key of a retry selects the tier of the next retry. Any other key selects the first tier.
            match number.checked_sub(1) {
                Some(previous) if previous > 0 => {
                    objects.bind(&retry, naming::retry_key(queue, previous), Destination::Queue(name));
                }
                Some(_) | None => objects.bind(&first, String::new(), Destination::Queue(name)),
            }
        }
        // Routes the key of the last retry, and the keys of retries that the spec no longer declares, to the final
        // target.
        objects.bind(&exhausted, self.retry_key_pattern.clone(), end);
        self.tiers.add_to(&mut objects, profile);
        objects
    }
}

/// On brokers before 3.13, checks that the queue dead-letters messages only after a rejection. Such a broker does not
/// report the dead-lettering reason in a header that a binding can match.
fn check_reasons(case: &Case<'_>) -> Result<(), Refusal> {
    let version = case.profile.version;
    if version.is_at_least(3, 13) {
        return Ok(());
    }
    let drops = |key| case.effective(key).filter(|_| case.rejecting_overflow().is_none());
    let found = [
        ("messageTtl", case.effective("message-ttl")),
        ("maxLength", drops("max-length")),
        ("maxLengthBytes", drops("max-length-bytes")),
        ("deliveryLimit", case.effective("delivery-limit")),
    ];
    match found.into_iter().find_map(|(key, setting)| setting.map(|setting| (key, setting))) {
        None => Ok(()),
        Some((key, setting)) => {
            let message = format!(
                "a ladder on RabbitMQ {version} does not support `{key}`: before 3.13, the broker drops a message as a \
                 cycle if this setting dead-letters it after a retry"
            );
            Err(Refusal::of_strategy(setting.error(message, case)))
        }
    }
}

/// Checks that no setting replaces the routing key, by which a ladder distinguishes retries. With `wiring: policy`, the
/// generated policy removes such a setting.
fn check_routing_key(case: &Case<'_>) -> Result<(), Refusal> {
    let is_by_policy = case.queue.dead_letter.as_ref().is_some_and(|it| it.value.wiring() == Some(Wiring::Policy));
    match case.effective("dead-letter-routing-key").filter(|_| !is_by_policy) {
        None => Ok(()),
        Some(setting) => {
            let message = format!(
                "a dead-letter routing key replaces the routing keys that count the retries of queue `{}`, so every \
                 retry would be the first",
                case.name
            );
            let hint = "use `deadLetter: {…, wiring: policy}` to displace the policy that sets the key, or change its \
                        pattern so that it does not match the queue";
            Err(Refusal::of_setting(setting.error(message, case).hint(hint)))
        }
    }
}

/// Returns the final target, which must accept every routing key. After a retry, a message has a routing key of the
/// ladder. Before the first retry, a message that is not rejected can be dead-lettered with the publisher's routing
/// key.
fn final_target(case: &Case<'_>) -> Result<FinalTarget, Refusal> {
    let name = case.name;
    let at: Option<Location> = case.queue.dead_letter.as_ref().map(|it| it.at);
    let refuse = |message: String, hint: &str| {
        let diagnostic = Diagnostic::error("retry-strategy", message, at.unwrap_or(case.at()));
        Err(Refusal::of_setting(diagnostic.also(case.at(), format!("the retries of queue `{name}`")).hint(hint)))
    };
    let Some(target) = case.final_target else {
        let message =
            format!("the ladder of queue `{name}` needs a dead-letter queue for messages that have no retries left");
        let hint = "add `deadLetter:` with an entry in `deadLetterQueues`; or use a different strategy";
        return refuse(message, hint);
    };
    let fanout = "use a fanout exchange (the default), or strategy `republish` or `redeliver`";
    if target.exchange.as_str().is_empty() {
        let message =
            "a ladder cannot dead-letter messages to the default exchange, which does not support bindings".to_owned();
        return refuse(message, "use an entry in `deadLetterQueues`, which has its own exchange");
    }
    match (target.kind.as_deref(), &target.routing_key) {
        (Some("direct"), _) => {
            let message = format!(
                "messages that a ladder dead-letters keep their own routing keys, so direct exchange `{}` does not route them",
                target.exchange
            );
            refuse(message, fanout)
        }
        (Some("fanout" | "headers"), _) | (_, None) => Ok(target.clone()),
        (Some(_) | None, Some(key)) => {
            let message = format!(
                "messages that a ladder dead-letters keep their own routing keys, so the routing key {key:?} cannot be set"
            );
            refuse(message, "remove the routing key, and bind the dead-letter queue for all keys")
        }
    }
}
