//! The properties of a message, byte by byte, as the broker sent them.
//!
//! The AMQP library parses headers recursively, on a thread with a small stack. A message with thousands of nested
//! tables overflows the stack, and the process aborts. So the socket hides all properties from the library
//! ([`super::frames`]): the library reads and writes them as one byte array in a header. This also preserves every
//! byte, such as text that is not UTF-8.

use super::field_table::{Entries, long, short};
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};
use std::ops::Range;

/// The header that holds the properties.
const NAME: &str = "topo";
/// The flags of properties that consist of headers.
const HEADERS: u16 = 1 << 13;
/// The numbers of deliveries by a quorum queue. Up to 3.12, the queue writes them at the first delivery, too
/// (`rabbit_fifo_client`).
const COUNTS: [&[u8]; 2] = [b"x-delivery-count", b"x-acquired-count"];

/// The encoding of a property.
enum Encoding {
    ShortString,
    Table,
    /// Bytes of a fixed length.
    Bytes(usize),
}

use Encoding::{Bytes, ShortString, Table};

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
const HEADERS_INDEX: usize = 2;
const USER_ID_INDEX: usize = 11;

/// The flags and the properties of a message.
#[derive(Clone, Copy)]
pub(super) struct RawProperties<'a>(&'a [u8]);

impl<'a> RawProperties<'a> {
    /// Returns the properties that the socket hid in the properties of the library.
    pub(super) fn hidden_in(properties: &'a BasicProperties) -> Option<Self> {
        let AMQPValue::ByteArray(bytes) = properties.headers().as_ref()?.inner().get(NAME)? else { return None };
        Some(Self(bytes.as_slice()))
    }

    /// Returns the position of the value of one property.
    fn position(self, desired: usize) -> Option<Range<usize>> {
        let (flags, mut rest) = self.0.split_first_chunk::<2>()?;
        let flags = u16::from_be_bytes(*flags);
        for (index, encoding) in PROPERTIES.iter().enumerate() {
            let is_set = flags & (0x8000 >> index) != 0;
            if !is_set {
                continue;
            }
            let (value, after) = match encoding {
                ShortString => short(rest)?,
                Table => long(rest)?,
                Bytes(length) => rest.split_at_checked(*length)?,
            };
            if index == desired {
                let end = self.0.len() - after.len();
                return Some(end - value.len()..end);
            }
            rest = after;
        }
        None
    }

    fn property(self, desired: usize) -> Option<&'a [u8]> {
        self.0.get(self.position(desired)?)
    }

    /// Returns the user that the publisher claims to be.
    pub(super) fn user_id(self) -> Option<String> {
        self.property(USER_ID_INDEX).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns true if a quorum queue has counted deliveries of this message.
    pub(super) fn has_count(self) -> bool {
        let headers = self.property(HEADERS_INDEX).unwrap_or_default();
        Entries(headers).any(|entry| COUNTS.contains(&entry.name))
    }

    /// Returns the properties as the publisher sent them, so that counting restarts with the move. The next quorum
    /// queue would overwrite the old numbers, and a classic queue would keep showing them. A message without other
    /// headers keeps an empty table.
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
        // An entry that cannot be read remains, like everything behind it.
        kept.extend(headers.get(read..)?);
        let length = u32::try_from(kept.len()).ok()?.to_be_bytes();
        Some([self.0.get(..start.checked_sub(length.len())?)?, &length, &kept, self.0.get(end..)?].concat())
    }
}

/// Returns the properties of a message without the counts of a quorum queue.
pub(super) fn without_counts(properties: BasicProperties) -> BasicProperties {
    match RawProperties::hidden_in(&properties).and_then(RawProperties::without_counts) {
        None => properties,
        Some(kept) => {
            let mut table = FieldTable::default();
            table.insert(NAME.into(), AMQPValue::ByteArray(kept.into()));
            BasicProperties::default().with_headers(table)
        }
    }
}

/// The length in front of the hidden properties: the flags, the length of the table, the name, the type and the length
/// of the value.
const PREFIX: usize = 2 + 4 + 1 + NAME.len() + 1 + 4;

/// Hides flags and properties.
pub(super) fn hide(raw: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(raw.len()).ok()?;
    let of_table = length.checked_add(u32::try_from(PREFIX).ok()? - 2 - 4)?;
    let name = [&[u8::try_from(NAME.len()).ok()?], NAME.as_bytes()].concat();
    Some([&HEADERS.to_be_bytes(), &of_table.to_be_bytes()[..], &name, b"x", &length.to_be_bytes(), raw].concat())
}

/// Returns hidden properties; `None` for properties of the library itself.
pub(super) fn reveal(properties: &[u8]) -> Option<&[u8]> {
    let raw = properties.get(PREFIX..)?;
    (hide(raw)?.get(..PREFIX) == properties.get(..PREFIX)).then_some(raw)
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
            // This also holds if a publisher sent the same header.
            assert_eq!(reveal(&hide(&hidden).unwrap()), Some(&hidden[..]));
            assert_eq!(reveal(&hidden[..PREFIX - 1]), None);
        }
        assert_eq!(reveal(&raw()), None);
    }

    #[test]
    fn only_the_counts_are_removed() {
        let raw = raw();
        let properties = parsed(&raw);
        let read = RawProperties::hidden_in(&properties).unwrap();
        assert_eq!(read.user_id().as_deref(), Some("me"));
        assert!(read.has_count());
        let kept = without_counts(properties);
        let read = RawProperties::hidden_in(&kept).unwrap();
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
