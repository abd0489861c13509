//! What a field of an exchange that differs means.

use super::Verdict;
use crate::diff::{Field, FieldChange};

/// Arguments of exchanges that a bundled plugin reads when the exchange is created, and that no redeclare changes.
const EXCHANGE_ARGUMENTS: [&str; 2] = ["hash-header", "hash-property"];

pub(super) fn verdict(change: &FieldChange) -> Verdict {
    match &change.field {
        Field::Argument(name) if name == "alternate-exchange" => Verdict::Conflict,
        Field::Argument(name) if EXCHANGE_ARGUMENTS.contains(&name.as_str()) => Verdict::Drift,
        Field::Argument(_) => Verdict::Unknown,
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
