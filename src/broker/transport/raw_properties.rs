//! Preserves the properties of a message byte for byte, except for the delivery counts of a quorum queue.
//!
//! The AMQP library parses headers recursively, on a thread with a small stack. A message with thousands of nested
//! tables would overflow the stack and abort the process. The socket therefore hides all properties from the library
//! ([`super::frames`]). The library reads and writes the properties as one byte array in a header. This also preserves
//! bytes that are not valid UTF-8.

use super::field_table::{Entries, long, short};
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};
use std::ops::Range;

/// The header that contains the hidden properties.
const NAME: &str = "topo";
/// The property flags of a message that has only headers.
const HEADERS: u16 = 1 << 13;
/// The headers in which a quorum queue counts deliveries; `x-acquired-count` as of 4.3. On 3.12 and earlier, the queue
/// adds `x-delivery-count` even to the first delivery (`rabbit_fifo_client`).
const COUNTS: [&[u8]; 2] = [b"x-delivery-count", b"x-acquired-count"];

/// The encoding of a property.
enum Encoding {
    ShortString,
    Table,
    /// Bytes of a fixed length.
    Bytes(usize),
}

use Encoding::{Bytes, ShortString, Table};

impl Encoding {
    /// Splits off a value. Returns the value without its length prefix, and the remaining bytes.
    fn split<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        match self {
            ShortString => short(bytes),
            Table => long(bytes),
            Bytes(length) => bytes.split_at_checked(*length),
        }
    }
}

/// The properties in the order of their flags, from the highest bit.
const PROPERTIES: [Encoding; 14] = [
    // The content type and encoding.
    ShortString,
    ShortString,
    Table,
    // The delivery mode and priority.
    Bytes(1),
    Bytes(1),
    // The correlation ID, reply-to, expiration and message ID.
    ShortString,
    ShortString,
    ShortString,
    ShortString,
    // The timestamp.
    Bytes(8),
    // The type, user ID, application ID and cluster ID.
    ShortString,
    ShortString,
    ShortString,
    ShortString,
];
pub(super) const HEADERS_INDEX: usize = 2;
pub(super) const DELIVERY_MODE_INDEX: usize = 3;
pub(super) const EXPIRATION_INDEX: usize = 7;
pub(super) const MESSAGE_ID_INDEX: usize = 8;
const USER_ID_INDEX: usize = 11;

/// The AMQP names of the properties, in the order of their flags.
pub(super) const PROPERTY_NAMES: [&str; 14] = [
    "content_type",
    "content_encoding",
    "headers",
    "delivery_mode",
    "priority",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "timestamp",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
];

/// The flags and the properties of a message.
#[derive(Clone, Copy)]
pub(super) struct RawProperties<'a>(&'a [u8]);

impl<'a> RawProperties<'a> {
    /// Returns the properties that the socket hid in the library's properties; `None` if the socket hid no properties.
    pub(super) fn extract(properties: &'a BasicProperties) -> Option<Self> {
        let AMQPValue::ByteArray(bytes) = properties.headers().as_ref()?.inner().get(NAME)? else { return None };
        Some(Self(bytes.as_slice()))
    }

    /// Reads encoded properties.
    pub(super) fn of(encoded: &'a [u8]) -> Self {
        Self(encoded)
    }

    /// Returns the encoded properties, with their flags.
    pub(super) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the value of each property without its length prefix, in the order of [`PROPERTY_NAMES`]; `None` for a
    /// property that is not set. Returns `None` if the properties cannot be read.
    pub(super) fn split(self) -> Option<[Option<&'a [u8]>; 14]> {
        let (flags, mut rest) = self.0.split_first_chunk::<2>()?;
        let flags = u16::from_be_bytes(*flags);
        let mut parts = [None; 14];
        for (index, encoding) in PROPERTIES.iter().enumerate().filter(|(index, _)| flags & (0x8000 >> index) != 0) {
            let (value, after) = encoding.split(rest)?;
            *parts.get_mut(index)? = Some(value);
            rest = after;
        }
        rest.is_empty().then_some(parts)
    }

    /// Returns the byte range of a property's value; `None` if the property is not set or cannot be read.
    fn position(self, desired: usize) -> Option<Range<usize>> {
        let (flags, mut rest) = self.0.split_first_chunk::<2>()?;
        let flags = u16::from_be_bytes(*flags);
        for (index, encoding) in PROPERTIES.iter().enumerate() {
            let is_set = flags & (0x8000 >> index) != 0;
            if !is_set {
                continue;
            }
            let (value, after) = encoding.split(rest)?;
            if index == desired {
                let end = self.0.len() - after.len();
                return Some(end - value.len()..end);
            }
            rest = after;
        }
        None
    }

    /// Returns the bytes of a property's value; `None` if the property is not set or cannot be read.
    fn property(self, desired: usize) -> Option<&'a [u8]> {
        self.0.get(self.position(desired)?)
    }

    /// Returns the `user_id` property, which is the user that the publisher claims to be; `None` if the property is not
    /// set or cannot be read.
    pub(super) fn user_id(self) -> Option<String> {
        self.property(USER_ID_INDEX).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns true if the headers contain delivery counts of a quorum queue.
    pub(super) fn has_count(self) -> bool {
        let headers = self.property(HEADERS_INDEX).unwrap_or_default();
        Entries(headers).any(|entry| COUNTS.contains(&entry.name))
    }

    /// Returns the properties without delivery counts, so that counting restarts after the move; `None` if the headers
    /// contain no counts. The next quorum queue would overwrite old counts, but a classic queue would keep them. A
    /// message without other headers keeps an empty table.
    fn without_counts(self) -> Option<Vec<u8>> {
        let Range { start, end } = self.position(HEADERS_INDEX).filter(|_| self.has_count())?;
        let headers = self.0.get(start..end)?;
        let (mut kept, mut read) = (Vec::new(), 0);
        for entry in Entries(headers) {
            read += entry.bytes.len();
            if !COUNTS.contains(&entry.name) {
                kept.extend(entry.bytes);
            }
        }
        // If an entry cannot be read, this entry and all following bytes are kept.
        kept.extend(headers.get(read..)?);
        let length = u32::try_from(kept.len()).ok()?.to_be_bytes();
        Some([self.0.get(..start.checked_sub(length.len())?)?, &length, &kept, self.0.get(end..)?].concat())
    }
}

