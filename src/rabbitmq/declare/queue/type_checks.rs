//! Predicts refusals by the checks that the broker runs after the argument checks. The first checks refuse deprecated
//! features that the broker denies (`rabbit_amqqueue:declare/7` and `rabbit_classic_queue:declare/2`, 3.13 to 4.3). The
//! other checks depend on the queue type.
//!
//! Also determines the queue type that the broker adds to a declaration before all checks.

use super::value::refusal;
use crate::model::known_arguments::MAX_SEGMENT_BYTES;
use crate::model::{ArgumentValue, BrokerVersion, Queue, QueueType};
use crate::rabbitmq::declare::refusal::Refusal;
use crate::rabbitmq::profile::BrokerProfile;
use crate::rabbitmq::profile::{QUEUE_MASTER_LOCATOR, TRANSIENT_QUEUES};
use std::borrow::Cow;
use std::cmp::Ordering;

pub(super) fn refusals(queue: &Queue, kind: QueueType, version: BrokerVersion) -> Vec<Refusal> {
    match kind {
        QueueType::Classic => master_locator(queue, version).into_iter().collect(),
        QueueType::Quorum => properties(queue, kind),
        QueueType::Stream => {
            let mut found = properties(queue, kind);
            found.extend(segment_size(queue));
            found.extend(filter_size(queue, version));
            found
        }
    }
}

/// Returns the arguments that quorum queues in RabbitMQ 3.8 refuse, in the order of the broker's checks
/// (`rabbit_quorum_queue:check_invalid_arguments`).
pub(super) fn unsupported_by_quorum_3_8(version: BrokerVersion) -> &'static [&'static str] {
    if version < BrokerVersion::new(3, 8, 10) {
        &["x-expires", "x-message-ttl", "x-max-priority", "x-queue-mode", "x-overflow"]
    } else {
        &["x-message-ttl", "x-max-priority", "x-queue-mode"]
    }
}

/// Checks the properties of a quorum queue or a stream (`rabbit_queue_type_util:check_auto_delete`, `check_exclusive`,
/// `check_non_durable`). Queues that are declared over HTTP are never exclusive.
fn properties(queue: &Queue, kind: QueueType) -> Vec<Refusal> {
    let type_name = match kind {
        QueueType::Classic | QueueType::Quorum => "a quorum queue",
        QueueType::Stream => "a stream",
    };
    let mut found = Vec::new();
    if queue.auto_delete {
        let text = format!("{type_name} cannot be auto-delete");
        found.push(refusal("auto_delete", text, "remove `autoDelete`, or use `type: classic`"));
    }
    if !queue.durable {
        let text = format!("{type_name} is always durable");
        found.push(refusal("durable", text, "remove `durable`, or use `type: classic`"));
    }
    found
}

/// Checks the master locator. On 3.13 and earlier, an unknown value crashes the declaration
/// (`rabbit_queue_master_location_misc:get_location`). Over HTTP, the broker then responds with 400, or does not
/// respond if the value is a float. Over AMQP, the broker closes the connection. RabbitMQ 4.0 to 4.2 accept any value.
fn master_locator(queue: &Queue, version: BrokerVersion) -> Option<Refusal> {
    let name = "x-queue-master-locator";
    let value = queue.arguments.get(name)?;
    let words = ["client-local", "min-masters", "random"];
    let is_known = value.as_text().is_some_and(|text| words.contains(&text));
    (!is_known && !version.is_at_least(4, 0)).then(|| {
        let value = super::value::format_value(value);
        let text = format!("{name} cannot be {value}: this version accepts {}", words.join(", "));
        refusal(name, text, &super::value::hint(name))
    })
}

/// Checks the segment size of a stream. An earlier check ensures that the value is an integer.
fn segment_size(queue: &Queue) -> Option<Refusal> {
    let name = "x-stream-max-segment-size-bytes";
    let size = queue.arguments.get(name)?.as_integer()?;
    (size > MAX_SEGMENT_BYTES).then(|| {
        let text = format!("{name} cannot be {size}: the maximum is {MAX_SEGMENT_BYTES}");
        refusal(name, text, "use a smaller `streamMaxSegmentSizeBytes`")
    })
}

