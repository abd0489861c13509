//! Resolves plain scalars and writes strings. topo resolves plain scalars from their source text with the YAML 1.2 core
//! schema. The YAML library deviates from this schema: it reads `010` as a float and `1_000` as an integer. topo writes
//! a string without quotes only if YAML 1.1 and YAML 1.2 both read the unquoted text as exactly this string.

use crate::model::printable::is_hidden;

/// Strings that require quotes, in lowercase. Some YAML versions read them as other types or as syntax.
const NOT_TEXT: [&str; 13] = ["yes", "no", "on", "off", "y", "n", "<<", "=", ".inf", "+.inf", "-.inf", ".nan", "---"];

/// Writes a string for a spec. Escapes `${`, which starts a variable in a spec.
pub(crate) fn text(text: &str) -> String {
    quote_if_needed(&text.replace("${", "$${"))
}

/// Writes a string without quotes if possible. Otherwise, writes the string in double quotes, or in single quotes if
/// that avoids backslash escapes.
pub(crate) fn quote_if_needed(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else if text.chars().any(is_escaped) {
        double_quoted(text)
    } else if !text.contains(['\\', '"']) {
        format!("\"{text}\"")
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// Escapes a string for a comment, so that it contains no line breaks. Replaces `topo:` with `topo :`, because topo
/// interprets comments that start with `topo:`, such as `topo: allow …`.
pub(crate) fn comment(text: &str) -> String {
    text.replace("topo:", "topo :").chars().map(|c| if is_escaped(c) { escaped(c) } else { c.to_string() }).collect()
}

fn is_plain(text: &str) -> bool {
    // Indicators are significant only in some positions: `order.#` is a string, but `#` starts a comment. Nearly all
    // indicators are significant after a space. PyYAML ends a plain string within braces at a `?`.
    let inside = |c: char| c.is_alphanumeric() || "_-./*#+%@=~!$^&|;<>()".contains(c);
    let starts_word = |c: char| c.is_alphanumeric() || "_./$^(".contains(c);
    let mut words = text.split(' ');
    words.all(|word| word.starts_with(starts_word) && word.chars().all(inside))
        && is_plain_text(text)
        && !NOT_TEXT.contains(&text.to_ascii_lowercase().as_str())
        && !looks_like_a_number(text)
}

/// Returns true for strings such as `1_000`, `0b1` and `2001-12-14`, which YAML 1.1 reads as other types.
fn looks_like_a_number(text: &str) -> bool {
    let is_number_char = |c: char| c.is_ascii_digit() || "_.+-: eExXoObBtTzZ".contains(c);
    text.starts_with(|c: char| c.is_ascii_digit() || c == '.') && text.chars().all(is_number_char)
}

/// Returns true if a character is hidden, a replacement character, or a no-break space.
fn is_escaped(c: char) -> bool {
    is_hidden(c) || matches!(c, '\u{a0}' | '\u{202f}' | '\u{fffc}' | '\u{fffd}')
}

fn double_quoted(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if is_escaped(c) => escaped(c),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

fn escaped(c: char) -> String {
    match (c, u32::from(c)) {
        ('\n', _) => "\\n".to_owned(),
        ('\r', _) => "\\r".to_owned(),
        ('\t', _) => "\\t".to_owned(),
        (_, code) if code <= 0xff => format!("\\x{code:02x}"),
        (_, code) if code <= 0xffff => format!("\\u{code:04x}"),
        (_, code) => format!("\\U{code:08x}"),
    }
}

/// The value of a plain scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Plain {
    /// Null, written as `null`, `~` or an empty scalar.
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

/// Returns true if a plain scalar with this text is a string.
pub(crate) fn is_plain_text(text: &str) -> bool {
    resolve(text) == Plain::Text
}

/// Parses a decimal integer with an optional sign, or an octal or hexadecimal integer (`0o17`, `0x1F`). A decimal
/// integer that does not fit into 64 bits becomes a float. Returns `None` for any other string, including larger octal
/// and hexadecimal integers.
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

/// Returns true for YAML 1.2 floats: `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`. Infinities
/// and NaN remain strings, because no broker accepts them.
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
    fn only_ambiguous_strings_are_quoted() {
        for plain in ["orders.work", "order.#", "order.*.paid", "a/b", "a b", "größe", "3ds.callback", "^orders$"] {
            assert_eq!(text(plain), plain);
        }
        for (given, expected) in [
            ("", "\"\""),
            ("#", "\"#\""),
            ("*", "\"*\""),
            ("yes", "\"yes\""),
            ("null", "\"null\""),
            ("~", "\"~\""),
            ("1e3", "\"1e3\""),
            ("2024-01-01", "\"2024-01-01\""),
            ("a #b", "\"a #b\""),
            ("a: b", "\"a: b\""),
            (" a", "\" a\""),
            ("<<", "\"<<\""),
            ("^a\\.b$", "'^a\\.b$'"),
            ("^(?!amq).*", "\"^(?!amq).*\""),
            ("it's \"so\"", "'it''s \"so\"'"),
            ("a\nb\"", "\"a\\nb\\\"\""),
            ("${HOME}", "\"$${HOME}\""),
        ] {
            assert_eq!(text(given), expected);
        }
    }

    #[test]
    fn written_strings_are_read_unchanged() {
        let characters: Vec<char> =
            "ab01.-_:#*&!|>'\"%@`{}[],?=~ $\\/^<\t\n\u{0}\u{7f}\u{85}\u{a0}\u{2028}\u{feff}\u{fffe}é🦀eEx+y"
                .chars()
                .collect();
        let mut state = 1_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        for _ in 0..20_000 {
            let given: String = (0..=next(6)).map(|_| characters[next(characters.len())]).collect();
            let written = text(&given);
            for document in [
                format!("{{{written}: [{written}, {written}]}}\n"),
                format!("{written}:\n  - {written}\n  - {written}\n"),
            ] {
                let read: std::collections::BTreeMap<String, Vec<String>> =
                    serde_yaml::from_str(&document).unwrap_or_else(|error| panic!("{given:?} as {document}: {error}"));
                let expected = given.replace("${", "$${");
                assert_eq!(read, [(expected.clone(), vec![expected.clone(), expected])].into(), "{document}");
            }
        }
    }
}

#[cfg(test)]
mod plain_tests {
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
