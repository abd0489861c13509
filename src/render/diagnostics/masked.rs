//! Masks secrets in the text of a spec before its lines are shown. Masking does not change the length in bytes.

use crate::model::printable::{SECRET_KEYS, mask_passwords};
use crate::spec::Location;
use std::borrow::Cow;
use std::ops::Range;

/// Values that are not secrets.
const WORDS: [&str; 4] = ["none", "sha256", "sha512", "md5"];

/// Masks passwords in URLs, the values of keys such as `password`, and the secrets at the locations in `secrets`. Does
/// not mask references to secrets or variables.
pub(super) fn masked<'a, 'l>(text: &'a str, secrets: impl Iterator<Item = &'l Location>) -> Cow<'a, str> {
    let mut masked = mask_passwords(text);
    let of_keys = values(text);
    let all: Vec<Range<usize>> = of_keys.into_iter().chain(secrets.map(|at| at.start..at.end)).collect();
    for range in all {
        let Some(secret) = text.get(range.clone()) else { continue };
        let mask = mask(secret);
        masked.to_mut().replace_range(range, &mask);
    }
    masked
}

/// Replaces each byte of a secret with `*`, except whitespace and variables such as `${NAME}`.
fn mask(secret: &str) -> String {
    let mut masked = String::with_capacity(secret.len());
    let mut rest = secret;
    while let Some(c) = rest.chars().next() {
        let variable = rest.strip_prefix("${").and_then(|after| after.find('}')).map_or(0, |end| end + "${}".len());
        if variable > 0 {
            masked.push_str(&rest[..variable]);
            rest = &rest[variable..];
        } else if c.is_ascii_whitespace() {
            masked.push(c);
            rest = &rest[1..];
        } else {
            masked.push_str(&"*".repeat(c.len_utf8()));
            rest = &rest[c.len_utf8()..];
        }
    }
    masked
}

/// Returns the ranges of the values that may be secrets, judging by their keys. A value is on the same line as its key,
/// or in an indented block below the key.
fn values(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    // The indentation of a key whose value is the following block of more deeply indented lines.
    let mut block: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        if !line.trim().is_empty() && block.is_some_and(|outer| indent <= outer) {
            block = None;
        }
        if block.is_some() {
            found.extend(of_block(line).map(|range| start + range.start..start + range.end));
        }
        // A line without a colon contains no key.
        let lower = if line.contains(':') { line.to_ascii_lowercase() } else { String::new() };
        for key in SECRET_KEYS {
            for (at, _) in lower.match_indices(key) {
                let is_key = |c: char| c.is_alphanumeric() || "_-'\"".contains(c);
                let rest = lower[at..].trim_start_matches(is_key);
                let Some(value) = rest.trim_start().strip_prefix(':') else { continue };
                let value = value.trim_start();
                let offset = lower.len() - value.len();
                if value.is_empty() || value.starts_with(['#', '|', '>']) {
                    block = block.or(Some(indent));
                }
                let line = line.trim_end();
                let Some(value) = line.get(offset..) else { continue };
                let is_flow = line[..at].contains('{');
                let end = offset + length(value, is_flow);
                found.push(start + offset..start + end);
            }
        }
        start += line.len();
    }
    found
}

/// Returns the range of the value on a line of an indented block. Returns `None` for a reference to a secret, and for a
/// line without a value.
fn of_block(line: &str) -> Option<Range<usize>> {
    let end = line.trim_end().len();
    let (key, offset) = match line.split_once(':') {
        Some((key, rest)) => (key.trim(), line.len() - rest.trim_start().len()),
        None => ("", line.len() - line.trim_start().len()),
    };
    (!["env", "file"].contains(&key) && offset < end).then_some(offset..end)
}

/// Returns the length of the part of a value that may be a secret. Returns 0 for a reference to a secret, for an empty
/// value, and for a word that cannot be a secret.
fn length(value: &str, is_flow: bool) -> usize {
    let end = |ends: &[char]| value.find(ends).unwrap_or(value.len());
    if let Some(inside) = value.strip_prefix('{') {
        let close = inside.find('}').map_or(value.len(), |at| at + 2);
        let inside = inside.split('}').next().unwrap_or_default();
        let is_reference =
            ["env:", "file:"].iter().any(|key| inside.trim_start().starts_with(key)) && !inside.contains(',');
        return if is_reference || inside.trim().is_empty() { 0 } else { close };
    }
    let quote = value.chars().next().filter(|c| ['"', '\''].contains(c));
    let length = match quote {
        Some(quote) => value[1..].find(quote).map_or(value.len(), |at| at + 2),
        None if is_flow => end(&[',', '}', ']']),
        None => value.len(),
    };
    let word = value[..length].trim();
    let is_word = WORDS.contains(&word) || word.is_empty() || is_block_header(word) || is_comment(word);
    if is_word { 0 } else { length }
}

/// Returns true for the first line of a block scalar, such as `|-` or `>2 # comment`.
fn is_block_header(word: &str) -> bool {
    word.strip_prefix(['|', '>']).is_some_and(|rest| {
        let (indicators, comment) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        indicators.chars().all(|c| "+-123456789".contains(c))
            && indicators.len() <= 2
            && (comment.trim().is_empty() || is_comment(comment.trim()))
    })
}

/// Returns true for a comment with a space after `#`. Without a space, the author may have intended a value.
fn is_comment(word: &str) -> bool {
    word.strip_prefix('#').is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_keys_are_masked() {
        for (text, expected) in [
            ("password: hunter2", "password: *******"),
            ("  password: 'hunt er2' # x", "  password: ***** **** # x"),
            ("a: {password: hunter2, tags: [a]}", "a: {password: *******, tags: [a]}"),
            ("passwrd: \"hünter\"", "passwrd: *********"),
            ("\"initialPassword\": [hunter2]", "\"initialPassword\": *********"),
            ("passwordHash: {value: hunter2}", "passwordHash: ******* ********"),
            ("password: {env: A, value: hunter2}", "password: ***** ** ****** ********"),
            ("password: hunter2${S}x", "password: *******${S}*"),
            ("password: {env: APP}\nfile: x", "password: {env: APP}\nfile: x"),
            ("hashingAlgorithm: sha1", "hashingAlgorithm: sha1"),
            ("password: none", "password: none"),
            ("pasword: hunter2", "pasword: *******"),
            ("u: {pwd: x, a: b}", "u: {pwd: *, a: b}"),
            (" password:\n  value: hunter2\n tags: [a]", " password:\n  value: *******\n tags: [a]"),
            ("password: # a\n  env: APP\n\n  hunter2\n", "password: # a\n  env: APP\n\n  *******\n"),
            ("x: amqp://u:p@h", "x: amqp://u:*@h"),
            ("password: *hunter2", "password: ********"),
            ("password: &x hunter2", "password: ** *******"),
            ("password: #hunter2", "password: ********"),
            ("password: |hunter2", "password: ********"),
            ("password: >- # a", "password: >- # a"),
        ] {
            let masked = masked(text, std::iter::empty());
            assert_eq!(masked, expected);
            assert_eq!(masked.len(), text.len());
        }
    }

    #[test]
    fn secrets_at_locations_are_masked() {
        let text = "password: |\n  hunter2\n  $${x}hunter3\n";
        let at = Location { file: 0, start: 14, end: text.len() - 1, line: 2, column: 3 };
        let expected = "password: |\n  *******\n  *${x}*******\n";
        assert_eq!(masked(text, [&at].into_iter()), expected);
    }
}
