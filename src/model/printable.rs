//! Escapes names and external text for output.
//!
//! Names, file names and broker responses can contain any character. Every message, graph and table must pass such text
//! through [`clean`]. Formats with their own escapes (JSON, YAML) use [`is_hidden`].

use std::borrow::Cow;

/// Lowercase substrings of spec keys whose values can be secrets. The substrings also match common misspellings.
pub(crate) const SECRET_KEYS: [&str; 5] = ["passw", "pasw", "pwd", "dhash", "secret"];

/// Returns true if the value of a spec key can be a secret.
pub(crate) fn is_secret_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET_KEYS.iter().any(|part| key.contains(part))
}

/// Returns true if a character is invisible, moves the cursor, ends a line, or changes the direction of text. Ordinary
/// spaces are not hidden.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Soft hyphen, grapheme joiner, Arabic direction mark, Mongolian vowel separator.
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}'
            // Characters without a glyph: Hangul fillers, Khmer inherent vowels.
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{17b4}' | '\u{17b5}'
            // Zero-width characters, direction marks, line and paragraph separators, embeddings, invisible operators,
            // isolates.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            // Byte order mark, interlinear annotation, tags.
            | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
        // Noncharacters.
        || matches!(c, '\u{fdd0}'..='\u{fdef}')
        || (u32::from(c) & 0xfffe) == 0xfffe
}

/// Escapes a name or value for one line of text: hidden characters become `\u{…}`. The result contains no CI workflow
/// commands. Such commands start with `::` at the beginning of a line, or with `##[` anywhere in a line.
pub fn clean(text: &str) -> String {
    // The fast path for nearly all names.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' if byte != b'#')) && !text.contains("::") {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        // Sentences are wrapped at spaces, so any word can start a line.
        let starts_word = clean.chars().next_back().is_none_or(char::is_whitespace);
        let is_command = starts_word && text[at..].starts_with("::") || text[at..].starts_with("##[");
        if is_command || is_hidden(c) {
            clean.extend(c.escape_unicode());
        } else {
            clean.push(c);
        }
    }
    clean
}

/// Masks passwords in URLs, in the user info and in the `password` query parameter. The user info can contain spaces if
/// the URL is quoted. Replaces each byte of a password with an asterisk, so byte offsets into the text remain valid.
pub fn mask_passwords(text: &str) -> Cow<'_, str> {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at + "://".len());
        let scheme =
            before.len() - before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+-.:/".contains(c)).len();
        let quote = before[..before.len() - scheme].chars().next_back().filter(|c| "'\"`".contains(*c));
        let end = match quote {
            Some(quote) => url.find([quote, '\n']),
            None => url.find(|c: char| c.is_whitespace() || "'\"`".contains(c)),
        };
        let length = end.unwrap_or(url.len());
        let at_sign = url[..length].rfind('@').unwrap_or_default();
        let colon = url[..at_sign].find(':').map_or(at_sign, |colon| colon + 1);
        masked.push_str(before);
        masked.push_str(&url[..colon]);
        masked.push_str(&"*".repeat(at_sign - colon));
        let (remainder, after) = url[at_sign..].split_at(length - at_sign);
        masked.push_str(&mask_parameter(remainder));
        rest = after;
    }
    if masked.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(masked + rest) }
}

/// Masks the value of the `password` query parameter in the rest of a URL.
fn mask_parameter(url: &str) -> Cow<'_, str> {
    const PARAMETER: &str = "password=";
    let lower = url.to_ascii_lowercase();
    let Some(start) = lower.find(PARAMETER).map(|at| at + PARAMETER.len()) else { return Cow::Borrowed(url) };
    let end = url[start..].find(['&', '#']).map_or(url.len(), |length| start + length);
    Cow::Owned(format!("{}{}{}", &url[..start], "*".repeat(end - start), &url[end..]))
}

/// Escapes each line of a string.
pub fn clean_lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

/// Converts a broker message to one line: `Validation failed`, an empty line and the reason become
/// `Validation failed: …`.
pub fn one_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().to_owned();
    let rest: Vec<&str> = lines.collect();
    clean(&if rest.is_empty() { first } else { format!("{}: {}", first.trim_end_matches(':'), rest.join("; ")) })
}

/// Escapes all hidden characters in a complete JSON document, because JSON writers escape only some of them. Outside
/// strings, a JSON document contains no hidden characters except line breaks.
pub fn clean_json(document: String) -> String {
    if !document.chars().any(|c| is_hidden(c) && c != '\n') {
        return document;
    }
    let mut clean = String::with_capacity(document.len() + 64);
    for c in document.chars() {
        if is_hidden(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                clean.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            clean.push(c);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_move_the_cursor() {
        assert_eq!(clean("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(clean("größe/ü"), "größe/ü");
        assert_eq!(clean("\u{202e}gpj"), "\\u{202e}gpj");
        assert_eq!(clean("a\u{2028}b\u{9b}\u{e0041}"), "a\\u{2028}b\\u{9b}\\u{e0041}");
    }

    #[test]
    fn url_passwords_are_masked() {
        for (text, expected) in [
            ("fed by 'amqp://u:tulip@h', and by a@b", "fed by 'amqp://u:*****@h', and by a@b"),
            ("amqp://u:a@ü@h amqps://u:p@h", "amqp://u:****@h amqps://u:*@h"),
            ("amqp://u@h http://h:15672/x", "amqp://u@h http://h:15672/x"),
            ("\"amqp://u:tu lip@h/v\" x", "\"amqp://u:******@h/v\" x"),
            ("amqps://h?a=b&Password=tulip&c=d", "amqps://h?a=b&Password=*****&c=d"),
            ("'amqp://u:p@h?password=tulip'", "'amqp://u:*@h?password=*****'"),
            ("://@", "://@"),
            ("a: 1", "a: 1"),
        ] {
            assert_eq!(mask_passwords(text), expected);
            assert_eq!(mask_passwords(text).len(), text.len());
        }
    }

    #[test]
    fn names_cannot_contain_workflow_commands() {
        assert_eq!(clean("::error::x"), "\\u{3a}:error::x");
        assert_eq!(clean("a ::error::x"), "a \\u{3a}:error::x");
        assert_eq!(clean("a ##[error]x"), "a \\u{23}#[error]x");
        assert_eq!(clean("Shop::Orders"), "Shop::Orders");
        assert_eq!(clean_lines("a\n::error::x\n"), "a\n\\u{3a}:error::x");
    }

    #[test]
    fn multiline_message_becomes_one_line() {
        assert_eq!(one_line("Validation failed\n\n-1 is not valid\n"), "Validation failed: -1 is not valid");
        assert_eq!(one_line("a:\r\nb\nc"), "a: b; c");
        assert_eq!(one_line("a b"), "a b");
        assert_eq!(one_line("a\n::error::b"), "a: \\u{3a}:error::b");
    }

    #[test]
    fn cleaning_is_idempotent() {
        for text in ["", "a\u{1b}b", "::x ##[y", "a\nb", "\u{a0}"] {
            let once = clean(text);
            assert_eq!(clean(&once), once);
        }
    }

    #[test]
    fn cleaned_document_has_the_same_value() {
        let value = serde_json::json!({"a\u{7f}\u{1b}": "\u{202e}\u{e0041}\n"});
        let clean = clean_json(format!("{value:#}\n"));
        assert!(!clean.chars().any(|c| is_hidden(c) && c != '\n'), "{clean}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&clean).unwrap(), value);
    }
}