/// Encodes the values of properties, in the order of [`PROPERTY_NAMES`]. The inverse of [`RawProperties::split`].
/// Returns `None` if a value is too long.
pub(super) fn join(parts: &[Option<&[u8]>; 14]) -> Option<Vec<u8>> {
    let mut flags = 0_u16;
    let mut encoded = vec![0, 0];
    for (index, (part, encoding)) in parts.iter().zip(&PROPERTIES).enumerate() {
        let Some(value) = part else { continue };
        flags |= 0x8000 >> index;
        match encoding {
            ShortString => encoded.push(u8::try_from(value.len()).ok()?),
            Table => encoded.extend(u32::try_from(value.len()).ok()?.to_be_bytes()),
            Bytes(_) => {}
        }
        encoded.extend(*value);
    }
    encoded.get_mut(..2)?.copy_from_slice(&flags.to_be_bytes());
    Some(encoded)
}

/// Returns the properties of a message without the delivery counts of a quorum queue.
pub(super) fn without_counts(properties: BasicProperties) -> BasicProperties {
    match RawProperties::extract(&properties).and_then(RawProperties::without_counts) {
        None => properties,
        Some(kept) => as_library_properties(kept),
    }
}

/// Hides encoded properties in the library's properties. The socket sends the encoded properties instead.
pub(super) fn as_library_properties(encoded: Vec<u8>) -> BasicProperties {
    let mut table = FieldTable::default();
    table.insert(NAME.into(), AMQPValue::ByteArray(encoded.into()));
    BasicProperties::default().with_headers(table)
}

/// The length of the bytes before the hidden properties: the flags, the table length, and the header's name, type and
/// length.
const PREFIX: usize = 2 + 4 + 1 + NAME.len() + 1 + 4;

/// Encodes flags and properties as one byte array in a header; `None` if the properties are too large.
pub(super) fn hide(raw: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(raw.len()).ok()?;
    let of_table = length.checked_add(u32::try_from(PREFIX).ok()? - 2 - 4)?;
    let name = [&[u8::try_from(NAME.len()).ok()?], NAME.as_bytes()].concat();
    Some([&HEADERS.to_be_bytes(), &of_table.to_be_bytes()[..], &name, b"x", &length.to_be_bytes(), raw].concat())
}

/// Returns the flags and properties that [`hide`] encoded; `None` for properties that the library itself created.
pub(super) fn reveal(properties: &[u8]) -> Option<&[u8]> {
    let raw = properties.get(PREFIX..)?;
    (hide(raw)?.get(..PREFIX) == properties.get(..PREFIX)).then_some(raw)
}

/// Returns the `user_id` property of encoded properties; `None` if the property is not set or cannot be read.
pub fn user_id(encoded_properties: &[u8]) -> Option<String> {
    RawProperties::of(encoded_properties).user_id()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw() -> Vec<u8> {
        // The content type, headers, a priority and the user ID.
        let flags: u16 = 0x8000 | HEADERS | 0x0800 | 0x10;
        let table = b"\x01aV\x10x-delivery-countl\0\0\0\0\0\0\0\x02\x01bF\0\0\0\x03\x01cV";
        let length = u32::try_from(table.len()).unwrap().to_be_bytes();
        [&flags.to_be_bytes(), &b"\x04text"[..], &length, table, b"\x05", b"\x02me"].concat()
    }

    fn parsed(raw: &[u8]) -> BasicProperties {
        let mut table = FieldTable::default();
        table.insert(NAME.into(), AMQPValue::ByteArray(raw.to_vec().into()));
        BasicProperties::default().with_headers(table)
    }

    #[test]
    fn hidden_properties_are_revealed() {
        for raw in [&[0, 0][..], &raw()] {
            let hidden = hide(raw).unwrap();
            assert_eq!(reveal(&hidden), Some(raw));
            // This also works if a publisher sent the same header.
            assert_eq!(reveal(&hide(&hidden).unwrap()), Some(&hidden[..]));
            assert_eq!(reveal(&hidden[..PREFIX - 1]), None);
        }
        assert_eq!(reveal(&raw()), None);
    }

    #[test]
    fn only_the_counts_are_removed() {
        let raw = raw();
        let properties = parsed(&raw);
        let read = RawProperties::extract(&properties).unwrap();
        assert_eq!(read.user_id().as_deref(), Some("me"));
        assert!(read.has_count());
        let kept = without_counts(properties);
        let read = RawProperties::extract(&kept).unwrap();
        assert!(!read.has_count());
        let headers = b"\x01aV\x01bF\0\0\0\x03\x01cV";
        let length = u32::try_from(headers.len()).unwrap().to_be_bytes();
        assert_eq!(read.0, [&raw[..7], &length, headers, b"\x05\x02me"].concat());
    }

    #[test]
    fn truncated_properties_are_unchanged() {
        let raw = raw();
        // The priority and the user ID follow the headers.
        let headers = raw.len() - 1 - 3;
        for end in 0..headers {
            let properties = parsed(&raw[..end]);
            assert_eq!(without_counts(properties.clone()), properties, "{end}");
        }
    }
}
