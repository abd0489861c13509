//! Predicts refusals of policies.

use super::policy_keys::definition;
use super::{Refusal, vhost};
use crate::model::{ApplyTo, BrokerVersion, Policy, PolicyName};
use crate::rabbitmq::BrokerProfile;
use crate::rabbitmq::pattern::mistake;

/// The maximum length of a pattern in bytes, since 4.2.8 and 4.3.2 (`rabbit_re:max_pattern_length`).
const LONGEST_PATTERN: usize = 1024;

/// Returns the refusals of a policy in the order of the broker's response: the first error of the definition, then all other
/// errors (`rabbit_parameter_validation:proplist` collects them in reverse).
///
/// A pattern is refused only if every PCRE refuses it, because the version of the broker does not determine its PCRE version.
pub(super) fn refusals(policy_name: &PolicyName, policy: &Policy, profile: &BrokerProfile) -> Vec<Refusal> {
    let version = profile.version;
    let mut found: Vec<Refusal> = vhost::dot_segment(policy_name.as_str()).into_iter().collect();
    found.extend(definition(&policy.definition, version));
    let by_type = matches!(policy.apply_to, ApplyTo::ClassicQueues | ApplyTo::QuorumQueues | ApplyTo::Streams);
    if by_type && !version.is_at_least(3, 12) {
        let text = format!("a policy can apply to {} since RabbitMQ 3.12; the broker is {version}", policy.apply_to);
        found.push(Refusal::new("apply-to", text).hint("use `applyTo: queues`"));
    }
    if let Some(problem) = mistake(&policy.pattern) {
        let text = format!("the pattern {:?} is not a regular expression: {problem}", policy.pattern);
        found.push(
            Refusal::new("pattern", text).hint("add a backslash before a special character to match it literally"),
        );
    }
    if policy.pattern.len() > LONGEST_PATTERN && limits_patterns(version) {
        let text = format!("the pattern has {} bytes; the maximum is {LONGEST_PATTERN}", policy.pattern.len());
        found.push(Refusal::new("pattern", text).hint("write a shorter pattern, or several policies"));
    }
    found
}

fn limits_patterns(version: BrokerVersion) -> bool {
    let is_patched = |minor: u16, patch: u16| {
        (version.major, version.minor) == (4, minor) && version >= BrokerVersion::new(4, minor, patch)
    };
    is_patched(2, 8) || is_patched(3, 2) || version.is_at_least(4, 4)
}
