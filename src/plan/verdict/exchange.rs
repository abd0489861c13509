//! What a field of an exchange that differs means.
//!
//! Every type of exchange, those of RabbitMQ's plugins too, compares `alternate-exchange` and no other argument
//! (`rabbit_exchange:assert_args_equivalence`, 3.8 to 4.3), but for the upstreams of a federation.

use super::Verdict;
use crate::behaviour::Dialect;
use crate::behaviour::declare::{holds_null, is_known_type};
use crate::diff::{Field, FieldChange};
use crate::model::known_arguments::KnownExchangeArgument;
use crate::model::{ArgumentValue, Exchange};

pub(super) fn verdict(change: &FieldChange, live: &Exchange, wanted: &Exchange, dialect: &Dialect) -> Verdict {
    match &change.field {
        // Looked at before anything else: "unknown exchange type".
        Field::Type if !is_known_type(&wanted.kind, dialect) => Verdict::Invalid,
        // The request is refused before it is compared: `null_not_allowed`.
        Field::Argument(_) if change.after.as_ref().is_some_and(holds_null) => Verdict::Invalid,
        Field::Argument(name) if name == "x-max-hops" && live.kind == "x-federation-upstream" => Verdict::Conflict,
        Field::Argument(name) => match KnownExchangeArgument::named(name) {
            Some(known) if known.is_compared => Verdict::Conflict,
            Some(known) if known.is_read_by(&live.kind) || known.is_read_by(&wanted.kind) => Verdict::Drift,
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
        | Field::DefaultQueueType => Verdict::Conflict,
    }
}

/// A type as the broker's sentences print it: an atom of Erlang, which stands in quotes where it is no plain word.
pub(super) fn atom(kind: &ArgumentValue) -> String {
    let text = kind.to_string();
    let is_plain = text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(|each| each.is_ascii_alphanumeric() || matches!(each, '_' | '@'));
    if is_plain { text } else { format!("'{text}'") }
}
