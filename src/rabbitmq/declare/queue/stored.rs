//! Adds the queue type that a broker adds to a declare before its checks.

use crate::model::{ArgumentValue, BrokerVersion, Queue};
use crate::rabbitmq::BrokerProfile;
use std::borrow::Cow;

/// The first version that adds the default queue type of the vhost.
///
/// Up to 3.12, it is added if it is compatible with the queue; in 3.13, an incompatible default becomes `classic`. From 4.0
/// on, a type is always added (`rabbit_amqqueue:augment_declare_args`).
const FIRST_WITH_DEFAULTS: BrokerVersion = BrokerVersion::new(3, 10, 8);

/// Returns the definition that the broker compares with an existing queue, or stores for a new one.
pub fn as_stored<'a>(queue: &'a Queue, profile: &BrokerProfile) -> Cow<'a, Queue> {
    let version = profile.version;
    let name = "x-queue-type";
    if queue.arguments.contains_key(name) || version < FIRST_WITH_DEFAULTS {
        return Cow::Borrowed(queue);
    }
    let default = profile.default_queue_type.as_deref();
    // Quorum queues and streams are durable, and neither auto-delete nor exclusive.
    let is_compatible = |kind: &str| kind == "classic" || queue.durable && !queue.auto_delete && !queue.exclusive;
    let added = match default {
        Some(kind) if is_compatible(kind) => kind,
        Some(_) if version.is_at_least(3, 13) => "classic",
        None if version.is_at_least(4, 0) => "classic",
        Some(_) | None => return Cow::Borrowed(queue),
    };
    let mut stored = queue.clone();
    stored.arguments.insert(name.to_owned(), ArgumentValue::Text(added.to_owned()));
    Cow::Owned(stored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Arguments;

    #[test]
    fn missing_type_is_added() {
        let stored = |durable: bool, default: Option<&str>, version: &str| {
            let queue = Queue { durable, auto_delete: false, exclusive: false, arguments: Arguments::new() };
            let mut profile = BrokerProfile::of(version.parse().unwrap());
            profile.default_queue_type = default.map(str::to_owned);
            let kind = as_stored(&queue, &profile).arguments.get("x-queue-type").cloned();
            kind.map_or_else(String::new, |kind| kind.to_string())
        };
        let quorum = Some("quorum");
        assert_eq!(
            ["3.8.9", "3.10.7", "3.10.8", "4.0.5"].map(|v| stored(true, quorum, v)),
            ["", "", "quorum", "quorum"]
        );
        assert_eq!(["3.12.14", "3.13.7", "4.3.6"].map(|v| stored(false, quorum, v)), ["", "classic", "classic"]);
        assert_eq!(["3.13.7", "4.0.0"].map(|v| stored(true, None, v)), ["", "classic"]);
    }
}
