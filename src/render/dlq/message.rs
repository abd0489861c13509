//! Renders a message in a dead-letter queue: its history, properties, headers and body.

use super::rfc3339;
use super::table::cut;
use crate::model::count::{count, number};
use crate::model::message_headers::DEATHS;
use crate::model::printable::{clean, one_line};
use crate::operate::dlq::{DeadLetter, Death, HeaderValue};
use crate::render::style::{BOLD, DIM, Painted};
use std::fmt::Write;

/// The maximum number of body bytes that are shown.
const MAX_BODY: usize = 16 << 10;
/// The maximum number of body bytes in a hexadecimal dump: 256 lines.
const MAX_DUMP: usize = 256 * 16;

/// The format of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyFormat {
    /// JSON with line breaks if the body is JSON of at most 16 KiB, text if it is UTF-8, and a hexadecimal dump
    /// otherwise.
    #[default]
    Auto,
    /// Text. Bytes that are not UTF-8 are replaced.
    Text,
    /// A hexadecimal dump.
    Hex,
    /// No body.
    None,
}

/// Renders a message.
pub fn message_text(it: &DeadLetter, body: BodyFormat, width: usize) -> String {
    let mut text = String::new();
    let title = format!("message {}", number(it.position));
    let _ = writeln!(text, "{} {}", Painted(BOLD, title), Painted(DIM, it.fingerprint()));
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<13} {}", cut(&one_line(value), width.saturating_sub(16).max(40)));
    };
    match (&it.source, it.other_sources.is_empty()) {
        (Some(source), true) => field("source", source.as_str()),
        (Some(source), false) => {
            let others: Vec<&str> = it.other_sources.iter().map(|other| other.as_str()).collect();
            field("source", &format!("{source}, or {}", others.join(" or ")));
        }
        (None, _) => field("source", "unknown: no x-death, no x-source-queue"),
    }
    if let Some(reason) = &it.reason {
        field("reason", reason);
    }
    if let Some(error) = it.error() {
        field("error", error);
    }
    if it.died_at.is_some() {
        field("dead-lettered", &rfc3339(it.died_at));
    }
    let published = match &it.original_exchange {
        Some(exchange) if exchange.is_empty() => format!("default exchange, key {}", visible(&it.original_routing_key)),
        Some(exchange) => format!("exchange {exchange}, key {}", visible(&it.original_routing_key)),
        None if it.is_routing_key_known => format!("key {}", visible(&it.original_routing_key)),
        None => format!("unknown; current routing key {}", visible(&it.message.routing_key)),
    };
    field("published to", &published);
    if it.replays() > 0 {
        field("replayed", &count(it.replays(), "time"));
    }
    for (at, death) in history(&it.deaths).into_iter().enumerate() {
        field(if at == 0 { "history" } else { "" }, &death_text(death));
    }
    let properties = &it.message.properties;
    for (name, value) in &properties.texts {
        field(name, value);
    }
    let numbers =
        [("delivery_mode", properties.delivery_mode.map(u64::from)), ("priority", properties.priority.map(u64::from))];
    for (name, value) in numbers {
        if let Some(value) = value {
            field(name, &value.to_string());
        }
    }
    if properties.timestamp.is_some() {
        field("timestamp", &rfc3339(properties.timestamp));
    }
    let headers: Vec<_> = properties.headers.iter().filter(|(name, _)| name != DEATHS).collect();
    for (at, (name, value)) in headers.into_iter().enumerate() {
        field(if at == 0 { "headers" } else { "" }, &format!("{name}: {}", header_text(value)));
    }
    text + &body_text(&it.message.body, body)
}

/// Returns the key, or `""` if the key is empty.
fn visible(key: &str) -> String {
    if key.is_empty() { "\"\"".to_owned() } else { key.to_owned() }
}

/// Returns the deaths from the oldest to the newest. Entries without a time come first.
fn history(deaths: &[Death]) -> Vec<&Death> {
    let mut sorted: Vec<&Death> = deaths.iter().rev().collect();
    sorted.sort_by_key(|death| death.time);
    sorted
}

fn death_text(death: &Death) -> String {
    let times = if death.count == 1 { String::new() } else { format!(" {} times", number(death.count)) };
    let from = if death.exchange.is_empty() { "the default exchange" } else { &death.exchange };
    let keys = death.routing_keys.iter().map(|key| visible(key)).collect::<Vec<_>>().join(", ");
    let since = if death.count == 1 { "" } else { "since " };
    format!(
        "{} in {}{times}, {since}{} (published to {from}, key {keys})",
        death.reason,
        death.queue,
        rfc3339(death.time)
    )
}

