//! What a broker makes of a declare before it looks at it: the type of queue that was not said.

use crate::model::{ArgumentValue, BrokerVersion, Queue};
use crate::rabbitmq::BrokerProfile;
use std::borrow::Cow;

/// Up to 3.10.7 nothing is added, up to 3.12 the vhost's default where it fits, in 3.13 a default that does not fit becomes
/// `classic`, and from 4.0 on there is always a type (`rabbit_amqqueue:augment_declare_args`).
const FIRST_WITH_DEFAULTS: BrokerVersion = BrokerVersion::new(3, 10, 8);

/// The definition that the broker compares with what is there, and stores where nothing is.
pub fn as_stored<'a>(queue: &'a Queue, profile: &BrokerProfile) -> Cow<'a, Queue> {
    let version = profile.version;
    let name = "x-queue-type";
    if queue.arguments.contains_key(name) || version < FIRST_WITH_DEFAULTS {
        return Cow::Borrowed(queue);
    }
    let default = profile.default_queue_type.as_deref();
    // Quorum queues and streams are durable, and nobody's own.
    let fits = |kind: &str| kind == "classic" || queue.durable && !queue.auto_delete && !queue.exclusive;
    let added = match default {
        Some(kind) if fits(kind) => kind,
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
    fn a_type_that_is_not_said_is_added() {
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
