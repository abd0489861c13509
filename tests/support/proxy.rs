//! A faulty HTTP proxy for the broker. It forwards requests, records them, and injects the specified faults.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use super::{Node, until};

/// The requests to which a fault applies.
#[derive(Clone)]
pub(crate) struct Matching {
    method: Option<&'static str>,
    writes: bool,
    path: Option<String>,
    but: Option<&'static str>,
    which: Range<usize>,
}

fn of(method: Option<&'static str>) -> Matching {
    Matching { method, writes: false, path: None, but: None, which: 1..usize::MAX }
}

/// Matches every request.
pub(crate) fn any() -> Matching {
    of(None)
}

pub(crate) fn gets() -> Matching {
    of(Some("GET"))
}

pub(crate) fn puts() -> Matching {
    of(Some("PUT"))
}

pub(crate) fn posts() -> Matching {
    of(Some("POST"))
}

pub(crate) fn deletes() -> Matching {
    of(Some("DELETE"))
}

/// Matches every request that may make changes.
pub(crate) fn writes() -> Matching {
    Matching { writes: true, ..any() }
}

impl Matching {
    /// Matches only requests whose path and query contain this text.
    pub(crate) fn path(mut self, part: &str) -> Self {
        self.path = Some(part.to_owned());
        self
    }

    /// Matches only requests whose path does not contain this text.
    pub(crate) fn but(mut self, part: &'static str) -> Self {
        self.but = Some(part);
        self
    }

    /// Matches only the n-th request, counted from 1.
    pub(crate) fn nth(mut self, n: usize) -> Self {
        self.which = n..n + 1;
        self
    }

    /// Matches only the first n requests.
    pub(crate) fn first(mut self, n: usize) -> Self {
        self.which = 1..n + 1;
        self
    }

    /// Matches the n-th request and all later ones.
    pub(crate) fn from(mut self, n: usize) -> Self {
        self.which = n..usize::MAX;
        self
    }

    fn fits(&self, request: &Seen) -> bool {
        self.method.is_none_or(|method| method == request.method)
            && !(self.writes && request.method == "GET")
            && self.path.as_ref().is_none_or(|part| request.path.contains(part))
            && self.but.is_none_or(|part| !request.path.contains(part))
    }
}

/// A fault that replaces or delays a request.
pub(crate) enum Fault {
    /// Closes the connection before the request reaches the broker.
    CutBefore,
    /// Forwards the request, and closes the connection before the response.
    CutAfter,
    /// Forwards the request, and closes the connection in the middle of the response.
    CutWithin,
    /// Does not forward the request, and does not respond until the client disconnects.
    HangBefore,
    /// Forwards the request, and does not respond until the client disconnects.
    HangAfter,
    /// Responds with this status and an error in the form of the management API.
    Status(u16),
    /// Responds with this status and reason.
    Reason(u16, String),
    /// Responds with a page of a reverse proxy: status and HTML.
    Page(u16, &'static str),
    /// Responds with this JSON, which is computed for each request.
    Instead(Box<dyn FnMut() -> serde_json::Value + Send>),
    /// Responds with this text as JSON.
    Text(Arc<str>),
    /// Forwards the request after a delay.
    Delay(Duration),
    /// Calls a function (a publish, a deletion, a kill), and then forwards the request.
    Meanwhile(Box<dyn FnMut() + Send>),
}

/// A gate that blocks requests until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<AtomicBool>);

impl Gate {
    /// Returns a fault that blocks requests at this gate.
    pub(crate) fn fault(&self) -> Fault {
        let gate = Arc::clone(&self.0);
        Fault::Meanwhile(Box::new(move || until("an open gate", || gate.load(Ordering::Relaxed).then_some(()))))
    }

