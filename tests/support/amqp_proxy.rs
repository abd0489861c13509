//! A proxy for the broker's AMQP port. It forwards frames, counts the methods that make changes, and stops at one of
//! them. A proxy with slow channels delays deliveries.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::Node;

/// The point at which a proxy stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Before the n-th such method reaches the broker.
    Before(usize),
    /// After the broker executes the n-th such method, and before its response returns.
    After(usize),
}

#[derive(Default)]
struct State {
    stop: Option<Stop>,
    methods: Vec<&'static str>,
}

/// A proxy that listens on a separate port until it is dropped.
pub(crate) struct AmqpProxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    hangs: Arc<AtomicBool>,
    closed: Arc<AtomicBool>,
    slowness: Option<Arc<Slowness>>,
}

/// The deliveries that a proxy delays.
struct Slowness {
    /// The number of deliveries on each channel.
    deliveries: usize,
    delay: Duration,
    /// The number of deliveries that were delayed so far, on all channels.
    delayed: AtomicUsize,
}

/// A frame with its channel. `is_delivery` is true for the method `basic.deliver`.
struct Frame {
    channel: u16,
    is_delivery: bool,
    bytes: Vec<u8>,
}

impl AmqpProxy {
    pub(crate) fn to(node: &Node, stop: Option<Stop>) -> Self {
        Self::with(node, stop, None)
    }

    /// Creates a proxy that delays the first deliveries on each channel, each by this time. Later frames on that channel
    /// wait behind them, and other channels are not delayed. A broker causes the same delay while it encodes a message
    /// with deeply nested headers.
    pub(crate) fn slow(node: &Node, deliveries: usize, delay: Duration) -> Self {
        Self::with(node, None, Some(Slowness { deliveries, delay, delayed: AtomicUsize::new(0) }))
    }

    /// Returns the number of deliveries that were delayed so far.
    pub(crate) fn delayed(&self) -> usize {
        self.slowness.as_ref().map_or(0, |slowness| slowness.delayed.load(Ordering::Relaxed))
    }

    fn with(node: &Node, stop: Option<Stop>, slowness: Option<Slowness>) -> Self {
        let slowness = slowness.map(Arc::new);
        let port = node.amqp_port();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound above");
        let state = Arc::new(Mutex::new(State { stop, ..State::default() }));
        let road = Self { address, state, hangs: Arc::default(), closed: Arc::default(), slowness };
        let (state, hangs, closed) = (Arc::clone(&road.state), Arc::clone(&road.hangs), Arc::clone(&road.closed));
        let slowness = road.slowness.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if closed.load(Ordering::Relaxed) {
                    break;
                }
                let (state, hangs, slowness) = (Arc::clone(&state), Arc::clone(&hangs), slowness.clone());
                // Errors are ignored, because this proxy breaks connections intentionally.
                thread::spawn(move || {
                    client.and_then(|client| serve(&client, port, &state, &hangs, slowness.as_deref()))
                });
            }
        });
        road
    }

    /// Returns `amqp://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("amqp://{}", self.address)
    }

    /// Returns the methods that make changes, in order.
    pub(crate) fn methods(&self) -> Vec<&'static str> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).methods.clone()
    }

    /// Returns true if the proxy has stopped.
    pub(crate) fn hangs(&self) -> bool {
        self.hangs.load(Ordering::Relaxed)
    }
}

impl Drop for AmqpProxy {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // Wakes the listening thread, which then ends.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(
    client: &TcpStream,
    port: u16,
    state: &Mutex<State>,
    hangs: &AtomicBool,
    slowness: Option<&Slowness>,
) -> io::Result<()> {
    let broker = TcpStream::connect(("127.0.0.1", port))?;
    thread::scope(|scope| {
        let responses = scope.spawn(|| match slowness {
            Some(slowness) => forward_responses_slowly(&broker, client, slowness),
            None => forward_responses(&broker, client, hangs),
        });
        let result = forward_requests(client, &broker, state, hangs);
        let _ = broker.shutdown(Shutdown::Both);
        let _ = responses.join();
        let _ = client.shutdown(Shutdown::Both);
        result
    })
}

/// Forwards the broker's responses until the proxy stops, and then discards them.
fn forward_responses(mut broker: &TcpStream, mut client: &TcpStream, hangs: &AtomicBool) -> io::Result<()> {
    let mut buffer = [0; 16_384];
    loop {
        match broker.read(&mut buffer)? {
            0 => break,
            count if !hangs.load(Ordering::Relaxed) => client.write_all(&buffer[..count])?,
            _ => {}
        }
    }
    if !hangs.load(Ordering::Relaxed) {
        client.shutdown(Shutdown::Write)?;
    }
    Ok(())
}

