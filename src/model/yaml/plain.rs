//! Resolves plain scalars by the YAML 1.2 core schema. In some cases, the library follows an older version of YAML
//! (`010` is a float, `1_000` a number), so topo resolves plain scalars from the source.

/// The value of a plain scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Plain {
    /// No value.
    Null,
    /// A boolean.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A string: the text of the scalar.
    Text,
}

/// Returns the value of a plain scalar.
pub(crate) fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "true" | "True" | "TRUE" => return Plain::Boolean(true),
        "false" | "False" | "FALSE" => return Plain::Boolean(false),
        _ => {}
    }
    let number = integer(text).or_else(|| if is_float(text) { text.parse().ok().map(Plain::Float) } else { None });
    number.unwrap_or(Plain::Text)
}

/// Returns true if a plain scalar is a string.
pub(crate) fn is_plain_text(text: &str) -> bool {
    resolve(text) == Plain::Text
}

/// Parses a decimal integer with an optional sign, `0o17` or `0x1F`. An integer of more than 64 bits becomes a float.
fn integer(text: &str) -> Option<Plain> {
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            // `from_str_radix` would accept a sign after the prefix.
            let is_plain = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            return if is_plain { i64::from_str_radix(digits, radix).ok().map(Plain::Integer) } else { None };
        }
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match text.parse() {
        Ok(value) => Some(Plain::Integer(value)),
        Err(_) => text.parse().ok().map(Plain::Float),
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
    fn plain_scalars_follow_yaml_1_2() {
        for (plain, expected) in [
            ("010", Plain::Integer(10)),
            ("0755", Plain::Integer(755)),
            ("0o17", Plain::Integer(15)),
            ("0x1F", Plain::Integer(31)),
            ("+12", Plain::Integer(12)),
            ("-1", Plain::Integer(-1)),
            ("1_000", Plain::Text),
            ("1.5", Plain::Float(1.5)),
            (".5", Plain::Float(0.5)),
            ("1e3", Plain::Float(1000.0)),
            ("99999999999999999999", Plain::Float(1e20)),
            ("1e", Plain::Text),
            (".", Plain::Text),
            ("-", Plain::Text),
            ("0x", Plain::Text),
            ("no", Plain::Text),
            ("on", Plain::Text),
            ("y", Plain::Text),
            ("True", Plain::Boolean(true)),
            ("12:30:45", Plain::Text),
            ("~", Plain::Null),
            (".inf", Plain::Text),
        ] {
            assert_eq!(resolve(plain), expected, "{plain}");
        }
    }
}
