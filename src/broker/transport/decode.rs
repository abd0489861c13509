//! Decodes the properties and headers of a delivery.

use super::field_table::{Entries, Items};
use super::raw_properties::{PROPERTY_NAMES, RawProperties};
use crate::broker::message::{HeaderValue, MessageProperties, ReceivedMessage};
use lapin::message::Delivery;

/// The maximum nesting depth of a decoded header. A deeper value is opaque.
const MAX_DEPTH: usize = 32;

/// Decodes a delivery. Omits properties that cannot be read; the encoded properties are complete.
pub(super) fn message(delivery: &Delivery) -> ReceivedMessage {
    let encoded = RawProperties::extract(&delivery.properties).map_or(&[0, 0][..], RawProperties::bytes);
    ReceivedMessage {
        exchange: delivery.exchange.to_string(),
        routing_key: delivery.routing_key.to_string(),
        is_redelivered: delivery.redelivered,
        properties: properties(encoded),
        encoded_properties: encoded.to_vec(),
        body: delivery.data.clone(),
    }
}

/// Decodes encoded properties.
pub fn properties(encoded: &[u8]) -> MessageProperties {
    let mut decoded = MessageProperties::default();
    let Some(parts) = RawProperties::of(encoded).split() else { return decoded };
    for (name, part) in PROPERTY_NAMES.into_iter().zip(parts) {
        let Some(bytes) = part else { continue };
        match name {
            "headers" => decoded.headers = entries(bytes, MAX_DEPTH),
            "delivery_mode" => decoded.delivery_mode = bytes.first().copied(),
            "priority" => decoded.priority = bytes.first().copied(),
            "timestamp" => decoded.timestamp = bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)),
            text => decoded.texts.push((text, lossy(bytes))),
        }
    }
    decoded
}

fn entries(bytes: &[u8], depth: usize) -> Vec<(String, HeaderValue)> {
    Entries(bytes).map(|entry| (lossy(entry.name), value(entry.kind, entry.value, depth))).collect()
}

fn value(kind: u8, bytes: &[u8], depth: usize) -> HeaderValue {
    use HeaderValue::{Boolean, Bytes, Decimal, Float, Integer, List, Opaque, Table, Text, Timestamp, Void};
    let decoded = match kind {
        b'V' => Some(Void),
        b't' => bytes.first().map(|byte| Boolean(*byte != 0)),
        b'b' => array(bytes).map(|bytes| Integer(i8::from_be_bytes(bytes).into())),
        b'B' => array(bytes).map(|bytes| Integer(u8::from_be_bytes(bytes).into())),
        b's' => array(bytes).map(|bytes| Integer(i16::from_be_bytes(bytes).into())),
        b'u' | b'U' => array(bytes).map(|bytes| Integer(u16::from_be_bytes(bytes).into())),
        b'I' => array(bytes).map(|bytes| Integer(i32::from_be_bytes(bytes).into())),
        b'i' => array(bytes).map(|bytes| Integer(u32::from_be_bytes(bytes).into())),
        b'l' => array(bytes).map(|bytes| Integer(i64::from_be_bytes(bytes).into())),
        b'L' => array(bytes).map(|bytes| Integer(u64::from_be_bytes(bytes).into())),
        b'f' => array(bytes).map(|bytes| Float(f32::from_be_bytes(bytes).into())),
        b'd' => array(bytes).map(|bytes| Float(f64::from_be_bytes(bytes))),
        b'T' => array(bytes).map(|bytes| Timestamp(u64::from_be_bytes(bytes))),
        b'D' => {
            bytes.split_first().and_then(|(scale, digits)| Some(Decimal(u32::from_be_bytes(array(digits)?), *scale)))
        }
        b'S' => Some(Text(lossy(bytes))),
        b'x' => Some(Bytes(bytes.to_vec())),
        b'A' if depth > 0 => Some(List(Items(bytes).map(|(kind, item)| value(kind, item, depth - 1)).collect())),
        b'F' if depth > 0 => Some(Table(entries(bytes, depth - 1))),
        _ => None,
    };
    decoded.unwrap_or(Opaque)
}

fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_headers_are_decoded() {
        let table = b"\x01aA\0\0\0\x05I\0\0\0\x02\x01bD\x02\0\0\0\x7b\x01cT\0\0\0\0\0\0\0\x09";
        let length = u32::try_from(table.len()).unwrap().to_be_bytes();
        let raw = [&[0x30, 0][..], &length, table, &[2]].concat();
        let decoded = properties(&raw);
        assert_eq!(decoded.delivery_mode, Some(2));
        assert_eq!(
            decoded.headers,
            [
                ("a".to_owned(), HeaderValue::List(vec![HeaderValue::Integer(2)])),
                ("b".to_owned(), HeaderValue::Decimal(123, 2)),
                ("c".to_owned(), HeaderValue::Timestamp(9)),
            ]
        );
        assert_eq!(properties(&[0xff, 0xff, 9]), MessageProperties::default());
    }

    #[test]
    fn deep_values_are_opaque() {
        let mut bytes: Vec<u8> = Vec::new();
        for _ in 0..1000 {
            bytes = [b"A", &u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], &bytes].concat();
        }
        let mut found = &value(b'A', &bytes, MAX_DEPTH);
        while let Some(inner) = found.items().first() {
            found = inner;
        }
        assert_eq!(*found, HeaderValue::Opaque);
    }
}
