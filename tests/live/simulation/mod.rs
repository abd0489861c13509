//! Compares the simulation of `topo test` with brokers: the replies to the publisher, the deliveries to a worker, and the
//! ends of all copies.
//!
//! | file | topic |
//! |---|---|
//! | [`case`] | a case: a queue with its dead-letter queue, published messages and a worker |
//! | [`live`] | the result of a case on a broker |
//! | [`random`] | random cases |

pub(super) mod case;
mod live;
pub(super) mod random;

use std::thread;

use case::{Case, Result, simulated, spec};
use live::run;
use random::{fixed, random_case};

use crate::support::random::cases;
use crate::support::{Node, Random, Topo, seed};

/// The number of cases in a vhost, which run at the same time.
const BATCH: usize = 20;

/// Runs cases on the broker and in the simulation, and expects equal results.
fn compare(cases: &[Case]) {
    for batch in cases.chunks(BATCH) {
        let vhost = Node::shared().vhost("simulation");
        let topo = Topo::new(&vhost).spec(&spec(batch));
        topo.run(["apply", "topology.yaml", "--yes", "--quiet"]).expect_code(0);
        let version = vhost.node().version();
        let contract = topo.run(["contract", "topology.yaml", "--format", "json", "--broker-version", version]);
        let contracts = &contract.expect_code(0).json()["vhosts"][vhost.name()]["queues"];
        let found: Vec<Result> = thread::scope(|scope| {
            let vhost = &vhost;
            let running: Vec<_> = batch
                .iter()
                .enumerate()
                .map(|(number, case)| {
                    scope.spawn(move || run(case, number, vhost, &contracts[format!("work.{number}")]))
                })
                .collect();
            running.into_iter().map(|it| it.join().expect("the case does not panic")).collect()
        });
        for (number, (case, found)) in batch.iter().zip(found).enumerate() {
            assert_eq!(found, simulated(batch, number, version), "broker, simulation: {case:?}");
        }
    }
}

#[test]
fn simulation_agrees_with_brokers() {
    compare(&fixed());
}

#[test]
fn simulation_agrees_with_brokers_about_random_cases() {
    let node = Node::shared();
    let mut random = Random::new(seed() ^ 7);
    let number = cases(60, 500);
    let cases: Vec<Case> = (0..number).map(|_| random_case(&mut random, node)).collect();
    let failed = cases.iter().filter(|case| case.behaviors.is_some()).count();
    println!("{number} cases, {failed} with a worker");
    compare(&cases);
}
