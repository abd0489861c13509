//! Every name that topo generates, made and recognized here and nowhere else.

use super::names::{DEAD_LETTER_EXCHANGE_SUFFIX, LONGEST_NAME, pattern_of as pattern_of_name};
use super::units::{duration, milliseconds};
use super::{ExchangeName, PolicyName, QueueName};
use sha2::{Digest, Sha256};

/// What follows a queue's name in that of the policy that wires its dead letters.
const DEAD_LETTER_POLICY_SUFFIX: &str = ".topo.dead-letter";

/// What follows a queue's name in that of the exchange that takes messages to be tried again, and before the number of a
/// retry in the names of tiers and keys.
const RETRY_SUFFIX: &str = ".retry";
/// What follows a queue's name in that of the exchange that takes what the exchange before it does not lead to a tier.
const OVER_SUFFIX: &str = ".retry.over";
/// What follows a queue's name in that of the exchange that leads to its first tier.
const FIRST_SUFFIX: &str = ".retry.first";
/// What follows the name of an exchange that leads to tiers in that of the one which stands in for it while a tier is
/// exchanged for another.
const SWITCH_SUFFIX: &str = ".switch";
/// What follows a queue's name in that of the exchange through which its tiers hand back.
const RETURN_SUFFIX: &str = ".return";
/// What stands between a tier's name and its generation.
const GENERATION: char = '~';
/// What stands before a queue's name in that of the shovel which moves its messages.
const SHOVEL_PREFIX: &str = "topo.move.";
/// The consumer tag of topo's own transport, by which it is told from the consumers of applications.
pub const TRANSPORT_TAG: &str = "topo.move";

/// The exchange that parts the deaths of a queue on a ladder: those that are tried again, and the final ones. It has the
/// name of a dead-letter queue's exchange, for it leads to one; no queue is both.
pub fn guard_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{DEAD_LETTER_EXCHANGE_SUFFIX}", queue.as_str()))
}

/// The queue whose deaths the exchange parts, if the name is generated.
pub fn queue_of_guard_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), DEAD_LETTER_EXCHANGE_SUFFIX)
}

/// The exchange that takes messages to be tried again.
pub fn retry_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{RETRY_SUFFIX}", queue.as_str()))
}

/// The queue whose messages are tried again by the exchange, if the name is generated.
pub fn queue_of_retry_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), RETRY_SUFFIX)
}

/// The exchange that takes what is tried often enough: any key of a retry that leads to no tier.
pub fn over_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{OVER_SUFFIX}", queue.as_str()))
}

/// The queue whose retries are over there, if the name is generated.
pub fn queue_of_over_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), OVER_SUFFIX)
}

/// The exchange that stands in for one that leads to tiers while a tier is exchanged for another.
pub fn switch_of(exchange: &ExchangeName) -> ExchangeName {
    ExchangeName::new(format!("{}{SWITCH_SUFFIX}", exchange.as_str()))
}

/// The exchange that it stands in for, if the name is generated.
pub fn switched_by(exchange: &ExchangeName) -> Option<ExchangeName> {
    exchange.as_str().strip_suffix(SWITCH_SUFFIX).filter(|name| !name.is_empty()).map(ExchangeName::from)
}

/// The exchange that leads to the first tier.
pub fn first_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{FIRST_SUFFIX}", queue.as_str()))
}

/// The queue to whose first tier the exchange leads, if the name is generated.
pub fn queue_of_first_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), FIRST_SUFFIX)
}

/// The exchange through which tiers hand back.
pub fn return_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{RETURN_SUFFIX}", queue.as_str()))
}

/// The queue to which the exchange hands back, if the name is generated.
pub fn queue_of_return_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), RETURN_SUFFIX)
}

/// The key with which a message comes back from the tier of that retry, counted from 1.
pub fn retry_key(queue: &QueueName, number: u32) -> String {
    format!("{}{RETRY_SUFFIX}.{number}", queue.as_str())
}

