//! Removes credentials from URLs before they reach an error, a hint or a log.

use crate::model::printable::one_line;
use percent_encoding::percent_decode_str;
use reqwest::Url;

/// The replacement for the part of a URL that may contain a password.
const HIDDEN: &str = "<redacted>";
/// The known URL schemes.
const SCHEMES: [&str; 4] = ["http", "https", "amqp", "amqps"];

/// Returns a URL without user info, query or fragment.
///
/// For a malformed URL, returns only the scheme and a placeholder, because any other component may contain the
/// password. For example, an unencoded `/` in a password ends the host.
pub fn redacted_url(text: &str) -> String {
    let text = text.trim();
    match Url::parse(text) {
        Ok(mut url) if is_unambiguous(&url) => {
            // Both calls fail only for a URL without a host.
            if url.set_username("").is_err() || url.set_password(None).is_err() {
                return scheme_only(text);
            }
            url.set_query(None);
            url.set_fragment(None);
            let shown = url.as_str();
            if text.ends_with('/') { shown.to_owned() } else { shown.trim_end_matches('/').to_owned() }
        }
        Ok(_) | Err(_) => scheme_only(text),
    }
}

/// Returns a string in which each URL that may contain user info or a query is redacted.
///
/// A quoted URL ends at the closing quote. Any other URL ends at the first whitespace that is not part of a password.
pub fn redacted_urls_in(text: &str) -> String {
    let mut redacted = String::new();
    let mut rest = text;
    while let Some(start) = start_of_url(rest) {
        let quote = rest[..start].chars().next_back().filter(|c| "'\"`".contains(*c));
        let length = match quote.and_then(|quote| rest[start..].find(quote)) {
            Some(length) => length,
            None => unquoted_length(&rest[start..]),
        };
        // Trailing punctuation belongs to the sentence and is not part of the URL.
        let url = rest[start..start + length].trim_end_matches([':', ',', ';']);
        redacted.push_str(&rest[..start]);
        if has_at_sign(url) || url.contains('?') {
            redacted.push_str(&redacted_url(url))
        } else {
            redacted.push_str(url)
        }
        rest = &rest[start + url.len()..];
    }
    redacted.push_str(rest);
    redacted
}

/// Returns the offset of the first URL in a string; `None` if the string contains no URL. A URL starts with a scheme
/// and `://`, or with a known scheme and a `:` inside a word.
fn start_of_url(text: &str) -> Option<usize> {
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    text.match_indices(':').find_map(|(at, _)| {
        let start = text[..at].char_indices().rev().take_while(|(_, c)| is_scheme(*c)).last().map_or(at, |(i, _)| i);
        let is_known = SCHEMES.contains(&&*text[start..at].to_ascii_lowercase());
        let is_followed = text[at + 1..].starts_with(|c: char| !c.is_whitespace() && c != ':');
        (text[at..].starts_with("://") || is_known && is_followed).then_some(start)
    })
}

/// Converts a string from a broker, a proxy or a library to one line without credentials. Every string from these
/// sources must pass through this function before it becomes part of an error.
pub(super) fn sanitize(text: &str) -> String {
    redacted_urls_in(&one_line(text))
}

/// Redacts a command-line argument that the user may have set to a URL by mistake, for example in place of a file path.
pub fn redacted_argument(text: &str) -> String {
    let has_scheme = text.split_once(':').is_some_and(|(scheme, _)| SCHEMES.contains(&&*scheme.to_ascii_lowercase()));
    if has_scheme || text.contains("://") { redacted_url(text) } else { text.to_owned() }
}

/// Returns the length of the unquoted URL at the start of a string, including a password that contains whitespace.
///
/// `http://admin:S3C RET@host` contains user info, because `S3C` is not a port. `http://admin:12 S3CRET@host` contains
/// user info, because the next word contains an `@`, which is unlikely in a sentence.
fn unquoted_length(text: &str) -> usize {
    let length = text.find(char::is_whitespace).unwrap_or(text.len());
    let (url, rest) = text.split_at(length);
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((_, port)) = authority.trim_end_matches([',', ';', ':', '.', ')']).rsplit_once(':') else { return length };
    if has_at_sign(url) || authority.starts_with('[') {
        return length;
    }
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    let is_end = |end: &usize| rest[*end..].starts_with(['\n', '\'', '"', '`']) || rest[*end..].starts_with("://");
    let end = (0..rest.len()).filter(|at| rest.is_char_boundary(*at)).find(is_end).unwrap_or(rest.len());
    let at = if is_port { first_word(&rest[..end]).rfind('@') } else { rest[..end].rfind('@') };
    let Some(at) = at else { return length };
    let host = rest[at..].find(char::is_whitespace).unwrap_or(rest.len() - at);
    length + at + host.min(end - at)
}

