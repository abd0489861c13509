//! Policies that are refused.

use super::Refusal;
use crate::behaviour::Dialect;
use crate::model::{ApplyTo, Policy};

pub(super) fn refusals(policy: &Policy, dialect: &Dialect) -> Vec<Refusal> {
    let version = dialect.version;
    let by_type = matches!(policy.apply_to, ApplyTo::ClassicQueues | ApplyTo::QuorumQueues | ApplyTo::Streams);
    if !by_type || version.is_at_least(3, 12) {
        return Vec::new();
    }
    vec![Refusal {
        subject: "apply-to".to_owned(),
        text: format!("a policy can apply to {} since RabbitMQ 3.12, this is {version}", policy.apply_to),
        hint: Some("apply it to queues".to_owned()),
    }]
}