fn header_text(value: &HeaderValue) -> String {
    match value {
        HeaderValue::Void => "(void)".to_owned(),
        HeaderValue::Boolean(value) => value.to_string(),
        HeaderValue::Integer(number) => number.to_string(),
        HeaderValue::Float(number) => number.to_string(),
        HeaderValue::Decimal(digits, scale) => format!("{digits}e-{scale} (decimal)"),
        HeaderValue::Text(text) => text.clone(),
        HeaderValue::Bytes(bytes) => format!("({})", count(bytes.len() as u64, "byte")),
        HeaderValue::Timestamp(seconds) => rfc3339(Some(*seconds)),
        HeaderValue::List(items) => format!("[{}]", items.iter().map(header_text).collect::<Vec<_>>().join(", ")),
        HeaderValue::Table(entries) => {
            let entries: Vec<_> =
                entries.iter().map(|(name, value)| format!("{name}: {}", header_text(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        HeaderValue::Opaque => "(not decoded)".to_owned(),
    }
}

fn body_text(body: &[u8], format: BodyFormat) -> String {
    let size = count(body.len() as u64, "byte");
    if body.is_empty() || format == BodyFormat::None {
        return format!("  {:<13} {size}\n", "body");
    }
    let shown = body.get(..MAX_BODY).unwrap_or(body);
    let dumped = body.get(..MAX_DUMP).unwrap_or(body);
    let json = || serde_json::from_slice::<serde_json::Value>(body).ok().filter(|_| body.len() <= MAX_BODY);
    let (kind, shown, lines) = match format {
        BodyFormat::Hex => ("hex", dumped, dump(dumped)),
        BodyFormat::Auto => match (json(), valid_text(shown, body.len())) {
            (Some(value), _) => ("JSON", body, format!("{value:#}")),
            (None, Some(text)) => ("text", shown, text.to_owned()),
            (None, None) => ("hex", dumped, dump(dumped)),
        },
        BodyFormat::Text | BodyFormat::None => ("text", shown, String::from_utf8_lossy(shown).into_owned()),
    };
    let rest = if shown.len() < body.len() {
        format!(", the first {} of {size}", number(shown.len() as u64))
    } else {
        format!(", {size}")
    };
    let mut text = format!("  {:<13} {kind}{rest}\n", "body");
    for line in lines.lines() {
        let _ = writeln!(text, "    {}", clean(line));
    }
    text
}

/// Returns the bytes as text, or `None` if they are not UTF-8. If a truncated body ends in the middle of a character,
/// omits that character.
fn valid_text(shown: &[u8], whole: usize) -> Option<&str> {
    match std::str::from_utf8(shown) {
        Ok(text) => Some(text),
        Err(error) if shown.len() < whole && error.error_len().is_none() => {
            shown.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok())
        }
        Err(_) => None,
    }
}

/// Formats bytes as a hexadecimal dump with 16 bytes per line.
fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, line) in bytes.chunks(16).enumerate() {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let plain = |byte: &u8| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' };
        let _ =
            writeln!(text, "{:06x}  {:<47}  {}", at * 16, hex.join(" "), line.iter().map(plain).collect::<String>());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_shown_in_their_format() {
        assert_eq!(body_text(b"", BodyFormat::Auto), "  body          0 bytes\n");
        assert_eq!(
            body_text(br#"{"a":1}"#, BodyFormat::Auto),
            "  body          JSON, 7 bytes\n    {\n      \"a\": 1\n    }\n"
        );
        assert_eq!(body_text("é\x1b[0m".as_bytes(), BodyFormat::Auto).matches('\x1b').count(), 0);
        let dumped = "  body          hex, 2 bytes\n    000000  ff 41                                            .A\n";
        assert_eq!(body_text(&[0xff, b'A'], BodyFormat::Auto), dumped);
        assert_eq!(body_text(b"A", BodyFormat::None), "  body          1 byte\n");
    }

    #[test]
    fn incomplete_characters_are_omitted() {
        assert_eq!(valid_text(&"aé".as_bytes()[..2], 3), Some("a"));
        assert_eq!(valid_text(&[b'a', 0xff], 2), None);
    }
}
