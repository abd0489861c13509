//! The dead-letter target of a queue, and the policy that sets it. Only one policy governs a queue. So this one has the highest
//! priority of all matching policies, and copies the keys of the policy that would otherwise govern the queue.

use super::governing::{Fit, chosen};
use crate::model::{
    ApplyTo, ArgumentValue, Arguments, ExchangeName, Policy, PolicyName, Priority, QueueName, Topology, naming,
};

/// The exchange and the routing key with which a queue dead-letters messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadLettering {
    /// The exchange.
    pub exchange: ExchangeName,
    /// The routing key; `None` if messages keep their own keys.
    pub routing_key: Option<String>,
}

/// The policy keys of a dead-letter target.
pub const WIRING_KEYS: [&str; 2] = ["dead-letter-exchange", "dead-letter-routing-key"];

/// Returns the dead-letter target that a queue sets itself: by its arguments, or by the policy that `wiring: policy`
/// generates, with the name of that policy. `topo export` and the advice of a plan both use it to write a queue.
pub fn own_wiring(topology: &Topology, name: &QueueName) -> Option<(DeadLettering, Option<PolicyName>)> {
    let queue = topology.queues.get(name)?;
    if queue.arguments.contains_key("x-dead-letter-exchange") {
        return dead_lettering(&queue.arguments, "x-").map(|to| (to, None));
    }
    let policy_name = naming::dead_letter_policy(name);
    let policy = topology.policies.get(&policy_name)?;
    dead_lettering(&policy.definition, "").map(|to| (to, Some(policy_name)))
}

/// Returns the dead-letter target from arguments (prefix `x-`) or from the definition of a policy. Values that are not
/// strings are ignored.
pub fn dead_lettering(arguments: &Arguments, prefix: &str) -> Option<DeadLettering> {
    let text = |name: &str| arguments.get(&format!("{prefix}{name}")).and_then(ArgumentValue::as_text);
    let exchange = ExchangeName::new(text("dead-letter-exchange")?);
    Some(DeadLettering { exchange, routing_key: text("dead-letter-routing-key").map(str::to_owned) })
}

/// The minimum priority, above the default of 0.
const MIN_PRIORITY: f64 = 1.0;

/// Returns the policy of a queue from the policies that match the queue. `wiring` contains its dead-letter keys.
pub fn wiring_policy(queue: &QueueName, fitting: &[Fit<'_>], wiring: Arguments) -> Policy {
    // The priority is above all matching policies, including those that the queue type does not support: this is less
    // surprising, and up to 3.8, these govern a new queue.
    let highest = fitting.iter().map(|fit| fit.named.policy.priority.above()).max();
    let governing = chosen(fitting).likely();
    let mut definition = governing.map_or_else(Arguments::new, |named| named.policy.definition.clone());
    // A dead-letter key of the other policy would change the target.
    definition.retain(|key, _| !WIRING_KEYS.contains(&key.as_str()));
    definition.extend(wiring);
    Policy {
        pattern: naming::pattern_of(queue),
        apply_to: ApplyTo::Queues,
        priority: highest.unwrap_or_default().max(Priority(MIN_PRIORITY)),
        definition,
    }
}
