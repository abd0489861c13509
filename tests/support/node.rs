//! A throwaway RabbitMQ node, run by `tests/brokers/node` for as long as this process holds the pipe to it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use topo::model::Intervals;

use super::{Http, Tls, User, Vhost, child};

/// What a node of one's own needs that the shared one has not.
#[derive(Default)]
pub(crate) struct Options {
    arguments: Vec<String>,
    intervals: Option<[u32; 2]>,
}

/// With `TOPO_SHORT_INTERVALS=1`, the nodes start with short intervals: 500 ms for `collect_statistics_interval` and
/// `quorum_tick_interval`. topo is told of the intervals of each node, so no test depends on them.
///
/// On RabbitMQ 3.10 the tick stays at 5 s. With 500 ms, a quorum queue of 3.10.8 sometimes crashes while it is declared: a
/// tick before its machine has the newest version has no clause in `rabbit_quorum_queue:handle_tick/3`.
const SHORT: &str = "--short-intervals";

/// The intervals of the broker.
const DEFAULT: [u32; 2] = [5000, 5000];

impl Options {
    /// One more line of `rabbitmq.conf`, such as `management.disable_stats = true`.
    pub(crate) fn line(mut self, line: &str) -> Self {
        self.arguments.extend(["--line".to_owned(), line.to_owned()]);
        self
    }

    /// The broker's own intervals of 5 s, which topo assumes where nothing else is specified.
    pub(crate) fn default_intervals(self) -> Self {
        self.intervals(DEFAULT[0], DEFAULT[1])
    }

    /// A `collect_statistics_interval` and a `quorum_tick_interval`, in milliseconds.
    pub(crate) fn intervals(mut self, statistics: u32, tick: u32) -> Self {
        self.intervals = Some([statistics, tick]);
        self
    }

    /// One more plugin, where the server has it.
    pub(crate) fn plugin(mut self, name: &str) -> Self {
        self.arguments.extend(["--plugin".to_owned(), name.to_owned()]);
        self
    }

    /// One plugin less, and those whose names begin with its.
    pub(crate) fn without_plugin(mut self, name: &str) -> Self {
        self.arguments.extend(["--without".to_owned(), name.to_owned()]);
        self
    }

    /// Also listens with TLS, for management and AMQP, and refuses clients without a certificate of that CA.
    pub(crate) fn tls(mut self, tls: &Tls) -> Self {
        self.arguments.extend(["--tls".to_owned(), tls.folder().display().to_string()]);
        self
    }

    /// Makes a cluster with that node.
    pub(crate) fn join(mut self, node: &Node) -> Self {
        self.arguments.extend(["--join".to_owned(), node.folder().display().to_string()]);
        self
    }

    /// Another RabbitMQ than the installed one: the path of its `rabbitmq-server`.
    pub(crate) fn server(mut self, path: &Path) -> Self {
        self.arguments.extend(["--server".to_owned(), path.display().to_string()]);
        self
    }
}

/// A running node on 127.0.0.1. Dropping it kills it and removes its folder; so does the end of this process, however
/// it ends, because the script sees its standard input close.
pub(crate) struct Node {
    script: Child,
    facts: BTreeMap<String, String>,
    names: AtomicUsize,
}

