//! Which value holds where an argument, a policy and an operator policy say different things.

use super::Dialect;
use crate::model::QueueType;

/// Who wins when a queue's argument and a policy set the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// The smaller number.
    Smallest,
    /// The smaller number, but the larger where one of them is negative, which means "no limit".
    SmallestNonNegative,
    /// The argument.
    Argument,
    /// The policy.
    Policy,
}

/// Who wins for a policy key (`max-length`) on a type of queue; `None` where a policy cannot set it on that type.
///
/// Sources: `rabbit_amqqueue_process:process_args_policy`, `rabbit_quorum_queue:ra_machine_config`,
/// `rabbit_stream_queue:apply_policy` and live brokers.
pub fn precedence(key: &str, queue_type: QueueType, dialect: &Dialect) -> Option<Precedence> {
    let version = dialect.version;
    let taken = crate::model::known_arguments::KNOWN_ARGUMENTS
        .iter()
        .any(|known| known.policy_key == Some(key) && known.is_taken(queue_type, version));
    taken.then_some(match (key, queue_type) {
        ("expires", QueueType::Quorum) if version.is_at_least(3, 10) && !version.is_at_least(4, 0) => {
            Precedence::Policy
        }
        (_, QueueType::Stream) => Precedence::Policy,
        ("message-ttl" | "expires" | "max-length" | "max-length-bytes", _) => Precedence::Smallest,
        ("delivery-limit", _) if version.is_at_least(4, 0) => Precedence::SmallestNonNegative,
        ("delivery-limit" | "delayed-retry-min" | "delayed-retry-max", _) => Precedence::Smallest,
        ("overflow" | "delayed-retry-type", QueueType::Quorum) => Precedence::Policy,
        _ => Precedence::Argument,
    })
}
