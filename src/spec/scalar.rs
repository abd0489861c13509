//! Resolves plain scalars by the YAML 1.2 core schema. The library follows an older YAML in places (`010` a float, `1_000`
//! a number), so plain scalars are read again from the source.

use super::node::{Absent, Value};

/// Returns the value of a plain scalar.
pub(crate) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null(Absent::Said),
        "true" | "True" | "TRUE" => return Value::Boolean(true),
        "false" | "False" | "FALSE" => return Value::Boolean(false),
        _ => {}
    }
    let number = integer(text).or_else(|| if is_float(text) { text.parse().ok().map(Value::Float) } else { None });
    number.unwrap_or_else(|| Value::Text(text.to_owned()))
}

/// Whether a plain scalar is a string.
pub(crate) fn is_plain_text(text: &str) -> bool {
    matches!(resolve(text), Value::Text(_))
}

/// Parses a decimal integer with a sign, `0o17` or `0x1F`; a larger one than 64 bits becomes a float.
fn integer(text: &str) -> Option<Value> {
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            // `from_str_radix` would accept a sign after the prefix.
            let is_plain = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            return if is_plain { i64::from_str_radix(digits, radix).ok().map(Value::Integer) } else { None };
        }
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match text.parse() {
        Ok(value) => Some(Value::Integer(value)),
        Err(_) => text.parse().ok().map(Value::Float),
    }
}

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`.
/// Infinities and NaN stay strings, because no broker accepts them.
fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_are_what_yaml_1_2_says() {
        let text = |text: &str| Value::Text(text.to_owned());
        for (plain, expected) in [
            ("010", Value::Integer(10)),
            ("0755", Value::Integer(755)),
            ("0o17", Value::Integer(15)),
            ("0x1F", Value::Integer(31)),
            ("+12", Value::Integer(12)),
            ("-1", Value::Integer(-1)),
            ("1_000", text("1_000")),
            ("1.5", Value::Float(1.5)),
            (".5", Value::Float(0.5)),
            ("1e3", Value::Float(1000.0)),
            ("99999999999999999999", Value::Float(1e20)),
            ("1e", text("1e")),
            (".", text(".")),
            ("-", text("-")),
            ("0x", text("0x")),
            ("no", text("no")),
            ("on", text("on")),
            ("y", text("y")),
            ("True", Value::Boolean(true)),
            ("12:30:45", text("12:30:45")),
            ("~", Value::Null(Absent::Said)),
            (".inf", text(".inf")),
        ] {
            assert_eq!(resolve(plain), expected, "{plain}");
        }
    }
}
