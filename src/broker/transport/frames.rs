//! Rewrites AMQP frames on their way through the socket: the properties of messages are hidden from the AMQP library
//! ([`super::raw_properties`]), and the greeting of a broker is refused where it nests too deeply for the library.

use super::field_table::{long, nests_deeper_than};
use super::raw_properties::{hide, reveal};
use super::socket::Bytes;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Type, channel and size.
const FRAME_HEADER: usize = 7;
const METHOD: u8 = 1;
const CONTENT_HEADER: u8 = 2;
/// The first byte of a protocol header, which is no frame.
const PROTOCOL: u8 = b'A';
const PROTOCOL_HEADER: usize = 8;
/// Class, weight and body size, in front of the properties.
const BEFORE_PROPERTIES: usize = 12;
/// `connection.start`, and the version of the protocol in front of its table.
const START: [u8; 4] = [0, 10, 0, 10];
const BEFORE_TABLE: usize = 4 + 2;
/// A broker nests its capabilities, and nothing else.
const DEEPEST_GREETING: usize = 16;
/// Much more than any broker sends in one frame that is held back: the default of `frame_max` is 128 KiB.
const LARGEST_HELD: usize = 16 << 20;
const READ_AT_ONCE: usize = 64 << 10;
/// While more is waiting to be sent, nothing is taken from the library.
const MOST_UNSENT: usize = 256 << 10;

/// Which way the frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    FromBroker,
    ToBroker,
}

/// Reads frames from pieces of any size.
struct Rewriter {
    direction: Direction,
    /// A frame of which a part is missing, from its first byte.
    held: Vec<u8>,
    /// How many bytes are left of a frame that passes through.
    passing: usize,
}

impl Rewriter {
    fn new(direction: Direction) -> Self {
        Self { direction, held: Vec::new(), passing: 0 }
    }

