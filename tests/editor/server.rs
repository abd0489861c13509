//! Implements a client of yaml-language-server: JSON-RPC over its standard streams.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::tool;
use crate::support::child;

/// The timeout of a response, which is sufficient on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server with its open documents.
pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    requests: u64,
    opened: u64,
}

/// Splits a text at the `|` that marks the cursor. Returns the text without it, and the line and character of the
/// cursor.
pub(crate) fn cursor(text: &str) -> (String, Value) {
    let (before, behind) = text.split_once('|').expect("the text contains a cursor");
    let line = before.matches('\n').count();
    let character = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count();
    (format!("{before}{behind}"), json!({"line": line, "character": character}))
}

impl Server {
    pub(crate) fn start() -> Self {
        let program = tool("yaml-language-server");
        let mut process = child("node")
            .args([program.as_str(), "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("node {program}: {error}"));
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut server = Self { child: process, input, messages, requests: 0, opened: 0 };
        let capabilities = json!({
            "workspace": {"configuration": true},
            "textDocument": {
                "hover": {"contentFormat": ["markdown"]},
                "completion": {"completionItem": {"snippetSupport": true, "documentationFormat": ["markdown"]}},
            },
        });
        server.request("initialize", json!({"processId": null, "rootUri": null, "capabilities": capabilities}));
        server.send(json!({"method": "initialized", "params": {}}));
        server
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let body = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        self.input.flush().unwrap();
    }

    /// Returns the first message that matches, and responds to requests of the server in the meantime.
    fn until<T>(&mut self, desired: impl Fn(&Value) -> Option<T>) -> T {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = match self.messages.recv_timeout(left) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => panic!("no response of the language server within {TIMEOUT:?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("the language server has ended"),
            };
            if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
                // The documents refer to the schema, so the server need not download schemas.
                let settings =
                    json!({"validate": true, "completion": true, "hover": true, "schemaStore": {"enable": false}});
                let setting = |item: &Value| if item["section"] == "yaml" { settings.clone() } else { Value::Null };
                let items = message["params"]["items"].as_array().cloned().unwrap_or_default();
                let result = if method == "workspace/configuration" {
                    Value::Array(items.iter().map(setting).collect())
                } else {
                    Value::Null
                };
                self.send(json!({"id": id, "result": result}));
            } else if let Some(found) = desired(&message) {
                return found;
            }
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(json!({"id": id, "method": method, "params": params}));
        self.until(|message| {
            (message["id"] == id && message.get("method").is_none()).then(|| message["result"].clone())
        })
    }

    /// Opens a document and returns its address and diagnostics.
    fn open(&mut self, text: &str) -> (String, Vec<Value>) {
        self.opened += 1;
        let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/topology.schema.json");
        let text = format!("# yaml-language-server: $schema={}\n{text}", schema.display());
        let uri = format!("file:///specs/{}.yaml", self.opened);
        let document = json!({"uri": uri, "languageId": "yaml", "version": 1, "text": text});
        self.send(json!({"method": "textDocument/didOpen", "params": {"textDocument": document}}));
        let desired = |message: &Value| {
            let is_it = message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri;
            is_it.then(|| message["params"]["diagnostics"].as_array().cloned().unwrap_or_default())
        };
        let diagnostics = self.until(desired);
        (uri, diagnostics)
    }

    /// Returns the diagnostics of a document: the underlined text, and the message.
    pub(crate) fn diagnostics(&mut self, text: &str) -> Vec<(String, String)> {
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let (_, diagnostics) = self.open(text);
        let underlined = |range: &Value| {
            // The first line of a document refers to the schema.
            let line = text.lines().nth(number(&range["start"]["line"]).saturating_sub(1)).unwrap_or_default();
            let (from, to) = (number(&range["start"]["character"]), number(&range["end"]["character"]));
            line.chars().take(to).skip(from).collect()
        };
        diagnostics.iter().map(|it| (underlined(&it["range"]), it["message"].as_str().unwrap().to_owned())).collect()
    }

    fn at_cursor(&mut self, method: &str, text: &str) -> Value {
        let (text, mut position) = cursor(text);
        position["line"] = (position["line"].as_u64().unwrap() + 1).into();
        let (uri, _) = self.open(&text);
        self.request(method, json!({"textDocument": {"uri": uri}, "position": position}))
    }

    /// Returns the completions at `|` with their documentation.
    pub(crate) fn completions(&mut self, text: &str) -> Vec<(String, String)> {
        let found = self.at_cursor("textDocument/completion", text);
        let items = found["items"].as_array().or(found.as_array()).cloned().unwrap_or_default();
        let meaning = |item: &Value| {
            let documentation = &item["documentation"];
            documentation["value"].as_str().or(documentation.as_str()).unwrap_or_default().to_owned()
        };
        items.iter().map(|item| (item["label"].as_str().unwrap().to_owned(), meaning(item))).collect()
    }

    /// Returns the hover text at `|`, without the line that shows its source.
    pub(crate) fn hover(&mut self, text: &str) -> String {
        let found = self.at_cursor("textDocument/hover", text);
        let text = found["contents"]["value"].as_str().unwrap_or_default();
        text.split("\n\nSource: ").next().unwrap_or_default().trim_end().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a message with its header and body.
fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
