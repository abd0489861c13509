//! A temporary RabbitMQ node. `tests/brokers/node` runs the node until this process closes its pipe.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::{Http, Tls, User, Vhost, child, until};

/// The options of a separate node.
#[derive(Default)]
pub(crate) struct Options {
    arguments: Vec<String>,
    intervals: Option<[u32; 2]>,
}

/// Starts nodes with short intervals: 500 ms for `collect_statistics_interval` and `quorum_tick_interval`, so that
/// counts are updated ten times as often. The tests pass the intervals of each node to topo.
///
/// On RabbitMQ 3.10 and 4.0, the tick stays at 5 s. With 500 ms, a quorum queue of 3.10.8 and 4.0.5 sometimes crashes
/// while it is declared: `rabbit_quorum_queue:handle_tick/3` has no clause for a tick before the queue's state machine
/// has the newest version.
const SHORT: &str = "--short-intervals";

impl Options {
    /// Adds a line to `rabbitmq.conf`, such as `management.disable_stats = true`.
    pub(crate) fn line(mut self, line: &str) -> Self {
        self.arguments.extend(["--line".to_owned(), line.to_owned()]);
        self
    }

    /// Uses the broker's intervals of 5 s, which topo assumes by default.
    pub(crate) fn default_intervals(self) -> Self {
        self.intervals(5000, 5000)
    }

    /// Sets `collect_statistics_interval` and `quorum_tick_interval`, in milliseconds.
    pub(crate) fn intervals(mut self, statistics: u32, tick: u32) -> Self {
        self.intervals = Some([statistics, tick]);
        self
    }

    /// Enables an additional plugin, if the server has it.
    pub(crate) fn plugin(mut self, name: &str) -> Self {
        self.arguments.extend(["--plugin".to_owned(), name.to_owned()]);
        self
    }

    /// Disables a plugin, and all plugins whose names begin with its name.
    pub(crate) fn without_plugin(mut self, name: &str) -> Self {
        self.arguments.extend(["--without".to_owned(), name.to_owned()]);
        self
    }

    /// Also listens with TLS, for management and AMQP, and requires client certificates of this CA.
    pub(crate) fn tls(mut self, tls: &Tls) -> Self {
        self.arguments.extend(["--tls".to_owned(), tls.folder().display().to_string()]);
        self
    }

    /// Joins the cluster of this node.
    pub(crate) fn join(mut self, node: &Node) -> Self {
        self.arguments.extend(["--join".to_owned(), node.folder().display().to_string()]);
        self
    }

    /// Uses a different RabbitMQ: the path of its `rabbitmq-server`.
    pub(crate) fn server(mut self, path: &Path) -> Self {
        self.arguments.extend(["--server".to_owned(), path.display().to_string()]);
        self
    }
}

/// A running node on 127.0.0.1. When the value is dropped or this process ends, the script detects that its standard
/// input closes, kills the node and removes its folder.
pub(crate) struct Node {
    script: Child,
    facts: BTreeMap<String, String>,
    names: AtomicUsize,
}

