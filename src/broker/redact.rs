//! Removes credentials from URLs before they reach an error, a hint or a log.

use percent_encoding::percent_decode_str;
use reqwest::Url;

/// Stands for the part of a URL that may hold a password.
const HIDDEN: &str = "<redacted>";
const SCHEMES: [&str; 4] = ["http", "https", "amqp", "amqps"];

/// Returns a URL without user info, query and fragment.
///
/// Of a malformed URL only the scheme is left: a `/` in a password, for example, ends the host too early, so any other
/// part may hold the password.
pub fn redacted_url(text: &str) -> String {
    let text = text.trim();
    match Url::parse(text) {
        Ok(mut url) if is_unambiguous(&url) => {
            // Both fail only for a URL without a host.
            if url.set_username("").is_err() || url.set_password(None).is_err() {
                return hidden(text);
            }
            url.set_query(None);
            url.set_fragment(None);
            let shown = url.as_str();
            if text.ends_with('/') { shown.to_owned() } else { shown.trim_end_matches('/').to_owned() }
        }
        Ok(_) | Err(_) => hidden(text),
    }
}

/// Redacts every URL in a text that may have user info. A URL ends at a blank or, inside quotes, at the closing quote.
pub fn redacted_urls_in(text: &str) -> String {
    let mut redacted = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let start = rest[..at].char_indices().rev().take_while(|(_, c)| is_scheme(*c)).last().map_or(at, |(i, _)| i);
        let quote = rest[..start].chars().next_back().filter(|c| "'\"`".contains(*c));
        let length = match quote.and_then(|quote| rest[start..].find(quote)) {
            Some(length) => length,
            None => rest[start..].find(char::is_whitespace).unwrap_or(rest.len() - start),
        };
        let url = &rest[start..start + length];
        redacted.push_str(&rest[..start]);
        if has_at_sign(url) {
            redacted.push_str(&redacted_url(url))
        } else {
            redacted.push_str(url)
        }
        rest = &rest[start + length..];
    }
    redacted.push_str(rest);
    redacted
}

/// Whether a host or a path holds an `@`. Then user info may have ended before the password did.
pub(super) fn is_unambiguous(url: &Url) -> bool {
    url.host_str().is_some_and(|host| !host.is_empty() && !has_at_sign(host)) && !url.path().contains('@')
}

fn has_at_sign(text: &str) -> bool {
    percent_decode_str(text).any(|byte| byte == b'@')
}

fn hidden(text: &str) -> String {
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
        ] {
            assert_eq!(redacted_urls_in(text), expected);
        }
    }
}