    pub(crate) fn open(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A recorded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
}

struct Rule {
    matching: Matching,
    seen: usize,
    fault: Arc<Mutex<Fault>>,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    requests: Vec<Seen>,
    hanging: usize,
}

/// A proxy that listens on a separate port until it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    connections: Arc<AtomicUsize>,
    closed: Arc<AtomicBool>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic in a test must not poison the proxy.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Proxy {
    /// Starts a proxy for the node's management API, without faults.
    pub(crate) fn to(node: &Node) -> Self {
        Self::to_port(node.http_port())
    }

    /// Starts a proxy for any local HTTP port, without faults.
    pub(crate) fn to_port(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound above");
        let proxy = Self { address, state: Arc::default(), connections: Arc::default(), closed: Arc::default() };
        let (state, connections) = (Arc::clone(&proxy.state), Arc::clone(&proxy.connections));
        let closed = Arc::clone(&proxy.closed);
        thread::spawn(move || {
            for client in listener.incoming() {
                if closed.load(Ordering::Relaxed) {
                    break;
                }
                let (state, connections) = (Arc::clone(&state), Arc::clone(&connections));
                connections.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || {
                    // Errors are ignored, because this proxy breaks connections intentionally.
                    let _ = client.and_then(|client| serve(&client, port, &state));
                    connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        proxy
    }

    /// Adds a fault for these requests. The first matching rule applies; counting starts now.
    pub(crate) fn on(self, matching: Matching, fault: Fault) -> Self {
        self.add(matching, fault);
        self
    }

    /// Adds a fault as [`Self::on`], to a proxy that is already in use.
    pub(crate) fn add(&self, matching: Matching, fault: Fault) {
        lock(&self.state).rules.push(Rule { matching, seen: 0, fault: Arc::new(Mutex::new(fault)) });
    }

    /// Removes all faults and recorded requests.
    pub(crate) fn reset(&self) {
        *lock(&self.state) = State::default();
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns every request so far, in order.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        lock(&self.state).requests.clone()
    }

    /// Returns the number of matching requests so far: `count(&gets().path("/api/queues"))`.
    pub(crate) fn count(&self, matching: &Matching) -> usize {
        lock(&self.state).requests.iter().filter(|request| matching.fits(request)).count()
    }

    /// Waits until all connections have ended, after the client was killed. An earlier request (a lock renewal) may
    /// still reach the broker before that.
    pub(crate) fn wait_until_idle(&self) {
        until("a proxy without connections", || (self.connections.load(Ordering::Relaxed) == 0).then_some(()));
    }

    /// Returns true if a request currently hangs, before or after the broker executed it.
    pub(crate) fn hangs(&self) -> bool {
        lock(&self.state).hanging > 0
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // Wakes the listening thread, which then ends.
        let _ = TcpStream::connect(self.address);
    }
}

/// The head and the body of a request or response, unmodified.
struct Exchange {
    first_line: String,
    bytes: Vec<u8>,
    closes: bool,
}

/// Reads a message. `bodiless` returns true for the head of a response without a length and without a body.
fn read_message(from: &mut impl BufRead, bodiless: impl Fn(&str) -> bool) -> io::Result<Option<Exchange>> {
    let mut message = Exchange { first_line: String::new(), bytes: Vec::new(), closes: false };
    let (mut length, mut chunked) = (None, false);
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return if message.bytes.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        message.bytes.extend(line.as_bytes());
        if message.first_line.is_empty() {
            line.trim_end().clone_into(&mut message.first_line);
        }
        let lower = line.to_ascii_lowercase();
        match lower.trim_end().split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().ok(),
            Some(("transfer-encoding", value)) => chunked = value.contains("chunked"),
            Some(("connection", value)) => message.closes = value.contains("close"),
            _ if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    if bodiless(&message.first_line) {
        return Ok(Some(message));
    }
    if chunked {
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16).map_err(|_| io::ErrorKind::InvalidData)?;
            message.bytes.extend(line.as_bytes());
            // Every chunk, including the last empty one, ends with a line end.
            read_exactly(from, &mut message.bytes, size + 2)?;
            if size == 0 {
                break;
            }
        }
    } else {
        read_exactly(from, &mut message.bytes, length.unwrap_or(0))?;
    }
    Ok(Some(message))
}

fn read_exactly(from: &mut impl Read, into: &mut Vec<u8>, length: usize) -> io::Result<()> {
    let start = into.len();
    into.resize(start + length, 0);
    from.read_exact(&mut into[start..])
}

/// Reads until the client disconnects.
fn until_gone(client: &mut impl Read, state: &Mutex<State>) -> io::Result<()> {
    lock(state).hanging += 1;
    io::copy(client, &mut io::sink()).map(drop)
}

fn artificial_error(status: u16, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Made up\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// Records a request and returns its fault.
fn note(state: &Mutex<State>, request: Seen) -> Option<Arc<Mutex<Fault>>> {
    let mut state = lock(state);
    let mut fault = None;
    for rule in state.rules.iter_mut().filter(|rule| rule.matching.fits(&request)) {
        rule.seen += 1;
        if fault.is_none() && rule.matching.which.contains(&rule.seen) {
            fault = Some(Arc::clone(&rule.fault));
        }
    }
    state.requests.push(request);
    fault
}

/// Serves a client connection with a separate broker connection for each request. The broker closes idle connections,
/// which the client would not notice.
fn serve(client: &TcpStream, port: u16, state: &Mutex<State>) -> io::Result<()> {
    let result = relay(client, port, state);
    // Closes both directions, because a half-open connection would resemble a slow broker.
    let _ = client.shutdown(Shutdown::Both);
    result
}

fn relay(mut client: &TcpStream, port: u16, state: &Mutex<State>) -> io::Result<()> {
    let mut from_client = BufReader::new(client);
    while let Some(request) = read_message(&mut from_client, |_| false)? {
        let mut words = request.first_line.split(' ').map(str::to_owned);
        let seen = Seen { method: words.next().unwrap_or_default(), path: words.next().unwrap_or_default() };
        let fault = note(state, seen);
        let mut fault = fault.as_deref().map(lock);
        let (mut cut, mut hangs) = (None, false);
        match fault.as_deref_mut() {
            None => {}
            Some(Fault::CutBefore) => return Ok(()),
            Some(Fault::CutAfter) => cut = Some(0),
            Some(Fault::CutWithin) => cut = Some(2),
            Some(Fault::HangBefore) => return until_gone(&mut from_client, state),
            Some(Fault::HangAfter) => hangs = true,
            Some(Fault::Status(status)) => {
                let body = format!(r#"{{"error":"made_up","reason":"status {status} for the test"}}"#);
                client.write_all(&artificial_error(*status, "application/json", &body))?;
                continue;
            }
            Some(Fault::Reason(status, reason)) => {
                let body = serde_json::json!({ "error": "made_up", "reason": reason }).to_string();
                client.write_all(&artificial_error(*status, "application/json", &body))?;
                continue;
            }
            Some(Fault::Page(status, html)) => {
                client.write_all(&artificial_error(*status, "text/html", html))?;
                continue;
            }
            Some(Fault::Instead(make)) => {
                client.write_all(&artificial_error(200, "application/json", &make().to_string()))?;
                continue;
            }
            Some(Fault::Text(text)) => {
                client.write_all(&artificial_error(200, "application/json", text))?;
                continue;
            }
            Some(Fault::Delay(time)) => thread::sleep(*time),
            Some(Fault::Meanwhile(act)) => act(),
        }
        drop(fault);
        let mut broker = TcpStream::connect(("127.0.0.1", port))?;
        broker.write_all(&request.bytes)?;
        let Some(answer) =
            read_message(&mut BufReader::new(broker), |line| line.contains(" 204 ") || line.contains(" 304 "))?
        else {
            return Ok(());
        };
        if hangs {
            return until_gone(&mut from_client, state);
        }
        match cut {
            None => client.write_all(&answer.bytes)?,
            Some(0) => return Ok(()),
            Some(parts) => return client.write_all(&answer.bytes[..answer.bytes.len() / parts]),
        }
        if answer.closes {
            return Ok(());
        }
    }
    Ok(())
}
