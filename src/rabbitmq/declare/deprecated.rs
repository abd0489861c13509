//! Predicts refusals of queues that use a deprecated feature which the broker denies. `rabbit_amqqueue:declare/7` checks the
//! features directly after the arguments, and `rabbit_classic_queue:declare/2` after that (3.13 to 4.3).

use super::Refusal;
use crate::model::{Queue, QueueType};
use crate::rabbitmq::BrokerProfile;
use crate::rabbitmq::profile::{QUEUE_MASTER_LOCATOR, TRANSIENT_QUEUES};

/// Returns the refusals of a queue. `kind` is the type that the broker resolves: an empty `x-queue-type` means the default.
pub(super) fn refusals(queue: &Queue, kind: QueueType, profile: &BrokerProfile) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    // Unknown if the broker does not report the feature: 4.3 denies it by default, but the package of Debian permits it.
    if !queue.durable && !queue.exclusive && profile.permits(TRANSIENT_QUEUES) == Some(false) {
        refusals.push(refusal(
            "durable",
            "does not permit queues that are neither durable nor exclusive",
            TRANSIENT_QUEUES,
        ));
    }
    let denies_locator = profile.permits(QUEUE_MASTER_LOCATOR).map_or(profile.version.is_at_least(4, 3), |it| !it);
    let locator = "x-queue-master-locator";
    if kind == QueueType::Classic && queue.arguments.contains_key(locator) && denies_locator {
        let mut refusal = refusal(locator, "does not permit x-queue-master-locator", QUEUE_MASTER_LOCATOR);
        refusal.hint = Some("use `queueLeaderLocator` instead of `queueMasterLocator`".to_owned());
        refusals.push(refusal);
    }
    refusals
}

fn refusal(subject: &str, text: &str, feature: &str) -> Refusal {
    Refusal {
        subject: subject.to_owned(),
        text: format!("the broker {text}: its deprecated feature {feature} is denied"),
        hint: Some(format!("make it durable, or permit it on the broker: deprecated_features.permit.{feature} = true")),
    }
}
