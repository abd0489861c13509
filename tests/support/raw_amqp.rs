//! Sends and receives raw AMQP 0-9-1 frames, with messages that no client library can build or parse.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::vhost::Vhost;

/// The maximum frame size of a RabbitMQ node with default settings.
pub(crate) const FRAME_MAX: usize = 131_072;
/// The size of the type, channel and size before a payload, and of the end marker.
const FRAME_OVERHEAD: usize = 8;
/// The size of the class, weight and body size before the properties.
const CONTENT_HEADER: usize = 12;

/// A connection with one channel in confirm mode.
pub(crate) struct RawAmqp(TcpStream);

/// A message in the AMQP encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawMessage {
    pub(crate) key: Vec<u8>,
    /// The property flags and the properties.
    pub(crate) properties: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

fn short(bytes: &[u8]) -> Vec<u8> {
    [&[u8::try_from(bytes.len()).expect("a short string")], bytes].concat()
}

fn long(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).expect("a long string").to_be_bytes(), bytes].concat()
}

/// Returns properties with only a headers table of this content.
pub(crate) fn headers(table: &[u8]) -> Vec<u8> {
    [&[0x20, 0], &long(table)[..]].concat()
}

/// Returns a table with this number of nested tables.
pub(crate) fn nested(levels: usize) -> Vec<u8> {
    (0..levels)
        .rev()
        .flat_map(|below| {
            let length = u32::try_from(below * 6).expect("a frame holds less").to_be_bytes();
            [&[0, b'F'], &length[..]].concat()
        })
        .collect()
}

/// Returns properties with one header, which fill a frame up to this number of bytes.
pub(crate) fn properties_that_leave(free: usize) -> Vec<u8> {
    let entry = [&short(b"h")[..], b"x"].concat();
    let fixed = FRAME_OVERHEAD + CONTENT_HEADER + 2 + 4 + entry.len() + 4;
    headers(&[entry, long(&vec![7; FRAME_MAX - fixed - free])].concat())
}

impl RawAmqp {
    pub(crate) fn connect(vhost: &Vhost<'_>) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", vhost.node().amqp_port())).expect("the AMQP port");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        let mut raw = Self(stream);
        raw.0.write_all(b"AMQP\0\0\x09\x01").expect("a connection");
        raw.expect(&[0, 10, 0, 10]);
        let login = [long(b""), short(b"PLAIN"), long(b"\0guest\0guest"), short(b"en_US")].concat();
        raw.method(0, &[0, 10, 0, 11], &login);
        let tune = raw.expect(&[0, 10, 0, 30]);
        raw.method(0, &[0, 10, 0, 31], &tune[4..]);
        raw.method(0, &[0, 10, 0, 40], &[short(vhost.name().as_bytes()), short(b""), vec![0]].concat());
        raw.expect(&[0, 10, 0, 41]);
        raw.method(1, &[0, 20, 0, 10], &short(b""));
        raw.expect(&[0, 20, 0, 11]);
        raw.method(1, &[0, 85, 0, 10], &[0]);
        raw.expect(&[0, 85, 0, 11]);
        raw
    }

    fn frame(&mut self, kind: u8, channel: u8, payload: &[u8]) {
        let frame = [&[kind, 0, channel], &long(payload)[..], &[206]].concat();
        self.0.write_all(&frame).expect("a connection");
    }

    fn method(&mut self, channel: u8, id: &[u8], arguments: &[u8]) {
        self.frame(1, channel, &[id, arguments].concat());
    }

    /// Returns the payload of the next frame other than a heartbeat.
    fn next(&mut self) -> Vec<u8> {
        loop {
            let mut head = [0; 7];
            self.0.read_exact(&mut head).expect("a frame");
            let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
            let mut payload = vec![0; size + 1];
            self.0.read_exact(&mut payload).expect("a whole frame");
            payload.pop();
            if head[0] != 8 {
                return payload;
            }
        }
    }

    #[track_caller]
    fn expect(&mut self, id: &[u8]) -> Vec<u8> {
        let payload = self.next();
        assert!(payload.starts_with(id), "expected method {id:?}: {:?}", String::from_utf8_lossy(&payload));
        payload
    }

    /// Publishes a message and waits for the confirm.
    #[track_caller]
    pub(crate) fn publish(&mut self, exchange: &str, message: &RawMessage) {
        let RawMessage { key, properties, body } = message;
        let arguments = [vec![0, 0], short(exchange.as_bytes()), short(key), vec![1]].concat();
        self.method(1, &[0, 60, 0, 40], &arguments);
        let size = (body.len() as u64).to_be_bytes();
        self.frame(2, 1, &[&[0, 60, 0, 0], &size[..], properties].concat());
        self.frame(3, 1, body);
        self.expect(&[0, 60, 0, 80]);
    }

    /// Receives the first message of a queue.
    pub(crate) fn take(&mut self, queue: &str) -> Option<RawMessage> {
        self.method(1, &[0, 60, 0, 70], &[vec![0, 0], short(queue.as_bytes()), vec![1]].concat());
        let answer = self.next();
        if answer.starts_with(&[0, 60, 0, 72]) {
            return None;
        }
        assert!(answer.starts_with(&[0, 60, 0, 71]), "{:?}", String::from_utf8_lossy(&answer));
        // Skips the delivery tag, the flag and the exchange.
        let rest = &answer[4 + 8 + 1..];
        let rest = &rest[1 + usize::from(rest[0])..];
        let key = rest[1..=usize::from(rest[0])].to_vec();
        let header = self.next();
        let size = u64::from_be_bytes(header[4..12].try_into().expect("eight bytes"));
        let mut body = Vec::new();
        while (body.len() as u64) < size {
            body.extend(self.next());
        }
        Some(RawMessage { key, properties: header[12..].to_vec(), body })
    }

    /// Receives all messages of a queue.
    pub(crate) fn take_all(&mut self, queue: &str) -> Vec<RawMessage> {
        std::iter::from_fn(|| self.take(queue)).collect()
    }
}
