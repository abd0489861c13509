//! The policy that wires a queue's dead letters. Only one policy governs a queue, so it goes above every other that
//! matches, and holds what the one holds that would govern the queue without it.

use super::governing::{Fit, chosen};
use super::routing::DeadLettering;
use crate::model::{
    ApplyTo, ArgumentValue, Arguments, ExchangeName, Policy, PolicyName, Priority, QueueName, Topology, naming,
};

/// Where a queue's dead letters go, as keys of a policy.
pub const WIRING_KEYS: [&str; 2] = ["dead-letter-exchange", "dead-letter-routing-key"];

/// Where a queue sends its dead letters by what belongs to it alone: its arguments, or the policy that `wiring: policy`
/// generates, with that policy's name. `topo export` and the advice of a plan both write a queue by this answer.
pub fn own_wiring(topology: &Topology, name: &QueueName) -> Option<(DeadLettering, Option<PolicyName>)> {
    let queue = topology.queues.get(name)?;
    if queue.arguments.contains_key("x-dead-letter-exchange") {
        return dead_lettering(&queue.arguments, "x-").map(|to| (to, None));
    }
    let policy_name = naming::dead_letter_policy(name);
    let policy = topology.policies.get(&policy_name)?;
    dead_lettering(&policy.definition, "").map(|to| (to, Some(policy_name)))
}

/// Of arguments (`x-…`), or of a policy's definition. A value that is not text is ignored.
pub fn dead_lettering(arguments: &Arguments, prefix: &str) -> Option<DeadLettering> {
    let text = |name: &str| arguments.get(&format!("{prefix}{name}")).and_then(ArgumentValue::as_text);
    let exchange = ExchangeName::new(text("dead-letter-exchange")?);
    Some(DeadLettering { exchange, routing_key: text("dead-letter-routing-key").map(str::to_owned) })
}

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
