//! Classifies a field of an exchange that differs.
//!
//! Every exchange type, also those of RabbitMQ's plugins, compares `alternate-exchange` and no other argument
//! (`rabbit_exchange:assert_args_equivalence`, 3.8 to 4.3), except the upstreams of a federation. The broker validates
//! arguments only when it creates an exchange. For an existing exchange, it answers 204 to arguments that it refuses
//! for a new one.

use super::Verdict;
use crate::diff::{Field, FieldChange};
use crate::model::known_arguments::KnownExchangeArgument;
use crate::model::{ArgumentValue, Exchange, Object};
use crate::rabbitmq::declare::{contains_null, is_known_type};
use crate::rabbitmq::{BrokerProfile, refusals};

/// Returns the verdict on a field. `object` is the desired exchange.
pub(super) fn verdict(
    change: &FieldChange,
    live: &Exchange,
    (desired, object): (&Exchange, &Object),
    profile: &BrokerProfile,
) -> Verdict {
    match &change.field {
        // The broker checks this first: "unknown exchange type".
        Field::Type if !is_known_type(&desired.kind, profile) => Verdict::Invalid,
        // The broker refuses the request before it compares: `null_not_allowed`.
        Field::Argument(_) if change.after.as_ref().is_some_and(contains_null) => Verdict::Invalid,
        Field::Argument(name) if change.after.is_some() && is_refused(name, object, profile) => Verdict::Invalid,
        Field::Argument(name) => match KnownExchangeArgument::named(name) {
            Some(_) if is_compared(name, live) => Verdict::Conflict,
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
        | Field::DefaultQueueType
        | Field::Record(_) => Verdict::Conflict,
    }
}

/// Returns true if the broker rejects a declaration of the existing exchange because of this field.
pub(super) fn is_refused_again(change: &FieldChange, live: &Exchange) -> bool {
    // The broker compares everything except arguments.
    change.field.argument().is_none_or(|name| is_compared(name, live))
}

fn is_compared(name: &str, live: &Exchange) -> bool {
    KnownExchangeArgument::named(name).is_some_and(|known| known.is_compared && known.is_read_by(&live.kind))
}

/// Returns true if the broker refuses to create the desired exchange because of that argument. If two
/// arguments exclude each other, both count.
fn is_refused(name: &str, object: &Object, profile: &BrokerProfile) -> bool {
    let is_of_pair = |refused: &str| EXCLUSIVE.contains(&refused) && EXCLUSIVE.contains(&name);
    let refused = refusals(object, profile);
    refused.iter().any(|refusal| refusal.subject == name)
        || refused.iter().any(|refusal| is_of_pair(&refusal.subject) && has_both(object))
}

/// The arguments of a consistent hash exchange that exclude each other.
const EXCLUSIVE: [&str; 2] = ["hash-header", "hash-property"];

fn has_both(object: &Object) -> bool {
    let Object::Exchange(_, exchange) = object else { return false };
    EXCLUSIVE.iter().all(|name| exchange.arguments.contains_key(*name))
}

/// Formats a type as the broker's error messages print it: an atom of Erlang, in quotes unless it is a plain word.
pub(super) fn atom(kind: &ArgumentValue) -> String {
    let text = kind.to_string();
    let is_plain = text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(|each| each.is_ascii_alphanumeric() || matches!(each, '_' | '@'));
    if is_plain { text } else { format!("'{text}'") }
}
