//! Creates and recognizes the names that topo generates.

use super::names::{DEAD_LETTER_EXCHANGE_SUFFIX, MAX_NAME_BYTES, pattern_of as pattern_of_name};
use super::names::{ExchangeName, PolicyName, QueueName};
use super::units::{duration, milliseconds};
use sha2::{Digest, Sha256};

/// The name suffix of the policy that sets the dead-letter exchange of a queue.
const DEAD_LETTER_POLICY_SUFFIX: &str = ".topo.dead-letter";

/// The name suffix of a queue's retry exchange. In tier names and routing keys, the retry number follows this suffix.
const RETRY_SUFFIX: &str = ".retry";
/// The name suffix of the exchange for messages that the retry exchange does not route to a tier.
const EXHAUSTED_SUFFIX: &str = ".retry.over";
/// The name suffix of the exchange that routes to the first tier of a queue.
const FIRST_SUFFIX: &str = ".retry.first";
/// The name suffix of the switch exchange, which temporarily replaces an exchange in front of the tiers while topo
/// replaces a tier.
const SWITCH_SUFFIX: &str = ".switch";
/// The name suffix of the exchange through which messages return from the tiers.
const RETURN_SUFFIX: &str = ".return";
/// The separator before the generation in the name of a tier.
const GENERATION: char = '~';
/// The name prefix of the shovel that moves a queue's messages.
const SHOVEL_PREFIX: &str = "topo.move.";
/// The consumer tag of topo's AMQP transport. The tag distinguishes topo from application consumers.
pub const TRANSPORT_TAG: &str = "topo.move";

/// Returns the guard exchange of a queue with a ladder. The guard exchange receives all messages that the queue
/// dead-letters. On RabbitMQ 3.13 and later, it routes messages that expired, overflowed or reached the delivery limit
/// to the final target. All other messages go to its alternate exchange, the retry exchange. The name of the guard
/// exchange has the form of a dead-letter queue's exchange. The names cannot collide, because a dead-letter queue has
/// no ladder.
pub fn guard_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{DEAD_LETTER_EXCHANGE_SUFFIX}", queue.as_str()))
}

/// Returns the queue of a guard exchange, if the name has the generated form.
pub fn queue_of_guard_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), DEAD_LETTER_EXCHANGE_SUFFIX)
}

/// Returns a queue's retry exchange, which routes each message by its retry key to the tier for the next retry.
pub fn retry_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{RETRY_SUFFIX}", queue.as_str()))
}

/// Returns the queue of a retry exchange, if the name has the generated form.
pub fn queue_of_retry_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), RETRY_SUFFIX)
}

/// Returns the exchange for messages without remaining retries. The retry keys of these messages do not match the
/// binding of any tier.
pub fn exhausted_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{EXHAUSTED_SUFFIX}", queue.as_str()))
}

/// Returns the queue of an exchange for messages without remaining retries, if the name has the generated form.
pub fn queue_of_exhausted_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), EXHAUSTED_SUFFIX)
}

/// Returns the switch exchange, which temporarily replaces an exchange in front of the tiers while topo replaces a
/// tier.
pub fn switch_exchange(exchange: &ExchangeName) -> ExchangeName {
    ExchangeName::new(format!("{}{SWITCH_SUFFIX}", exchange.as_str()))
}

/// Returns the exchange that a switch exchange replaces, if the name has the generated form.
pub fn exchange_of_switch(exchange: &ExchangeName) -> Option<ExchangeName> {
    exchange.as_str().strip_suffix(SWITCH_SUFFIX).filter(|name| !name.is_empty()).map(ExchangeName::from)
}

/// Returns the exchange that routes to the first tier of a queue.
pub fn first_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{FIRST_SUFFIX}", queue.as_str()))
}

/// Returns the queue of an exchange that routes to a first tier, if the name has the generated form.
pub fn queue_of_first_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), FIRST_SUFFIX)
}

/// Returns the exchange through which messages return from the tiers to their queue.
pub fn return_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{RETURN_SUFFIX}", queue.as_str()))
}

/// Returns the queue to which messages return through an exchange, if the name has the generated form.
pub fn queue_of_return_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), RETURN_SUFFIX)
}

/// Returns the routing key of a message that returns from the tier of a retry. The number of the first retry is 1.
pub fn retry_key(queue: &QueueName, number: u32) -> String {
    format!("{}{RETRY_SUFFIX}.{number}", queue.as_str())
}

/// Returns the routing key that a worker uses to skip all remaining retries of a message.
pub fn give_up_key(queue: &QueueName) -> String {
    exhausted_exchange(queue).as_str().to_owned()
}

/// Returns the topic pattern that matches all retry keys and the give-up key of a queue. Returns `None` if a word in
/// the queue name is a wildcard, because the pattern would then match other keys too.
pub fn retry_key_pattern(queue: &QueueName) -> Option<String> {
    let is_wild = |word: &str| word == "*" || word == "#";
    (!queue.as_str().split('.').any(is_wild)).then(|| format!("{}{RETRY_SUFFIX}.*", queue.as_str()))
}

