//! Writes messages as JSON, one object per line, and reads them back.
//!
//! `encodedProperties` contains the properties as AMQP encodes them, so that a restored message has the same header
//! types. The readable properties and headers are for users and their tools. A restore ignores them.

use super::dead_letter::DeadLetter;
use crate::broker::message::{HeaderValue, MessageProperties};
use crate::broker::transport::user_id;
use crate::model::{QueueName, VhostName};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::io::BufRead;

/// The format version of an archive.
const FORMAT_VERSION: u64 = 1;

/// Returns a message as a JSON document.
pub fn archived(vhost: &VhostName, queue: &QueueName, it: &DeadLetter) -> Value {
    let message = &it.message;
    let (body, encoding) = match std::str::from_utf8(&message.body) {
        Ok(text) => (text.to_owned(), "text"),
        Err(_) => (STANDARD.encode(&message.body), "base64"),
    };
    let time = |seconds: Option<u64>| seconds.map(rfc3339);
    let deaths: Vec<Value> = it
        .deaths
        .iter()
        .map(|death| {
            json!({
                "queue": death.queue, "reason": death.reason, "count": death.count, "exchange": death.exchange,
                "routingKeys": death.routing_keys, "time": time(death.time),
            })
        })
        .collect();
    json!({
        "formatVersion": FORMAT_VERSION,
        "vhost": vhost,
        "queue": queue,
        "position": it.position,
        "fingerprint": it.fingerprint(),
        "source": it.source,
        "reason": it.reason,
        "diedAt": time(it.died_at),
        "error": it.error(),
        "replays": it.replays(),
        "originalExchange": it.original_exchange,
        "originalRoutingKey": it.is_routing_key_known.then_some(&it.original_routing_key),
        "deaths": deaths,
        "exchange": message.exchange,
        "routingKey": message.routing_key,
        "properties": properties(&message.properties),
        "headers": table(&message.properties.headers),
        "encodedProperties": STANDARD.encode(&message.encoded_properties),
        "bodyEncoding": encoding,
        "body": body,
    })
}

/// Returns a message as a JSON document on one line.
pub fn archived_line(vhost: &VhostName, queue: &QueueName, it: &DeadLetter) -> String {
    format!("{}\n", archived(vhost, queue, it))
}

/// Formats a time, given in seconds since 1970. A time after the year 9999 is formatted as a number.
pub fn rfc3339(seconds: u64) -> String {
    let time = std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(seconds));
    match time.filter(|_| seconds < 253_402_300_800) {
        Some(time) => humantime::format_rfc3339_seconds(time).to_string(),
        None => seconds.to_string(),
    }
}

fn properties(properties: &MessageProperties) -> Value {
    let mut map = Map::new();
    for (name, value) in &properties.texts {
        map.insert(camel_case(name), value.as_str().into());
    }
    let MessageProperties { texts: _, headers: _, delivery_mode, priority, timestamp } = properties;
    map.extend(delivery_mode.map(|it| ("deliveryMode".to_owned(), it.into())));
    map.extend(priority.map(|it| ("priority".to_owned(), it.into())));
    map.extend(timestamp.map(|it| ("timestamp".to_owned(), rfc3339(it).into())));
    map.into()
}

/// Converts `content_type` to `contentType`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| {
        let (head, tail) = word.split_at(word.len().min(1));
        text + &head.to_uppercase() + tail
    })
}

fn table(entries: &[(String, HeaderValue)]) -> Value {
    entries.iter().map(|(name, value)| (name.clone(), json_value(value))).collect::<Map<_, _>>().into()
}

/// Converts a header value to readable JSON. A value of a type that JSON does not support becomes a string.
fn json_value(value: &HeaderValue) -> Value {
    match value {
        HeaderValue::Void => Value::Null,
        HeaderValue::Boolean(value) => (*value).into(),
        HeaderValue::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) => number.into(),
            _ => number.to_string().into(),
        },
        HeaderValue::Float(number) => (*number).into(),
        HeaderValue::Decimal(digits, scale) => decimal(*digits, *scale).into(),
        HeaderValue::Text(text) => text.as_str().into(),
        HeaderValue::Bytes(bytes) => STANDARD.encode(bytes).into(),
        HeaderValue::Timestamp(seconds) => rfc3339(*seconds).into(),
        HeaderValue::List(items) => items.iter().map(json_value).collect::<Vec<_>>().into(),
        HeaderValue::Table(entries) => table(entries),
        HeaderValue::Opaque => "…".into(),
    }
}

