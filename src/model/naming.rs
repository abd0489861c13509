//! Creates and recognizes all names that topo generates.

use super::names::{DEAD_LETTER_EXCHANGE_SUFFIX, MAX_NAME_BYTES, pattern_of as pattern_of_name};
use super::names::{ExchangeName, PolicyName, QueueName};
use super::units::{duration, milliseconds};
use sha2::{Digest, Sha256};

/// The suffix of the policy that sets the dead-letter exchange of a queue.
const DEAD_LETTER_POLICY_SUFFIX: &str = ".topo.dead-letter";

/// The suffix of the retry exchange of a queue. In the names of tiers and in routing keys, the number of the retry
/// follows.
const RETRY_SUFFIX: &str = ".retry";
/// The suffix of the exchange for messages that the retry exchange does not route to a tier.
const OVER_SUFFIX: &str = ".retry.over";
/// The suffix of the exchange that routes to the first tier of a queue.
const FIRST_SUFFIX: &str = ".retry.first";
/// The suffix of the exchange that replaces another one in front of the tiers while a tier is exchanged.
const SWITCH_SUFFIX: &str = ".switch";
/// The suffix of the exchange through which messages return from the tiers.
const RETURN_SUFFIX: &str = ".return";
/// The separator between the name of a tier and its generation.
const GENERATION: char = '~';
/// The prefix of the shovel that moves the messages of a queue.
const SHOVEL_PREFIX: &str = "topo.move.";
/// The consumer tag of topo's own transport. It distinguishes topo from the consumers of applications.
pub const TRANSPORT_TAG: &str = "topo.move";

/// Returns the exchange that receives all dead-lettered messages of a queue with a ladder. It separates messages that
/// are retried from those whose dead-lettering is final. It has the name of the exchange of a dead-letter queue. The
/// names cannot collide, because a dead-letter queue has no ladder.
pub fn guard_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{DEAD_LETTER_EXCHANGE_SUFFIX}", queue.as_str()))
}

/// Returns the queue of a guard exchange, if the name is generated.
pub fn queue_of_guard_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), DEAD_LETTER_EXCHANGE_SUFFIX)
}

/// Returns the exchange that receives messages for a retry.
pub fn retry_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{RETRY_SUFFIX}", queue.as_str()))
}

/// Returns the queue of a retry exchange, if the name is generated.
pub fn queue_of_retry_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), RETRY_SUFFIX)
}

/// Returns the exchange for messages without further retries: their retry key does not lead to a tier.
pub fn exhausted_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{OVER_SUFFIX}", queue.as_str()))
}

/// Returns the queue of an exchange for messages without further retries, if the name is generated.
pub fn queue_of_over_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), OVER_SUFFIX)
}

/// Returns the exchange that replaces another one in front of the tiers while a tier is exchanged.
pub fn switch_of(exchange: &ExchangeName) -> ExchangeName {
    ExchangeName::new(format!("{}{SWITCH_SUFFIX}", exchange.as_str()))
}

/// Returns the exchange that this one replaces, if the name is generated.
pub fn switched_by(exchange: &ExchangeName) -> Option<ExchangeName> {
    exchange.as_str().strip_suffix(SWITCH_SUFFIX).filter(|name| !name.is_empty()).map(ExchangeName::from)
}

/// Returns the exchange that routes to the first tier.
pub fn first_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{FIRST_SUFFIX}", queue.as_str()))
}

/// Returns the queue of an exchange that routes to a first tier, if the name is generated.
pub fn queue_of_first_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), FIRST_SUFFIX)
}

/// Returns the exchange through which messages return from the tiers.
pub fn return_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{RETURN_SUFFIX}", queue.as_str()))
}

/// Returns the queue to which messages return through an exchange, if the name is generated.
pub fn queue_of_return_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), RETURN_SUFFIX)
}

/// Returns the routing key of a message that returns from the tier of a retry, counted from 1.
pub fn retry_key(queue: &QueueName, number: u32) -> String {
    format!("{}{RETRY_SUFFIX}.{number}", queue.as_str())
}

/// Returns the routing key that skips all remaining retries.
pub fn give_up_key(queue: &QueueName) -> String {
    exhausted_exchange(queue).as_str().to_owned()
}

/// Returns the topic pattern that matches all retry keys of a queue and its give-up key. Returns `None` if the queue
/// name contains a wildcard as a word, which would match other words too.
pub fn retry_key_pattern(queue: &QueueName) -> Option<String> {
    let is_wild = |word: &str| word == "*" || word == "#";
    (!queue.as_str().split('.').any(is_wild)).then(|| format!("{}{RETRY_SUFFIX}.*", queue.as_str()))
}

/// Returns the number of the retry from which a message with this key returns, if the key is generated.
pub fn number_of_retry_key(queue: &QueueName, key: &str) -> Option<u32> {
    number(key.strip_prefix(queue.as_str())?.strip_prefix(RETRY_SUFFIX)?.strip_prefix('.')?)
}

