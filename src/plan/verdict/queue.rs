//! Classifies a field of a queue that differs.

use super::Verdict;
use crate::diff::FieldChange;
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument, checked, compared};
use crate::model::{ArgumentValue, BrokerVersion, Object, Queue};
use crate::rabbitmq::{BrokerProfile, as_stored, refusals};
use std::borrow::Cow;

/// `desired` is the object of that queue.
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

/// Whether the broker, asked to declare the existing queue as it is desired, refuses because of this field.
pub(super) fn is_refused_again(change: &FieldChange, live: &Queue, desired: &Queue, profile: &BrokerProfile) -> bool {
    let is_refused = |name| !is_equal(name, live, desired, profile) && is_compared(name, live, profile);
    // Everything but an argument is compared.
    change.field.argument().is_none_or(is_refused)
}

/// The broker compares what the *existing* queue's type lists. Of a type of a plugin topo does not know what that is, and
/// asking for a recreate is the safe answer.
fn is_compared(name: &str, live: &Queue, profile: &BrokerProfile) -> bool {
    let Some(known) = KnownArgument::named(name) else { return false };
    live.queue_type().is_none_or(|live| known.is_compared(live, profile.version))
}

/// Where the argument stands in the list that the broker goes through.
pub(super) fn position(name: &str, live: &Queue, profile: &BrokerProfile) -> usize {
    let order = live.queue_type().map_or(checked(), |live| compared(live, profile.version));
    order.iter().position(|known| *known == name).unwrap_or(KNOWN_ARGUMENTS.len())
}

/// Whether the broker takes the two values for the same.
fn is_equal(name: &str, live: &Queue, desired: &Queue, profile: &BrokerProfile) -> bool {
    let desired = as_stored(desired, profile);
    match (live.arguments.get(name), desired.arguments.get(name)) {
        // The one default that the broker knows: absent is classic (`rabbit_misc`, all versions).
        (None, Some(value)) | (Some(value), None) => name == "x-queue-type" && value.as_text() == Some("classic"),
        (Some(before), Some(after)) => as_compared(name, before, profile) == as_compared(name, after, profile),
        (None, None) => true,
    }
}

/// The value that the broker compares, and prints in its sentence: 4.3.6 makes milliseconds of ages, as text
/// (`rabbit_amqqueue:normalize_max_age`); 4.3.5 has no such function and takes 168h and 7D for different.
pub(super) fn as_compared<'a>(name: &str, value: &'a ArgumentValue, profile: &BrokerProfile) -> Cow<'a, ArgumentValue> {
    let age = value.as_text().filter(|_| name == "x-max-age" && profile.version >= BrokerVersion::new(4, 3, 6));
    match age.and_then(crate::model::age) {
        Some(age) => Cow::Owned(ArgumentValue::Text(age.to_string())),
        None => Cow::Borrowed(value),
    }
}
