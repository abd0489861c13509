//! Measures `topo dlq` with large dead-letter queues: the messages per second of a replay, compared with a plain shovel on
//! the same broker in the same run, and the times of `list` and of a filtered replay for several sizes.
//!
//! ```text
//! cargo bench --bench dead_letters                     # 25,000, 50,000 and 100,000 messages of 1 KB, 3 rounds
//!
//! cargo bench --bench dead_letters -- 200000 1         # a different number of messages and of rounds
//!
//! TOPO_RABBITMQ=PATH cargo bench --bench dead_letters  # a different RabbitMQ; `tests/brokers/get` prints the paths
//! ```
//!
//! A replay and a shovel move the same messages from one queue to another, alternately. The time of a replay includes the start
//! of topo, the inspection for the plan, and the report. A filtered replay selects 1 % of the messages. `docs/maintainers/scale.md`
//! shows results.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench fails by a panic")]

use std::time::{Duration, Instant};

use serde_json::json;

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/live/transport/fixture.rs"]
mod fixture;
#[path = "../tests/support/mod.rs"]
mod support;

use fixture::fill;
use support::{Amqp, Node, Options, Topo, Vhost, text, until};

/// The allocator of the topo binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BYTES: usize = 1024;
const DEAD: &str = "orders.dead";
const WORK: &str = "orders.work";
/// The maximum time of a command.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// The flags of a replay without a rate limit, a confirmation or a wait.
const REPLAY: [&str; 12] =
    ["--to", WORK, "--rate", "none", "--canary", "0", "--settle", "0s", "--allow", "no-consumers", "--window", "1000"];

/// The time and the peak memory of a command.
struct Measured {
    time: Duration,
    kib: u64,
}

struct Bench<'a> {
    vhost: Vhost<'a>,
    amqp: Amqp,
    topo: Topo,
    messages: usize,
}

impl<'a> Bench<'a> {
    /// Creates two queues, and publishes messages to the first one.
    fn new(node: &'a Node, kind: &str, messages: usize) -> Self {
        let vhost = node.vhost("bench");
        let amqp = vhost.amqp();
        for queue in [DEAD, WORK] {
            amqp.declare_queue(queue, &[("x-queue-type", text(kind))]).unwrap();
        }
        if kind == "quorum" && node.at_least(4, 0) {
            let policy = json!({"pattern": ".*", "apply-to": "queues", "definition": {"delivery-limit": -1}});
            vhost.http().put(&vhost.path("policies", &["unlimited"]), &policy).expect_status(201);
        }
        fill(&amqp, DEAD, 0..messages, BYTES);
        let counted = || vhost.queue(DEAD)["messages"].as_u64() == Some(messages as u64);
        until("the statistics", || counted().then_some(()));
        let topo = Topo::new(&vhost).timeout(TIMEOUT);
        Self { vhost, amqp, topo, messages }
    }

    fn run(&self, command: &str, flags: &[&str]) -> Measured {
        let words = [&["dlq", command, DEAD, "--any-queue", "--vhost", "{vhost}", "--hold", "1000000"], flags].concat();
        let started = Instant::now();
        let mut running = self.topo.start(words);
        let mut kib = 0;
        while !running.is_over() {
            kib = running.peak_kib().unwrap_or(0).max(kib);
            std::thread::sleep(Duration::from_millis(2));
        }
        let time = started.elapsed();
        running.wait().expect_code(0);
        Measured { time, kib }
    }

    /// Moves all messages with a shovel.
    fn shovel(&self, from: &str, to: &str) -> Duration {
        let uri = format!("amqp:///{}", self.vhost.name());
        let value = json!({"value": {
            "src-protocol": "amqp091", "src-uri": uri, "src-queue": from,
            "dest-protocol": "amqp091", "dest-uri": uri, "dest-queue": to,
        }});
        let path = format!("/api/parameters/shovel/{}/bench", self.vhost.name());
        let started = Instant::now();
        assert!(self.vhost.http().put(&path, &value).is_success());
        let deadline = started + TIMEOUT;
        while self.amqp.ready(to) as usize != self.messages {
            assert!(Instant::now() < deadline, "the shovel does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        let taken = started.elapsed();
        self.vhost.http().delete(&path).expect_status(204);
        taken
    }
}

fn median(times: &[Duration]) -> f64 {
    let mut times = times.to_vec();
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

fn main() {
    // `cargo bench` adds a flag, which is ignored.
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<usize>().ok());
    let (messages, rounds) = (numbers.next(), numbers.next().unwrap_or(3));
    let sizes = messages.map_or_else(|| vec![25_000, 50_000, 100_000], |messages| vec![messages]);
    let node = Node::start(Options::default());
    println!("RabbitMQ {}, messages of {BYTES} bytes, {rounds} rounds", node.version());
    for kind in ["classic", "quorum"] {
        for messages in &sizes {
            compare(&node, kind, *messages, rounds);
        }
    }
}

fn compare(node: &Node, kind: &str, messages: usize, rounds: usize) {
    let bench = Bench::new(node, kind, messages);
    let (mut replays, mut shovels, mut kib) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        let replayed = bench.run("replay", &[&REPLAY[..], &["--again", "--yes"]].concat());
        assert_eq!(bench.amqp.ready(WORK) as usize, messages);
        kib = replayed.kib.max(kib);
        replays.push(replayed.time);
        shovels.push(bench.shovel(WORK, DEAD));
    }
    let listed = bench.run("list", &[]);
    // The body begins with the number, a space and dots: one of 100 numbers ends with 37.
    let filtered = bench.run("replay", &[&REPLAY[..], &["--again", "--yes", "--body", "37 ."]].concat());
    let moved = bench.amqp.ready(WORK);
    let rate = |times: &[Duration]| messages as f64 / median(times);
    println!(
        "{kind}, {messages} messages: replay {:.0}/s, shovel {:.0}/s, ratio {:.2}, at most {} MiB; list {:.1} s, {} MiB; replay of \
         {moved} selected {:.1} s, {} MiB",
        rate(&replays),
        rate(&shovels),
        rate(&replays) / rate(&shovels),
        kib >> 10,
        listed.time.as_secs_f64(),
        listed.kib >> 10,
        filtered.time.as_secs_f64(),
        filtered.kib >> 10,
    );
}