/// The parts of the name of a tier queue. The name contains the delay, so that a different delay means a different
/// queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TierName {
    /// The queue whose messages wait in the tier.
    pub queue: QueueName,
    /// The number of the retry, from 1.
    pub number: u32,
    /// The delay in milliseconds.
    pub delay: i64,
    /// The generation, from 1. It increases when a setting other than the delay changes.
    pub generation: u32,
}

impl TierName {
    /// Creates the first generation of a tier.
    pub fn new(queue: &QueueName, number: u32, delay: i64) -> Self {
        Self { queue: queue.clone(), number, delay, generation: 1 }
    }

    /// Returns the name: `orders.work.retry.1.5s`, `orders.work.retry.1.5s~2`.
    pub fn name(&self) -> QueueName {
        let Self { queue, number, delay, generation } = self;
        let delay = duration(*delay).unwrap_or_else(|| "0ms".to_owned());
        let generation = if *generation > 1 { format!("{GENERATION}{generation}") } else { String::new() };
        QueueName::new(format!("{}{RETRY_SUFFIX}.{number}.{delay}{generation}", queue.as_str()))
    }

    /// Parses the name of a tier from its end, because the name of the queue can contain anything, even `.retry.`.
    pub fn parse(name: &QueueName) -> Option<Self> {
        let (rest, generation) = match name.as_str().rsplit_once(GENERATION) {
            Some((rest, digits)) => match number(digits) {
                Some(generation) if generation > 1 => (rest, generation),
                // The `~` is part of the queue name.
                Some(_) | None => (name.as_str(), 1),
            },
            None => (name.as_str(), 1),
        };
        let (rest, delay) = rest.rsplit_once('.')?;
        let (rest, digits) = rest.rsplit_once('.')?;
        let queue = stem(rest, RETRY_SUFFIX)?;
        Some(Self { queue, number: number(digits)?, delay: milliseconds(delay)?, generation })
    }
}

fn stem(name: &str, suffix: &str) -> Option<QueueName> {
    name.strip_suffix(suffix).filter(|name| !name.is_empty()).map(QueueName::new)
}

/// Parses a number from 1, without a sign or leading zeros.
fn number(digits: &str) -> Option<u32> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if is_plain { digits.parse().ok() } else { None }
}

/// Returns the exchange of a dead-letter queue, unless the spec sets its name.
pub fn dead_letter_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{DEAD_LETTER_EXCHANGE_SUFFIX}", queue.as_str()))
}

/// Returns the dead-letter queue of an exchange, if the name is generated.
pub fn queue_of_dead_letter_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), DEAD_LETTER_EXCHANGE_SUFFIX)
}

/// Returns the policy that sets the dead-letter exchange of a queue.
pub fn dead_letter_policy(queue: &QueueName) -> PolicyName {
    PolicyName::new(format!("{}{DEAD_LETTER_POLICY_SUFFIX}", queue.as_str()))
}

/// Returns the queue whose dead-letter exchange a policy sets, if the name is generated.
pub fn queue_of_dead_letter_policy(policy: &PolicyName) -> Option<QueueName> {
    stem(policy.as_str(), DEAD_LETTER_POLICY_SUFFIX)
}

/// The names of the objects that a migration creates. They start with the name of the queue, so that permissions for it
/// also match them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationNames {
    /// The holding queue for messages that are published while the old queue is drained, and its fanout exchange. This
    /// exchange is the alternate exchange of the tap.
    pub hold: String,
    /// The queue that receives the messages of the old queue, and its fanout exchange.
    pub drained: String,
    /// A queue with the settings of the new one. With it, topo checks before any change if the broker lets this user
    /// declare the new queue.
    pub probe: String,
    /// The fanout exchange between the source exchanges and the queue.
    pub tap: ExchangeName,
    /// The fanout exchange through which the held messages return.
    pub back: ExchangeName,
    /// The policy that keeps other policies from applying to the holding queues.
    pub shield: PolicyName,
}

impl MigrationNames {
    /// Returns the names for a queue. In a name that would be too long, a digest replaces the queue name.
    pub fn of(queue: &QueueName) -> Self {
        let name = |what: &str| migration_name(queue, what);
        Self {
            hold: name("hold"),
            drained: name("drained"),
            probe: name("probe"),
            tap: ExchangeName::new(name("tap")),
            back: ExchangeName::new(name("back")),
            shield: PolicyName::new(name("shield")),
        }
    }
}

fn migration_name(queue: &QueueName, what: &str) -> String {
    let name = format!("{}.topo.{what}", queue.as_str());
    if name.len() <= MAX_NAME_BYTES { name } else { format!("topo.{what}.{}", digest(queue.as_str())) }
}

