//! Writes strings as YAML, with quotes only if YAML 1.1 or 1.2 would read a different value.

use super::plain::is_plain_text;
use crate::model::printable::is_hidden;

/// Strings that older versions of YAML read as other types, and `<<`, the merge key.
const NOT_TEXT: [&str; 13] = ["yes", "no", "on", "off", "y", "n", "<<", "=", ".inf", "+.inf", "-.inf", ".nan", "---"];

/// Writes a string of a spec, in which `${` starts a variable.
pub(crate) fn text(text: &str) -> String {
    quoted(&text.replace("${", "$${"))
}

/// Writes a string: without quotes if possible, otherwise in the quotes that need the fewest escapes.
pub(super) fn quoted(text: &str) -> String {
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

/// Writes a text as one line of a comment, without `topo:`: topo reads comments such as `# topo: allow …`.
pub(crate) fn comment(text: &str) -> String {
    text.replace("topo:", "topo :").chars().map(|c| if is_escaped(c) { escaped(c) } else { c.to_string() }).collect()
}

fn is_plain(text: &str) -> bool {
    // Indicators are only significant in some positions: `order.#` is a string, but `#` starts a comment. Nearly all of
    // them are significant after a space. PyYAML ends a plain string within braces at a `?`.
    let inside = |c: char| c.is_alphanumeric() || "_-./*#+%@=~!$^&|;<>()".contains(c);
    let starts_word = |c: char| c.is_alphanumeric() || "_./$^(".contains(c);
    let mut words = text.split(' ');
    words.all(|word| word.starts_with(starts_word) && word.chars().all(inside))
        && is_plain_text(text)
        && !NOT_TEXT.contains(&text.to_ascii_lowercase().as_str())
        && !looks_like_a_number(text)
}

/// Returns true for texts such as `1_000`, `0b1` and `2001-12-14`, which are strings in YAML 1.2 but not in 1.1.
fn looks_like_a_number(text: &str) -> bool {
    let is_of_number = |c: char| c.is_ascii_digit() || "_.+-: eExXoObBtTzZ".contains(c);
    text.starts_with(|c: char| c.is_ascii_digit() || c == '.') && text.chars().all(is_of_number)
}

/// Returns true if a character is hidden, not printable in YAML, or a space that looks like another one.
fn is_escaped(c: char) -> bool {
    is_hidden(c) || matches!(c, '\u{a0}' | '\u{202f}' | '\u{fffc}' | '\u{fffd}')
}

fn double_quoted(text: &str) -> String {
    let one = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if is_escaped(c) => escaped(c),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(one).collect::<String>())
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