/// Returns the number of the retry in a retry key of the queue, if the key has the generated form.
pub fn number_of_retry_key(queue: &QueueName, key: &str) -> Option<u32> {
    number(key.strip_prefix(queue.as_str())?.strip_prefix(RETRY_SUFFIX)?.strip_prefix('.')?)
}

/// The components of a tier queue's name. The name contains the delay, so a tier with a different delay is a different
/// queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TierName {
    /// The queue whose messages wait in the tier.
    pub queue: QueueName,
    /// The number of the retry, starting at 1.
    pub number: u32,
    /// The delay in milliseconds.
    pub delay: i64,
    /// The generation, starting at 1. It increases when any other setting of the tier changes.
    pub generation: u32,
}

impl TierName {
    /// Creates the name of a tier's first generation.
    pub fn new(queue: &QueueName, number: u32, delay: i64) -> Self {
        Self { queue: queue.clone(), number, delay, generation: 1 }
    }

    /// Returns the name of the tier queue: `orders.work.retry.1.5s`, `orders.work.retry.1.5s~2`.
    pub fn name(&self) -> QueueName {
        let Self { queue, number, delay, generation } = self;
        let delay = duration(*delay).unwrap_or_else(|| "0ms".to_owned());
        let generation = if *generation > 1 { format!("{GENERATION}{generation}") } else { String::new() };
        QueueName::new(format!("{}{RETRY_SUFFIX}.{number}.{delay}{generation}", queue.as_str()))
    }

    /// Parses a tier name. Returns `None` if the name does not have the generated form. Parsing starts at the end,
    /// because a queue name can contain any text, even `.retry.`.
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

/// Parses a number that is at least 1 and has no sign and no leading zeros; `None` for any other string.
fn number(digits: &str) -> Option<u32> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if is_plain { digits.parse().ok() } else { None }
}

/// Returns the default exchange name of a dead-letter queue.
pub fn dead_letter_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{DEAD_LETTER_EXCHANGE_SUFFIX}", queue.as_str()))
}

/// Returns the dead-letter queue of an exchange, if the name has the generated form.
pub fn queue_of_dead_letter_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), DEAD_LETTER_EXCHANGE_SUFFIX)
}

/// Returns the policy that sets the dead-letter exchange of a queue.
pub fn dead_letter_policy(queue: &QueueName) -> PolicyName {
    PolicyName::new(format!("{}{DEAD_LETTER_POLICY_SUFFIX}", queue.as_str()))
}

/// Returns the queue whose dead-letter exchange a policy sets, if the policy name has the generated form.
pub fn queue_of_dead_letter_policy(policy: &PolicyName) -> Option<QueueName> {
    stem(policy.as_str(), DEAD_LETTER_POLICY_SUFFIX)
}

/// The names of the objects that a migration creates. Each name starts with the queue name, so that permissions for the
/// queue usually also match these objects. A name that would be too long starts with a digest of the queue name
/// instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationNames {
    /// The name of a holding queue and its fanout exchange. The queue receives the messages that are published while
    /// topo drains the old queue. The exchange is the alternate exchange of the tap.
    pub hold: String,
    /// The name of a holding queue and its fanout exchange. The queue receives the messages from the old queue.
    pub drained: String,
    /// A temporary queue with the settings of the new queue. topo declares it before making any changes, to check
    /// whether the broker allows the connected user to declare the new queue.
    pub probe: String,
    /// The fanout exchange between the source exchanges and the queue.
    pub tap: ExchangeName,
    /// The fanout exchange through which the messages return from the holding queues.
    pub back: ExchangeName,
    /// The policy that keeps other policies from applying to the holding queues.
    pub shield: PolicyName,
}

