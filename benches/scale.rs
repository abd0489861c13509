//! Measures topo with ten thousand queues, and compares it with the broker and with other programs in the same run.
//!
//! ```text
//! cargo bench --bench scale                       # everything: 10,000 queues, 3 rounds
//!
//! cargo bench --bench scale -- goals              # only the measurements with a goal, each with its goal
//!
//! cargo bench --bench scale -- offline            # no broker: CPU time and memory at 1,000, 3,000 and 10,000 queues
//!
//! cargo bench --bench scale -- plan               # `topo plan` and curl, at the three sizes
//!
//! cargo bench --bench scale -- apply              # `topo apply` to an empty broker, and POST /api/definitions
//!
//! cargo bench --bench scale -- vhosts             # 100 vhosts with 100 queues each
//!
//! cargo bench --bench scale -- apply 1000 5       # a different number of queues and of rounds
//!
//! TOPO_RABBITMQ=PATH cargo bench --bench scale    # a different RabbitMQ; `tests/brokers/get` prints the paths
//!
//! RABBITMQADMIN=PATH cargo bench --bench scale    # also rabbitmqadmin v2 (`cargo install rabbitmqadmin`)
//! ```
//!
//! The benchmark starts its own nodes and takes about twenty minutes. The compared programs run alternately, and each
//! round starts with a different program, so that other load affects all programs equally. The benchmark compares the
//! medians.
//!
//! The spec is simple: one topic exchange for every ten queues, and a type, a limit and a binding for each queue.
//! `POST /api/definitions` and `rabbitmqadmin` receive the same objects.
//!
//! `docs/maintainers/scale.md` shows the results. `rabbitmqadmin` 2.35 aborted its import of 10,000 queues, which also
//! ends this benchmark. For `apply`, unset `RABBITMQADMIN` or use fewer queues.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench fails by a panic")]

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

/// The allocator of the topo binary. It affects half of the time of a stage.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: [usize; 3] = [1_000, 3_000, 10_000];

fn main() {
    // `cargo bench` adds a flag, which is ignored.
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