impl Node {
    /// The node that all tests of this process share: with the defaults of the broker, except for its intervals. Never taken down by hand: a
    /// static is not dropped, but its pipe is closed with the process.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<Node> = LazyLock::new(|| Node::start(Options::default()));
        &SHARED
    }

    /// Starts a node of one's own; returns when it answers (6 to 10 s).
    pub(crate) fn start(options: Options) -> Self {
        Self::try_start(options).unwrap_or_else(|complaint| panic!("no RabbitMQ node could be started:\n{complaint}"))
    }

    /// The same, or what is said of a node that does not start.
    pub(crate) fn try_start(options: Options) -> Result<Self, String> {
        let is_short = std::env::var_os("TOPO_SHORT_INTERVALS").is_some();
        let intervals = match options.intervals {
            None if is_short => vec![SHORT.to_owned()],
            given => {
                let given = given.unwrap_or(DEFAULT).map(|interval| interval.to_string());
                std::iter::once("--intervals".to_owned()).chain(given).collect()
            }
        };
        let mut script = child(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/brokers/node"))
            .args(options.arguments)
            .args(intervals)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C on a terminal goes to the foreground group: the script must outlive it to clean up.
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

    /// Starts three nodes that are one cluster (30 s).
    pub(crate) fn cluster() -> [Self; 3] {
        let first = Self::start(Options::default());
        let join = || Self::start(Options::default().join(&first));
        let (second, third) = std::thread::scope(|scope| {
            let second = scope.spawn(join);
            (join(), second.join().expect("a node"))
        });
        [first, second, third]
    }

    /// Runs `rabbitmqctl` on it (a second or two).
    pub(crate) fn ctl<const N: usize>(&self, words: [&str; N]) {
        let mut command = child(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/brokers/node"));
        let output = command.arg("--ctl").arg(self.folder()).args(words).output().expect("bash is installed");
        assert!(output.status.success(), "rabbitmqctl {words:?}: {output:?}");
    }

    /// Kills it, as a machine that loses its power; what it has stored is gone with it.
    pub(crate) fn kill(&self) {
        let pid = self.fact("pid").to_owned();
        let sent = child("bash").args(["-c", "kill -s KILL \"$0\"", &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -s KILL {pid}");
    }

    /// Asserts that this version knows no such line of `rabbitmq.conf`: a node with it does not start.
    pub(crate) fn expect_unknown(line: &str) {
        let complaint = Self::try_start(Options::default().line(line)).err();
        let complaint = complaint.unwrap_or_else(|| panic!("it does know `{line}`"));
        assert!(complaint.contains("failed_to_prepare_configuration"), "{complaint}");
    }

    fn fact(&self, name: &str) -> &str {
        self.facts.get(name).unwrap_or_else(|| panic!("tests/brokers/node did not say `{name}`"))
    }

    fn port(&self, name: &str) -> u16 {
        self.fact(name).parse().expect("the script prints ports as numbers")
    }

    /// The same intervals, for tests that use the library.
    pub(crate) fn known_intervals(&self) -> Intervals {
        let [statistics, tick] = ["statistics_interval", "tick_interval"].map(|name| {
            Some(Duration::from_millis(self.fact(name).parse().expect("the script prints intervals as numbers")))
        });
        Intervals::new(statistics, tick)
    }

    /// The environment that tells topo how often this node renews its counts.
    pub(crate) fn intervals(&self) -> [(&'static str, String); 2] {
        let interval = |name| format!("{}ms", self.fact(name));
        [
            ("TOPO_STATISTICS_INTERVAL", interval("statistics_interval")),
            ("TOPO_TICK_INTERVAL", interval("tick_interval")),
        ]
    }

    /// RabbitMQ's version, such as `3.10.8`.
    pub(crate) fn version(&self) -> &str {
        self.fact("version")
    }

    /// True from that release on: `is_at_least_patch(4, 3, 5)`.
    pub(crate) fn is_at_least_patch(&self, major: u32, minor: u32, patch: u32) -> bool {
        let mut parts = self.version().split('.').map(|part| part.parse().unwrap_or(0));
        [(); 3].map(|()| parts.next().unwrap_or(0)) >= [major, minor, patch]
    }

    /// True from that series on: `at_least(4, 0)`.
    pub(crate) fn at_least(&self, major: u32, minor: u32) -> bool {
        let mut parts = self.version().split('.').map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (major, minor)
    }

    /// The management API without TLS: `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.http_port())
    }

    /// The management API with TLS, on a node started with [`Options::tls`]: `https://localhost:PORT`.
    pub(crate) fn tls_url(&self) -> String {
        format!("https://localhost:{}", self.port("https"))
    }

    pub(crate) fn http_port(&self) -> u16 {
        self.port("http")
    }

    pub(crate) fn amqp_port(&self) -> u16 {
        self.port("amqp")
    }

    /// The node's temporary folder: data, logs, configuration.
    pub(crate) fn folder(&self) -> PathBuf {
        PathBuf::from(self.fact("folder"))
    }

    /// The process ids of the node and of its epmd.
    pub(crate) fn pids(&self) -> [u32; 2] {
        ["pid", "epmd_pid"].map(|name| self.fact(name).parse().expect("the script prints process ids as numbers"))
    }

    /// The management API as administrator.
    pub(crate) fn http(&self) -> Http {
        Http::to(&self.url(), "guest", "guest")
    }

    /// A new vhost whose name begins with the hint, deleted with the guard.
    pub(crate) fn vhost(&self, hint: &str) -> Vhost<'_> {
        Vhost::create(self, format!("{hint}-{}", self.names.fetch_add(1, Ordering::Relaxed)))
    }

    /// The same, with settings such as `{"default_queue_type": "quorum"}`, which some versions take at creation alone.
    pub(crate) fn vhost_with(&self, hint: &str, settings: &Value) -> Vhost<'_> {
        Vhost::create_with(self, format!("{hint}-{}", self.names.fetch_add(1, Ordering::Relaxed)), settings)
    }

    /// A new user with these tags (`"management"`, `"administrator,monitoring"`, `""`), deleted with the guard. It may
    /// do nothing until [`User::may`].
    pub(crate) fn user(&self, tags: &str) -> User<'_> {
        User::create(self, format!("user-{}", self.names.fetch_add(1, Ordering::Relaxed)), tags)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        // The script has deadlines of its own; a failure to wait must not hide the test's own panic.
        let _ = self.script.wait();
    }
}
