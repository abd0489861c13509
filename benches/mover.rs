//! Messages a second of both movers, beside a plain shovel on the same broker in the same run.
//!
//! ```text
//! cargo bench --bench mover                     # 50,000 messages of 1 KB, 5 rounds, classic and quorum
//! cargo bench --bench mover -- 100000 3         # other numbers
//! TOPO_RABBITMQ=PATH cargo bench --bench mover  # another RabbitMQ; `tests/brokers/get` prints the paths
//! ```
//!
//! It starts a node of its own and ends by itself. The three take turns in each round, and each round begins with
//! another, so that whatever else the machine does is the same to all. A time is from the call that starts a move until
//! all messages are at the target. The plain shovel is what a person would write: to a queue, all else by default.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench that cannot go on says so by panicking")]

use std::time::{Duration, Instant};

use serde_json::json;

#[allow(dead_code, reason = "the tests need more of it")]
#[path = "../tests/live/mover/stage.rs"]
mod stage;
#[path = "../tests/support/mod.rs"]
mod support;

use stage::{By, Stage, fill};
use support::{Node, Options, block_on, until};

const SIZE: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Plain,
    Ours(By),
}

const WAYS: [Way; 3] = [Way::Plain, Way::Ours(By::Shovel), Way::Ours(By::Amqp)];

/// How long a move of so many messages takes, in a vhost of its own.
fn time(node: &Node, way: Way, types: (&str, &str), messages: usize) -> Duration {
    let vhost = node.vhost("bench");
    let stage = Stage::set(&vhost, "", types);
    fill(&stage.amqp, &stage.old, 0..messages, SIZE);
    let count = u32::try_from(messages).unwrap();
    let all_there = || until("all of them", || (stage.amqp.ready(&stage.new) >= count).then_some(()));
    let start = Instant::now();
    let taken = match way {
        Way::Plain => {
            let uri = format!("amqp:///{}", vhost.name());
            let value = json!({"value": {
                "src-protocol": "amqp091", "src-uri": uri, "src-queue": stage.old,
                "dest-protocol": "amqp091", "dest-uri": uri, "dest-queue": stage.new,
            }});
            let path = format!("/api/parameters/shovel/{}/plain", vhost.name());
            assert!(vhost.http().put(&path, &value).is_success());
            all_there();
            let taken = start.elapsed();
            vhost.http().delete(&path).expect_status(204);
            taken
        }
        Way::Ours(by) => {
            let moving = stage.start(by);
            all_there();
            let taken = start.elapsed();
            block_on(moving.stop()).unwrap();
            taken
        }
    };
    assert_eq!(stage.amqp.ready(&stage.old), 0);
    taken
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    // `cargo bench` adds a flag of its own.
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<usize>().ok());
    let (messages, rounds) = (numbers.next().unwrap_or(50_000), numbers.next().unwrap_or(5));
    let node = Node::start(Options::default());
    println!("RabbitMQ {}, {messages} messages of {SIZE} bytes, {rounds} rounds", node.version());
    for types in [("classic", "classic"), ("quorum", "quorum")] {
        let mut rates = [const { Vec::new() }; WAYS.len()];
        for round in 0..rounds {
            for turn in 0..WAYS.len() {
                let index = (round + turn) % WAYS.len();
                let rate = messages as f64 / time(&node, WAYS[index], types, messages).as_secs_f64();
                rates[index].push(rate);
            }
        }
        let medians = rates.clone().map(median);
        for ((way, median), rates) in WAYS.iter().zip(medians).zip(rates) {
            let rates: Vec<_> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
            let ratio = median / medians[0];
            println!("{} → {}  {way:?}: {median:.0}/s, ×{ratio:.2} of plain ({})", types.0, types.1, rates.join(" "));
        }
    }
}