impl MigrationNames {
    /// Returns the names for a queue migration.
    pub fn of(queue: &QueueName) -> Self {
        let name = |role: &str| migration_name(queue, role);
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

fn migration_name(queue: &QueueName, role: &str) -> String {
    let name = format!("{}.topo.{role}", queue.as_str());
    if name.len() <= MAX_NAME_BYTES { name } else { format!("{}.topo.{role}", digest(queue.as_str())) }
}

/// Returns the name of the temporary queue that topo uses to verify that HTTP and AMQP connect to the same broker.
/// `token` is a random number.
pub fn identity_queue(queue: &QueueName, token: u32) -> QueueName {
    QueueName::new(migration_name(queue, &format!("witness.{token:08x}")))
}

/// The consumer tag with which `topo dlq` reads the messages of its run queue, and the prefix of its other tags.
pub const DEAD_LETTER_TAG: &str = "topo.dlq";

/// Returns the consumer tag with which `topo dlq` reads a dead-letter queue. `number` starts at 0 and is less than 100.
/// A quorum queue requeues messages from several consumers in the order of the consumer tags.
pub fn dead_letter_tag(number: usize) -> String {
    format!("{DEAD_LETTER_TAG}.{number:02}")
}

/// Returns true if the consumer with this tag belongs to topo and not to an application.
pub fn is_topo_consumer(tag: &str) -> bool {
    let is_numbered = || tag.starts_with(DEAD_LETTER_TAG) && (0..100).any(|number| tag == dead_letter_tag(number));
    [TRANSPORT_TAG, DEAD_LETTER_TAG].contains(&tag) || is_numbered()
}

/// Returns the exclusive queue that exists while `topo dlq` changes a dead-letter queue. It prevents a second run, and
/// receives copies of the messages that are dead-lettered during the run.
pub fn run_queue(queue: &QueueName) -> QueueName {
    QueueName::new(migration_name(queue, "run"))
}

/// Returns the temporary fanout exchange through which `topo dlq` publishes messages to a queue.
pub fn replay_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(migration_name(queue, "replay"))
}

/// Returns a short digest of a name: the first 8 bytes of its SHA-256 hash, in hexadecimal.
pub fn digest(name: &str) -> String {
    Sha256::digest(name).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the name of the shovel that moves a queue's messages. A name that would be too long contains a digest of the
/// queue name instead.
pub fn shovel(queue: &QueueName) -> String {
    let name = format!("{SHOVEL_PREFIX}{}", queue.as_str());
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    format!("{SHOVEL_PREFIX}{}", digest(queue.as_str()))
}

/// Returns true if the name of a shovel has the generated form. The name does not always contain the queue name, but
/// the definition of the shovel does.
pub fn is_shovel(name: &str) -> bool {
    name.starts_with(SHOVEL_PREFIX)
}

/// Returns a regular expression (PCRE) that matches only the name of this queue.
pub fn pattern_of(queue: &QueueName) -> String {
    pattern_of_name(queue.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::is_reserved;
    use crate::rabbitmq::Pattern;

    #[test]
    fn only_exact_tags_belong_to_topo() {
        for tag in [TRANSPORT_TAG, DEAD_LETTER_TAG, &dead_letter_tag(0), &dead_letter_tag(30)] {
            assert!(is_topo_consumer(tag), "{tag}");
        }
        for tag in ["", "topo.dlq.", "topo.dlq.1", "topo.dlq.worker", "topo.dlq-worker", "worker"] {
            assert!(!is_topo_consumer(tag), "{tag}");
        }
    }

    #[test]
    fn generated_names_are_recognized() {
        let queue = QueueName::new("orders.work");
        assert_eq!(queue_of_dead_letter_exchange(&dead_letter_exchange(&queue)), Some(queue.clone()));
        assert_eq!(queue_of_dead_letter_policy(&dead_letter_policy(&queue)), Some(queue.clone()));
        assert!(is_reserved(dead_letter_policy(&queue).as_str()));
        assert!(!is_reserved("orders.topology"));
    }

    #[test]
    fn migration_names_are_reserved() {
        for name in ["q".to_owned(), "q".repeat(255)] {
            let names = MigrationNames::of(&QueueName::new(name));
            for generated in
                [&names.hold, &names.drained, &names.probe, &names.tap.to_string(), &names.back.to_string()]
            {
                assert!(is_reserved(generated) && generated.len() <= MAX_NAME_BYTES, "{generated}");
            }
        }
    }

    #[test]
    fn replay_names_are_reserved() {
        for name in ["q".to_owned(), "q".repeat(255)] {
            let queue = QueueName::new(name);
            for generated in [run_queue(&queue).to_string(), replay_exchange(&queue).to_string()] {
                assert!(is_reserved(&generated) && generated.len() <= MAX_NAME_BYTES, "{generated}");
            }
        }
    }

    #[test]
    fn shovel_names_are_short_enough() {
        let name = shovel(&QueueName::new("a/b"));
        assert_eq!(name, "topo.move.a/b");
        let long = shovel(&QueueName::new("q".repeat(250)));
        assert_eq!(long.len(), "topo.move.".len() + 16);
        assert_ne!(long, shovel(&QueueName::new("q".repeat(251))));
        assert!(is_shovel(&name) && is_shovel(&long) && !is_shovel("topo.transport"));
    }

    #[test]
    fn retry_names_are_recognized() {
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
            // The group prevents `Pattern` from recognizing a single name, so that `Pattern` evaluates the regular
            // expression.
            let regex = Pattern::new(&format!("(?:{pattern})"));
            assert_eq!(regex.matches(name), Some(true), "{pattern} on {name}");
            assert_eq!(regex.matches(&format!("{name}x")), Some(false), "{pattern}");
            let other = name.replace(['.', '|', '\\'], "z");
            assert_eq!(regex.matches(&other), Some(other == name), "{pattern} on {other}");
        }
        assert_eq!(pattern_of(&QueueName::new("orders.work")), r"^orders\.work$");
    }
}