/// The key with which a message goes past all retries, however many there are.
pub fn give_up_key(queue: &QueueName) -> String {
    over_exchange(queue).as_str().to_owned()
}

/// The topic pattern of all such keys, and of that one; `None` where a word of the queue's name would match other words, too.
pub fn retry_key_pattern(queue: &QueueName) -> Option<String> {
    let is_wild = |word: &str| word == "*" || word == "#";
    (!queue.as_str().split('.').any(is_wild)).then(|| format!("{}{RETRY_SUFFIX}.*", queue.as_str()))
}

/// The retry from which a message comes back to this queue with that key, if the key is generated.
pub fn number_of_retry_key(queue: &QueueName, key: &str) -> Option<u32> {
    number(key.strip_prefix(queue.as_str())?.strip_prefix(RETRY_SUFFIX)?.strip_prefix('.')?)
}

/// A tier queue, by what its name says. The name carries the delay, so that another delay is another queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TierName {
    /// The queue whose messages wait there.
    pub queue: QueueName,
    /// Which retry, counted from 1.
    pub number: u32,
    /// Milliseconds.
    pub delay: i64,
    /// 1, and one more each time that something but the delay had to change.
    pub generation: u32,
}

impl TierName {
    /// The first tier of that name.
    pub fn new(queue: &QueueName, number: u32, delay: i64) -> Self {
        Self { queue: queue.clone(), number, delay, generation: 1 }
    }

    /// `orders.work.retry.1.5s`, `orders.work.retry.1.5s~2`.
    pub fn name(&self) -> QueueName {
        let Self { queue, number, delay, generation } = self;
        let delay = duration(*delay).unwrap_or_else(|| "0ms".to_owned());
        let generation = if *generation > 1 { format!("{GENERATION}{generation}") } else { String::new() };
        QueueName::new(format!("{}{RETRY_SUFFIX}.{number}.{delay}{generation}", queue.as_str()))
    }

    /// What the name says, if it is that of a tier. Read from the end: a queue's own name may hold anything, `.retry.` too.
    pub fn parse(name: &QueueName) -> Option<Self> {
        let (rest, generation) = match name.as_str().rsplit_once(GENERATION) {
            Some((rest, digits)) => match number(digits) {
                Some(generation) if generation > 1 => (rest, generation),
                // A `~` of the queue's own.
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

/// A number from 1 as it is written: no sign, no zero before it.
fn number(digits: &str) -> Option<u32> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if is_plain { digits.parse().ok() } else { None }
}

/// The exchange that leads to a dead-letter queue, unless the spec names it.
pub fn dead_letter_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{}{DEAD_LETTER_EXCHANGE_SUFFIX}", queue.as_str()))
}

/// The dead-letter queue whose exchange has that name, if the name is generated.
pub fn queue_of_dead_letter_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    stem(exchange.as_str(), DEAD_LETTER_EXCHANGE_SUFFIX)
}

/// The policy that wires a queue's dead letters.
pub fn dead_letter_policy(queue: &QueueName) -> PolicyName {
    PolicyName::new(format!("{}{DEAD_LETTER_POLICY_SUFFIX}", queue.as_str()))
}

/// The queue whose dead letters the policy wires, if the name is generated.
pub fn queue_of_dead_letter_policy(policy: &PolicyName) -> Option<QueueName> {
    stem(policy.as_str(), DEAD_LETTER_POLICY_SUFFIX)
}

/// What a migration makes beside a queue: all under the queue's own prefix, so that permissions on it fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationNames {
    /// The queue that takes what is published while the old queue is emptied, and its fanout exchange: the alternate of
    /// the tap.
    pub hold: String,
    /// The queue that takes what the old queue held, and its fanout exchange.
    pub drained: String,
    /// A queue that is the new one in all but name: whether the broker makes it for this user is seen before anything else.
    pub probe: String,
    /// The fanout exchange between the sources and the queue.
    pub tap: ExchangeName,
    /// The fanout exchange through which what was held comes back.
    pub back: ExchangeName,
    /// The policy that keeps the others off the holding queues.
    pub shield: PolicyName,
}

