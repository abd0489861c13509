//! Lives in small specs; that a broker leads them so is `tests/live/contract.rs`'s affair.

use super::*;
use crate::expand::expand;
use crate::model::BrokerVersion;
use crate::spec::{SourceFile, Variables, parse};

fn told(name: &str, yaml: &str, version: (u16, u16)) -> Option<Explanation> {
    let text = format!("version: 1\nvhost: v\n{yaml}");
    let file = SourceFile { name: "t.yaml".to_owned(), text };
    let spec = parse(&[file], &Variables::new()).unwrap().remove(0);
    let profile = BrokerProfile::of(BrokerVersion::new(version.0, version.1, 0));
    let expansion = expand(&spec, &profile).unwrap();
    story(&QueueName::new(name), &spec, &expansion, &profile)
}

/// The life in a queue `q` with these keys.
fn life(keys: &str, version: (u16, u16)) -> Lifecycle {
    let yaml = format!("queues: {{q: {{{keys}}}}}\ndeadLetterQueues: {{dead: {{type: quorum}}}}\n");
    match told("q", &yaml, version) {
        Some(Explanation::Queue(life)) => *life,
        other => panic!("{other:?}"),
    }
}

fn way<'a>(life: &'a Lifecycle, word: &str) -> &'a str {
    life.exits.iter().find(|it| it.way == word).map_or("", |it| it.to.as_str())
}

fn times(life: &Lifecycle) -> Vec<String> {
    let time = |step: &Step| step.after.as_ref().map_or("?".to_owned(), |it| it.text.clone());
    life.steps.iter().filter(|it| matches!(it.state, State::Attempt { .. })).map(time).collect()
}

#[test]
fn attempts_come_after_all_waits_before_them() {
    assert_eq!(
        times(&life("type: quorum, retry: {delays: [5s, 30s, 5m]}, deadLetter: dead", (4, 3))),
        ["0ms", "5s", "35s", "5m35s"]
    );
    let delayed = life("type: quorum, retry: {strategy: delayed, delays: [1s, 2s]}", (4, 3));
    assert_eq!(times(&delayed), ["0ms", "1s", "3s"]);
    assert_eq!(delayed.steps.last().unwrap().state, State::Dropped);
    // What comes back waits, too, whoever gave it back (`tests/live/retry/counting.rs`).
    assert_eq!(way(&delayed, "crashed"), "delivered again after the attempt's wait, 1s to 2s: one attempt less");
    assert_eq!(way(&delayed, "requeued"), "delivered again after 1s, not counted: without limit");
    let once = life("type: quorum, retry: {strategy: delayed, delays: [1s]}", (4, 3));
    assert_eq!(way(&once, "crashed"), "delivered again after 1s: one attempt less");
    let redelivered = life("type: quorum, maxRetries: 2", (4, 3));
    assert_eq!(way(&redelivered, "crashed"), "delivered again at once: one attempt less");
    // Who goes to the back waits for what is there.
    assert_eq!(times(&life("type: classic, maxRetries: 2, retry: {strategy: republish}", (4, 3))), ["0ms", "?", "?"]);
}

#[test]
fn the_middle_of_many_attempts_is_one_state() {
    let long = life("type: quorum, maxRetries: 99, retry: {delays: [1s]}, deadLetter: dead", (4, 3));
    assert_eq!(times(&long), ["0ms", "1s", "2s", "3s", "1m38s", "1m39s"]);
    assert!(long.steps.iter().any(|it| it.state == State::Attempts { from: 5, to: 98 }));
    let waits = long.steps.iter().filter(|it| matches!(it.state, State::Waiting { .. })).count();
    assert_eq!(waits, 4);
    let endless = life("type: quorum, maxRetries: 1000000", (4, 3));
    assert_eq!(times(&endless).len(), 6);
}

