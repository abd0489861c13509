//! The policy that wires a queue's dead letters. Only one policy governs a queue, so it goes above every other that
//! matches, and holds what the one holds that would govern the queue without it.

use super::governing::{Fit, chosen};
use crate::model::{ApplyTo, Arguments, Policy, Priority, QueueName, naming};

/// Where a queue's dead letters go, as keys of a policy.
pub const WIRING_KEYS: [&str; 2] = ["dead-letter-exchange", "dead-letter-routing-key"];

/// What it has where no policy matches: above the 0 of most.
const LEAST_PRIORITY: f64 = 1.0;

/// The policy of a queue that others fit; `wires` are the keys of its own.
pub fn wiring_policy(queue: &QueueName, fitting: &[Fit<'_>], wires: Arguments) -> Policy {
    // Above all that match, also above those that the queue's type does not take: they are less surprising so, and up to
    // 3.8 they govern a queue that is new.
    let highest = fitting.iter().map(|fit| fit.named.policy.priority.above()).max();
    let governing = chosen(fitting).likely();
    let mut definition = governing.map_or_else(Arguments::new, |named| named.policy.definition.clone());
    // A key of the other policy would send dead letters elsewhere.
    definition.retain(|key, _| !WIRING_KEYS.contains(&key.as_str()));
    definition.extend(wires);
    Policy {
        pattern: naming::pattern_of(queue),
        apply_to: ApplyTo::Queues,
        priority: highest.unwrap_or_default().max(Priority(LEAST_PRIORITY)),
        definition,
    }
}
