//! Rewrites AMQP frames between the socket and the AMQP library. Hides message properties from the library
//! ([`super::raw_properties`]), and refuses a broker's greeting that is nested too deeply for the library.

use super::field_table::{long, nests_deeper_than};
use super::raw_properties::{hide, reveal};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The length of a frame header: type, channel and size.
const FRAME_HEADER: usize = 7;
const METHOD: u8 = 1;
const CONTENT_HEADER: u8 = 2;
/// The first byte of a protocol header, which is not a frame.
const PROTOCOL: u8 = b'A';
const PROTOCOL_HEADER: usize = 8;
/// The length of the fields before the properties: class, weight and body size.
const BEFORE_PROPERTIES: usize = 12;
/// The class and the method of `connection.start`.
const START: [u8; 4] = [0, 10, 0, 10];
/// The length of the fields before the table of `connection.start`: class, method and protocol version.
const BEFORE_TABLE: usize = 4 + 2;
/// The maximum nesting depth of a greeting. A broker nests only its capabilities.
const MAX_GREETING_DEPTH: usize = 16;
/// The maximum size of a frame that is buffered until it is complete. This is much larger than the default `frame_max`
/// of 128 KiB.
const MAX_HELD_SIZE: usize = 16 << 20;
/// The size of the read buffer.
const READ_SIZE: usize = 64 << 10;
/// The number of unsent bytes above which the library must wait.
const MAX_UNSENT: usize = 256 << 10;

/// The direction of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    FromBroker,
    ToBroker,
}

/// A frame rewriter that receives the bytes in chunks of any size.
struct Rewriter {
    direction: Direction,
    /// The bytes of an incomplete frame, from its first byte.
    held: Vec<u8>,
    /// The number of remaining bytes of a frame that passes through unchanged.
    passing: usize,
}

impl Rewriter {
    fn new(direction: Direction) -> Self {
        Self { direction, held: Vec::new(), passing: 0 }
    }

    /// Reads a chunk, and appends the rewritten bytes to `out`.
    fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !bytes.is_empty() {
            let needed = if self.passing > 0 { self.passing } else { self.missing_bytes()? };
            let (part, rest) = bytes.split_at(needed.min(bytes.len()));
            bytes = rest;
            if self.passing > 0 {
                self.passing -= part.len();
                out.extend(part);
                continue;
            }
            self.held.extend(part);
            if part.len() == needed {
                self.process_held(out)?;
            }
        }
        Ok(())
    }

    /// Returns the number of bytes that are still needed for the next step.
    fn missing_bytes(&self) -> io::Result<usize> {
        Ok(match self.held.first() {
            None => 1,
            Some(&PROTOCOL) => PROTOCOL_HEADER - self.held.len(),
            Some(_) if self.held.len() < FRAME_HEADER => FRAME_HEADER - self.held.len(),
            Some(_) => {
                let whole = FRAME_HEADER + self.size() + 1;
                if whole > MAX_HELD_SIZE {
                    let reason = format!("the broker sent a frame that is too large ({whole} bytes)");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                }
                whole - self.held.len()
            }
        })
    }

    /// Returns the size of the held frame's payload, in bytes.
    fn size(&self) -> usize {
        let size = self.held.get(3..).and_then(<[u8]>::first_chunk::<4>);
        size.map_or(0, |size| u32::from_be_bytes(*size) as usize)
    }

    /// Passes the held bytes on, keeps them until the frame is complete, or rewrites them.
    fn process_held(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let (kind, length) = (self.held.first().copied(), self.held.len());
        match kind {
            Some(PROTOCOL) if length < PROTOCOL_HEADER => return Ok(()),
            Some(PROTOCOL) | None => out.append(&mut self.held),
            Some(_) if length < FRAME_HEADER => return Ok(()),
            Some(kind) if length == FRAME_HEADER => {
                let is_of_connection = self.held.get(1..3) == Some(&[0, 0]);
                let is_greeting = kind == METHOD && is_of_connection && self.direction == Direction::FromBroker;
                if kind != CONTENT_HEADER && !is_greeting {
                    self.passing = self.size() + 1;
                    out.append(&mut self.held);
                }
            }
            Some(_) => {
                let frame = std::mem::take(&mut self.held);
                self.rewrite(&frame, out)?;
            }
        }
        Ok(())
    }

    /// Rewrites a complete frame, and appends it to `out`.
    fn rewrite(&self, frame: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let (head, payload) = frame.split_at(FRAME_HEADER.min(frame.len()));
        if head.first() == Some(&METHOD) {
            let table = payload.strip_prefix(&START).and_then(|_| long(payload.get(BEFORE_TABLE..)?));
            if table.is_some_and(|(table, _)| nests_deeper_than(MAX_GREETING_DEPTH, table)) {
                let reason = "the properties of the broker's greeting are nested too deeply";
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
            out.extend(frame);
            return Ok(());
        }
        let rewritten = payload.split_at_checked(BEFORE_PROPERTIES).and_then(|(before, rest)| {
            let (end, properties) = rest.split_last()?;
            let hidden;
            let properties = match self.direction {
                Direction::FromBroker => {
                    hidden = hide(properties)?;
                    &hidden
                }
                Direction::ToBroker => reveal(properties)?,
            };
            let size = u32::try_from(before.len() + properties.len()).ok()?.to_be_bytes();
            Some([head.get(..3)?, &size, before, properties, &[*end]].concat())
        });
        out.extend(rewritten.as_deref().unwrap_or(frame));
        Ok(())
    }
}

