//! Tests the lifecycles of small specs. `tests/live/contract.rs` compares lifecycles with a broker.

use super::*;
use crate::expand::expand;
use crate::model::BrokerVersion;
use crate::spec::{SourceFile, Variables, parse};

fn explain(name: &str, yaml: &str, version: (u16, u16)) -> Option<Explanation> {
    let text = format!("version: 1\nvhost: v\n{yaml}");
    let file = SourceFile { name: "t.yaml".to_owned(), text };
    let spec = parse(&[file], &Variables::new()).unwrap().vhosts.remove(0);
    let profile = BrokerProfile::of(BrokerVersion::new(version.0, version.1, 0));
    let expansion = expand(&spec, &profile).unwrap();
    explanation(&QueueName::new(name), &spec, &expansion, &profile)
}

/// Returns the lifecycle of queue `q`, which the spec declares with these keys.
fn lifecycle(keys: &str, version: (u16, u16)) -> Lifecycle {
    let yaml = format!("queues: {{q: {{{keys}}}}}\ndeadLetterQueues: {{dead: {{type: quorum}}}}\n");
    match explain("q", &yaml, version) {
        Some(Explanation::Queue(lifecycle)) => *lifecycle,
        other => panic!("{other:?}"),
    }
}

/// Returns the destination of an exit; empty if the lifecycle does not have the exit.
fn exit<'a>(lifecycle: &'a Lifecycle, way: &str) -> &'a str {
    lifecycle.exits.iter().find(|it| it.way == way).map_or("", |it| it.to.as_str())
}

/// Returns the time of each listed attempt; `?` if the time is unknown.
fn times(lifecycle: &Lifecycle) -> Vec<String> {
    let time = |step: &Step| step.after.as_ref().map_or("?".to_owned(), |it| it.text.clone());
    lifecycle.steps.iter().filter(|it| matches!(it.state, State::Attempt { .. })).map(time).collect()
}

#[test]
fn attempts_follow_all_previous_delays() {
    assert_eq!(
        times(&lifecycle("type: quorum, retry: {delays: [5s, 30s, 5m]}, deadLetter: dead", (4, 3))),
        ["0ms", "5s", "35s", "5m35s"]
    );
    let delayed = lifecycle("type: quorum, retry: {strategy: delayed, delays: [1s, 2s]}", (4, 3));
    assert_eq!(times(&delayed), ["0ms", "1s", "3s"]);
    assert_eq!(delayed.steps.last().unwrap().state, State::Dropped);
    // The delay applies to every returned message, regardless of the cause (`tests/live/retry/counting.rs`).
    assert_eq!(
        exit(&delayed, "crashed"),
        "redelivered after the delay for the attempt (1s to 2s); uses up one attempt"
    );
    assert_eq!(exit(&delayed, "requeued"), "redelivered after 1s, not counted, without limit");
    let once = lifecycle("type: quorum, retry: {strategy: delayed, delays: [1s]}", (4, 3));
    assert_eq!(exit(&once, "crashed"), "redelivered after 1s; uses up one attempt");
    let redelivered = lifecycle("type: quorum, maxRetries: 2", (4, 3));
    assert_eq!(exit(&redelivered, "crashed"), "redelivered immediately; uses up one attempt");
    // A message at the back of the queue waits for all earlier messages, for an unknown time.
    assert_eq!(
        times(&lifecycle("type: classic, maxRetries: 2, retry: {strategy: republish}", (4, 3))),
        ["0ms", "?", "?"]
    );
}

#[test]
fn many_attempts_are_abbreviated() {
    let long = lifecycle("type: quorum, maxRetries: 99, retry: {delays: [1s]}, deadLetter: dead", (4, 3));
    assert_eq!(times(&long), ["0ms", "1s", "2s", "3s", "1m38s", "1m39s"]);
    assert!(long.steps.iter().any(|it| it.state == State::Attempts { from: 5, to: 98 }));
    let waits = long.steps.iter().filter(|it| matches!(it.state, State::Waiting { .. })).count();
    assert_eq!(waits, 4);
    let endless = lifecycle("type: quorum, maxRetries: 1000000", (4, 3));
    assert_eq!(times(&endless).len(), 6);
}

