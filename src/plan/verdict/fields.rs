//! Classifies a queue or exchange field that differs.
//!
//! For a queue, the broker compares the arguments that the queue type uses. For an exchange, the broker compares only
//! `alternate-exchange` (`rabbit_exchange:assert_args_equivalence`, 3.8 to 4.3). This applies to all exchange types,
//! including the types from RabbitMQ's plugins. The only exception is `x-federation-upstream`, the type of the
//! federation plugin's internal exchanges, for which the broker also compares `x-max-hops`. The broker validates
//! arguments only when it creates an exchange. For an existing exchange, it responds with 204 to arguments that it
//! would refuse for a new exchange.

use crate::diff::{Field, FieldChange};
use crate::model::known_arguments::{
    KNOWN_ARGUMENTS, KnownArgument, KnownExchangeArgument, check_order, comparison_order,
};
use crate::model::{ArgumentValue, BrokerVersion, Exchange, Object, Queue};
use crate::rabbitmq::declare::{contains_null, is_known_type};
use crate::rabbitmq::{BrokerProfile, refusals, with_default_type};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The broker's response to a field that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// The broker treats both values as the same.
    Equal,
    /// The field can change on the existing object.
    InPlace,
    /// The broker would reject the declaration: 400 over HTTP, `406 PRECONDITION_FAILED` over AMQP.
    Conflict,
    /// The field is a known argument that the broker neither compares nor changes: the broker would respond with 204
    /// and change nothing.
    Drift,
    /// The field is an argument that RabbitMQ does not support, or that the exchange type does not read: the broker
    /// stores the argument, which has no effect.
    Unknown,
    /// The broker would refuse the value even for a new object.
    Invalid,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Equal => "equal",
            Self::InPlace => "in place",
            Self::Conflict => "conflict",
            Self::Drift => "drift",
            Self::Unknown => "unknown",
            Self::Invalid => "invalid",
        })
    }
}

/// Returns the verdict on a field of a queue. `object` is the desired queue.
pub(super) fn queue_verdict(
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
    if is_queue_argument_compared(name, live, profile) {
        Verdict::Conflict
    } else if KnownArgument::named(name).is_some() {
        Verdict::Drift
    } else {
        Verdict::Unknown
    }
}

/// Returns true if the broker rejects a declaration of the existing queue because of this field.
pub(super) fn is_queue_refused_again(
    change: &FieldChange,
    live: &Queue,
    desired: &Queue,
    profile: &BrokerProfile,
) -> bool {
    let is_refused = |name| !is_equal(name, live, desired, profile) && is_queue_argument_compared(name, live, profile);
    // The broker compares every field that is not an argument.
    change.field.argument().is_none_or(is_refused)
}

/// Returns true if the broker compares the argument. The type of the *existing* queue determines which arguments the
/// broker compares. For a queue type from a plugin, these arguments are unknown. In that case, topo treats a
/// known argument as compared, because recreating the queue always applies the argument.
fn is_queue_argument_compared(name: &str, live: &Queue, profile: &BrokerProfile) -> bool {
    let Some(known) = KnownArgument::named(name) else { return false };
    live.queue_type().is_none_or(|live| known.is_compared(live, profile.version))
}

/// Returns the position of the argument in the order in which the broker compares arguments.
pub(super) fn position(name: &str, live: &Queue, profile: &BrokerProfile) -> usize {
    let order = live.queue_type().map_or(check_order(), |live| comparison_order(live, profile.version));
    order.iter().position(|known| *known == name).unwrap_or(KNOWN_ARGUMENTS.len())
}

/// Returns true if the broker treats the two values as the same.
fn is_equal(name: &str, live: &Queue, desired: &Queue, profile: &BrokerProfile) -> bool {
    let desired = with_default_type(desired, profile);
    match (live.arguments.get(name), desired.arguments.get(name)) {
        // The broker applies only one default: a missing type is treated as classic (`rabbit_misc`, all versions).
        (None, Some(value)) | (Some(value), None) => name == "x-queue-type" && value.as_text() == Some("classic"),
        (Some(before), Some(after)) => as_compared(name, before, profile) == as_compared(name, after, profile),
        (None, None) => true,
    }
}

