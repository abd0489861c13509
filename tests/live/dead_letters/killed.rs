//! Tests that a run is killed at random moments: no message is lost, at most a window of messages exists twice for each
//! kill, and what stays keeps its order.

use std::collections::BTreeMap;
use std::time::Duration;

use super::fixture::{DEAD, Fixture, KINDS, REPLAY, WORK, numbers};
use crate::support::random::is_long;
use crate::support::{Message, Random, seed, until};

/// The number of messages, and the number of kills.
fn size() -> (usize, usize) {
    if is_long() { (10_000, 50) } else { (1000, 4) }
}

/// The maximum number of messages in doubt.
const WINDOW: usize = 100;

/// Runs a command, and kills it after a random time. Returns the number of runs that were killed before their end.
fn kill_repeatedly(fixture: &Fixture<'_>, words: &[String], kills: usize, random: &mut Random) -> usize {
    let mut killed = 0;
    for _ in 0..kills {
        let running = fixture.topo.start(words.iter().map(String::as_str));
        std::thread::sleep(Duration::from_millis(random.below(400) as u64));
        running.signal("KILL");
        killed += usize::from(running.wait().code.is_none());
        // The broker releases the lock and returns the messages when it notices the closed connection.
        until("the lock to be free", || (fixture.dlq("list", &["--limit", "1"]).code == Some(0)).then_some(()));
    }
    killed
}

/// Counts each message, and fails if a message is missing.
fn counts(messages: &[Message], expected: impl Iterator<Item = usize>) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for number in numbers(messages) {
        *counts.entry(number).or_default() += 1;
    }
    for number in expected {
        assert!(counts.contains_key(&number), "message {number} is lost");
    }
    counts
}

fn expect_few_duplicates(counts: &BTreeMap<usize, usize>, killed: usize, window: usize, what: &str) {
    let duplicates: usize = counts.values().map(|count| count - 1).sum();
    println!("{what}: {killed} killed, {duplicates} of {} messages twice", counts.len());
    assert!(duplicates <= killed * window, "{what}: {duplicates} duplicates after {killed} kills");
}

#[test]
fn killed_replay_loses_no_message() {
    let (messages, kills) = size();
    let mut random = Random::new(seed() ^ 1);
    for kind in KINDS {
        let fixture = Fixture::new("killed-replay", kind);
        fixture.dead_letter(messages);
        let words = fixture.words("replay", REPLAY);
        let killed = kill_repeatedly(&fixture, &words, kills, &mut random);
        until("the remaining messages", || {
            (fixture.replay(&[]).code == Some(0) && fixture.ready(DEAD) == 0).then_some(())
        });
        let counts = counts(&fixture.drain(WORK), 0..messages);
        expect_few_duplicates(&counts, killed, WINDOW, &format!("replay, {kind}"));
    }
}

#[test]
fn killed_filtered_replay_keeps_the_order_of_the_rest() {
    let (messages, kills) = size();
    let mut random = Random::new(seed() ^ 2);
    for kind in KINDS {
        let fixture = Fixture::new("killed-filtered", kind);
        fixture.dead_letter(messages);
        let filter = ["--routing-key", "order.paid"];
        let words = fixture.words("replay", &[REPLAY, &filter].concat());
        let killed = kill_repeatedly(&fixture, &words, kills, &mut random);
        let rest = messages / 2;
        until("the remaining messages", || {
            (fixture.replay(&filter).code == Some(0) && fixture.ready(DEAD) == rest).then_some(())
        });
        let counts = counts(&fixture.drain(WORK), (0..messages).step_by(2));
        expect_few_duplicates(&counts, killed, WINDOW, &format!("filtered replay, {kind}"));
        assert_eq!(numbers(&fixture.drain(DEAD)), (1..messages).step_by(2).collect::<Vec<_>>(), "{kind}");
    }
}

#[test]
fn killed_removal_loses_no_message() {
    let (messages, kills) = size();
    let mut random = Random::new(seed() ^ 3);
    for kind in KINDS {
        let fixture = Fixture::new("killed-removal", kind);
        fixture.dead_letter(messages);
        let filter = ["--routing-key", "order.paid", "--yes", "--backup", "paid.jsonl", "--window", "100"];
        let words = fixture.words("drop", &filter);
        let killed = kill_repeatedly(&fixture, &words, kills, &mut random);
        let rest = messages / 2;
        until("the remaining messages", || {
            (fixture.dlq("drop", &filter).code == Some(0) && fixture.ready(DEAD) == rest).then_some(())
        });
        let mut archived: BTreeMap<usize, usize> = BTreeMap::new();
        for line in fixture.topo.read("paid.jsonl").lines() {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            *archived.entry(message["body"].as_str().unwrap().parse().unwrap()).or_default() += 1;
        }
        assert_eq!(archived.keys().copied().collect::<Vec<_>>(), (0..messages).step_by(2).collect::<Vec<_>>());
        expect_few_duplicates(&archived, killed, WINDOW, &format!("drop, {kind}"));
        assert_eq!(numbers(&fixture.drain(DEAD)), (1..messages).step_by(2).collect::<Vec<_>>(), "{kind}");
    }
}

#[test]
fn killed_restore_loses_no_message() {
    let (messages, kills) = size();
    let mut random = Random::new(seed() ^ 4);
    for kind in KINDS {
        let fixture = Fixture::new("killed-restore", kind);
        fixture.dead_letter(messages);
        fixture.dlq("export", &["--out", "all.jsonl"]).expect_code(0);
        fixture.drain(DEAD);
        let flags = ["all.jsonl", "--yes"];
        let words = fixture.words("restore", &flags);
        // Only a run that is killed leaves the number of restored messages behind. A complete run would begin again.
        let mut killed = 0;
        for _ in 0..kills {
            let running = fixture.topo.start(words.iter().map(String::as_str));
            std::thread::sleep(Duration::from_millis(random.below(300) as u64));
            running.signal("KILL");
            let is_killed = running.wait().code.is_none();
            killed += usize::from(is_killed);
            until("the lock to be free", || (fixture.dlq("list", &["--limit", "1"]).code == Some(0)).then_some(()));
            if !is_killed {
                break;
            }
        }
        if killed == kills {
            fixture.dlq("restore", &flags).expect_code(0);
        }
        let counts = counts(&fixture.drain(DEAD), 0..messages);
        expect_few_duplicates(&counts, killed, WINDOW, &format!("restore, {kind}"));
    }
}
