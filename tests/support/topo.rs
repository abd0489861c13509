//! Runs the real binary as a user or a pipeline does: with a cleared environment, a fixed width and a separate folder.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::{Node, Proxy, User, Vhost, child, temp_dir, until, valid_plan, valid_test_results};

/// A folder, an environment and a connection for one or several runs of `topo`.
pub(crate) struct Topo {
    program: PathBuf,
    folder: TempDir,
    environment: BTreeMap<String, String>,
    vhost: Option<String>,
    input: Option<String>,
    timeout: Duration,
}

impl Topo {
    /// Returns a runner without a connection.
    pub(crate) fn offline() -> Self {
        Self::of(Path::new(env!("CARGO_BIN_EXE_topo")))
    }

    /// Returns a runner for a program other than topo, to test this runner.
    pub(crate) fn of(program: &Path) -> Self {
        let folder = temp_dir::folder();
        // Sets HOME, so that topo reads no `~/.rabbitmqadmin.conf`.
        let home = folder.path().display().to_string();
        let environment = [("COLUMNS", "100"), ("LANG", "C.UTF-8"), ("HOME", &home)];
        Self {
            program: program.to_owned(),
            environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            folder,
            vhost: None,
            input: None,
            // topo may send a request five times, each with a timeout of 30 s.
            timeout: Duration::from_secs(180),
        }
    }

    /// Returns a runner that connects to this vhost of its node, as administrator.
    pub(crate) fn new(vhost: &Vhost<'_>) -> Self {
        Self::for_name(vhost.node(), vhost.name())
    }

    /// Returns a runner for a vhost that does not exist yet.
    pub(crate) fn for_name(node: &Node, vhost: &str) -> Self {
        let mut topo = Self::offline();
        topo.vhost = Some(vhost.to_owned());
        topo.environment.extend(node.intervals().map(|(name, value)| (name.to_owned(), value)));
        topo.url(&node.url()).env("TOPO_USERNAME", "guest").env("TOPO_PASSWORD", "guest")
    }

    pub(crate) fn url(self, url: &str) -> Self {
        self.env("TOPO_URL", url)
    }

    /// Connects through the proxy instead of directly to the node.
    pub(crate) fn through(self, proxy: &Proxy) -> Self {
        let url = proxy.url();
        self.url(&url)
    }

    /// Connects as this user instead of the administrator.
    pub(crate) fn user(self, user: &User<'_>) -> Self {
        self.env("TOPO_USERNAME", &user.name).env("TOPO_PASSWORD", &user.password)
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.environment.remove(name);
        self
    }

    /// Writes a file into the folder, possibly between two runs. Replaces `{vhost}` in the content with the name of the
    /// vhost.
    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a file in a folder")).expect("the folder is writable");
        fs::write(path, self.filled(content)).expect("the folder is writable");
    }

    pub(crate) fn file(self, name: &str, content: &str) -> Self {
        self.write(name, content);
        self
    }

    /// Writes `topology.yaml`, the default spec. A text without `version:` gets a version and the vhost.
    pub(crate) fn spec(self, yaml: &str) -> Self {
        self.rewrite(yaml);
        self
    }

    /// Writes the default spec as [`Self::spec`], between two runs.
    pub(crate) fn rewrite(&self, yaml: &str) {
        if yaml.trim_start().starts_with("version:") {
            self.write("topology.yaml", yaml);
        } else {
            let vhost = serde_json::json!(self.vhost.as_deref().unwrap_or("/"));
            self.write("topology.yaml", &format!("version: 1\nvhost: {vhost}\n{yaml}"));
        }
    }

    /// Sets standard input, which is closed by default.
    pub(crate) fn input(mut self, text: &str) -> Self {
        self.input = Some(text.to_owned());
        self
    }

    /// Sets the time limit of a run, which is 180 s by default.
    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the content of a file in the folder, such as an output file.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn filled(&self, text: &str) -> String {
        match &self.vhost {
            Some(vhost) => text.replace("{vhost}", vhost),
            None => text.to_owned(),
        }
    }

    /// Starts a run without waiting for its end. Replaces `{vhost}` in an argument with the name of the vhost.
    pub(crate) fn start<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Running {
        let arguments: Vec<String> = arguments.into_iter().map(|argument| self.filled(argument)).collect();
        let mut child = child(&self.program)
            .args(&arguments)
            .env_clear()
            .envs(&self.environment)
            .current_dir(self.folder.path())
            .stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", self.program.display()));
        if let (Some(text), Some(mut input)) = (&self.input, child.stdin.take()) {
            let text = text.clone();
            // Writes on a separate thread, because a program that does not read its input would block this thread.
            thread::spawn(move || input.write_all(text.as_bytes()));
        }
        Running {
            stdout: Heard::of(child.stdout.take().expect("piped above")),
            stderr: Heard::of(child.stderr.take().expect("piped above")),
            command: format!("{} {}", self.program.display(), arguments.join(" ")),
            deadline: Instant::now() + self.timeout,
            child: Kept(child),
        }
    }

    /// Runs topo to completion.
    pub(crate) fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Output {
        self.start(arguments).wait()
    }
}

/// The content of a stream so far, and whether the stream has ended.
struct Heard {
    bytes: Arc<Mutex<Vec<u8>>>,
    over: JoinHandle<()>,
}