/// A byte stream, with or without TLS.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// A socket that hides the properties of messages from the AMQP library.
pub(super) struct Frames {
    bytes: Box<dyn Bytes>,
    from_broker: Rewriter,
    to_broker: Rewriter,
    /// The rewritten bytes from the broker.
    received: Vec<u8>,
    /// The number of bytes in `received` that the library has read.
    read: usize,
    /// The rewritten bytes for the broker.
    unsent: Vec<u8>,
    /// The number of bytes in `unsent` that have been sent.
    sent: usize,
    /// The read buffer.
    chunk: Vec<u8>,
}

impl Frames {
    pub(super) fn new(bytes: Box<dyn Bytes>) -> Self {
        Self {
            bytes,
            from_broker: Rewriter::new(Direction::FromBroker),
            to_broker: Rewriter::new(Direction::ToBroker),
            received: Vec::new(),
            read: 0,
            unsent: Vec::new(),
            sent: 0,
            chunk: vec![0; READ_SIZE],
        }
    }

    /// Sends the unsent bytes.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.unsent.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.bytes).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.sent += sent,
            }
        }
        self.unsent.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Frames {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if let Some(rest) = this.received.get(this.read..).filter(|rest| !rest.is_empty()) {
                let count = rest.len().min(into.remaining());
                into.put_slice(&rest[..count]);
                this.read += count;
                return Poll::Ready(Ok(()));
            }
            this.received.clear();
            this.read = 0;
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.bytes).poll_read(context, &mut chunk))?;
            if chunk.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.from_broker.feed(chunk.filled(), &mut this.received)?;
        }
    }
}

impl AsyncWrite for Frames {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.unsent.len() - this.sent > MAX_UNSENT {
            ready!(this.poll_send(context))?;
        }
        this.to_broker.feed(bytes, &mut this.unsent)?;
        // A flush, which the library requests after each write, sends the rest.
        if let Poll::Ready(sent) = this.poll_send(context) {
            sent?;
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.bytes).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.bytes).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, channel: u8, payload: &[u8]) -> Vec<u8> {
        let size = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&[kind, 0, channel], &size[..], payload, &[206]].concat()
    }

    fn content_header(properties: &[u8]) -> Vec<u8> {
        frame(CONTENT_HEADER, 1, &[&[0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4], properties].concat())
    }

    fn rewritten(direction: Direction, bytes: &[u8], chunk: usize) -> io::Result<Vec<u8>> {
        let (mut rewriter, mut out) = (Rewriter::new(direction), Vec::new());
        for chunk in bytes.chunks(chunk) {
            rewriter.feed(chunk, &mut out)?;
        }
        Ok(out)
    }

    #[test]
    fn properties_are_hidden_and_revealed_in_chunks_of_any_size() {
        let properties = b"\x20\0\0\0\0\x06\0F\0\0\0\0";
        let around = |header: &[u8]| {
            let (method, body) = (frame(METHOD, 1, &[0, 60, 0, 60, 9]), frame(3, 1, b"body"));
            [&method, header, &body, &frame(8, 0, b"")].concat()
        };
        let (shown, hidden) =
            (around(&content_header(properties)), around(&content_header(&hide(properties).unwrap())));
        for chunk in [1, 2, 7, 8, 1000] {
            assert_eq!(rewritten(Direction::FromBroker, &shown, chunk).unwrap(), hidden, "{chunk}");
            assert_eq!(rewritten(Direction::ToBroker, &hidden, chunk).unwrap(), shown, "{chunk}");
            // Properties that the library itself created are unchanged.
            assert_eq!(rewritten(Direction::ToBroker, &shown, chunk).unwrap(), shown, "{chunk}");
            let greeting = [b"AMQP\0\0\x09\x01", &shown[..]].concat();
            assert_eq!(rewritten(Direction::ToBroker, &greeting, chunk).unwrap(), greeting, "{chunk}");
        }
    }

    #[test]
    fn deeply_nested_greeting_is_refused() {
        let greeting = |levels: usize| {
            let mut table = Vec::new();
            for _ in 0..levels {
                let length = u32::try_from(table.len()).unwrap().to_be_bytes();
                table = [&[0, b'F'], &length[..], &table].concat();
            }
            let length = u32::try_from(table.len()).unwrap().to_be_bytes();
            frame(METHOD, 0, &[&START, &[0, 9][..], &length, &table].concat())
        };
        let harmless = greeting(MAX_GREETING_DEPTH);
        assert_eq!(rewritten(Direction::FromBroker, &harmless, 5).unwrap(), harmless);
        let refused = rewritten(Direction::FromBroker, &greeting(MAX_GREETING_DEPTH + 1), 5).unwrap_err();
        assert!(refused.to_string().contains("too deeply"), "{refused}");
        assert!(rewritten(Direction::FromBroker, &[CONTENT_HEADER, 0, 1, 255, 255, 255, 255, 0], 9).is_err());
    }
}
