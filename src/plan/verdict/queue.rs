//! Classifies a field of a queue that differs.

use super::Verdict;
use crate::diff::FieldChange;
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument, checked, compared};
use crate::model::{ArgumentValue, BrokerVersion, Object, Queue};
use crate::rabbitmq::{BrokerProfile, refusals, with_default_type};
use std::borrow::Cow;

/// Returns the verdict on a field. `object` is the desired queue.
pub(super) fn verdict(
    change: &FieldChange,
    live: &Queue,
    (desired, object): (&Queue, &Object),
    profile: &BrokerProfile,
) -> Verdict {
    let is_refused = || {
        let subject = change.field.to_string();
        refusals(object, profile).iter().any(|refusal| refusal.subject == subject)
    };
    let Some(name) = change.field.argument() else {
        return if is_refused() { Verdict::Invalid } else { Verdict::Conflict };
    };
    if is_equal(name, live, desired, profile) {
        return Verdict::Equal;
    }
    if change.after.is_some() && is_refused() {
        return Verdict::Invalid;
    }
    if is_compared(name, live, profile) {
        Verdict::Conflict
    } else if KnownArgument::named(name).is_some() {
        Verdict::Drift
    } else {
        Verdict::Unknown
    }
}

/// Returns true if the broker rejects a declaration of the existing queue because of this field.
pub(super) fn is_refused_again(change: &FieldChange, live: &Queue, desired: &Queue, profile: &BrokerProfile) -> bool {
    let is_refused = |name| !is_equal(name, live, desired, profile) && is_compared(name, live, profile);
    // The broker compares everything except arguments.
    change.field.argument().is_none_or(is_refused)
}

/// Returns true if the broker compares the argument. The type of the *existing* queue determines the list of compared
/// arguments. The list is unknown for a type from a plugin. The argument then counts as compared, because it is safe to
/// recreate the queue.
fn is_compared(name: &str, live: &Queue, profile: &BrokerProfile) -> bool {
    let Some(known) = KnownArgument::named(name) else { return false };
    live.queue_type().is_none_or(|live| known.is_compared(live, profile.version))
}

/// Returns the position of the argument in the order in which the broker compares arguments.
pub(super) fn position(name: &str, live: &Queue, profile: &BrokerProfile) -> usize {
    let order = live.queue_type().map_or(checked(), |live| compared(live, profile.version));
    order.iter().position(|known| *known == name).unwrap_or(KNOWN_ARGUMENTS.len())
}

/// Returns true if the broker treats the two values as the same.
fn is_equal(name: &str, live: &Queue, desired: &Queue, profile: &BrokerProfile) -> bool {
    let desired = with_default_type(desired, profile);
    match (live.arguments.get(name), desired.arguments.get(name)) {
        // The only default that the broker knows: a missing type is classic (`rabbit_misc`, all versions).
        (None, Some(value)) | (Some(value), None) => name == "x-queue-type" && value.as_text() == Some("classic"),
        (Some(before), Some(after)) => as_compared(name, before, profile) == as_compared(name, after, profile),
        (None, None) => true,
    }
}

/// Returns the value that the broker compares and prints in its error message. 4.3.6 converts ages to milliseconds, as
/// a string (`rabbit_amqqueue:normalize_max_age`). 4.3.5 has no such function, and treats 168h and 7D as different.
pub(super) fn as_compared<'a>(name: &str, value: &'a ArgumentValue, profile: &BrokerProfile) -> Cow<'a, ArgumentValue> {
    let age = value.as_text().filter(|_| name == "x-max-age" && profile.version >= BrokerVersion::new(4, 3, 6));
    match age.and_then(crate::model::age) {
        Some(age) => Cow::Owned(ArgumentValue::Text(age.to_string())),
        None => Cow::Borrowed(value),
    }
}
