//! Measures without a broker: each stage inside this process, and the complete commands.

use std::time::Instant;

use topo::diff::diff;
use topo::expand::expand;
use topo::lint::{Levels, Subject, lint};
use topo::model::{BrokerVersion, Topology};
use topo::rabbitmq::BrokerProfile;
use topo::spec::{SourceFile, Variables, parse};

use super::run::{TOPO, run};
use super::topology::{shown, spec};

pub(crate) fn offline(sizes: &[usize], rounds: usize) {
    for queues in sizes {
        println!("{}, offline", shown(*queues));
        stations(*queues, rounds);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("topology.yaml");
        std::fs::write(&path, spec("bench", *queues)).unwrap();
        let path = path.to_str().unwrap();
        for words in [&["plan", "--against", "empty", path][..], &["validate", path]] {
            let runs: Vec<_> = (0..rounds).map(|_| run(TOPO, words)).collect();
            let cpu = runs.iter().map(|run| run.cpu_ms()).fold(f64::INFINITY, f64::min);
            let memory = runs.iter().map(|run| run.mib()).max().unwrap_or(0);
            let each = cpu * 1e3 / *queues as f64;
            let command = words[..words.len() - 1].join(" ");
            println!("  topo {command}: {cpu:.0} ms of CPU, {each:.1} µs a queue, at most {memory} MiB");
        }
    }
}

/// Returns the CPU time of this thread from the kernel, in milliseconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
    nanoseconds.map_or_else(
        || {
            // Without kernel support, returns the wall-clock time, which includes other load.
            static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
            START.elapsed().as_secs_f64() * 1e3
        },
        |nanoseconds| nanoseconds / 1e6,
    )
}

/// Measures each stage. Uses the best of several rounds, to exclude other load.
fn stations(queues: usize, rounds: usize) {
    let files = [SourceFile { name: "topology.yaml".to_owned(), text: spec("bench", queues) }];
    let profile = BrokerProfile::of(BrokerVersion::NEWEST_KNOWN);
    let mut best = [f64::INFINITY; 4];
    for _ in 0..rounds {
        let start = cpu();
        let spec = parse(&files, &Variables::new()).unwrap().vhosts.remove(0);
        let parsed = cpu();
        let expansion = expand(&spec, &profile).unwrap();
        let expanded = cpu();
        let missing = Topology::missing(expansion.topology.vhost.clone());
        let changes = diff(&missing, &expansion.topology, &expansion.scope);
        let compared = cpu();
        let findings = lint(&Subject::new(&spec, &expansion, &profile), &Levels::new());
        let linted = cpu();
        assert_eq!(changes.len(), 1 + queues.div_ceil(10) + 2 * queues);
        std::hint::black_box(&findings);
        let times = [parsed - start, expanded - parsed, compared - expanded, linted - compared];
        best = std::array::from_fn(|index| best[index].min(times[index]));
    }
    let [parse, expand, diff, lint] = best;
    let sum = parse + expand + diff;
    println!(
        "  parse and validate {parse:.0} + expand {expand:.0} + diff {diff:.0} = {sum:.0} ms of CPU; lint {lint:.0} ms \
         ({} KiB of YAML)",
        files[0].text.len() / 1024,
    );
}