impl MigrationNames {
    /// Of that queue. A name that would be too long carries a digest of the queue's.
    pub fn of(queue: &QueueName) -> Self {
        let name = |what: &str| of_migration(queue, what);
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

fn of_migration(queue: &QueueName, what: &str) -> String {
    let name = format!("{}.topo.{what}", queue.as_str());
    if name.len() <= LONGEST_NAME { name } else { format!("topo.{what}.{}", digest(queue.as_str())) }
}

/// The queue, there for a moment, by which topo sees that it speaks to the same broker over HTTP and over AMQP.
pub fn witness(queue: &QueueName, token: u32) -> QueueName {
    QueueName::new(of_migration(queue, &format!("witness.{token:08x}")))
}

/// Short, and another one for every name.
pub fn digest(name: &str) -> String {
    Sha256::digest(name).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The shovel that moves the messages of a queue. A name that would be too long has a digest of the queue's instead.
pub fn shovel(queue: &QueueName) -> String {
    let name = format!("{SHOVEL_PREFIX}{}", queue.as_str());
    if name.len() <= LONGEST_NAME {
        return name;
    }
    format!("{SHOVEL_PREFIX}{}", digest(queue.as_str()))
}

/// Whether a shovel has a generated name. Which queue it moves stands in its definition.
pub fn is_shovel(name: &str) -> bool {
    name.starts_with(SHOVEL_PREFIX)
}

/// The pattern that matches this queue and no other.
pub fn pattern_of(queue: &QueueName) -> String {
    pattern_of_name(queue.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::is_reserved;
    use crate::rabbitmq::Pattern;

    #[test]
    fn names_are_recognised() {
        let queue = QueueName::new("orders.work");
        assert_eq!(queue_of_dead_letter_exchange(&dead_letter_exchange(&queue)), Some(queue.clone()));
        assert_eq!(queue_of_dead_letter_policy(&dead_letter_policy(&queue)), Some(queue.clone()));
        assert!(is_reserved(dead_letter_policy(&queue).as_str()));
        assert!(!is_reserved("orders.topology"));
    }

    #[test]
    fn shovels_have_short_names() {
        let name = shovel(&QueueName::new("a/b"));
        assert_eq!(name, "topo.move.a/b");
        let long = shovel(&QueueName::new("q".repeat(250)));
        assert_eq!(long.len(), "topo.move.".len() + 16);
        assert_ne!(long, shovel(&QueueName::new("q".repeat(251))));
        assert!(is_shovel(&name) && is_shovel(&long) && !is_shovel("topo.transport"));
    }

    #[test]
    fn names_of_retries_are_recognised() {
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
        // The `~1` is none that is ever given, so it belongs to the delay, which is none then.
        assert_eq!(TierName::parse(&"q.retry.1.5s~1".into()), None);
        assert_eq!(number_of_retry_key(&"q".into(), "q.retry.1.5s"), None);
        assert_eq!(queue_of_retry_exchange(&".retry".into()), None);
    }

    #[test]
    fn patterns_match_one_queue() {
        for name in ["orders.work", "a|b", "x (1)", "50%/é^$", "a\\d", "[q]{2}+*?#-_~"] {
            let pattern = pattern_of(&QueueName::new(name));
            assert_eq!(Pattern::new(&pattern).only_name(), Some(name), "{pattern}");
            // The same by the regular expression itself, which the group keeps from being read as one name.
            let regex = Pattern::new(&format!("(?:{pattern})"));
            assert_eq!(regex.matches(name), Some(true), "{pattern} on {name}");
            assert_eq!(regex.matches(&format!("{name}x")), Some(false), "{pattern}");
            let other = name.replace(['.', '|', '\\'], "z");
            assert_eq!(regex.matches(&other), Some(other == name), "{pattern} on {other}");
        }
        assert_eq!(pattern_of(&QueueName::new("orders.work")), r"^orders\.work$");
    }
}