#[test]
fn every_way_out_leads_where_the_broker_takes_it() {
    let keys = "type: classic, messageTtl: 1m, maxLength: 5, deadLetter: dead";
    let plain = life(keys, (4, 3));
    assert_eq!(way(&plain, "expired"), "dead (expired)");
    assert_eq!(way(&plain, "overflow"), "the oldest message is removed: dead (maxlen)");
    assert_eq!(way(&plain, "requeued"), "delivered again at once, no retry, however often");
    assert_eq!(
        way(&life(&format!("{keys}, overflow: reject-publish"), (4, 3)), "overflow"),
        "new messages are rejected: the publisher gets basic.nack"
    );
    let bare = life("type: classic, expires: 1h", (4, 3));
    assert_eq!((way(&bare, "failed"), way(&bare, "expired")), ("dropped", "dropped"));
    assert_eq!(way(&bare, "queue deleted"), "lost with the queue; not dead-lettered");
    assert_eq!((bare.dead_lettered_message, bare.replay), (None, None));
    // Quorum queues: no limit before 4.0, and basic.nack is not counted from 4.3 on.
    let quorum = |version| life("type: quorum, deadLetter: dead", version);
    assert_eq!(way(&quorum((3, 13)), "requeued"), "delivered again at once, no retry, however often");
    assert_eq!(
        way(&quorum((4, 0)), "requeued"),
        "delivered again at once, no retry; after 20 times, dead (delivery_limit)"
    );
    assert!(way(&quorum((4, 3)), "requeued").contains("after 20 times (basic.nack is not counted)"));
    // What expires on a ladder that has no guard.
    let ladder = |version| life("type: classic, retry: {delays: [5s]}, deadLetter: dead", version);
    assert!(way(&ladder((3, 10)), "expired").starts_with("lost: "));
    assert_eq!(way(&ladder((3, 13)), "expired"), "dead (expired)");
    let stream = life("type: stream, maxAge: 7D", (4, 3));
    assert_eq!((way(&stream, "read"), way(&stream, "too old")), ("stays", "deleted with its segment"));
    assert_eq!(stream.contract, None);
}

#[test]
fn each_setting_says_who_says_it() {
    let yaml = "defaults: {queue: {type: quorum, maxLength: 9}, deadLetter: dead}\n\
                retryPolicies: {slow: {maxRetries: 2, delays: [1m]}}\n\
                queues: {q: {retry: slow, messageTtl: 5s}}\n\
                deadLetterQueues: {dead: {}}\n\
                policies: {p: {pattern: ^q$, definition: {maxLength: 3}}}\n";
    let Some(Explanation::Queue(life)) = told("q", yaml, (4, 3)) else { panic!("a queue") };
    let told: Vec<(&str, &str, &str, Option<usize>)> = life
        .settings
        .iter()
        .map(|it| (it.key.as_str(), it.value.as_str(), it.set_by.as_str(), it.at.as_ref().map(|at| at.line)))
        .collect();
    assert_eq!(
        told,
        [
            ("type", "quorum", "defaults.queue", Some(3)),
            ("maxRetries", "2", "retryPolicies.slow", Some(4)),
            ("delays", "1m", "retryPolicies.slow", Some(4)),
            ("strategy", "ladder", "topo: there are delays", None),
            ("deadLetter", "dead", "defaults.deadLetter", Some(3)),
            ("deliveryLimit", "20", "RabbitMQ's default", None),
            ("maxLength", "3", "policy p", Some(7)),
            ("messageTtl", "5000 (5s)", "the queue", Some(5)),
        ]
    );
}

#[test]
fn names_of_tiers_are_told_apart() {
    let yaml = "queues: {q: {type: quorum, retry: {delays: [5s, 30s]}, deadLetter: dead}, q.retry.7.1s: {type: classic}}\n\
                deadLetterQueues: {dead: {type: quorum}}\n";
    let tier = |name: &str| match told(name, yaml, (4, 3)) {
        Some(Explanation::Tier(tier)) => Some((tier.retry, tier.wait.text, tier.is_made)),
        Some(Explanation::Queue(_)) | None => None,
    };
    assert_eq!(tier("q.retry.2.30s"), Some((2, "30s".to_owned(), true)));
    assert_eq!(tier("q.retry.1.10s"), Some((1, "10s".to_owned(), false)));
    assert_eq!(tier("other.retry.1.10s"), None);
    // A queue of that name is a queue.
    assert!(matches!(told("q.retry.7.1s", yaml, (4, 3)), Some(Explanation::Queue(_))));
    let Some(Explanation::Queue(dead)) = told("dead", yaml, (4, 3)) else { panic!("a queue") };
    assert_eq!(dead.letters_of, [QueueName::new("q")]);
    assert_eq!(way(&dead, "inspected"), "stays, however often");
}
