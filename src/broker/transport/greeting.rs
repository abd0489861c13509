//! Records the greeting of a broker, which it sends before the login. The AMQP library does not expose the greeting.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::field_table::{Entries, long};
use super::socket::Bytes;

/// Much more than a broker sends in its first frame.
const MAX_BYTES: usize = 8192;
/// The length in front of the arguments of the first frame: type, channel and size; class and method; the protocol
/// version.
const HEADER: usize = 7 + 4 + 2;

/// The first bytes from the broker.
#[derive(Clone, Default)]
pub(super) struct Greeting(Arc<Mutex<Vec<u8>>>);

impl Greeting {
    /// Clears the bytes for another connection.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn add(&self, bytes: &[u8]) {
        let mut greeting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_BYTES.saturating_sub(greeting.len());
        greeting.extend(bytes.iter().take(room));
    }

    /// Returns `cluster_name` of `connection.start`.
    pub(super) fn cluster(&self) -> Option<String> {
        let greeting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A method of channel 0: `connection.start`.
        let is_start = greeting.starts_with(&[1, 0, 0]) && greeting.get(7..11) == Some(&[0, 10, 0, 10]);
        let (table, _) = long(greeting.get(HEADER..).filter(|_| is_start)?)?;
        string(table, b"cluster_name")
    }
}

/// Returns the string with this name in a table.
fn string(table: &[u8], desired: &[u8]) -> Option<String> {
    let found = Entries(table).find(|entry| entry.name == desired && entry.kind == b'S')?;
    String::from_utf8(found.value.to_vec()).ok()
}

/// A stream that records the first bytes that it reads.
pub(super) struct TeeStream {
    pub(super) bytes: Box<dyn Bytes>,
    pub(super) greeting: Greeting,
}

impl AsyncRead for TeeStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.bytes).poll_read(context, into);
        self.greeting.add(&into.filled()[before..]);
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
        let greeting = Greeting::default();
        bytes.iter().for_each(|byte| greeting.add(&[*byte]));
        greeting.cluster()
    }

    #[test]
    fn cluster_name_is_read_from_the_greeting() {
        let capabilities = entry("capabilities", b'F', &entry("cluster_name", b't', &[1]));
        let name = entry("cluster_name", b'S', "rabbit@prodé".as_bytes());
        let greeting = start(&[capabilities.clone(), name, entry("product", b'S', b"RabbitMQ")].concat());
        assert_eq!(cluster(&greeting).as_deref(), Some("rabbit@prodé"));
        for end in 0..greeting.len() {
            // A truncated greeting never gives another name.
            assert!(cluster(&greeting[..end]).is_none_or(|name| name == "rabbit@prodé"), "{end}");
        }
        assert_eq!(cluster(&start(&capabilities)), None);
        assert_eq!(cluster(&start(&entry("cluster_name", b'T', &[0; 8]))), None);
        assert_eq!(cluster(b"HTTP/1.1 400 Bad Request\r\n"), None);
    }
}
