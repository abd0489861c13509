//! Reads AMQP 0-9-1 field tables from bytes without recursion, so that a table with thousands of nested tables does not
//! overflow the stack.

/// An iterator over the entries in a table. Ends at the first entry that cannot be read.
pub(super) struct Entries<'a>(pub(super) &'a [u8]);

/// An entry in a table.
pub(super) struct Entry<'a> {
    pub(super) name: &'a [u8],
    /// The type of the value, as a tag byte.
    pub(super) kind: u8,
    /// The bytes of the value, without its length prefix.
    pub(super) value: &'a [u8],
    /// The bytes of the whole entry.
    pub(super) bytes: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let (name, rest) = short(self.0)?;
        let (kind, rest) = rest.split_first()?;
        let (value, rest) = value(*kind, rest)?;
        let bytes = self.0.get(..self.0.len() - rest.len())?;
        self.0 = rest;
        Some(Entry { name, kind: *kind, value, bytes })
    }
}

/// Splits off a value of type `kind`. Returns the bytes of the value and the remaining bytes.
fn value(kind: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    match kind {
        b'S' | b'x' | b'F' | b'A' => long(bytes),
        b'V' => Some((&[], bytes)),
        b't' | b'b' | b'B' => bytes.split_at_checked(1),
        b's' | b'u' | b'U' => bytes.split_at_checked(2),
        b'I' | b'i' | b'f' => bytes.split_at_checked(4),
        b'D' => bytes.split_at_checked(5),
        b'l' | b'L' | b'd' | b'T' => bytes.split_at_checked(8),
        _ => None,
    }
}

/// Splits off a value with a length prefix of one byte. Returns the value and the remaining bytes.
pub(super) fn short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// Splits off a value with a length prefix of four bytes. Returns the value and the remaining bytes.
pub(super) fn long(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

/// Returns true if this table contains tables or lists that are nested deeper than `levels`.
pub(super) fn nests_deeper_than(levels: usize, table: &[u8]) -> bool {
    let mut open = vec![(table, b'F', levels)];
    while let Some((bytes, kind, left)) = open.pop() {
        let mut nested = |kind: u8, value| match (kind, left.checked_sub(1)) {
            (b'F' | b'A', None) => true,
            (b'F' | b'A', Some(left)) => {
                open.push((value, kind, left));
                false
            }
            _ => false,
        };
        let is_deeper = match kind {
            b'A' => Items(bytes).any(|(kind, value)| nested(kind, value)),
            _ => Entries(bytes).any(|entry| nested(entry.kind, entry.value)),
        };
        if is_deeper {
            return true;
        }
    }
    false
}

/// An iterator over the types and values in a list. Ends at the first value that cannot be read.
pub(super) struct Items<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Items<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, rest) = self.0.split_first()?;
        let (value, rest) = value(*kind, rest)?;
        self.0 = rest;
        Some((*kind, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize, kind: u8) -> Vec<u8> {
        let name: &[u8] = if kind == b'F' { &[0] } else { &[] };
        let mut table = Vec::new();
        for _ in 1..levels {
            let length = u32::try_from(table.len()).unwrap().to_be_bytes();
            table = [name, &[kind], &length, &table].concat();
        }
        [&[0, kind][..], &u32::try_from(table.len()).unwrap().to_be_bytes(), &table].concat()
    }

    #[test]
    fn depth_is_counted_without_recursion() {
        for kind in *b"FA" {
            assert!(!nests_deeper_than(3, &nested(3, kind)));
            assert!(nests_deeper_than(2, &nested(3, kind)));
            assert!(!nests_deeper_than(20_000, &nested(20_000, kind)));
        }
        assert!(!nests_deeper_than(0, b"\x01at\x01"));
    }

    #[test]
    fn iteration_ends_at_the_first_unreadable_entry() {
        let table = b"\x01at\x01\x01bS\0\0\0\x02hi\x01cV\x01d?";
        let read: Vec<(&[u8], u8, &[u8])> =
            Entries(table).map(|Entry { name, kind, value, .. }| (name, kind, value)).collect();
        assert_eq!(read, [(&b"a"[..], b't', &b"\x01"[..]), (b"b", b'S', b"hi"), (b"c", b'V', b"")]);
    }
}
