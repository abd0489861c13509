//! Ten thousand queues: what they cost `topo`, beside what the broker and others take for the same, in the same run.
//!
//! ```text
//! cargo bench --bench scale                       # all of it: 10,000 queues, 3 rounds
//! cargo bench --bench scale -- goals              # only the figures that have a goal, each beside it
//! cargo bench --bench scale -- offline            # no broker: CPU time and memory at 1,000, 3,000 and 10,000 queues
//! cargo bench --bench scale -- plan               # `topo plan` beside curl, at the three sizes
//! cargo bench --bench scale -- apply              # `topo apply` from empty beside POST /api/definitions
//! cargo bench --bench scale -- vhosts             # 100 vhosts of 100 queues
//! cargo bench --bench scale -- apply 1000 5       # other numbers: queues, rounds
//! TOPO_RABBITMQ=PATH cargo bench --bench scale    # another RabbitMQ; `tests/brokers/get` prints the paths
//! RABBITMQADMIN=PATH cargo bench --bench scale    # rabbitmqadmin v2 (`cargo install rabbitmqadmin`) beside them
//! ```
//!
//! It starts nodes of its own and ends by itself, after some twenty minutes. Those that are compared take turns, and each round begins with
//! another, so that whatever else the machine does is the same to all; the median of each is compared.
//!
//! The spec is a plain one: for ten queues there is one topic exchange, and each queue has a type, a limit and a
//! binding. `POST /api/definitions` gets the same objects, and so does `rabbitmqadmin`.
//!
//! `docs/maintainers/scale.md` shows the results. `rabbitmqadmin` 2.35 broke off its import of 10,000 queues, and this bench with it: leave
//! `RABBITMQADMIN` out of `apply`, or ask for fewer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench that cannot go on says so by panicking")]

#[path = "scale/compared.rs"]
mod compared;
#[path = "scale/goals.rs"]
mod goals;
#[path = "scale/live.rs"]
mod live;
#[path = "scale/offline.rs"]
mod offline;
#[path = "scale/run.rs"]
mod run;
#[path = "../tests/support/mod.rs"]
mod support;
#[path = "scale/topology.rs"]
mod topology;

/// As the binary has it: half of the time of a station is its.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: [usize; 3] = [1_000, 3_000, 10_000];

fn main() {
    // `cargo bench` adds a flag of its own.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let mut numbers = words.iter().filter_map(|word| word.parse::<usize>().ok());
    let (queues, rounds) = (numbers.next(), numbers.next().unwrap_or(3));
    let sizes = queues.map_or(SIZES.to_vec(), |queues| vec![queues]);
    let largest = sizes.last().copied().unwrap_or(1);
    let parts: Vec<&str> = words.iter().map(String::as_str).filter(|word| word.parse::<usize>().is_err()).collect();
    let is_asked = |part: &str| parts.is_empty() || parts.contains(&part);
    if let Some(unknown) = parts.iter().find(|part| !["goals", "offline", "plan", "apply", "vhosts"].contains(part)) {
        panic!("{unknown} is none of goals, offline, plan, apply, vhosts");
    }
    run::machine();
    if is_asked("goals") {
        goals::goals(rounds);
    }
    if is_asked("offline") {
        offline::offline(&sizes, rounds);
    }
    if is_asked("plan") {
        live::plan(&sizes, rounds);
    }
    if is_asked("apply") {
        live::apply(largest, rounds);
    }
    if is_asked("vhosts") {
        live::vhosts(rounds);
    }
}
