//! Several ways to do the same, in turns.

use super::run::Taken;

/// A way: its name, and what does it once and says what it took.
pub(crate) struct Way<'a> {
    pub(crate) name: &'a str,
    pub(crate) once: Box<dyn FnMut() -> Taken + 'a>,
}

/// Runs all of them so many times, each round beginning with another; prints the medians, each beside that of the way
/// with this name.
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
