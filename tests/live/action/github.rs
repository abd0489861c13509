//! A substitute for GitHub: the API paths that the Action uses, and release downloads. Like GitHub, it pages comments,
//! limits their length, and requires a token.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use serde_json::{Value, json};

pub(super) const TOKEN: &str = "token-of-the-job";
pub(super) const REPOSITORY: &str = "people/shop";
const BOT: &str = "github-actions[bot]";
const LONGEST_COMMENT: usize = 65_536;

#[derive(Clone, Debug)]
pub(super) struct Comment {
    pub(super) id: u64,
    pub(super) pull: u64,
    pub(super) author: String,
    pub(super) body: String,
}

#[derive(Default)]
struct State {
    comments: Vec<Comment>,
    /// The recorded requests in order, such as `GET /repos/…`.
    asked: Vec<String>,
    files: BTreeMap<String, Vec<u8>>,
    /// The redirected paths, each with its target.
    redirects: BTreeMap<String, String>,
    /// The status with which writes are refused.
    refusal: Option<u16>,
    /// The status with which reads of pull requests and comments are refused.
    read_refusal: Option<u16>,
    /// The pull requests that merged each commit, with their base branches.
    merged: BTreeMap<String, Vec<(u64, String)>>,
}

#[derive(Clone)]
pub(super) struct GitHub {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl GitHub {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let github = Self { port: listener.local_addr().unwrap().port(), state: Arc::default() };
        let server = github.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                // The client may close the connection.
                thread::spawn(move || server.answer(&stream).is_ok());
            }
        });
        github
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Adds a comment.
    pub(super) fn comment(&self, pull: u64, author: &str, body: &str) {
        let mut state = self.state();
        let id = 1000 + state.comments.len() as u64;
        state.comments.push(Comment { id, pull, author: author.to_owned(), body: body.to_owned() });
    }

    pub(super) fn comments_of_bot(&self, pull: u64) -> Vec<Comment> {
        self.state().comments.iter().filter(|it| it.pull == pull && it.author == BOT).cloned().collect()
    }

    pub(super) fn all_comments(&self) -> usize {
        self.state().comments.len()
    }

    /// Returns the requests since the last call.
    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state().asked)
    }

    pub(super) fn refuse_writes(&self, status: u16) {
        self.state().refusal = Some(status);
    }

    pub(super) fn refuse_reads(&self, status: u16) {
        self.state().read_refusal = Some(status);
    }

    pub(super) fn merged(&self, commit: &str, pull: u64) {
        self.state().merged.insert(commit.to_owned(), vec![(pull, "main".to_owned())]);
    }

    pub(super) fn merged_into(&self, commit: &str, pull: u64, base: &str) {
        self.state().merged.entry(commit.to_owned()).or_default().push((pull, base.to_owned()));
    }

    /// Provides a release file for download.
    pub(super) fn offer(&self, path: String, content: Vec<u8>) {
        self.state().files.insert(path, content);
    }

    /// Redirects the download of a release file.
    pub(super) fn redirect(&self, path: String, target: String) {
        self.state().redirects.insert(path, target);
    }

    fn answer(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let header = |name: &str| {
            let of = |line: &String| {
                line.split_once(": ").filter(|(it, _)| it.eq_ignore_ascii_case(name))?.1.to_owned().into()
            };
            lines.iter().find_map(of).unwrap_or_else(String::new)
        };
        let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
        reader.read_exact(&mut body)?;
        let mut first = lines.first().cloned().unwrap_or_default();
        first.truncate(first.rfind(' ').unwrap_or(0));
        let (method, path) = first.split_once(' ').unwrap_or_default();
        self.state().asked.push(first.clone());

        let (status, more, content) = if let Some(target) = self.state().redirects.get(path) {
            (302, format!("location: {target}\r\n"), Vec::new())
        } else if let Some(file) = self.state().files.get(path) {
            (200, String::new(), file.clone())
        } else if header("authorization") != format!("Bearer {TOKEN}") {
            (401, String::new(), br#"{"message": "Bad credentials"}"#.to_vec())
        } else {
            let (status, more, answer) = self.api(method, path, serde_json::from_slice(&body).unwrap_or(Value::Null));
            (status, more, answer.to_string().into_bytes())
        };
        let length = content.len();
        write!(stream, "HTTP/1.1 {status} Stub\r\ncontent-length: {length}\r\nconnection: close\r\n{more}\r\n")?;
        stream.write_all(&content)
    }

    fn api(&self, method: &str, path: &str, body: Value) -> (u16, String, Value) {
        let nothing = |status: u16, message: &str| (status, String::new(), json!({ "message": message }));
        let mut state = self.state();
        let refusal = if method == "GET" { state.read_refusal } else { state.refusal };
        if let Some(status) = refusal {
            return nothing(status, "Resource not accessible by integration");
        }
        let text = body["body"].as_str().unwrap_or_default().to_owned();
        if method != "GET" && (text.is_empty() || text.chars().count() > LONGEST_COMMENT) {
            return nothing(422, "Body is too long (maximum is 65536 characters)");
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let Some(rest) = path.strip_prefix(&format!("/api/repos/{REPOSITORY}/")) else {
            return nothing(404, "Not Found");
        };
        let words: Vec<&str> = rest.split('/').collect();
        let shown = |it: &Comment| {
            let html = format!("https://github.example/{REPOSITORY}/pull/{}#issuecomment-{}", it.pull, it.id);
            json!({ "id": it.id, "body": it.body, "user": {"login": it.author}, "html_url": html })
        };
        match (method, words.as_slice()) {
            ("GET", ["commits", commit, "pulls"]) => {
                let pull = |number: u64, merged_at: Value, base: &str| json!({ "number": number, "merged_at": merged_at, "base": {"ref": base} });
                let merged = state.merged.get(*commit).into_iter().flatten();
                let merged = merged.map(|(number, base)| pull(*number, json!("now"), base));
                (200, String::new(), [pull(1, Value::Null, "main")].into_iter().chain(merged).collect())
            }
            ("GET", ["issues", pull, "comments"]) => {
                let number = |name: &str| query.split('&').find_map(|it| it.strip_prefix(name)?.parse::<usize>().ok());
                let (size, page) = (number("per_page=").unwrap_or(30).min(100), number("page=").unwrap_or(1));
                let of_pull: Vec<Value> =
                    state.comments.iter().filter(|it| it.pull.to_string() == *pull).map(shown).collect();
                let mut links = String::new();
                if page * size < of_pull.len() {
                    let link = |page: usize| format!("<{}{path}?per_page={size}&page={page}>", self.url());
                    let last = of_pull.len().div_ceil(size);
                    let _ = write!(links, "Link: {}; rel=\"next\", {}; rel=\"last\"\r\n", link(page + 1), link(last));
                }
                (200, links, of_pull.into_iter().skip((page - 1) * size).take(size).collect())
            }
            ("POST", ["issues", pull, "comments"]) => {
                let id = 1000 + state.comments.len() as u64;
                let comment = Comment { id, pull: pull.parse().unwrap(), author: BOT.to_owned(), body: text };
                let answer = shown(&comment);
                state.comments.push(comment);
                (201, String::new(), answer)
            }
            ("PATCH", ["issues", "comments", id]) => {
                match state.comments.iter_mut().find(|it| it.id.to_string() == *id) {
                    Some(comment) => {
                        comment.body = text;
                        (200, String::new(), shown(comment))
                    }
                    None => nothing(404, "Not Found"),
                }
            }
            (_, _) => nothing(404, "Not Found"),
        }
    }
}
