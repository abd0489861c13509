//! Runs several programs for the same task alternately, and compares their measurements.

use super::run::Taken;

/// A program: its name, and a function that runs it once and returns the measurement.
pub(crate) struct Way<'a> {
    pub(crate) name: &'a str,
    pub(crate) once: Box<dyn FnMut() -> Taken + 'a>,
}

/// Runs all programs in each round, and starts each round with a different program. Prints the medians, relative to the
/// program `against`.
pub(crate) fn compare(mut ways: Vec<Way<'_>>, rounds: usize, against: &str) {
    let mut taken: Vec<Vec<Taken>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..ways.len() {
            let index = (round + turn) % ways.len();
            let took = (ways[index].once)();
            taken[index].push(took);
        }
    }
    let median = |runs: &[Taken]| {
        let mut runs = runs.to_vec();
        runs.sort_by_key(|run| run.time);
        runs[runs.len() / 2]
    };
    let of = ways.iter().position(|way| way.name == against).unwrap();
    let base = median(&taken[of]).seconds();
    for (way, runs) in ways.iter().zip(&taken) {
        let middle = median(runs);
        let memory = runs.iter().map(Taken::mib).max().unwrap_or(0);
        let all: Vec<String> = runs.iter().map(|run| format!("{:.2}", run.seconds())).collect();
        println!(
            "  {:<32} {:>7.2} s  ×{:.2}  {:>6.0} ms of CPU, at most {memory} MiB  ({})",
            way.name,
            middle.seconds(),
            middle.seconds() / base,
            middle.cpu_ms(),
            all.join(" "),
        );
    }
}
