//! Every name that topo generates, made and recognised here and nowhere else.

use crate::model::names::{DEAD_LETTER_EXCHANGE_SUFFIX, pattern_of as pattern_of_name};
use crate::model::{ExchangeName, PolicyName, QueueName};

/// What follows a queue's name in that of the policy that wires its dead letters.
const DEAD_LETTER_POLICY_SUFFIX: &str = ".topo.dead-letter";

/// The exchange that leads to a dead-letter queue, unless the spec names it.
pub fn dead_letter_exchange(queue: &QueueName) -> ExchangeName {
    ExchangeName::new(format!("{queue}{DEAD_LETTER_EXCHANGE_SUFFIX}"))
}

/// The dead-letter queue whose exchange has that name, if the name is generated.
pub fn queue_of_dead_letter_exchange(exchange: &ExchangeName) -> Option<QueueName> {
    exchange.as_str().strip_suffix(DEAD_LETTER_EXCHANGE_SUFFIX).filter(|name| !name.is_empty()).map(QueueName::new)
}

/// The policy that wires a queue's dead letters.
pub fn dead_letter_policy(queue: &QueueName) -> PolicyName {
    PolicyName::new(format!("{queue}{DEAD_LETTER_POLICY_SUFFIX}"))
}

/// The queue whose dead letters the policy wires, if the name is generated.
pub fn queue_of_dead_letter_policy(policy: &PolicyName) -> Option<QueueName> {
    policy.as_str().strip_suffix(DEAD_LETTER_POLICY_SUFFIX).filter(|name| !name.is_empty()).map(QueueName::new)
}

/// The pattern that matches this queue and no other.
pub fn pattern_of(queue: &QueueName) -> String {
    pattern_of_name(queue.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behaviour::Pattern;
    use crate::model::names::is_reserved;

    #[test]
    fn names_are_recognised() {
        let queue = QueueName::new("orders.work");
        assert_eq!(queue_of_dead_letter_exchange(&dead_letter_exchange(&queue)), Some(queue.clone()));
        assert_eq!(queue_of_dead_letter_policy(&dead_letter_policy(&queue)), Some(queue.clone()));
        assert!(is_reserved(dead_letter_policy(&queue).as_str()));
        assert!(!is_reserved("orders.topology"));
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
