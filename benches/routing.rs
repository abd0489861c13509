//! Measures the comparison of routing, and `topo test`, with 10,000 bindings. The benchmark uses no broker.
//!
//! ```text
//! cargo bench --bench routing          # 5 rounds
//!
//! cargo bench --bench routing -- 20    # a different number of rounds
//! ```
//!
//! The times are CPU times, the least of all rounds. `docs/maintainers/scale.md` shows results.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench fails by a panic")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use topo::model::{Arguments, Binding, BrokerVersion, Destination, Exchange, ExchangeName, Queue, QueueName, Topology};
use topo::rabbitmq::BrokerProfile;
use topo::rabbitmq::routing::Routing;
use topo::rabbitmq::routing::difference::routing_changes;

#[allow(dead_code, reason = "another bench uses the rest")]
#[path = "scale/run.rs"]
mod run;

use run::{TOPO, run};

const BINDINGS: usize = 10_000;

/// Returns the CPU time of this thread, in milliseconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e6
}

/// Returns a topic exchange with a queue and a binding for each key.
fn topology(keys: impl Iterator<Item = String>) -> Topology {
    let mut topology = Topology::missing("bench".into());
    let exchange = Exchange {
        kind: "topic".to_owned(),
        durable: true,
        auto_delete: false,
        internal: false,
        arguments: Arguments::new(),
    };
    topology.exchanges.insert("orders".into(), exchange);
    for (number, key) in keys.enumerate() {
        let queue = QueueName::new(format!("work.{number}"));
        let settings = Queue { durable: true, auto_delete: false, exclusive: false, arguments: Arguments::new() };
        topology.queues.insert(queue.clone(), settings);
        topology.bindings.insert(Binding {
            source: "orders".into(),
            destination: Destination::Queue(queue),
            routing_key: key,
            arguments: Arguments::new(),
        });
    }
    topology
}

/// Measures the comparison with this number of changed bindings.
fn differences(changed: usize, rounds: usize) {
    let before = topology((0..BINDINGS).map(|number| format!("order.{number}.#")));
    let after = topology((0..BINDINGS).map(|number| match number < changed {
        true => format!("invoice.{number}.#"),
        false => format!("order.{number}.#"),
    }));
    let (none, profile) = (BTreeSet::new(), BrokerProfile::of(BrokerVersion::NEWEST_KNOWN));
    let entries: BTreeSet<ExchangeName> = [ExchangeName::new("orders")].into();
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let start = cpu();
        let [before, after] = [&before, &after].map(|topology| Routing::new(topology, [], &none, &profile).complete());
        let found = routing_changes(&before, &after, &entries);
        best = best.min(cpu() - start);
        assert_eq!(found.changes.len(), 2 * changed);
        assert!(found.not_compared.is_empty());
    }
    println!("routing changes, {changed} of {BINDINGS} bindings changed: {best:.1} ms");
}

/// Writes a spec with this number of bindings, and returns its path.
fn spec(folder: &Path, bindings: usize) -> String {
    let mut text = "version: 1\nvhost: bench\nexchanges:\n  orders: {type: topic}\nqueues:\n".to_owned();
    for number in 0..bindings {
        let binding = format!("{{exchange: orders, routingKey: \"order.{number}.#\"}}");
        writeln!(text, "  work.{number}: {{type: quorum, deadLetter: none, bindings: [{binding}]}}").unwrap();
    }
    let path = folder.join("topology.yaml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Writes a test file with a case for each binding, and returns its path.
fn cases(folder: &Path, bindings: usize) -> String {
    let mut text = "version: 1\ntests:\n".to_owned();
    for number in 0..bindings {
        let publish = format!("{{exchange: orders, routingKey: order.{number}.paid}}");
        writeln!(text, "  case {number}: {{publish: {publish}, to: [work.{number}]}}").unwrap();
    }
    let path = folder.join("topology.test.yaml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Measures a command, and prints its time.
fn command(what: &str, rounds: usize, words: &[&str], before_each: impl Fn()) {
    let runs: Vec<_> = (0..rounds)
        .map(|_| {
            before_each();
            run(TOPO, words)
        })
        .collect();
    let cpu = runs.iter().map(|run| run.cpu_ms()).fold(f64::INFINITY, f64::min);
    let memory = runs.iter().map(|run| run.mib()).max().unwrap_or(0);
    println!("{what}: {cpu:.0} ms, at most {memory} MiB");
}

fn main() {
    let rounds = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(5);
    let folder = tempfile::tempdir().unwrap();
    for changed in [10, BINDINGS] {
        differences(changed, rounds);
    }
    let small = folder.path().join("small");
    std::fs::create_dir(&small).unwrap();
    spec(&small, 1_000);
    let tests = cases(&small, 1_000);
    command("topo test, 1,000 cases", rounds, &["test", &tests], || {});
    command("topo test --coverage, 1,000 bindings and 1,000 cases", rounds, &["test", "--coverage", &tests], || {});
    let large = spec(folder.path(), BINDINGS);
    let snapshot = folder.path().join("topology.routes.test.yaml");
    let remove = || drop(std::fs::remove_file(&snapshot));
    command("topo test --init, 10,000 bindings", rounds, &["test", "--init", &large], remove);
}
