//! Tests that the broker is killed at random moments while commands move, drop and restore messages: no message is lost,
//! and what stays keeps its order.
//!
//! The number of duplicates has no bound, because a killed broker can forget acknowledgements. A broker answers later
//! requests of the channel before a queue has stored the acknowledgements: in a quorum queue, a broker that was killed after
//! such an answer had forgotten 1,997 (4.3.6) and 1,963 (3.10.8) of 2,000 acknowledgements, in other runs none.

use super::fixture::KINDS;
use super::job::{Command, Job};
use crate::support::node::Options;
use crate::support::random::{draws_on, is_long};
use crate::support::{Node, Random, seed};

/// The number of messages of each command, and the number of kills. Each kill interrupts several commands.
fn size() -> (usize, usize) {
    if is_long() { (10_000, 20) } else { (2000, 2) }
}

#[test]
fn killed_broker_loses_no_message() {
    let (messages, kills) = size();
    let mut random = Random::new(seed() ^ 5);
    let node = Node::start(Options::default());
    let (mut killed, mut interrupted) = (0, 0);
    // A kill can come before the first message moves, or after the last one.
    while draws_on(killed, kills, || interrupted > 0) {
        let cases = KINDS.into_iter().flat_map(|kind| Command::ALL.map(|command| (command, kind)));
        let mut jobs: Vec<Job<'_>> = cases.map(|(command, kind)| Job::new(&node, command, kind, messages)).collect();
        while draws_on(killed, kills, || interrupted > 0) && jobs.iter().any(|job| !job.is_done) {
            interrupted += kill_during(&node, &mut jobs, messages / 10, &mut random);
            killed += 1;
        }
        for job in &mut jobs {
            let duplicates = job.finish();
            println!("{:?}, {}: {duplicates} of {messages} messages twice", job.command, job.kind);
        }
    }
    println!("{killed} kills interrupted {interrupted} commands");
    assert!(interrupted > 0, "no kill interrupted a command");
}

/// Starts the incomplete commands, and kills the broker when one of them has processed up to this number of messages.
/// Returns the number of commands that were interrupted.
fn kill_during(node: &Node, jobs: &mut [Job<'_>], most: usize, random: &mut Random) -> usize {
    let mut pending: Vec<_> = jobs.iter_mut().filter(|job| !job.is_done).map(|job| (job.start(), job)).collect();
    let chosen = random.below(pending.len());
    let (running, job) = &mut pending[chosen];
    job.wait_for_moment(running, most, random);
    node.kill_and_restart();
    let mut interrupted = 0;
    for (running, job) in pending {
        let output = running.wait();
        let code = output.code.unwrap_or_else(|| panic!("the command was killed: {output}"));
        assert!([0, 1, 4].contains(&code), "{output}");
        interrupted += usize::from(code == 4);
        job.ended(&output);
    }
    for job in jobs {
        job.wait_for_queues();
        job.fixture.amqp = job.fixture.vhost.amqp();
        // A broker that was killed can contain acknowledged messages again.
        job.is_done = if job.command == Command::Restore { job.is_done } else { job.has_no_more() };
    }
    interrupted
}