    /// Takes a piece, and appends what goes on.
    fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !bytes.is_empty() {
            let desired = if self.passing > 0 { self.passing } else { self.missing()? };
            let (taken, rest) = bytes.split_at(desired.min(bytes.len()));
            bytes = rest;
            if self.passing > 0 {
                self.passing -= taken.len();
                out.extend(taken);
                continue;
            }
            self.held.extend(taken);
            if taken.len() == desired {
                self.go_on(out)?;
            }
        }
        Ok(())
    }

    /// How many bytes must come before anything can be decided.
    fn missing(&self) -> io::Result<usize> {
        Ok(match self.held.first() {
            None => 1,
            Some(&PROTOCOL) => PROTOCOL_HEADER - self.held.len(),
            Some(_) if self.held.len() < FRAME_HEADER => FRAME_HEADER - self.held.len(),
            Some(_) => {
                let whole = FRAME_HEADER + self.size() + 1;
                if whole > LARGEST_HELD {
                    let reason = format!("the broker sent a frame of {whole} bytes");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                }
                whole - self.held.len()
            }
        })
    }

    /// The size of the payload.
    fn size(&self) -> usize {
        let size = self.held.get(3..).and_then(<[u8]>::first_chunk::<4>);
        size.map_or(0, |size| u32::from_be_bytes(*size) as usize)
    }

    /// Decides what happens to what is held.
    fn go_on(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
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

    /// Appends a whole frame.
    fn rewrite(&self, frame: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let (head, payload) = frame.split_at(FRAME_HEADER.min(frame.len()));
        if head.first() == Some(&METHOD) {
            let table = payload.strip_prefix(&START).and_then(|_| long(payload.get(BEFORE_TABLE..)?));
            if table.is_some_and(|(table, _)| nests_deeper_than(DEEPEST_GREETING, table)) {
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

/// A socket that hides the properties of messages.
pub(super) struct Frames {
    bytes: Box<dyn Bytes>,
    from_broker: Rewriter,
    to_broker: Rewriter,
    /// What came, and how much of it was handed out.
    came: Vec<u8>,
    handed_out: usize,
    /// What is to be sent, and how much of it was.
    unsent: Vec<u8>,
    sent: usize,
    piece: Vec<u8>,
}

impl Frames {
    pub(super) fn new(bytes: Box<dyn Bytes>) -> Self {
        Self {
            bytes,
            from_broker: Rewriter::new(Direction::FromBroker),
            to_broker: Rewriter::new(Direction::ToBroker),
            came: Vec::new(),
            handed_out: 0,
            unsent: Vec::new(),
            sent: 0,
            piece: vec![0; READ_AT_ONCE],
        }
    }

    /// Sends what is to be sent.
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
            if let Some(rest) = this.came.get(this.handed_out..).filter(|rest| !rest.is_empty()) {
                let count = rest.len().min(into.remaining());
                into.put_slice(&rest[..count]);
                this.handed_out += count;
                return Poll::Ready(Ok(()));
            }
            this.came.clear();
            this.handed_out = 0;
            let mut piece = ReadBuf::new(&mut this.piece);
            ready!(Pin::new(&mut this.bytes).poll_read(context, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.from_broker.feed(piece.filled(), &mut this.came)?;
        }
    }
}

impl AsyncWrite for Frames {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.unsent.len() - this.sent > MOST_UNSENT {
            ready!(this.poll_send(context))?;
        }
        this.to_broker.feed(bytes, &mut this.unsent)?;
        // What cannot be sent now is sent by a flush, which the library asks for after each write.
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

    fn rewritten(direction: Direction, bytes: &[u8], piece: usize) -> io::Result<Vec<u8>> {
        let (mut rewriter, mut out) = (Rewriter::new(direction), Vec::new());
        for piece in bytes.chunks(piece) {
            rewriter.feed(piece, &mut out)?;
        }
        Ok(out)
    }

    #[test]
    fn properties_are_hidden_and_revealed_in_pieces_of_any_size() {
        let properties = b"\x20\0\0\0\0\x06\0F\0\0\0\0";
        let around = |header: &[u8]| {
            let (method, body) = (frame(METHOD, 1, &[0, 60, 0, 60, 9]), frame(3, 1, b"body"));
            [&method, header, &body, &frame(8, 0, b"")].concat()
        };
        let (shown, hidden) =
            (around(&content_header(properties)), around(&content_header(&hide(properties).unwrap())));
        for piece in [1, 2, 7, 8, 1000] {
            assert_eq!(rewritten(Direction::FromBroker, &shown, piece).unwrap(), hidden, "{piece}");
            assert_eq!(rewritten(Direction::ToBroker, &hidden, piece).unwrap(), shown, "{piece}");
            // The library's own properties.
            assert_eq!(rewritten(Direction::ToBroker, &shown, piece).unwrap(), shown, "{piece}");
            let greeting = [b"AMQP\0\0\x09\x01", &shown[..]].concat();
            assert_eq!(rewritten(Direction::ToBroker, &greeting, piece).unwrap(), greeting, "{piece}");
        }
    }

    #[test]
    fn a_greeting_that_nests_deeply_is_refused() {
        let greeting = |levels: usize| {
            let mut table = Vec::new();
            for _ in 0..levels {
                let length = u32::try_from(table.len()).unwrap().to_be_bytes();
                table = [&[0, b'F'], &length[..], &table].concat();
            }
            let length = u32::try_from(table.len()).unwrap().to_be_bytes();
            frame(METHOD, 0, &[&START, &[0, 9][..], &length, &table].concat())
        };
        let harmless = greeting(DEEPEST_GREETING);
        assert_eq!(rewritten(Direction::FromBroker, &harmless, 5).unwrap(), harmless);
        let refused = rewritten(Direction::FromBroker, &greeting(DEEPEST_GREETING + 1), 5).unwrap_err();
        assert!(refused.to_string().contains("too deeply"), "{refused}");
        assert!(rewritten(Direction::FromBroker, &[CONTENT_HEADER, 0, 1, 255, 255, 255, 255, 0], 9).is_err());
    }
}