#[test]
fn exits_have_the_same_destinations_as_on_the_broker() {
    let keys = "type: classic, messageTtl: 1m, maxLength: 5, deadLetter: dead";
    let plain = lifecycle(keys, (4, 3));
    assert_eq!(exit(&plain, "expired"), "dead (expired)");
    assert_eq!(exit(&plain, "overflow"), "the oldest message is removed: dead (maxlen)");
    assert_eq!(exit(&plain, "requeued"), "redelivered immediately (not a retry), without limit");
    assert_eq!(
        exit(&lifecycle(&format!("{keys}, overflow: reject-publish"), (4, 3)), "overflow"),
        "new messages are rejected: the publisher gets basic.nack"
    );
    let bare = lifecycle("type: classic, expires: 1h", (4, 3));
    assert_eq!((exit(&bare, "failed"), exit(&bare, "expired")), ("dropped", "dropped"));
    assert_eq!(exit(&bare, "queue deleted"), "lost with the queue; not dead-lettered");
    assert_eq!((bare.dead_lettered_message, bare.replay), (None, None));
    // Quorum queues have no default delivery limit before 4.0. On 4.3 and later, they do not count basic.nack.
    let quorum = |version| lifecycle("type: quorum, deadLetter: dead", version);
    assert_eq!(exit(&quorum((3, 13)), "requeued"), "redelivered immediately (not a retry), without limit");
    assert_eq!(
        exit(&quorum((4, 0)), "requeued"),
        "redelivered immediately (not a retry); after 20 redeliveries, dead (delivery_limit)"
    );
    assert!(exit(&quorum((4, 3)), "requeued").contains("after 20 redeliveries (basic.nack is not counted)"));
    // Before 3.13, a ladder has no guard against expired messages.
    let ladder = |version| lifecycle("type: classic, retry: {delays: [5s]}, deadLetter: dead", version);
    assert!(exit(&ladder((3, 10)), "expired").starts_with("lost: "));
    assert_eq!(exit(&ladder((3, 13)), "expired"), "dead (expired)");
    let stream = lifecycle("type: stream, maxAge: 7D", (4, 3));
    assert_eq!((exit(&stream, "read"), exit(&stream, "too old")), ("stays", "deleted with its segment"));
    assert_eq!(stream.contract, None);
}

#[test]
fn each_setting_has_an_origin() {
    let yaml = "defaults: {queue: {type: quorum, maxLength: 9}, deadLetter: dead}\n\
                retryPolicies: {slow: {maxRetries: 2, delays: [1m]}}\n\
                queues: {q: {retry: slow, messageTtl: 5s}}\n\
                deadLetterQueues: {dead: {}}\n\
                policies: {p: {pattern: ^q$, definition: {maxLength: 3}}}\n";
    let Some(Explanation::Queue(lifecycle)) = explain("q", yaml, (4, 3)) else { panic!("a queue") };
    let origins: Vec<(&str, &str, &str, Option<usize>)> = lifecycle
        .settings
        .iter()
        .map(|it| (it.key.as_str(), it.value.as_str(), it.set_by.as_str(), it.at.as_ref().map(|at| at.line)))
        .collect();
    assert_eq!(
        origins,
        [
            ("type", "quorum", "defaults.queue", Some(3)),
            ("maxRetries", "2", "retryPolicies.slow", Some(4)),
            ("delays", "1m", "retryPolicies.slow", Some(4)),
            ("strategy", "ladder", "topo: delays are set", None),
            ("deadLetter", "dead", "defaults.deadLetter", Some(3)),
            ("deliveryLimit", "20", "RabbitMQ's default", None),
            ("maxLength", "3", "policy p", Some(7)),
            ("messageTtl", "5000 (5s)", "the queue", Some(5)),
        ]
    );
}

#[test]
fn tier_names_are_explained() {
    let yaml = "queues: {q: {type: quorum, retry: {delays: [5s, 30s]}, deadLetter: dead}, q.retry.7.1s: {type: classic}}\n\
                deadLetterQueues: {dead: {type: quorum}}\n";
    let tier = |name: &str| match explain(name, yaml, (4, 3)) {
        Some(Explanation::Tier(tier)) => Some((tier.retry, tier.wait.text, tier.is_generated)),
        Some(Explanation::Queue(_)) | None => None,
    };
    assert_eq!(tier("q.retry.2.30s"), Some((2, "30s".to_owned(), true)));
    assert_eq!(tier("q.retry.1.10s"), Some((1, "10s".to_owned(), false)));
    assert_eq!(tier("other.retry.1.10s"), None);
    // A declared queue with the name of a tier is a queue.
    assert!(matches!(explain("q.retry.7.1s", yaml, (4, 3)), Some(Explanation::Queue(_))));
    let Some(Explanation::Queue(dead)) = explain("dead", yaml, (4, 3)) else { panic!("a queue") };
    assert_eq!(dead.dead_letter_sources, [QueueName::new("q")]);
    assert_eq!(exit(&dead, "inspected"), "stays in the queue, however often it is requeued");
}

#[test]
fn operator_policies_are_effective() {
    let yaml = "queues: {q: {type: quorum, maxRetries: 5, maxLength: 1000}}\n\
                operatorPolicies: {p: {pattern: ^q$, definition: {deliveryLimit: 2, maxLength: 100}}}\n";
    let Some(Explanation::Queue(lifecycle)) = explain("q", yaml, (4, 3)) else { panic!("{yaml}") };
    let found = |key: &str| {
        let setting = lifecycle.settings.iter().find(|it| it.key == key).unwrap();
        (setting.value.clone(), setting.set_by.clone(), setting.at.as_ref().map(|it| it.line))
    };
    let by_operator = |value: &str| (value.to_owned(), "operator policy p".to_owned(), Some(4));
    assert_eq!([found("deliveryLimit"), found("maxLength")], [by_operator("2"), by_operator("100")]);
    assert_eq!(times(&lifecycle).len(), 3, "the first attempt and two retries");
}