fn decimal(digits: u32, scale: u8) -> String {
    let scale = usize::from(scale);
    let text = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = text.split_at(text.len() - scale);
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// A message from an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedMessage {
    /// The vhost.
    pub vhost: VhostName,
    /// The dead-letter queue.
    pub queue: QueueName,
    /// The routing key.
    pub routing_key: String,
    /// The properties, as AMQP encodes them.
    pub encoded_properties: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

/// The reason why an archive cannot be read, with the line number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ArchiveError {
    /// The line number, starting at 1.
    pub line: u64,
    /// The reason.
    pub reason: String,
}

impl ArchivedMessage {
    /// Parses a line from an archive.
    ///
    /// # Errors
    /// The reason why the line is not an archived message.
    pub fn parse(line: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
        if value.get("formatVersion").and_then(Value::as_u64) != Some(FORMAT_VERSION) {
            return Err(format!("not an archived message: expected \"formatVersion\": {FORMAT_VERSION}"));
        }
        let text = |name: &str| {
            let value = value.get(name).and_then(Value::as_str);
            value.ok_or_else(|| format!("the string \"{name}\" is missing"))
        };
        let decode = |name: &str, text: &str| STANDARD.decode(text).map_err(|error| format!("\"{name}\": {error}"));
        let body = match text("bodyEncoding")? {
            "text" => text("body")?.as_bytes().to_vec(),
            "base64" => decode("body", text("body")?)?,
            other => return Err(format!("unknown \"bodyEncoding\": {other}")),
        };
        Ok(Self {
            vhost: VhostName::new(text("vhost")?),
            queue: QueueName::new(text("queue")?),
            routing_key: text("routingKey")?.to_owned(),
            encoded_properties: decode("encodedProperties", text("encodedProperties")?)?,
            body,
        })
    }

    /// Returns the `user_id` property; `None` if it is not set. Only this user, or a user with the `impersonator` tag,
    /// may publish the message.
    pub fn user_id(&self) -> Option<String> {
        user_id(&self.encoded_properties)
    }

    /// Reads the messages of an archive. Ignores an incomplete last line, which a killed run leaves behind. The message
    /// on that line is still in the queue.
    pub fn read_all(mut archive: impl BufRead) -> impl Iterator<Item = Result<Self, ArchiveError>> {
        let mut number = 0;
        std::iter::from_fn(move || {
            loop {
                let mut line = Vec::new();
                number += 1;
                let read = archive.read_until(b'\n', &mut line);
                // A failed read can also return part of a line.
                let is_incomplete = read.is_ok() && !line.ends_with(b"\n");
                let parsed = match read {
                    Ok(0) => return None,
                    Ok(_) if line.trim_ascii().is_empty() => continue,
                    Ok(_) => std::str::from_utf8(&line).map_err(|error| error.to_string()).and_then(Self::parse),
                    Err(error) => Err(error.to_string()),
                };
                let is_torn = parsed.is_err() && is_incomplete;
                return (!is_torn).then(|| parsed.map_err(|reason| ArchiveError { line: number, reason }));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_incomplete_last_line_is_ignored() {
        let line = r#"{"formatVersion":1,"vhost":"/","queue":"q","routingKey":"k","encodedProperties":"AAA=","bodyEncoding":"text","body":"b"}"#;
        let read = |text: &str| ArchivedMessage::read_all(text.as_bytes()).map(|it| it.map(drop)).collect::<Vec<_>>();
        assert_eq!(read(&format!("{line}\n\n{line}")), [Ok(()), Ok(())]);
        assert_eq!(read(&format!("{line}\n{}", &line[..50])), [Ok(())]);
        let broken = read(&format!("{}\n{line}\n", &line[..50]));
        assert_eq!(
            broken.iter().map(|it| it.as_ref().err().map(|error| error.line)).collect::<Vec<_>>(),
            [Some(1), None]
        );
    }

    #[test]
    fn read_failure_within_a_line_is_an_error() {
        struct Failing;
        impl std::io::Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("input/output error"))
            }
        }
        let archive = std::io::BufReader::new(std::io::Read::chain(&b"{\"formatVersion\":1"[..], Failing));
        let error = ArchivedMessage::read_all(archive).next().unwrap().unwrap_err();
        assert_eq!((error.line, error.reason.as_str()), (1, "input/output error"));
    }

    #[test]
    fn decimals_keep_their_scale() {
        let texts = [(123, 2), (5, 3), (7, 0), (0, 1)].map(|(digits, scale)| decimal(digits, scale));
        assert_eq!(texts, ["1.23", "0.005", "7", "0.0"]);
        assert_eq!([camel_case("content_type"), camel_case("type")], ["contentType", "type"]);
    }
}
