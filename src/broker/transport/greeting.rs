//! What a broker says of itself before anybody logs in. The AMQP library reads it and keeps it to itself, so it is overheard.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::field_table::{Entries, long};
use super::socket::Bytes;

/// Much more than a broker says in its first frame.
const MOST: usize = 8192;
/// In front of the first frame's arguments: type, channel, size; class and method; the version of the protocol.
const HEADER: usize = 7 + 4 + 2;

/// The first bytes that came in.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<u8>>>);

impl Heard {
    /// Another connection begins.
    pub(super) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn add(&self, bytes: &[u8]) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST.saturating_sub(heard.len());
        heard.extend(bytes.iter().take(room));
    }

    /// `cluster_name` of `connection.start`.
    pub(super) fn cluster(&self) -> Option<String> {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A method of channel 0: `connection.start`.
        let is_start = heard.starts_with(&[1, 0, 0]) && heard.get(7..11) == Some(&[0, 10, 0, 10]);
        let (table, _) = long(heard.get(HEADER..).filter(|_| is_start)?)?;
        text(table, b"cluster_name")
    }
}

/// The string of that name in a table.
fn text(table: &[u8], desired: &[u8]) -> Option<String> {
    let found = Entries(table).find(|entry| entry.name == desired && entry.kind == b'S')?;
    String::from_utf8(found.value.to_vec()).ok()
}

/// Bytes that are listened to as they come in.
pub(super) struct TeeStream {
    pub(super) bytes: Box<dyn Bytes>,
    pub(super) heard: Heard,
}

impl AsyncRead for TeeStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.bytes).poll_read(context, into);
        self.heard.add(&into.filled()[before..]);
        read
    }
}

impl AsyncWrite for TeeStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: u8, value: &[u8]) -> Vec<u8> {
        let length = if kind == b't' { Vec::new() } else { u32::try_from(value.len()).unwrap().to_be_bytes().to_vec() };
        [&[u8::try_from(name.len()).unwrap()], name.as_bytes(), &[kind], &length, value].concat()
    }

    fn start(table: &[u8]) -> Vec<u8> {
        let length = u32::try_from(table.len()).unwrap().to_be_bytes();
        let payload = [&[0, 10, 0, 10, 0, 9], &length[..], table].concat();
        let size = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&[1, 0, 0], &size[..], &payload, &[206]].concat()
    }

    fn cluster(bytes: &[u8]) -> Option<String> {
        let heard = Heard::default();
        bytes.iter().for_each(|byte| heard.add(&[*byte]));
        heard.cluster()
    }

    #[test]
    fn the_name_is_found_where_it_is_said() {
        let capabilities = entry("capabilities", b'F', &entry("cluster_name", b't', &[1]));
        let name = entry("cluster_name", b'S', "rabbit@prodé".as_bytes());
        let said = start(&[capabilities.clone(), name, entry("product", b'S', b"RabbitMQ")].concat());
        assert_eq!(cluster(&said).as_deref(), Some("rabbit@prodé"));
        for end in 0..said.len() {
            // However little came, nothing else is read into it.
            assert!(cluster(&said[..end]).is_none_or(|name| name == "rabbit@prodé"), "{end}");
        }
        assert_eq!(cluster(&start(&capabilities)), None);
        assert_eq!(cluster(&start(&entry("cluster_name", b'T', &[0; 8]))), None);
        assert_eq!(cluster(b"HTTP/1.1 400 Bad Request\r\n"), None);
    }
}
