//! What a field of an exchange that differs means.
//!
//! Every type of exchange, those of RabbitMQ's plugins too, compares `alternate-exchange` and no other argument
//! (`rabbit_exchange:assert_args_equivalence`, 3.8 to 4.3), but for the upstreams of a federation. What a type validates it
//! validates on a fresh declare only: of a live exchange the broker would answer 204 to what it refuses of a new one.

use super::Verdict;
use crate::diff::{Field, FieldChange};
use crate::model::known_arguments::KnownExchangeArgument;
use crate::model::{ArgumentValue, Exchange, Object};
use crate::rabbitmq::declare::{holds_null, is_known_type};
use crate::rabbitmq::{BrokerProfile, refusals};

/// `object` is the desired exchange.
pub(super) fn verdict(
    change: &FieldChange,
    live: &Exchange,
    (desired, object): (&Exchange, &Object),
    profile: &BrokerProfile,
) -> Verdict {
    match &change.field {
        // Looked at before anything else: "unknown exchange type".
        Field::Type if !is_known_type(&desired.kind, profile) => Verdict::Invalid,
        // The request is refused before it is compared: `null_not_allowed`.
        Field::Argument(_) if change.after.as_ref().is_some_and(holds_null) => Verdict::Invalid,
        Field::Argument(name) if change.after.is_some() && is_refused(name, object, profile) => Verdict::Invalid,
        Field::Argument(name) => match KnownExchangeArgument::named(name) {
            Some(_) if is_compared(name, live) => Verdict::Conflict,
            Some(known) if known.is_read_by(&live.kind) || known.is_read_by(&desired.kind) => Verdict::Drift,
            // Of no effect on this type.
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

/// Whether the broker, asked to declare the existing exchange as it is desired, refuses because of this field.
pub(super) fn is_refused_again(change: &FieldChange, live: &Exchange) -> bool {
    // Everything but an argument is compared.
    change.field.argument().is_none_or(|name| is_compared(name, live))
}

fn is_compared(name: &str, live: &Exchange) -> bool {
    KnownExchangeArgument::named(name).is_some_and(|known| known.is_compared && known.is_read_by(&live.kind))
}

/// Whether a fresh declare of the desired exchange is refused because of that argument. Two that exclude each other are to
/// blame alike.
fn is_refused(name: &str, object: &Object, profile: &BrokerProfile) -> bool {
    let is_of_pair = |refused: &str| EXCLUSIVE.contains(&refused) && EXCLUSIVE.contains(&name);
    let refused = refusals(object, profile);
    refused.iter().any(|refusal| refusal.subject == name)
        || refused.iter().any(|refusal| is_of_pair(&refusal.subject) && has_both(object))
}

/// What a consistent hash takes one of.
const EXCLUSIVE: [&str; 2] = ["hash-header", "hash-property"];

fn has_both(object: &Object) -> bool {
    let Object::Exchange(_, exchange) = object else { return false };
    EXCLUSIVE.iter().all(|name| exchange.arguments.contains_key(*name))
}

/// A type as the broker's sentences print it: an atom of Erlang, which stands in quotes where it is no plain word.
pub(super) fn atom(kind: &ArgumentValue) -> String {
    let text = kind.to_string();
    let is_plain = text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(|each| each.is_ascii_alphanumeric() || matches!(each, '_' | '@'));
    if is_plain { text } else { format!("'{text}'") }
}
