//! Encodes the properties of a new message. Edits encoded properties: removes and adds headers, optionally makes the
//! message persistent, and keeps all other bytes.

use super::field_table::Entries;
use super::raw_properties::{
    DELIVERY_MODE_INDEX, EXPIRATION_INDEX, HEADERS_INDEX, MESSAGE_ID_INDEX, RawProperties, join,
};
use crate::broker::message::HeaderValue;

/// The delivery mode of a persistent message.
const PERSISTENT: [u8; 1] = [2];

/// The changes to the properties of a message.
pub struct PropertyEdit<'a> {
    /// Returns true for the headers to remove.
    pub removes: fn(&str) -> bool,
    /// The headers to add. Strings, integers, booleans, floating-point numbers, and lists of these are supported. An
    /// existing header with the same name is replaced.
    pub adds: &'a [(&'a str, HeaderValue)],
    /// True to make the message persistent.
    pub makes_persistent: bool,
}

/// Returns the edited properties; `None` if the properties cannot be read, or if an added header is too long or not
/// supported.
pub fn edited(encoded: &[u8], edit: &PropertyEdit<'_>) -> Option<Vec<u8>> {
    let mut parts = RawProperties::of(encoded).split()?;
    let headers = parts[HEADERS_INDEX].unwrap_or_default();
    let mut kept = Vec::with_capacity(headers.len());
    let mut read = 0;
    for entry in Entries(headers) {
        read += entry.bytes.len();
        let is_replaced = edit.adds.iter().any(|(name, _)| name.as_bytes() == entry.name);
        if !is_replaced && !std::str::from_utf8(entry.name).is_ok_and(edit.removes) {
            kept.extend(entry.bytes);
        }
    }
    // A header that cannot be read could be one of the headers to remove.
    if read != headers.len() {
        return None;
    }
    for (name, value) in edit.adds {
        push_header(&mut kept, name, value)?;
    }
    if !kept.is_empty() || parts[HEADERS_INDEX].is_some() {
        parts[HEADERS_INDEX] = Some(&kept);
    }
    if edit.makes_persistent {
        parts[DELIVERY_MODE_INDEX] = Some(&PERSISTENT);
    }
    join(&parts)
}

/// Returns the properties of a new persistent message; `None` if a value is too long or not supported.
pub fn encoded(headers: &[(&str, HeaderValue)], expiration: Option<&str>, message_id: Option<&str>) -> Option<Vec<u8>> {
    let mut table = Vec::new();
    for (name, value) in headers {
        push_header(&mut table, name, value)?;
    }
    let mut parts = [None; 14];
    parts[HEADERS_INDEX] = Some(table.as_slice()).filter(|table| !table.is_empty());
    parts[DELIVERY_MODE_INDEX] = Some(&PERSISTENT[..]);
    parts[EXPIRATION_INDEX] = expiration.map(str::as_bytes);
    parts[MESSAGE_ID_INDEX] = message_id.map(str::as_bytes);
    join(&parts)
}

/// Appends a header to an encoded table. Returns `None` if the header is too long or its type is not supported.
fn push_header(table: &mut Vec<u8>, name: &str, value: &HeaderValue) -> Option<()> {
    table.push(u8::try_from(name.len()).ok()?);
    table.extend(name.as_bytes());
    push_value(table, value)
}

/// Appends a value with its type. Returns `None` if the value is too long or its type is not supported.
fn push_value(table: &mut Vec<u8>, value: &HeaderValue) -> Option<()> {
    match value {
        HeaderValue::Boolean(value) => table.extend([b't', u8::from(*value)]),
        HeaderValue::Integer(number) => {
            table.push(b'l');
            table.extend(i64::try_from(*number).ok()?.to_be_bytes());
        }
        HeaderValue::Float(number) => {
            table.push(b'd');
            table.extend(number.to_be_bytes());
        }
        HeaderValue::Text(text) => {
            table.push(b'S');
            table.extend(u32::try_from(text.len()).ok()?.to_be_bytes());
            table.extend(text.as_bytes());
        }
        HeaderValue::List(items) => {
            let mut list = Vec::new();
            for item in items {
                push_value(&mut list, item)?;
            }
            table.push(b'A');
            table.extend(u32::try_from(list.len()).ok()?.to_be_bytes());
            table.extend(list);
        }
        HeaderValue::Void
        | HeaderValue::Decimal(..)
        | HeaderValue::Bytes(_)
        | HeaderValue::Timestamp(_)
        | HeaderValue::Table(_)
        | HeaderValue::Opaque => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::decode::properties;
    use super::*;

    #[test]
    fn headers_are_removed_and_added() {
        let table = b"\x01aV\x07x-deathA\0\0\0\0\x01bF\0\0\0\x03\x01cV";
        let length = u32::try_from(table.len()).unwrap().to_be_bytes();
        let raw = [&[0xa8, 0x10][..], b"\x04text", &length, table, b"\x05", b"\x02me"].concat();
        let adds = [("n", HeaderValue::Integer(2)), ("t", HeaderValue::Text("run".to_owned()))];
        let edit = PropertyEdit { removes: |name| name == "x-death", adds: &adds, makes_persistent: true };
        let edited_once = edited(&raw, &edit).unwrap();
        let read = properties(&edited_once);
        let names: Vec<&str> = read.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "n", "t"]);
        assert_eq!((read.delivery_mode, read.priority), (Some(2), Some(5)));
        assert_eq!(read.texts, [("content_type", "text".to_owned()), ("user_id", "me".to_owned())]);
        assert_eq!(edited(&edited_once, &edit), Some(edited_once), "an edit replaces its own headers");
    }

    #[test]
    fn properties_of_a_new_message_are_encoded() {
        let list = HeaderValue::List(vec![HeaderValue::Text("k".to_owned()), HeaderValue::Integer(-1)]);
        let headers = [("a", HeaderValue::Boolean(true)), ("b", HeaderValue::Float(0.5)), ("c", list)];
        let read = properties(&encoded(&headers, Some("100"), Some("m/1")).unwrap());
        assert_eq!(read.headers, headers.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(read.delivery_mode, Some(2));
        assert_eq!(read.texts, [("expiration", "100".to_owned()), ("message_id", "m/1".to_owned())]);
        assert_eq!(encoded(&[("a", HeaderValue::Void)], None, None), None);
    }

    #[test]
    fn unreadable_properties_are_refused() {
        let edit = PropertyEdit { removes: |_| false, adds: &[], makes_persistent: false };
        assert_eq!(edited(&[0x20, 0, 0, 0, 0, 3, 1, b'a', b'?'], &edit), None);
        assert_eq!(edited(&[0x20, 0, 0, 0, 0, 9], &edit), None);
        assert_eq!(edited(&[0, 0], &edit), Some(vec![0, 0]));
    }
}
