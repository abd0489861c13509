//! Defines the dead-letter target of a queue, and generates the policy that sets the target.
//!
//! Only one policy governs a queue. Therefore, the generated policy has a higher priority than all other matching
//! policies, and copies the keys of the policy that would otherwise govern the queue.

use super::governing::{MatchingPolicy, select_governing};
use crate::model::{
    ApplyTo, ArgumentValue, Arguments, ExchangeName, Policy, PolicyName, Priority, QueueName, Topology, naming,
};

/// The exchange and the routing key that a queue uses to dead-letter messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadLettering {
    /// The dead-letter exchange.
    pub exchange: ExchangeName,
    /// The dead-letter routing key; `None` if messages keep their own routing keys.
    pub routing_key: Option<String>,
}

/// The policy keys that set a dead-letter target.
pub const WIRING_KEYS: [&str; 2] = ["dead-letter-exchange", "dead-letter-routing-key"];

/// Returns the dead-letter target of a queue from its arguments, or from the policy that `wiring: policy` generates. In
/// the second case, also returns the name of the policy. Returns `None` if neither sets a target, or if the queue does
/// not exist.
///
/// `topo export` and the resolutions in a plan use this function to write a queue to a spec.
pub fn queue_wiring(topology: &Topology, name: &QueueName) -> Option<(DeadLettering, Option<PolicyName>)> {
    let queue = topology.queues.get(name)?;
    if queue.arguments.contains_key("x-dead-letter-exchange") {
        return dead_lettering(&queue.arguments, "x-").map(|to| (to, None));
    }
    let policy_name = naming::dead_letter_policy(name);
    let policy = topology.policies.get(&policy_name)?;
    dead_lettering(&policy.definition, "").map(|to| (to, Some(policy_name)))
}

/// Returns the dead-letter target from arguments (prefix `x-`) or from a policy definition (empty prefix); `None` if
/// there is no dead-letter exchange. Ignores values that are not strings.
pub fn dead_lettering(arguments: &Arguments, prefix: &str) -> Option<DeadLettering> {
    let text = |name: &str| arguments.get(&format!("{prefix}{name}")).and_then(ArgumentValue::as_text);
    let exchange = ExchangeName::new(text("dead-letter-exchange")?);
    Some(DeadLettering { exchange, routing_key: text("dead-letter-routing-key").map(str::to_owned) })
}

/// Returns true if a name suggests dead-lettering.
pub fn has_dead_letter_name(name: &str) -> bool {
    let words =
        ["dead", "dlx", "dlq", "dlt", "fail", "error", "poison", "quarantine", "reject", "parking", "undeliver"];
    let name = name.to_ascii_lowercase();
    words.iter().any(|word| name.contains(word))
}

/// The minimum priority of a generated policy, above the default of 0.
const MIN_PRIORITY: f64 = 1.0;

/// Generates the policy that sets the dead-letter target of a queue. `matching` contains all other policies that match
/// the queue, and `wiring` contains the dead-letter keys.
pub fn wiring_policy(queue: &QueueName, matching: &[MatchingPolicy<'_>], wiring: Arguments) -> Policy {
    // The priority is higher than that of every matching policy, even one with unsupported keys. A lower priority would
    // surprise users, and on 3.8, a policy with unsupported keys can govern a new queue.
    let highest = matching.iter().map(|it| it.named.policy.priority.above()).max();
    let governing = select_governing(matching).likely();
    let mut definition = governing.map_or_else(Arguments::new, |named| named.policy.definition.clone());
    // A dead-letter key of the governing policy would change the target.
    definition.retain(|key, _| !WIRING_KEYS.contains(&key.as_str()));
    definition.extend(wiring);
    Policy {
        pattern: naming::pattern_of(queue),
        apply_to: ApplyTo::Queues,
        priority: highest.unwrap_or_default().max(Priority(MIN_PRIORITY)),
        definition,
    }
}