impl Heard {
    fn of(mut stream: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&bytes);
        let over = thread::spawn(move || {
            let mut some = [0; 4096];
            // Keeps the output before a read error.
            while let Ok(count @ 1..) = stream.read(&mut some) {
                heard.lock().expect("no thread panics with it").extend(&some[..count]);
            }
        });
        Self { bytes, over }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("no thread panics with it")).into_owned()
    }

    fn into_all(self) -> String {
        let Self { bytes, over } = self;
        let _ = over.join();
        String::from_utf8_lossy(&bytes.lock().expect("no thread panics with it")).into_owned()
    }
}

/// A child process, which is killed when the value is dropped.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        // Both calls fail if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run in progress. Dropping the value kills the process.
pub(crate) struct Running {
    child: Kept,
    command: String,
    deadline: Instant,
    stdout: Heard,
    stderr: Heard,
}

impl Running {
    /// Sends a signal by name: `INT`, `TERM`, `KILL`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        until("env to become the program", || (!self.is_env()).then_some(()));
        let sent = child("bash").args(["-c", "kill -s \"$0\" \"$1\"", name, &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -s {name} {pid}");
    }

    /// Sends the signal, and waits until the run has received it.
    pub(crate) fn interrupt(&self, name: &str) {
        self.signal(name);
        let reported = "stopping after the current step";
        until("the run to receive the signal", || self.stderr.so_far().contains(reported).then_some(()));
    }

    /// Returns true if the process is still `env`, which may not have restored the signals.
    fn is_env(&self) -> bool {
        static PATH: LazyLock<PathBuf> =
            LazyLock::new(|| fs::canonicalize(child::ENV).expect("coreutils are installed"));
        // A process that has ended has no program.
        fs::read_link(format!("/proc/{}/exe", self.pid())).is_ok_and(|program| program == *PATH)
    }

    /// Returns the standard output so far.
    pub(crate) fn printed(&self) -> String {
        self.stdout.so_far()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Returns the peak memory of the run so far, in KiB; `None` after its end.
    pub(crate) fn peak_kib(&self) -> Option<u64> {
        let status = fs::read_to_string(Path::new("/proc").join(self.pid().to_string()).join("status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.0.try_wait().expect("a child of this process").is_some()
    }

    /// Waits for the end of the run. After the deadline, kills the run and fails with its output.
    pub(crate) fn wait(mut self) -> Output {
        let mut in_time = true;
        while in_time && !self.is_over() {
            thread::sleep(Duration::from_millis(5));
            in_time = Instant::now() < self.deadline;
        }
        if !in_time {
            self.child.0.kill().expect("a child of this process");
        }
        let status = self.child.0.wait().expect("a child of this process");
        // Children of a killed program could keep the streams open, but topo has no children.
        let [stdout, stderr] = [self.stdout, self.stderr].map(Heard::into_all);
        let output = Output { command: self.command, code: status.code(), stdout, stderr };
        assert!(in_time, "not over in time, killed: {output}");
        output
    }
}

/// The result of a run.
pub(crate) struct Output {
    command: String,
    /// The exit code; `None` after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, code, stdout, stderr } = self;
        write!(f, "$ {command}\nexit code {code:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}\n---")
    }
}

impl Output {
    /// Returns standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Returns standard output as a JSON plan that matches the committed schema.
    #[track_caller]
    pub(crate) fn plan(&self) -> Value {
        let plan = self.json();
        valid_plan(&plan);
        plan
    }

    /// Returns standard output as JSON test results that match the committed schema.
    #[track_caller]
    pub(crate) fn test_results(&self) -> Value {
        let results = self.json();
        valid_test_results(&results);
        results
    }

    /// Fails with both streams unless the run ended with this exit code.
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert!(self.code == Some(code), "expected exit code {code}: {self}");
        self
    }

    /// Fails unless standard output or standard error contains this text, wrapped or not.
    #[track_caller]
    pub(crate) fn expect_text(self, text: &str) -> Self {
        assert!(self.says(text), "expected `{text}`: {self}");
        self
    }

    /// Fails if either stream contains this text, such as a secret.
    #[track_caller]
    pub(crate) fn expect_no_text(self, text: &str) -> Self {
        assert!(!self.says(text), "expected no `{text}`: {self}");
        self
    }

    /// Returns true if either stream contains this text. Joins wrapped lines.
    pub(crate) fn says(&self, text: &str) -> bool {
        let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        [&self.stdout, &self.stderr].iter().any(|it| it.contains(text) || in_one_line(it).contains(&in_one_line(text)))
    }

    /// Fails unless standard error has exactly one line that begins with `error:`, with this text.
    #[track_caller]
    pub(crate) fn expect_error(self, text: &str) -> Self {
        let errors: Vec<&str> = self.stderr.lines().filter(|line| line.starts_with("error")).collect();
        assert!(errors.len() == 1 && errors[0].starts_with("error: "), "expected one error: {self}");
        assert!(errors[0].contains(text), "expected an error with `{text}`: {self}");
        self
    }

    /// Fails unless standard output is empty.
    #[track_caller]
    pub(crate) fn expect_no_result(self) -> Self {
        assert!(self.stdout.is_empty(), "expected nothing on standard output: {self}");
        self
    }
}
