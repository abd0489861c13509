//! Tests the errors for retry strategies that a queue type or version does not support. The hints of
//! `topo validate --broker-version` list exactly the supported strategies.

use std::collections::BTreeSet;

use crate::support::{Output, Topo};

const STRATEGIES: [&str; 4] = ["ladder", "republish", "redeliver", "delayed"];
const VERSIONS: [&str; 5] = ["3.8.9", "3.10.8", "3.13.7", "4.0.5", "4.3.6"];

/// A retry of a queue in spec syntax.
#[derive(Clone, Copy)]
struct Retry<'a> {
    kind: &'a str,
    count: u32,
    /// Additional keys of the queue.
    keys: &'a str,
    /// The schedule as keys of `retry`; empty for no schedule.
    schedule: &'a str,
}

impl Retry<'_> {
    fn validated(self, topo: &Topo, strategy: &str, version: &str) -> Output {
        let Self { kind, count, keys, schedule } = self;
        topo.rewrite(&format!(
            "queues: {{work: {{type: {kind}, {keys}deadLetter: dead, maxRetries: {count}, retry: {{strategy: {strategy}{schedule}}}}}}}\n\
             deadLetterQueues: {{dead: {{type: classic}}}}\n"
        ));
        topo.run(["validate", "--broker-version", version])
    }
}

/// Returns the strategies of the hint ``use `strategy: ladder` or `strategy: republish` ``; `None` without such a hint.
fn named(output: &Output, before: &str) -> Option<BTreeSet<String>> {
    let hint = output.stderr.lines().find_map(|line| line.trim().strip_prefix("= help: "))?;
    let list = hint.strip_prefix(before)?.strip_prefix("use ").filter(|list| list.starts_with("`strategy: "))?;
    Some(
        list.split(" or ").map(|it| it.trim_matches('`').strip_prefix("strategy: ").unwrap_or(it).to_owned()).collect(),
    )
}

/// Validates the retry with each strategy.
fn all_validated(retry: Retry<'_>, topo: &Topo, version: &str) -> [(&'static str, Output); 4] {
    STRATEGIES.map(|strategy| (strategy, retry.validated(topo, strategy, version)))
}

fn works(outputs: &[(&str, Output)]) -> BTreeSet<String> {
    outputs.iter().filter(|it| it.1.code == Some(0)).map(|it| it.0.to_owned()).collect()
}

/// Validates each strategy on every queue type and version, with every kind of schedule. The error for an unsupported
/// strategy lists exactly the strategies that validate.
#[test]
fn refused_strategy_names_exactly_the_valid_ones() {
    let topo = Topo::offline();
    let [mut as_it_is, mut without_delays] = [0, 0];
    for kind in ["classic", "quorum"] {
        for (count, keys, schedule) in [
            (3, "", ""),
            (3, "", ", delays: [1s, 2s, 3s]"),
            (3, "", ", delays: [1s, 5s]"),
            (3, "maxLength: 5, ", ", delays: [1s, 2s, 3s]"),
            (101, "", ", delays: [1s, 5s]"),
        ] {
            for version in VERSIONS {
                let retry = Retry { kind, count, keys, schedule };
                let outputs = all_validated(retry, &topo, version);
                let expected = works(&outputs);
                for (strategy, output) in &outputs {
                    let case = format!("{kind} {count} {keys}{schedule} {strategy} on {version}");
                    if let Some(named) = named(output, "remove the delays and ") {
                        assert!(expected.is_empty(), "{case}: {output}");
                        let bare = all_validated(Retry { schedule: "", ..retry }, &topo, version);
                        assert_eq!(named, works(&bare), "{case}: {output}");
                        without_delays += 1;
                    } else if let Some(named) = named(output, "") {
                        assert_eq!(named, expected, "{case}: {output}");
                        as_it_is += 1;
                    }
                }
            }
        }
    }
    assert!(as_it_is > 20 && without_delays > 10, "{as_it_is} and {without_delays} hints were checked");
}

/// Checks each error that is caused by a queue type or a version.
#[test]
fn unsupported_type_or_version_is_named() {
    let topo = Topo::offline();
    let even = ", delays: [1s, 2s]";
    let (classic, quorum) =
        ("a queue that counts deliveries, but queue `work` is a classic queue", "requires RabbitMQ 4.3; the broker is");
    for (version, kind, strategy, schedule, broker_error, named) in [
        ("4.3.6", "classic", "redeliver", "", classic, "`strategy: republish`"),
        ("4.3.6", "classic", "delayed", even, classic, "`strategy: ladder` or `strategy: republish`"),
        ("4.0.5", "quorum", "delayed", even, quorum, "`strategy: ladder` or `strategy: republish`"),
        ("4.2.0", "quorum", "delayed", even, quorum, "`strategy: ladder` or `strategy: republish`"),
        ("3.8.9", "quorum", "delayed", even, quorum, "`strategy: ladder` or `strategy: republish`"),
    ] {
        let output = Retry { kind, count: 3, keys: "", schedule }.validated(&topo, strategy, version).expect_code(65);
        output.expect_text(broker_error).expect_text(&format!("use {named}"));
    }
    // A classic queue does not support `maxRetries` without delays.
    topo.rewrite("queues: {work: {type: classic, maxRetries: 3, deadLetter: none}}\n");
    let refused = topo.run(["validate", "--broker-version", "4.3.6"]).expect_code(65);
    refused.expect_text("which does not count deliveries").expect_text("or use `type: quorum`");
    // Streams support neither retries nor dead-lettering, because consuming does not remove messages from a stream.
    for keys in ["maxRetries: 3", "retry: {delays: [1s]}", "deadLetter: dead"] {
        for version in ["3.10.8", "4.3.6"] {
            topo.rewrite(&format!("queues: {{work: {{type: stream, {keys}}}}}\n"));
            let key = keys.split(':').next().unwrap_or_default();
            let refused = topo.run(["validate", "--broker-version", version]).expect_code(65);
            assert!(refused.stderr.contains(key) && refused.stderr.contains("stream"), "{refused}");
        }
    }
    // Defaults for queues do not apply to streams.
    topo.rewrite("defaults: {maxRetries: 3, deadLetter: none}\nqueues: {work: {type: stream}}\n");
    topo.run(["validate", "--broker-version", "4.3.6"]).expect_code(0);
}

/// A ladder changes the keys of dead-lettered messages, so it requires an exchange that routes every key.
#[test]
fn direct_dead_letter_exchange_is_refused_only_with_a_ladder() {
    let topo = Topo::offline();
    for (keys, code) in [
        ("retry: {delays: [1s]}", 65),
        ("retry: {strategy: republish, delays: [1s]}", 0),
        ("maxRetries: 3", 0),
        ("retry: {strategy: delayed, delays: [1s]}", 0),
        ("maxRetries: 0", 0),
    ] {
        topo.rewrite(&format!(
            "queues: {{work: {{type: quorum, {keys}, deadLetter: dead}}}}\n\
             deadLetterQueues: {{dead: {{type: classic, exchange: {{type: direct}}}}}}\n"
        ));
        let output = topo.run(["validate", "--broker-version", "4.3.6"]).expect_code(code);
        if code != 0 {
            output.expect_text("does not route them").expect_text("use a fanout exchange");
        }
    }
}