/// Returns the start of a string up to the end of its first word, including leading whitespace.
fn first_word(text: &str) -> &str {
    let whitespace = text.len() - text.trim_start().len();
    let word = text[whitespace..].find(char::is_whitespace).unwrap_or(text.len() - whitespace);
    &text[..whitespace + word]
}

/// Returns true if the URL has a host, and neither the host nor the path contains an `@`. With an `@`, either may
/// contain part of the password.
pub(super) fn is_unambiguous(url: &Url) -> bool {
    url.host_str().is_some_and(|host| !host.is_empty() && !has_at_sign(host)) && !has_at_sign(url.path())
}

fn has_at_sign(text: &str) -> bool {
    percent_decode_str(text).any(|byte| byte == b'@')
}

/// Returns the scheme of a string that starts with a known scheme, and replaces everything else with a placeholder.
fn scheme_only(text: &str) -> String {
    match text.split_once("://") {
        Some((scheme, _)) if SCHEMES.contains(&scheme) => format!("{scheme}://{HIDDEN}"),
        Some(_) | None => HIDDEN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_info_query_and_fragment_are_removed() {
        for (text, expected) in [
            ("http://localhost:15672", "http://localhost:15672"),
            ("http://u:S3CRET@h:15672/rabbit", "http://h:15672/rabbit"),
            ("https://u:p%2FS3CRET@h/", "https://h/"),
            ("amqps://u:S3CRET@h/vhost?x=S3CRET#S3CRET", "amqps://h/vhost"),
            ("amqp://u:S3CRET@[::1]:5672", "amqp://[::1]:5672"),
            ("http://u:a@S3CRET@h", "http://h"),
        ] {
            assert_eq!(redacted_url(text), expected, "{text}");
        }
    }

    #[test]
    fn malformed_urls_keep_the_scheme_only() {
        for (text, expected) in [
            ("http://admin:12/S3CRET@host:15672", "http://<redacted>"),
            ("http://admin:12\\S3CRET@host", "http://<redacted>"),
            ("amqp://u:S3CRET", "amqp://<redacted>"),
            ("amqp://u%3AS3CRET%40h", "amqp://<redacted>"),
            ("amqp://u:S3CRET@", "amqp://<redacted>"),
            ("u:S3CRET@h", "<redacted>"),
            ("S3CRET", "<redacted>"),
            ("http://admin:12/S3CRET%4010.0.0.1", "http://<redacted>"),
        ] {
            assert_eq!(redacted_url(text), expected, "{text}");
        }
    }

    #[test]
    fn urls_in_a_text_are_redacted() {
        for (text, expected) in [
            ("cannot read http://u:S3CRET@h/x.yaml", "cannot read http://h/x.yaml"),
            ("'amqp://u:S3C RET@h' and 'amqp://u:S3CRET@h'", "'amqp://h' and 'amqp://h'"),
            ("--url http://h --allow loss@queues/v/q", "--url http://h --allow loss@queues/v/q"),
            ("use http://HOST:15672 or ://", "use http://HOST:15672 or ://"),
            ("cannot read http://u:12 S3CRET@h", "cannot read http://h"),
            ("cannot read http://u:S3C RET S3CRET@h: no such file", "cannot read http://h: no such file"),
            ("see http://u:S3C RET@h\nand 'a@b'", "see http://h\nand 'a@b'"),
            ("GET http://h/x?password=S3CRET&token=S3CRET failed", "GET http://h/x failed"),
            ("cannot read http:/u:S3CRET@h: no such file", "cannot read http://h: no such file"),
            ("'HTTP:u:S3CRET@h' http: a@b", "'http://h' http: a@b"),
            ("is it http://h:15672?", "is it http://h:15672"),
            ("http://h:15672 is not the broker of rabbit@h", "http://h:15672 is not the broker of rabbit@h"),
            ("amqp://[::1] is cluster rabbit@h", "amqp://[::1] is cluster rabbit@h"),
            ("amqp://h:5672: its cluster is rabbit@h", "amqp://h:5672: its cluster is rabbit@h"),
        ] {
            assert_eq!(redacted_urls_in(text), expected);
        }
    }

    #[test]
    fn arguments_without_a_url_are_unchanged() {
        for (text, expected) in [
            ("specs/a@b.yaml", "specs/a@b.yaml"),
            ("C:/topology.yaml", "C:/topology.yaml"),
            ("http:/admin:S3CRET@h", "http://h/"),
            ("HTTP:admin:S3CRET@h", "http://h/"),
            ("http://admin:12 S3CRET@h", "http://h"),
            ("amqp:admin:S3CRET@h", "<redacted>"),
        ] {
            assert_eq!(redacted_argument(text).trim_end_matches('/'), expected.trim_end_matches('/'), "{text}");
        }
    }

    #[test]
    fn sanitized_text_is_one_line_without_credentials() {
        assert_eq!(sanitize("shovel failed\n\namqp://u:S3CRET@h refused"), "shovel failed: amqp://h refused");
    }
}