/// Returns the name of a temporary queue, by which topo verifies that HTTP and AMQP lead to the same broker.
pub fn identity_queue(queue: &QueueName, token: u32) -> QueueName {
    QueueName::new(migration_name(queue, &format!("witness.{token:08x}")))
}

/// Returns a short digest of a name: 8 bytes of its SHA-256, in hexadecimal.
pub fn digest(name: &str) -> String {
    Sha256::digest(name).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the name of the shovel that moves the messages of a queue. In a name that would be too long, a digest
/// replaces the queue name.
pub fn shovel(queue: &QueueName) -> String {
    let name = format!("{SHOVEL_PREFIX}{}", queue.as_str());
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    format!("{SHOVEL_PREFIX}{}", digest(queue.as_str()))
}

/// Returns true if the name of a shovel is generated. The definition of the shovel contains the name of its queue.
pub fn is_shovel(name: &str) -> bool {
    name.starts_with(SHOVEL_PREFIX)
}

/// Returns the pattern that matches only this queue.
pub fn pattern_of(queue: &QueueName) -> String {
    pattern_of_name(queue.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::is_reserved;
    use crate::rabbitmq::Pattern;

    #[test]
    fn generated_names_are_recognized() {
        let queue = QueueName::new("orders.work");
        assert_eq!(queue_of_dead_letter_exchange(&dead_letter_exchange(&queue)), Some(queue.clone()));
        assert_eq!(queue_of_dead_letter_policy(&dead_letter_policy(&queue)), Some(queue.clone()));
        assert!(is_reserved(dead_letter_policy(&queue).as_str()));
        assert!(!is_reserved("orders.topology"));
    }

    #[test]
    fn names_of_shovels_are_short_enough() {
        let name = shovel(&QueueName::new("a/b"));
        assert_eq!(name, "topo.move.a/b");
        let long = shovel(&QueueName::new("q".repeat(250)));
        assert_eq!(long.len(), "topo.move.".len() + 16);
        assert_ne!(long, shovel(&QueueName::new("q".repeat(251))));
        assert!(is_shovel(&name) && is_shovel(&long) && !is_shovel("topo.transport"));
    }

    #[test]
    fn names_of_retries_are_recognized() {
        for name in ["orders.work", "a", "a.retry", "a.retry.1.5s", "a~2", "a.retry.1.5s~2", "x.retry.first", "é /.1.2"]
        {
            let queue = QueueName::new(name);
            assert_eq!(queue_of_retry_exchange(&retry_exchange(&queue)), Some(queue.clone()));
            assert_eq!(queue_of_first_exchange(&first_exchange(&queue)), Some(queue.clone()));
            assert_eq!(queue_of_return_exchange(&return_exchange(&queue)), Some(queue.clone()));
            assert_eq!(queue_of_guard_exchange(&guard_exchange(&queue)), Some(queue.clone()));
            for (number, delay, generation) in [(1, 5000, 1), (12, 90_000, 1), (3, 1, 2), (100, 86_400_000, 31)] {
                let tier = TierName { queue: queue.clone(), number, delay, generation };
                assert_eq!(TierName::parse(&tier.name()), Some(tier));
                assert_eq!(number_of_retry_key(&queue, &retry_key(&queue, number)), Some(number));
            }
        }
        assert_eq!(TierName::new(&"q".into(), 2, 30_000).name().as_str(), "q.retry.2.30s");
        let other = [
            "q",
            "q.retry",
            "q.retry.1",
            "q.retry.0.5s",
            "q.retry.01.5s",
            "q.retry.1.90s",
            "q.retry.1.5",
            ".retry.1.5s",
        ];
        for name in other {
            assert_eq!(TierName::parse(&name.into()), None, "{name}");
        }
        // topo never generates `~1`, so it is part of the delay, which is then invalid.
        assert_eq!(TierName::parse(&"q.retry.1.5s~1".into()), None);
        assert_eq!(number_of_retry_key(&"q".into(), "q.retry.1.5s"), None);
        assert_eq!(queue_of_retry_exchange(&".retry".into()), None);
    }

    #[test]
    fn pattern_matches_only_its_queue() {
        for name in ["orders.work", "a|b", "x (1)", "50%/é^$", "a\\d", "[q]{2}+*?#-_~"] {
            let pattern = pattern_of(&QueueName::new(name));
            assert_eq!(Pattern::new(&pattern).only_name(), Some(name), "{pattern}");
            // The group prevents `Pattern` from reading it as a single name, so that the regular expression is used.
            let regex = Pattern::new(&format!("(?:{pattern})"));
            assert_eq!(regex.matches(name), Some(true), "{pattern} on {name}");
            assert_eq!(regex.matches(&format!("{name}x")), Some(false), "{pattern}");
            let other = name.replace(['.', '|', '\\'], "z");
            assert_eq!(regex.matches(&other), Some(other == name), "{pattern} on {other}");
        }
        assert_eq!(pattern_of(&QueueName::new("orders.work")), r"^orders\.work$");
    }
}
