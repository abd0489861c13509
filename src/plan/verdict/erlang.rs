//! Predicts the error message that a broker sends when it rejects a declaration. Formats values as Erlang does (`~tp`).

use super::fields::{as_compared, atom};
use crate::diff::{Field, FieldChange};
use crate::model::{ArgumentValue, BrokerVersion, Object, VhostName};
use crate::rabbitmq::BrokerProfile;

/// Formats a value without its type for an error message. Formats a string without quotes (`~ts`), and other values as
/// Erlang terms. Unlike Erlang, inserts no line breaks.
pub(super) fn format_value(value: &ArgumentValue) -> String {
    match value {
        ArgumentValue::Null => "undefined".to_owned(),
        ArgumentValue::Boolean(value) => value.to_string(),
        ArgumentValue::Integer(value) => value.to_string(),
        ArgumentValue::Float(value) => float(value.0),
        ArgumentValue::Text(text) => text.clone(),
        ArgumentValue::List(values) => {
            let inner: Vec<String> =
                values.iter().map(|value| format!("{{{},{}}}", value.amqp_type(), term(value))).collect();
            format!("[{}]", inner.join(","))
        }
        ArgumentValue::Table(table) => {
            let inner: Vec<String> = table
                .iter()
                .map(|(name, value)| format!("{{{},{},{}}}", binary(name), value.amqp_type(), term(value)))
                .collect();
            format!("[{}]", inner.join(","))
        }
    }
}

/// Formats a value inside a list or table: a string as an Erlang binary.
fn term(value: &ArgumentValue) -> String {
    value.as_text().map_or_else(|| format_value(value), binary)
}

fn binary(text: &str) -> String {
    let kind = if text.is_ascii() { "" } else { "/utf8" };
    if text.is_empty() { "<<>>".to_owned() } else { format!("<<{text:?}{kind}>>") }
}

/// Formats a floating-point number with the fewest digits that identify it, and with an exponent if that form is
/// shorter (`io_lib_format:fwrite_g`).
fn float(value: f64) -> String {
    let scientific = format!("{:e}", value.abs());
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    let exponent: i64 = exponent.parse().unwrap_or_default();
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    // The number of digits before the decimal point.
    let point = if value == 0.0 { 1 } else { exponent + 1 };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or_default());
    let (first, rest) = digits.split_at(1);
    let with_exponent = || format!("{first}.{}e{exponent}", if rest.is_empty() { "0" } else { rest });
    let cost = i64::try_from(exponent.to_string().len()).unwrap_or_default() + if length == 1 { 3 } else { 2 };
    let text = if point == 0 {
        format!("0.{digits}")
    } else if point < 0 {
        if 2 - point <= cost { format!("0.{}{digits}", zeros(-point)) } else { with_exponent() }
    } else if point >= length {
        if point - length + 2 <= cost { format!("{digits}{}.0", zeros(point - length)) } else { with_exponent() }
    } else {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or_default());
        format!("{whole}.{fraction}")
    };
    format!("{sign}{text}")
}

/// Returns the error message that the broker sends to an application that declares `object`.
pub fn broker_error(vhost: &VhostName, object: &Object, change: &FieldChange, profile: &BrokerProfile) -> String {
    let (kind, name) = match object {
        Object::Queue(name, _) => ("queue", name.as_str()),
        Object::Exchange(name, _) => ("exchange", name.as_str()),
        Object::Policy(name, _) => ("policy", name.as_str()),
        Object::Vhost(_) | Object::Binding(_) | Object::Record(_) => ("vhost", vhost.as_str()),
    };
    let compared = |value: &Option<ArgumentValue>| {
        value.as_ref().map(|value| match change.field.argument() {
            Some(name) => as_compared(name, value, profile).into_owned(),
            None => value.clone(),
        })
    };
    let typed = |value: &ArgumentValue| format!("the value '{}' of type '{}'", format_value(value), value.amqp_type());
    let tail = match (compared(&change.after), compared(&change.before)) {
        (Some(received), Some(current)) if change.field == Field::Type => {
            format!("received '{}' but current is '{}'", atom(&received), atom(&current))
        }
        (Some(received), Some(current)) => {
            format!("received '{}' but current is '{}'", format_value(&received), format_value(&current))
        }
        // The exchange was imported without `auto_delete`.
        (Some(received), None) if change.field.argument().is_none() => {
            format!("received '{}' but current is none", format_value(&received))
        }
        (Some(received), None) => format!("received {} but current is none", typed(&received)),
        (None, Some(current)) => format!("received none but current is {}", typed(&current)),
        (None, None) => "received none but current is none".to_owned(),
    };
    format!("PRECONDITION_FAILED - inequivalent arg '{}' for {kind} '{name}' in vhost '{vhost}': {tail}", change.field)
}

/// Returns the error message for an exchange type that the broker does not support. The broker reports no other
/// mismatch in that case. The error code changed in 4.0 (`rabbit_exchange:check_type`).
pub fn unknown_type(kind: &ArgumentValue, version: BrokerVersion) -> String {
    let error = if version < BrokerVersion::new(4, 0, 0) { "COMMAND_INVALID" } else { "PRECONDITION_FAILED" };
    format!("{error} - unknown exchange type '{kind}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_the_fewest_digits() {
        for (value, text) in [
            (5.0, "5.0"),
            (0.0, "0.0"),
            (-5.5, "-5.5"),
            (600_000.0, "6.0e5"),
            (86_400_001.0, "86400001.0"),
            (315_360_000_000.0, "3.1536e11"),
            (1000.0, "1.0e3"),
            (100.0, "100.0"),
            (0.5, "0.5"),
            (0.001, "0.001"),
            (0.0001, "0.0001"),
            (0.00001, "1.0e-5"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn lists_and_tables_match_erlang() {
        let list = ArgumentValue::List(vec![1.into(), "a".into()]);
        assert_eq!(format_value(&list), "[{long,1},{longstr,<<\"a\">>}]");
        let table = ArgumentValue::Table([("a".to_owned(), list)].into());
        assert_eq!(format_value(&table), "[{<<\"a\">>,array,[{long,1},{longstr,<<\"a\">>}]}]");
    }
}