/// Checks the filter size of a stream (`check_filter_size`, since 3.13, even on versions in which streams do not list
/// the argument as supported). The check uses Erlang's term order, in which every number is less than any other term.
/// It therefore accepts a float in the range, and refuses all values that are not numbers.
fn filter_size(queue: &Queue, version: BrokerVersion) -> Option<Refusal> {
    let name = "x-stream-filter-size-bytes";
    let value = queue.arguments.get(name).filter(|_| version.is_at_least(3, 13))?;
    let is_within = match value {
        ArgumentValue::Integer(size) => (16..=255).contains(size),
        ArgumentValue::Float(size) => {
            size.0.total_cmp(&16.0) != Ordering::Less && size.0.total_cmp(&255.0) != Ordering::Greater
        }
        ArgumentValue::Null
        | ArgumentValue::Boolean(_)
        | ArgumentValue::Text(_)
        | ArgumentValue::List(_)
        | ArgumentValue::Table(_) => false,
    };
    (!is_within).then(|| {
        let text = format!("{name} must be from 16 to 255, found {}", super::value::format_value(value));
        refusal(name, text, "use a `streamFilterSizeBytes` from 16 to 255")
    })
}

/// The first version that adds the vhost's default queue type to declarations.
///
/// RabbitMQ 3.12 and earlier add the default only if it is compatible with the queue. RabbitMQ 3.13 adds `classic`
/// instead of an incompatible default. RabbitMQ 4.0 and later always add a type
/// (`rabbit_amqqueue:augment_declare_args`).
const FIRST_WITH_DEFAULTS: BrokerVersion = BrokerVersion::new(3, 10, 8);

/// Returns a declaration with the queue type that the broker adds to it. The broker compares the result with an
/// existing queue, or stores it for a new queue.
pub fn with_default_type<'a>(queue: &'a Queue, profile: &BrokerProfile) -> Cow<'a, Queue> {
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

/// Returns the refusals of a queue that uses deprecated features that the broker denies. `kind` is the type that the
/// broker uses. For an empty `x-queue-type`, this is the default queue type.
pub(super) fn deprecated_features(queue: &Queue, kind: QueueType, profile: &BrokerProfile) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    // If the broker does not report the feature, its state is unknown. RabbitMQ 4.3 denies the feature by default, but
    // the Debian package permits it.
    if !queue.durable && !queue.exclusive && profile.permits(TRANSIENT_QUEUES) == Some(false) {
        refusals.push(denial(
            "durable",
            "does not permit queues that are neither durable nor exclusive",
            TRANSIENT_QUEUES,
        ));
    }
    let denies_locator = profile.permits(QUEUE_MASTER_LOCATOR).map_or(profile.version.is_at_least(4, 3), |it| !it);
    let locator = "x-queue-master-locator";
    if kind == QueueType::Classic && queue.arguments.contains_key(locator) && denies_locator {
        let mut refusal = denial(locator, "does not permit x-queue-master-locator", QUEUE_MASTER_LOCATOR);
        refusal.hint = Some("use `queueLeaderLocator` instead of `queueMasterLocator`".to_owned());
        refusals.push(refusal);
    }
    refusals
}

/// Creates the refusal of a queue that uses a denied deprecated feature.
fn denial(subject: &str, text: &str, feature: &str) -> Refusal {
    Refusal {
        subject: subject.to_owned(),
        text: format!("the broker {text}: it denies the deprecated feature {feature}"),
        hint: Some(format!(
            "make the queue durable, or permit the feature on the broker: deprecated_features.permit.{feature} = true"
        )),
    }
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
            let kind = with_default_type(&queue, &profile).arguments.get("x-queue-type").cloned();
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
