//! Measures each value that has a goal, and prints it with its goal. The compared programs run alternately in one run.

use serde_json::json;

use super::live::{Stage, run_topo};
use super::run::Taken;
use super::topology::{SECOND_FINDING, definitions_with, queues_alone, spec_with};

const QUEUES: usize = 10_000;
const QUEUES_TO_DECLARE: usize = 3_000;

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn line(figure: &str, value: f64, unit: &str, goal: f64) {
    let verdict = if value <= goal { "met" } else { "MISSED" };
    println!("  {figure:<68} {value:>7.2} {unit:<4} goal: at most {goal} {unit}: {verdict}");
}

/// Runs two programs alternately, and returns the measurements of each round.
fn side_by_side(rounds: usize, mut one: impl FnMut() -> Taken, mut other: impl FnMut() -> Taken) -> Pairs {
    let pairs = (0..rounds).map(|round| match round % 2 {
        0 => (one(), other()),
        _ => {
            let second = other();
            (one(), second)
        }
    });
    Pairs(pairs.collect())
}

struct Pairs(Vec<(Taken, Taken)>);

impl Pairs {
    fn seconds(&self) -> (f64, f64) {
        (median(self.0.iter().map(|(one, _)| one.seconds())), median(self.0.iter().map(|(_, two)| two.seconds())))
    }

    fn cpu(&self) -> (f64, f64) {
        let seconds = |taken: &Taken| taken.cpu.as_secs_f64();
        (median(self.0.iter().map(|(one, _)| seconds(one))), median(self.0.iter().map(|(_, two)| seconds(two))))
    }

    fn ratio(&self) -> f64 {
        median(self.0.iter().map(|(one, two)| one.seconds() / two.seconds()))
    }

    fn mib(&self) -> f64 {
        self.0.iter().map(|(one, _)| one.mib()).max().unwrap_or(0) as f64
    }
}

pub(crate) fn goals(rounds: usize) {
    println!("goals, {rounds} rounds");
    findings_that_repeat(rounds);
    plan_without_changes(rounds);
    queues_alone_applied(rounds);
}

/// Measures `topo validate` of queues on which two rules fire.
fn findings_that_repeat(rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("topology.yaml");
    std::fs::write(&path, spec_with("bench", QUEUES, SECOND_FINDING)).unwrap();
    let path = path.to_str().unwrap();
    let pairs =
        side_by_side(rounds, || run_topo(&["validate", path]), || run_topo(&["validate", "--lint", "all=off", path]));
    let (all, off) = pairs.cpu();
    println!("  validate: {all:.2} s of CPU, {off:.2} s with --lint all=off");
    line("validate, 10,000 queues on which two rules fire, CPU", all, "s", 0.2);
}

fn plan_without_changes(rounds: usize) {
    let stage = Stage::set();
    let name = stage.vhost("plan");
    let arguments = json!({"x-queue-type": "classic", "x-max-length": 100_000, "x-message-ttl": 604_800_000});
    stage.post(name, &stage.file("definitions.json", &definitions_with(QUEUES, &arguments).to_string()));
    let spec = stage.file("whole.yaml", &spec_with(name, QUEUES, SECOND_FINDING));
    let spec = spec.to_str().unwrap();
    let pairs = side_by_side(rounds, || stage.topo(&["plan", spec]), || stage.download(name, "?disable_stats=true"));
    let ((topo, curl), (cpu, _)) = (pairs.seconds(), pairs.cpu());
    println!("  plan without changes: {topo:.2} s ({cpu:.2} s of CPU), the download of the lists {curl:.2} s");
    line("plan without changes of that vhost, time compared with the download", pairs.ratio(), "×", 1.25);
    line("plan without changes of that vhost, memory", pairs.mib(), "MiB", 150.0);
}

/// Measures an apply of queues. Each program has a new node in each round, because existing objects slow a node down.
fn queues_alone_applied(rounds: usize) {
    let pairs = side_by_side(
        rounds,
        || {
            let stage = Stage::set();
            let name = stage.vhost("apply");
            let spec = stage.file("apply.yaml", &queues_alone(name, QUEUES_TO_DECLARE));
            stage.topo(&["apply", "--yes", "--quiet", spec.to_str().unwrap()])
        },
        || {
            let stage = Stage::set();
            stage.put_queues(stage.vhost("apply"), QUEUES_TO_DECLARE, 16)
        },
    );
    let ((topo, curl), (cpu, of_curl)) = (pairs.seconds(), pairs.cpu());
    println!(
        "  apply of 3,000 classic queues: {topo:.2} s ({cpu:.2} s of CPU), curl --parallel-max 16 {curl:.2} s \
         ({of_curl:.2} s of CPU)"
    );
    line("apply of 3,000 classic queues, time compared with curl", pairs.ratio(), "×", 1.1);
}