impl Node {
    /// Returns the node that all tests of this process share, with default settings except for its intervals. A static
    /// is not dropped, but its pipe closes with the process.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<Node> = LazyLock::new(|| Node::start(Options::default()));
        &SHARED
    }

    /// Returns a second shared node, with the broker's own intervals of 5 s, for tests that act between two ticks.
    pub(crate) fn with_default_intervals() -> &'static Self {
        static SHARED: LazyLock<Node> = LazyLock::new(|| Node::start(Options::default().default_intervals()));
        &SHARED
    }

    /// Starts a separate node, and returns when it responds (6 to 10 s).
    pub(crate) fn start(options: Options) -> Self {
        Self::try_start(options).unwrap_or_else(|complaint| panic!("no RabbitMQ node could be started:\n{complaint}"))
    }

    /// Starts a separate node. Returns the error of a node that does not start.
    pub(crate) fn try_start(options: Options) -> Result<Self, String> {
        let intervals = match options.intervals {
            None => vec![SHORT.to_owned()],
            Some(given) => {
                let given = given.map(|interval| interval.to_string());
                std::iter::once("--intervals".to_owned()).chain(given).collect()
            }
        };
        let mut script = child(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/brokers/node"))
            .args(options.arguments)
            .args(intervals)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C on a terminal signals the foreground process group. The script must survive the signal to clean
            // up.
            .process_group(0)
            .spawn()
            .expect("tests/brokers/node is executable and bash is installed");
        let mut facts = BTreeMap::new();
        let lines = BufReader::new(script.stdout.take().expect("piped above"));
        for line in lines.lines() {
            match line.expect("the script writes UTF-8").split_once('=') {
                Some((name, value)) => facts.insert(name.to_owned(), value.to_owned()),
                None => return Ok(Self { script, facts, names: AtomicUsize::new(1) }),
            };
        }
        let mut complaint = String::new();
        script.stderr.take().expect("piped above").read_to_string(&mut complaint).expect("the script writes UTF-8");
        script.wait().expect("the script is a child of this process");
        Err(complaint)
    }

    /// Starts a cluster of three nodes (30 s).
    pub(crate) fn cluster() -> [Self; 3] {
        let first = Self::start(Options::default());
        let join = || Self::start(Options::default().join(&first));
        let (second, third) = std::thread::scope(|scope| {
            let second = scope.spawn(join);
            (join(), second.join().expect("a node"))
        });
        [first, second, third]
    }

    /// Runs `rabbitmqctl` on the node (one or two seconds).
    pub(crate) fn ctl<const N: usize>(&self, words: [&str; N]) {
        let mut command = child(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/brokers/node"));
        let output = command.arg("--ctl").arg(self.folder()).args(words).output().expect("bash is installed");
        assert!(output.status.success(), "rabbitmqctl {words:?}: {output:?}");
    }

    /// Kills the node without a shutdown.
    pub(crate) fn kill(&self) {
        let pid = self.fact("pid").to_owned();
        let sent = child("bash").args(["-c", "kill -s KILL \"$0\"", &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -s KILL {pid}");
    }

    /// Kills the node without a shutdown, starts it again with its data, and returns when it responds.
    pub(crate) fn kill_and_restart(&self) {
        let restarts = || fs::read_to_string(self.folder().join("restarts")).unwrap_or_default();
        let before = restarts();
        let pid = self.script.id().to_string();
        let sent = child("bash").args(["-c", "kill -s USR1 \"$0\"", &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -s USR1 {pid}");
        until("the restarted node", || (restarts() != before).then_some(()));
    }

    /// Expects that this version does not support this line of `rabbitmq.conf`, and does not start with it.
    pub(crate) fn expect_unknown(line: &str) {
        let complaint = Self::try_start(Options::default().line(line)).err();
        let complaint = complaint.unwrap_or_else(|| panic!("the node accepts `{line}`"));
        assert!(complaint.contains("failed_to_prepare_configuration"), "{complaint}");
    }

    fn fact(&self, name: &str) -> &str {
        self.facts.get(name).unwrap_or_else(|| panic!("tests/brokers/node did not print `{name}`"))
    }

    fn port(&self, name: &str) -> u16 {
        self.fact(name).parse().expect("the script prints ports as numbers")
    }

    /// Returns the intervals of the broker: `collect_statistics_interval` and `quorum_tick_interval`.
    pub(crate) fn broker_intervals(&self) -> [Duration; 2] {
        ["statistics_interval", "tick_interval"]
            .map(|name| Duration::from_millis(self.fact(name).parse().expect("the script prints intervals as numbers")))
    }

    /// Returns the environment variables with the intervals of this node.
    pub(crate) fn intervals(&self) -> [(&'static str, String); 2] {
        let interval = |name| format!("{}ms", self.fact(name));
        [
            ("TOPO_STATISTICS_INTERVAL", interval("statistics_interval")),
            ("TOPO_TICK_INTERVAL", interval("tick_interval")),
        ]
    }

    /// Returns RabbitMQ's version, such as `3.10.8`.
    pub(crate) fn version(&self) -> &str {
        self.fact("version")
    }

    /// Returns true from this release on: `is_at_least_patch(4, 3, 5)`.
    pub(crate) fn is_at_least_patch(&self, major: u32, minor: u32, patch: u32) -> bool {
        let mut parts = self.version().split('.').map(|part| part.parse().unwrap_or(0));
        [(); 3].map(|()| parts.next().unwrap_or(0)) >= [major, minor, patch]
    }

    /// Returns true from this series on: `at_least(4, 0)`.
    pub(crate) fn at_least(&self, major: u32, minor: u32) -> bool {
        let mut parts = self.version().split('.').map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (major, minor)
    }

    /// Returns the URL of the management API without TLS: `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.http_port())
    }

    /// Returns the URL of the management API with TLS, for a node started with [`Options::tls`]:
    /// `https://localhost:PORT`.
    pub(crate) fn tls_url(&self) -> String {
        format!("https://localhost:{}", self.port("https"))
    }

    pub(crate) fn http_port(&self) -> u16 {
        self.port("http")
    }

    pub(crate) fn amqp_port(&self) -> u16 {
        self.port("amqp")
    }

    /// Returns the node's temporary folder, which contains its data, logs and configuration.
    pub(crate) fn folder(&self) -> PathBuf {
        PathBuf::from(self.fact("folder"))
    }

    /// Returns the lines of the broker's log, from level `warning` on, that contain a text.
    pub(crate) fn logged(&self, text: &str) -> Vec<String> {
        let files = fs::read_dir(self.folder().join("log")).into_iter().flatten().flatten();
        let logs = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        logs.flat_map(|log| log.lines().filter(|line| line.contains(text)).map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    /// Returns the process IDs of the node and of its epmd.
    pub(crate) fn pids(&self) -> [u32; 2] {
        ["pid", "epmd_pid"].map(|name| self.fact(name).parse().expect("the script prints process ids as numbers"))
    }

    /// Returns a client of the management API, as administrator.
    pub(crate) fn http(&self) -> Http {
        Http::to(&self.url(), "guest", "guest")
    }

    /// Creates a vhost whose name begins with the hint. It is deleted when the value is dropped.
    pub(crate) fn vhost(&self, hint: &str) -> Vhost<'_> {
        Vhost::create(self, format!("{hint}-{}", self.names.fetch_add(1, Ordering::Relaxed)))
    }

    /// Creates a vhost with settings such as `{"default_queue_type": "quorum"}`, which some versions accept only at
    /// creation.
    pub(crate) fn vhost_with(&self, hint: &str, settings: &Value) -> Vhost<'_> {
        Vhost::create_with(self, format!("{hint}-{}", self.names.fetch_add(1, Ordering::Relaxed)), settings)
    }

    /// Creates a user with these tags (`"management"`, `"administrator,monitoring"`, `""`), who is deleted when the
    /// value is dropped. The user has no permissions until [`User::may`].
    pub(crate) fn user(&self, tags: &str) -> User<'_> {
        User::create(self, format!("user-{}", self.names.fetch_add(1, Ordering::Relaxed)), tags)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        // The script has its own timeouts. A failed wait must not hide the panic of the test.
        let _ = self.script.wait();
    }
}
