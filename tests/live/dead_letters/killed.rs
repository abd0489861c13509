//! Tests that a run is killed at random moments: no message is lost, at most a window of messages exists twice for each
//! kill, and what stays keeps its order.

use super::fixture::KINDS;
use super::job::{Command, Job, WINDOW};
use crate::support::random::{draws_on, is_long};
use crate::support::{Node, Random, seed};

/// The number of messages, and the number of kills.
fn size() -> (usize, usize) {
    if is_long() { (10_000, 50) } else { (1000, 4) }
}

fn check_kills(command: Command) {
    let mut random = Random::new(seed() ^ command as u64);
    for kind in KINDS {
        let (mut jobs, mut partial) = (0, 0);
        // A job can end before the first kill.
        while draws_on(jobs, 1, || partial > 0) {
            partial += kill_repeatedly(command, kind, &mut random);
            jobs += 1;
        }
        assert!(partial > 0, "{command:?}, {kind}: no run was killed in the middle");
    }
}

/// Kills the runs of a job, and checks its messages. Returns the number of runs that were killed in the middle.
fn kill_repeatedly(command: Command, kind: &'static str, random: &mut Random) -> usize {
    let (messages, kills) = size();
    let mut job = Job::new(Node::shared(), command, kind, messages);
    let (mut killed, mut partial) = (0, 0);
    for _ in 0..kills {
        let before = job.processed();
        let mut running = job.start();
        job.wait_for_moment(&mut running, messages / kills, random);
        if !running.is_over() {
            running.signal("KILL");
        }
        let output = running.wait();
        job.ended(&output);
        killed += usize::from(output.code.is_none());
        partial += usize::from(output.code.is_none() && job.processed() > before);
        // The broker releases the lock and returns the messages when it notices the closed connection.
        job.wait_for_queues();
        if job.is_done {
            break;
        }
    }
    let duplicates = job.finish();
    println!("{command:?}, {kind}: {killed} killed, {partial} in the middle, {duplicates} messages twice");
    assert!(duplicates <= killed * WINDOW, "{command:?}, {kind}: {duplicates} duplicates after {killed} kills");
    partial
}

#[test]
fn killed_replay_loses_no_message() {
    check_kills(Command::Replay);
}

#[test]
fn killed_filtered_replay_keeps_the_order_of_the_rest() {
    check_kills(Command::FilteredReplay);
}

#[test]
fn killed_removal_loses_no_message() {
    check_kills(Command::Drop);
}

#[test]
fn killed_restore_loses_no_message() {
    check_kills(Command::Restore);
}
