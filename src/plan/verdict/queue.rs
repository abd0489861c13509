//! What a field of a queue that differs means.

use super::Verdict;
use crate::behaviour::Dialect;
use crate::diff::{Field, FieldChange};
use crate::model::known_arguments::KnownArgument;
use crate::model::{ArgumentValue, BrokerVersion, Queue};

pub(super) fn verdict(change: &FieldChange, live: &Queue, wanted: &Queue, dialect: &Dialect) -> Verdict {
    let version = dialect.version;
    let Field::Argument(name) = &change.field else { return Verdict::Conflict };
    if is_equal(name, change.before.as_ref(), change.after.as_ref(), version) {
        return Verdict::Equal;
    }
    let Some(known) = KnownArgument::named(name) else { return Verdict::Unknown };
    // A type of a plugin: topo does not know what it compares; asking for a recreate is the safe answer.
    let (Some(live_type), Some(wanted_type)) = (live.queue_type(), wanted.queue_type()) else {
        return Verdict::Conflict;
    };
    // The broker compares what the *existing* queue's type lists.
    if known.is_compared(live_type, version) {
        return Verdict::Conflict;
    }
    if change.after.is_some() && !known.is_taken(wanted_type, version) { Verdict::Invalid } else { Verdict::Drift }
}

/// Whether the broker takes the two values for the same.
fn is_equal(name: &str, before: Option<&ArgumentValue>, after: Option<&ArgumentValue>, version: BrokerVersion) -> bool {
    let classic = ArgumentValue::Text("classic".to_owned());
    match (before, after) {
        // The one default that the broker knows: absent is classic (`rabbit_misc`, all versions).
        (None, Some(value)) | (Some(value), None) => name == "x-queue-type" && *value == classic,
        // 4.3 compares ages, older versions text (4.0.5 refuses 168h for 7D, 4.3.6 takes it).
        (Some(ArgumentValue::Text(before)), Some(ArgumentValue::Text(after)))
            if name == "x-max-age" && version.is_at_least(4, 3) =>
        {
            before == after || age_in_seconds(before).is_some_and(|age| Some(age) == age_in_seconds(after))
        }
        (before, after) => before == after,
    }
}

/// `7D` in seconds, by RabbitMQ's own units (`rabbit_amqqueue:unit_value_in_ms`).
fn age_in_seconds(text: &str) -> Option<i64> {
    let unit = match text.chars().last()? {
        'Y' => 365 * 86_400,
        'M' => 30 * 86_400,
        'D' => 86_400,
        'h' => 3600,
        'm' => 60,
        's' => 1,
        _ => return None,
    };
    text.get(..text.len() - 1)?.parse::<i64>().ok()?.checked_mul(unit)
}
