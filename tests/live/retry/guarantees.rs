//! Tests each strategy on each supported queue type: the number of deliveries, their delays, and dead-lettering, or no
//! dead-lettering after a success.

use lapin::protocol::basic::AMQPProperties;

use super::case::{Case, Strategy, prove, supports_transient_queues};
use super::dead_lettered_message;

const KINDS: [&str; 2] = ["classic", "quorum"];

/// Returns the delays for three attempts.
fn waits(strategy: Strategy) -> &'static [u64] {
    match strategy {
        Strategy::Ladder | Strategy::Republish => &[300, 700],
        Strategy::Delayed => &[400, 800],
        Strategy::Redeliver => &[0, 0],
        Strategy::Final => &[],
    }
}

fn name(kind: &str, strategy: Strategy) -> String {
    format!("{kind}.{strategy:?}").to_lowercase()
}

#[test]
fn message_that_always_fails_is_dead_lettered_once() {
    let mut cases = Vec::new();
    for kind in KINDS {
        for strategy in Strategy::of(kind) {
            let case = Case::new(&name(kind, strategy), kind, strategy, waits(strategy));
            let bare = AMQPProperties::default();
            cases.push(Case { queue: format!("{}.bare", case.queue), published: bare, ..case.clone() });
            cases.push(Case {
                queue: format!("{}.light", case.queue),
                published: dead_lettered_message::properties(1),
                ..case.clone()
            });
            cases.push(case);
        }
        cases.push(Case::new(&format!("{kind}.back"), kind, Strategy::Republish, &[0, 0, 0]));
        cases.push(Case::new(&format!("{kind}.final"), kind, Strategy::Final, &[]));
    }
    if supports_transient_queues() {
        for strategy in Strategy::of("classic") {
            let case = Case::new(&format!("{}.transient", name("classic", strategy)), "classic", strategy, &[300, 600]);
            let keys = format!("durable: false, {}", case.keys);
            cases.push(Case { published: dead_lettered_message::properties(1), ..case.keys(&keys) });
        }
    }
    prove("fails", &cases);
}

#[test]
fn message_that_succeeds_leaves_no_copy() {
    let mut cases = Vec::new();
    for kind in KINDS {
        for strategy in Strategy::of(kind) {
            for attempt in 1..=3 {
                let queue = format!("{}.{attempt}", name(kind, strategy));
                cases.push(Case::new(&queue, kind, strategy, waits(strategy)).succeeds_on(attempt));
            }
        }
        for attempt in 1..=3 {
            let queue = format!("{kind}.back.{attempt}");
            cases.push(Case::new(&queue, kind, Strategy::Republish, &[0, 0]).succeeds_on(attempt));
        }
        cases.push(Case::new(&format!("{kind}.final"), kind, Strategy::Final, &[]).succeeds_on(1));
    }
    prove("succeeds", &cases);
}

/// Tests fewer delays than retries, computed delays, delays that the worker shortens, no delays, and no retries, in
/// each notation.
#[test]
fn delays_match_the_schedule() {
    let mut cases = Vec::new();
    for kind in KINDS {
        for (word, strategy) in [("ladder", Strategy::Ladder), ("republish", Strategy::Republish)] {
            let case = |what: &str, waits: &[u64], keys: &str| {
                let keys = keys.replace("STRATEGY", &format!("strategy: {word}"));
                Case::new(&format!("{kind}.{word}.{what}"), kind, strategy, waits).keys(&keys)
            };
            cases.push(case(
                "repeats",
                &[200, 300, 300, 300],
                "maxRetries: 4, retry: {STRATEGY, delays: [200ms, 300ms]}",
            ));
            let backoff = "maxRetries: 4, retry: {STRATEGY, backoff: {initial: 200ms, factor: 1.5, max: 400ms}}";
            cases.push(case("backoff", &[200, 300, 400, 400], backoff));
            let no_retry = case("zero", &[], "maxRetries: 0, retry: {STRATEGY}");
            cases.push(Case { strategy: Strategy::Final, ..no_retry });
        }
        let jitter = Case::new(&format!("{kind}.jitter"), kind, Strategy::Republish, &[900, 600]);
        let keys = "retry: {strategy: republish, delays: [900ms, 600ms], jitter: 400ms}";
        cases.push(Case { jitter: 400, ..jitter.keys(keys) });
    }
    // Three deliveries, as in the article "Three strikes".
    cases.push(Case::new("strikes", "classic", Strategy::Republish, &[0, 0]));
    cases.push(Case::new("redeliver.zero", "quorum", Strategy::Redeliver, &[]));
    if Strategy::of("quorum").contains(&Strategy::Delayed) {
        let longest = "maxRetries: 4, retry: {strategy: delayed, delays: [200ms, 400ms, 500ms]}";
        cases.push(Case::new("delayed.longest", "quorum", Strategy::Delayed, &[200, 400, 500, 500]).keys(longest));
        let even = "maxRetries: 3, retry: {strategy: delayed, delays: [300ms]}";
        cases.push(Case::new("delayed.even", "quorum", Strategy::Delayed, &[300, 300, 300]).keys(even));
        let none = "maxRetries: 0, retry: {strategy: delayed}";
        let none = Case::new("delayed.zero", "quorum", Strategy::Delayed, &[]).keys(none);
        cases.push(none);
    }
    prove("schedules", &cases);
}

/// The name is part of generated names, keys and paths.
#[test]
fn queue_can_have_any_name() {
    let names = ["a b", "a/b", "50%", "é ✓ 队列", "a.retry", "a.retry.1.5s", "a.retry.1.5s~2", "a#.b*", "a+b&c?d=e"];
    let mut cases = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let kind = KINDS[number % 2];
        cases.push(Case::new(name, kind, Strategy::Ladder, &[200, 300]));
        cases.push(Case::new(&format!("{name} r"), KINDS[1 - number % 2], Strategy::Republish, &[200, 300]));
    }
    // The words of this name are wildcards, which must not match other keys on the ladder.
    cases.push(Case::new("#.*", "quorum", Strategy::Republish, &[200, 300]));
    cases.push(Case::new("*.#", "quorum", Strategy::Redeliver, &[0, 0]));
    prove("names", &cases);
}
