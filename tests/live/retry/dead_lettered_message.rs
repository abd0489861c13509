//! Builds a message with every possible property, and compares the dead-lettered message with it.

use std::collections::BTreeSet;

use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, DecimalValue, FieldArray, FieldTable};

use super::worker::{COUNT, without_expiration};
use crate::support::{Argument, Message, text};

/// Bytes that are not valid UTF-8.
pub(super) const BODY: &[u8] = b"poison \x00\xff\xfe\n";

/// An expiration that exceeds every test.
const EXPIRATION: &str = "600000";

/// Returns every basic property, and headers of every type that the broker accepts. The user must be the publisher's
/// user.
pub(super) fn properties(delivery_mode: u8) -> AMQPProperties {
    AMQPProperties::default()
        .with_content_type("application/vnd.poison+json".into())
        .with_content_encoding("none".into())
        .with_headers(headers())
        .with_delivery_mode(delivery_mode)
        .with_priority(3)
        .with_correlation_id("correlation é".into())
        .with_reply_to("answers".into())
        .with_expiration(EXPIRATION.into())
        .with_message_id("message-1".into())
        .with_timestamp(1_700_000_000)
        .with_type("order.created".into())
        .with_user_id("guest".into())
        .with_app_id("shop".into())
}

fn headers() -> FieldTable {
    let mut inner = FieldTable::default();
    inner.insert("deep".into(), text("value"));
    let mut list = FieldArray::default();
    list.push(AMQPValue::LongInt(1));
    list.push(text("two"));
    let mut headers = FieldTable::default();
    for (name, value) in [
        ("text", text("é ✓")),
        ("empty", text("")),
        ("true", Argument::Boolean(true)),
        ("i8", Argument::ShortShortInt(-8)),
        ("i16", Argument::ShortInt(-16)),
        ("i32", Argument::LongInt(-32)),
        ("i64", Argument::LongLongInt(-64)),
        ("f32", Argument::Float(0.5)),
        ("f64", Argument::Double(0.25)),
        ("decimal", Argument::DecimalValue(DecimalValue { scale: 2, value: 314 })),
        ("time", Argument::Timestamp(1_700_000_001)),
        ("bytes", Argument::ByteArray(vec![0, 255].into())),
        ("nothing", Argument::Void),
        ("list", Argument::FieldArray(list)),
        ("table", Argument::FieldTable(inner)),
        ("x-tenant", text("an application header that begins with x")),
    ] {
        headers.insert(name.into(), value);
    }
    headers
}

/// An entry of `x-death`, without its time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Death {
    pub(super) queue: String,
    pub(super) reason: String,
    pub(super) count: i64,
    pub(super) exchange: String,
    pub(super) routing_keys: Vec<String>,
}

/// Builds an entry, for example `death("work", "rejected", 3, "orders", "order.created")`.
pub(super) fn death(queue: &str, reason: &str, count: i64, exchange: &str, key: &str) -> Death {
    Death {
        queue: queue.to_owned(),
        reason: reason.to_owned(),
        count,
        exchange: exchange.to_owned(),
        routing_keys: vec![key.to_owned()],
    }
}

fn string(table: &FieldTable, key: &str) -> String {
    let value = table.inner().get(key).and_then(AMQPValue::as_long_string);
    value.unwrap_or_else(|| panic!("no {key}: {table:?}")).to_string()
}

fn deaths_in_order(message: &Message) -> Vec<&FieldTable> {
    let headers = message.properties.headers().as_ref();
    match headers.and_then(|headers| headers.inner().get("x-death")) {
        Some(AMQPValue::FieldArray(deaths)) => deaths
            .as_slice()
            .iter()
            .map(|it| if let AMQPValue::FieldTable(it) = it { it } else { panic!("an unexpected death: {it:?}") })
            .collect(),
        None => Vec::new(),
        Some(other) => panic!("an unexpected x-death: {other:?}"),
    }
}

/// Returns the deaths of a message, sorted. Before 3.13, only the first position in the header is reliable.
pub(super) fn deaths(message: &Message) -> BTreeSet<Death> {
    let all: Vec<Death> = deaths_in_order(message).into_iter().map(read).collect();
    let set: BTreeSet<Death> = all.iter().cloned().collect();
    assert_eq!(set.len(), all.len(), "each queue and reason once: {all:?}");
    set
}

fn read(death: &FieldTable) -> Death {
    let count = match death.inner().get("count") {
        Some(AMQPValue::LongLongInt(count)) => *count,
        other => panic!("an unexpected count: {other:?}"),
    };
    let routing_keys = match death.inner().get("routing-keys") {
        Some(AMQPValue::FieldArray(keys)) => keys.as_slice().iter().filter_map(AMQPValue::as_long_string),
        other => panic!("unexpected routing keys: {other:?}"),
    };
    let time = death.inner().get("time");
    assert!(matches!(time, Some(AMQPValue::Timestamp(time)) if *time > 1_700_000_000), "{death:?}");
    Death {
        queue: string(death, "queue"),
        reason: string(death, "reason"),
        count,
        exchange: string(death, "exchange"),
        routing_keys: routing_keys.map(ToString::to_string).collect(),
    }
}

/// Returns the publisher's `expiration`, which the broker moves to a header.
pub(super) fn original_expirations(message: &Message) -> Vec<String> {
    let noted = |death: &&FieldTable| death.inner().contains_key("original-expiration");
    deaths_in_order(message).iter().filter(|it| noted(it)).map(|it| string(it, "original-expiration")).collect()
}

pub(super) fn header(message: &Message, name: &str) -> Option<AMQPValue> {
    message.properties.headers().as_ref().and_then(|headers| headers.inner().get(name)).cloned()
}

/// Returns true for headers of the broker and of the worker.
fn is_bookkeeping(name: &str) -> bool {
    let added = ["x-death", COUNT, "x-delivery-count", "x-acquired-count"];
    added.contains(&name) || name.starts_with("x-first-death-") || name.starts_with("x-last-death-")
}

/// Returns the properties with only the application's headers.
fn applications(properties: &AMQPProperties) -> AMQPProperties {
    let mut own = FieldTable::default();
    for (name, value) in properties.headers().iter().flat_map(|headers| headers.inner()) {
        if !is_bookkeeping(name.as_str()) {
            own.insert(name.clone(), value.clone());
        }
    }
    properties.clone().with_headers(own)
}

/// Compares the body, the properties and the application headers with the published message. Only `expiration` is
/// missing, because the broker removes it when the message dies, and a worker removes it when it republishes.
#[track_caller]
pub(super) fn unchanged(dead_message: &Message, published: &AMQPProperties, context: &str) {
    assert_eq!(dead_message.body, BODY, "{context}");
    let expected = applications(&without_expiration(published));
    assert_eq!(applications(&dead_message.properties), expected, "{context}");
}
