//! The ways out of a conflict, most gentle first: keep the live value, use a policy, recreate.

use super::document::FieldVerdict;
use super::{QueueActivity, Verdict};
use crate::model::known_arguments::KnownArgument;
use crate::model::units::with_unit;
use crate::model::{Address, ArgumentValue, Object};

/// What one can do about a live object that differs in these fields. `instead` is what helps where no recreate may be.
pub(super) fn ways_out(
    address: &Address,
    object: &Object,
    fields: &[FieldVerdict],
    live: Option<&QueueActivity>,
    instead: Option<String>,
) -> Vec<String> {
    let hard: Vec<&FieldVerdict> =
        fields.iter().filter(|field| matches!(field.verdict, Verdict::Conflict | Verdict::Drift)).collect();
    let mut ways = Vec::new();
    if !hard.is_empty() {
        let values: Vec<String> = hard.iter().map(|field| keep(field)).collect();
        ways.push(format!("keep what is live: {} in the spec", values.join(", ")));
    }
    if let Object::Queue(..) = object {
        ways.extend(hard.iter().filter_map(|field| by_policy(field)));
    }
    ways.push(instead.unwrap_or_else(|| recreate(address, object, live)));
    ways
}

/// The live value, as it would stand in the spec.
fn keep(field: &FieldVerdict) -> String {
    match (field.field.as_str(), &field.before) {
        ("x-dead-letter-exchange", None) => return "deadLetter: none".to_owned(),
        ("x-dead-letter-exchange", Some(exchange)) => return format!("deadLetter: {{exchange: {exchange}}}"),
        ("x-dead-letter-routing-key", None) => return "a deadLetter without routingKey".to_owned(),
        ("x-dead-letter-routing-key", Some(key)) => return format!("deadLetter: {{routingKey: {key}}}"),
        (_, _) => {}
    }
    let key = match KnownArgument::named(&field.field) {
        Some(known) => known.key.to_owned(),
        None => match field.field.as_str() {
            "auto_delete" => "autoDelete".to_owned(),
            "alternate-exchange" => "alternateExchange".to_owned(),
            other => other.to_owned(),
        },
    };
    match &field.before {
        Some(value) => format!("{key}: {}", with_unit(&field.field, value)),
        None => format!("no {key}"),
    }
}

/// Whether a policy does it in place. Number limits are the smaller of argument and policy, so a policy can only
/// tighten what an argument fixed; dead-lettering by argument always wins over a policy (`rabbit_amqqueue_process`,
/// `rabbit_quorum_queue`).
fn by_policy(field: &FieldVerdict) -> Option<String> {
    let key = KnownArgument::named(&field.field)?.policy_key?;
    let smallest_wins = matches!(key, "message-ttl" | "expires" | "max-length" | "max-length-bytes" | "delivery-limit");
    match (&field.before, &field.after) {
        (None, Some(after)) => Some(format!("set it by a policy instead, in place: {key}: {after}")),
        (Some(ArgumentValue::Integer(before)), Some(ArgumentValue::Integer(after)))
            if smallest_wins && after < before =>
        {
            Some(format!(
                "keep the argument and tighten it by a policy, in place: {key}: {after} (the smaller one holds)"
            ))
        }
        (Some(_), _) if smallest_wins => {
            Some(format!("a policy does not help: `{key}` can only be made smaller than the live argument"))
        }
        (Some(_), _) => Some(format!("a policy does not help: the live argument wins over `{key}`")),
        (None, None) => None,
    }
}

fn recreate(address: &Address, object: &Object, live: Option<&QueueActivity>) -> String {
    let Object::Queue(_, queue) = object else {
        return format!("recreate it with all its bindings: --recreate {address}=discard");
    };
    let messages = live.and_then(|live| live.messages);
    match messages {
        // Whatever its count says: no stream can be proven empty.
        _ if queue.type_name() == "stream" => {
            format!("give the new stream another name; or give up what is in it: --recreate {address}=discard")
        }
        Some(0) => format!("recreate it, empty as it is: --recreate {address}=ifEmpty"),
        Some(messages) => {
            let its = if messages == 1 { "its message".to_owned() } else { format!("its {messages} messages") };
            format!(
                "wait until it is empty, then --recreate {address}=ifEmpty; or give up {its}: --recreate {address}=discard"
            )
        }
        None => format!(
            "recreate it if it is empty: --recreate {address}=ifEmpty; or give up what is in it: --recreate {address}=discard"
        ),
    }
}