/// Returns the value that the broker compares and prints in its error message. RabbitMQ 4.3.6 and later convert ages
/// to milliseconds, as a string (`rabbit_amqqueue:normalize_max_age`). RabbitMQ 4.3.5 and earlier treat `168h` and
/// `7D` as different.
pub(super) fn as_compared<'a>(name: &str, value: &'a ArgumentValue, profile: &BrokerProfile) -> Cow<'a, ArgumentValue> {
    let age = value.as_text().filter(|_| name == "x-max-age" && profile.version >= BrokerVersion::new(4, 3, 6));
    match age.and_then(crate::model::age) {
        Some(age) => Cow::Owned(ArgumentValue::Text(age.to_string())),
        None => Cow::Borrowed(value),
    }
}

/// Returns the verdict on a field of an exchange. `object` is the desired exchange.
pub(super) fn exchange_verdict(
    change: &FieldChange,
    live: &Exchange,
    (desired, object): (&Exchange, &Object),
    profile: &BrokerProfile,
) -> Verdict {
    match &change.field {
        // The broker checks the type first, and refuses an unknown type with "unknown exchange type".
        Field::Type if !is_known_type(&desired.kind, profile) => Verdict::Invalid,
        // Before the broker compares arguments, it refuses a null with `null_not_allowed`.
        Field::Argument(_) if change.after.as_ref().is_some_and(contains_null) => Verdict::Invalid,
        Field::Argument(name) if change.after.is_some() && is_argument_refused(name, object, profile) => {
            Verdict::Invalid
        }
        Field::Argument(name) => match KnownExchangeArgument::named(name) {
            Some(_) if is_exchange_argument_compared(name, live) => Verdict::Conflict,
            Some(known) if known.is_read_by(&live.kind) || known.is_read_by(&desired.kind) => Verdict::Drift,
            // The argument has no effect on this type.
            Some(_) | None => Verdict::Unknown,
        },
        Field::Type
        | Field::Durable
        | Field::AutoDelete
        | Field::Internal
        | Field::Pattern
        | Field::ApplyTo
        | Field::Priority
        | Field::Definition(_)
        | Field::Description
        | Field::Tags
        | Field::DefaultQueueType
        | Field::Record(_) => Verdict::Conflict,
    }
}

/// Returns true if the broker rejects a declaration of the existing exchange because of this field.
pub(super) fn is_exchange_refused_again(change: &FieldChange, live: &Exchange) -> bool {
    // The broker compares every field that is not an argument.
    change.field.argument().is_none_or(|name| is_exchange_argument_compared(name, live))
}

fn is_exchange_argument_compared(name: &str, live: &Exchange) -> bool {
    KnownExchangeArgument::named(name).is_some_and(|known| known.is_compared && known.is_read_by(&live.kind))
}

/// Returns true if the broker refuses to create the desired exchange because of this argument. If the exchange has two
/// mutually exclusive arguments, returns true for both arguments.
fn is_argument_refused(name: &str, object: &Object, profile: &BrokerProfile) -> bool {
    let is_of_pair = |refused: &str| EXCLUSIVE.contains(&refused) && EXCLUSIVE.contains(&name);
    let refused = refusals(object, profile);
    refused.iter().any(|refusal| refusal.subject == name)
        || refused.iter().any(|refusal| is_of_pair(&refusal.subject) && has_both(object))
}

/// The mutually exclusive arguments of a consistent hash exchange.
const EXCLUSIVE: [&str; 2] = ["hash-header", "hash-property"];

fn has_both(object: &Object) -> bool {
    let Object::Exchange(_, exchange) = object else { return false };
    EXCLUSIVE.iter().all(|name| exchange.arguments.contains_key(*name))
}

/// Formats a type as the broker's error messages print it: as an Erlang atom, which is quoted unless it is a plain
/// word.
pub(super) fn atom(kind: &ArgumentValue) -> String {
    let text = kind.to_string();
    let is_plain = text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(|each| each.is_ascii_alphanumeric() || matches!(each, '_' | '@'));
    if is_plain { text } else { format!("'{text}'") }
}