/// Forwards the broker's frames, and delays the first deliveries on each channel.
fn forward_responses_slowly(broker: &TcpStream, client: &TcpStream, slowness: &Slowness) -> io::Result<()> {
    let (sender, frames) = channel();
    thread::scope(|scope| {
        let written = scope.spawn(move || write_responses_slowly(&frames, client, slowness));
        while let Ok(bytes) = read_frame(broker) {
            let is_delivery = bytes[0] == 1 && bytes[7..].starts_with(&[0, 60, 0, 60]);
            let channel = u16::from_be_bytes([bytes[1], bytes[2]]);
            if sender.send(Frame { channel, is_delivery, bytes }).is_err() {
                break;
            }
        }
        drop(sender);
        let _ = written.join();
    });
    client.shutdown(Shutdown::Write)
}

/// The frames of one channel that wait, each with the time at which it is written.
#[derive(Default)]
struct SlowChannel {
    deliveries: usize,
    waiting: VecDeque<(Instant, Vec<u8>)>,
}

fn write_responses_slowly(frames: &Receiver<Frame>, mut client: &TcpStream, slowness: &Slowness) -> io::Result<()> {
    let mut channels: BTreeMap<u16, SlowChannel> = BTreeMap::new();
    loop {
        let next = channels.values().filter_map(|channel| channel.waiting.front()).map(|(until, _)| *until).min();
        let wait = next.map_or(Duration::from_secs(1), |next| next.saturating_duration_since(Instant::now()));
        match frames.recv_timeout(wait) {
            Ok(Frame { channel, is_delivery, bytes }) => {
                let channel = channels.entry(channel).or_default();
                let mut until = channel.waiting.back().map_or_else(Instant::now, |(until, _)| *until);
                if is_delivery && channel.deliveries < slowness.deliveries {
                    channel.deliveries += 1;
                    slowness.delayed.fetch_add(1, Ordering::Relaxed);
                    until += slowness.delay;
                }
                channel.waiting.push_back((until, bytes));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        for channel in channels.values_mut() {
            let now = Instant::now();
            let due = channel.waiting.iter().take_while(|(until, _)| *until <= now).count();
            for (_, bytes) in channel.waiting.drain(..due) {
                client.write_all(&bytes)?;
            }
        }
    }
}

/// Reads a frame, which consists of the type, the channel, the size, the payload and the end marker.
fn read_frame(mut from: &TcpStream) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 7];
    from.read_exact(&mut frame)?;
    let size = u32::from_be_bytes([frame[3], frame[4], frame[5], frame[6]]) as usize;
    frame.resize(7 + size + 1, 0);
    from.read_exact(&mut frame[7..])?;
    Ok(frame)
}

fn forward_requests(
    mut client: &TcpStream,
    mut broker: &TcpStream,
    state: &Mutex<State>,
    hangs: &AtomicBool,
) -> io::Result<()> {
    let mut greeting = [0; 8];
    client.read_exact(&mut greeting)?;
    broker.write_all(&greeting)?;
    loop {
        let frame = read_frame(client)?;
        if hangs.load(Ordering::Relaxed) {
            continue;
        }
        let Some(method) = (frame[0] == 1).then(|| change(&frame[7..frame.len() - 1])).flatten() else {
            broker.write_all(&frame)?;
            continue;
        };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.methods.push(method);
        match state.stop {
            Some(Stop::Before(n)) if n == state.methods.len() => hangs.store(true, Ordering::Relaxed),
            Some(Stop::After(n)) if n == state.methods.len() => {
                hangs.store(true, Ordering::Relaxed);
                broker.write_all(&frame)?;
            }
            _ => broker.write_all(&frame)?,
        }
    }
}

/// Returns the method of a frame, if the method changes exchanges, queues or bindings.
fn change(payload: &[u8]) -> Option<&'static str> {
    let number = |at: usize| Some(u16::from_be_bytes([*payload.get(at)?, *payload.get(at + 1)?]));
    match (number(0)?, number(2)?) {
        // The flags follow a reserved number and the name; the first flag is `passive`.
        (50, 10) if payload.get(7 + usize::from(*payload.get(6)?))? & 1 == 0 => Some("queue.declare"),
        (50, 20) => Some("queue.bind"),
        (50, 40) => Some("queue.delete"),
        (50, 50) => Some("queue.unbind"),
        (40, 20) => Some("exchange.delete"),
        (40, 30) => Some("exchange.bind"),
        _ => None,
    }
}
