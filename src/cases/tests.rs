//! Tests for test files: parsing, comparison, coverage and snapshots.

mod sender_selected;

use super::{
    CaseOutcome, CaseResult, Coverage, PartState, SnapshotSource, Subject, TestFile, check, coverage, parse, run,
    snapshot,
};
use crate::expand::expand;
use crate::model::BrokerVersion;
use crate::rabbitmq::BrokerProfile;
use crate::spec::{Diagnostics, SourceFile, Variables, parse as parse_specs};
use std::collections::BTreeSet;

const SPEC: &str = "version: 1
vhost: shop
exchanges: {orders: {type: topic}, inner: {type: fanout, internal: true}}
queues:
  work: {type: quorum, deadLetter: dead, retry: {delays: [5s]}, bindings: [{exchange: orders, routingKey: 'order.#'}]}
  log: {type: stream}
deadLetterQueues: {dead: {type: quorum}}
";

fn file(text: &str) -> Result<TestFile, Diagnostics> {
    parse(0, &SourceFile { name: "topology.test.yaml".to_owned(), text: format!("version: 1\n{text}") })
}

/// Runs the cases in a file. Returns the errors in the file as text.
fn results(text: &str) -> Result<Vec<CaseResult>, String> {
    let file = file(text).map_err(|errors| errors.to_string())?;
    let source = SourceFile { name: "topology.yaml".to_owned(), text: SPEC.to_owned() };
    let specs = parse_specs(&[source], &Variables::default()).unwrap();
    let (spec, profile) = (&specs.vhosts[0], BrokerProfile::of(BrokerVersion::NEWEST_KNOWN));
    let expansion = expand(spec, &profile).unwrap();
    let operator_policies = expansion.topology.operator_policies();
    let subject = Subject::new((spec, &expansion), &operator_policies, &profile);
    let errors = check(&file, &subject, false);
    if errors.has_errors() { Err(errors.to_string()) } else { Ok(run(&file, &subject, "")) }
}

/// Returns the differences for the only case.
fn differences(case: &str) -> Vec<String> {
    let results = results(&format!("tests: {{it: {{{case}}}}}\n")).unwrap();
    let [CaseResult { outcome, .. }] = results.as_slice() else { panic!("{results:?}") };
    match outcome {
        CaseOutcome::Failed { mismatches, .. } => mismatches
            .iter()
            .map(|it| {
                let queue = it.queue.as_ref().map_or_else(String::new, |queue| format!(" {queue}"));
                format!("{}{queue}: {} / {}", it.aspect.as_str(), it.expected, it.actual)
            })
            .collect(),
        CaseOutcome::Passed | CaseOutcome::Skipped => Vec::new(),
    }
}

#[test]
fn met_expectations_pass() {
    for case in [
        "publish: {exchange: orders, routingKey: order.paid}, to: [work]",
        "publish: {exchange: orders, routingKey: other}, to: [], publisher: returned",
        "publish: {queue: work}, workers: {work: fail}, attempts: {work: [0s, 5s]}, ends: {dead: rejected}, within: 5s",
        "publish: {queue: work}, workers: {work: fail}, ends: {dead: {rejected: 1}}, reaches: [dead, work]",
        "publish: {queue: work}, workers: {work: [fail, ack]}, ends: {work: acked}, never: [dead]",
        "publish: {queue: work, count: 3}, ends: {work: {waiting: 3}}, publisher: confirmed",
        "publish: {queue: work, count: 3}, ends: {work: 3}",
        "publish: {queue: work}, workers: {work: fail}, ends: [dead], deadLettered: {xDeath: [{queue: work, reason: \
         rejected, exchange: '', routingKeys: [work]}]}",
        "publish: {queue: work}, workers: {work: fail}, ends: [dead], deadLettered: {xDeath: [{queue: work, reason: \
         rejected, count: 2}]}",
    ] {
        assert_eq!(differences(case), Vec::<String>::new(), "{case}");
    }
}

#[test]
fn differences_are_described() {
    for (case, expected) in [
        ("publish: {exchange: orders, routingKey: other}, to: [work]", &["to: work / no queue"][..]),
        ("publish: {queue: work}, workers: {work: fail}, attempts: {work: 3}", &["attempts work: 3 / 2"]),
        (
            "publish: {queue: work}, workers: {work: fail}, attempts: {work: [0s, 6s]}",
            &["attempts work: 0s, 6s / 0s, 5s"],
        ),
        (
            "publish: {queue: work}, workers: {work: fail}, ends: {work: acked}",
            &["ends work: acked / no message", "ends dead: no message / 1 rejected"],
        ),
        ("publish: {queue: work}, workers: {work: [fail]}, ends: {work: held}", &["workers work: at most 1 / 2"]),
        // Without a delivery, only the difference in `attempts` is reported.
        (
            "publish: {exchange: orders, routingKey: other}, workers: {work: fail}, attempts: {work: 2}",
            &["attempts work: 2 / 0"],
        ),
        (
            "publish: {queue: work}, workers: {dead: ack}, ends: {work: waiting}",
            &["workers dead: at least 1 delivery / no delivery"],
        ),
        ("publish: {queue: work}, never: [work]", &["never work: no copy / a copy"]),
        ("publish: {queue: work}, reaches: [dead]", &["reaches dead: a copy / no copy"]),
        ("publish: {queue: work}, publisher: returned", &["publisher: returned / confirmed"]),
        ("publish: {queue: work}, refused: 1", &["refused: 1 message / 0 messages"]),
        ("publish: {queue: work, count: 2}, ends: {work: 3}", &["ends work: 3 messages / 2 waiting"]),
        (
            "publish: {queue: work}, workers: {work: fail}, ends: [dead], deadLettered: {xDeath: [{queue: work, reason: \
             rejected, count: 3, exchange: orders, routingKeys: [order.paid]}]}",
            &[
                "deadLettered dead: x-death entry work/rejected, count 3 / count 2",
                "deadLettered dead: x-death entry work/rejected, exchange `orders` / the default exchange",
                "deadLettered dead: x-death entry work/rejected, routing keys `order.paid` / routing keys `work`",
            ],
        ),
        ("publish: {queue: work}, workers: {work: fail}, ends: [dead], within: 4s", &["within: at most 4s / 5s"]),
    ] {
        assert_eq!(differences(case), expected, "{case}");
    }
}

#[test]
fn tables_have_a_case_for_each_route() {
    let table = "tests:\n  routes:\n    exchange: orders\n    routes: {order.paid: [work], other: [work]}\n";
    let results = results(table).unwrap();
    let names: Vec<(&str, bool)> =
        results.iter().map(|it| (it.name.as_str(), it.outcome == CaseOutcome::Passed)).collect();
    assert_eq!(names, [("routes: order.paid", true), ("routes: other", false)]);
}

#[test]
fn conditions_skip_cases() {
    let case = |only: &str| {
        let text = format!("tests: {{it: {{publish: {{queue: work}}, never: [dead], only: '{only}'}}}}\n");
        results(&text).unwrap()[0].outcome.clone()
    };
    assert_eq!(case(">= 3.13"), CaseOutcome::Passed);
    assert_eq!(case("< 3.13"), CaseOutcome::Skipped);
}

#[test]
fn mistakes_are_reported() {
    for (text, expected) in [
        ("tests: {it: {publish: {queue: work}}}", "this case cannot fail"),
        ("tests: {it: {publish: {queue: work}, within: 1s}}", "this case cannot fail"),
        ("tests: {it: {publish: {queue: work}, to: [work]}}", "this case cannot fail"),
        ("tests: {it: {publish: {exchange: '', routingKey: work}, to: [work]}}", "this case cannot fail"),
        ("tests: {it: {publish: {queue: work}, attempts: {work: 0}}}", "queue `work` has no worker in this case"),
        ("tests: {it: {publish: {queue: work, headers: {CC: [log]}}, reaches: [work]}}", "this case cannot fail"),
        ("tests: {it: {publish: {exchange: orders}, to: 5}}", "expected a list of queues"),
        ("tests: {it: {publish: {queue: wrok}, to: [work]}}", "queue `wrok` does not exist"),
        ("tests: {it: {publish: {exchange: order}, to: [work]}}", "exchange `order` does not exist"),
        ("tests: {it: {publish: {exchange: inner}, to: []}}", "clients cannot publish to internal exchange `inner`"),
        ("tests: {it: {publish: {queue: work}, workers: {log: fail}, never: [dead]}}", "`fail` requires a contract"),
        ("tests: {it: {publish: {queue: work}, workers: {work: nak}, to: [work]}}", "cannot be `nak`"),
        ("tests: {it: {publish: {queue: work}, ends: {work: gone}}}", "gone"),
        (
            "tests: {it: {publish: {queue: work, expiration: '5'}, ends: {work: waiting}}}",
            "expected a number for `expiration`",
        ),
        (
            "tests: {it: {publish: {queue: work}, within: 5 s, ends: {work: waiting}}}",
            "expected a duration such as `30s`",
        ),
        ("tests: {it: {publish: {queue: work}, attempts: {work: 1}}}", "queue `work` has no worker in this case"),
        ("tests: {it: {publish: {}, to: []}}", "sets neither `exchange` nor `queue`"),
        ("tests: {it: {publish: {queue: work, exchange: orders}, to: []}}", "sets both `exchange` and `queue`"),
        ("tests: {it: {publish: {queue: work}, to: [work], only: new}}", "expected a version condition"),
        ("brokers: [4.3]\ntests: {it: {publish: {queue: work}, to: [work]}}", "expected a string"),
        ("brokers: [new]\ntests: {it: {publish: {queue: work}, to: [work]}}", "is not a supported RabbitMQ version"),
        ("tests: {it: {publish: {queue: work}, to: [work]}, it: {publish: {queue: work}, to: []}}", "duplicate"),
        ("tests: {it: {publish: {queue: work}, too: [work]}}", "unknown key `too`"),
        ("tests: {}", "contains no case"),
        ("test: {}", "unknown key"),
    ] {
        let error = results(&format!("{text}\n")).expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// Calls a function with the subject for a spec.
fn with_subject<T>(spec: &str, then: impl FnOnce(&Subject<'_>) -> T) -> T {
    let source = SourceFile { name: "topology.yaml".to_owned(), text: format!("version: 1\nvhost: shop\n{spec}") };
    let specs = parse_specs(&[source], &Variables::default()).unwrap_or_else(|errors| panic!("{spec}: {errors}"));
    let (spec, profile) = (&specs.vhosts[0], BrokerProfile::of(BrokerVersion::NEWEST_KNOWN));
    let expansion = expand(spec, &profile).unwrap();
    let operator_policies = expansion.topology.operator_policies();
    then(&Subject::new((spec, &expansion), &operator_policies, &profile))
}

/// Returns how much of a spec the cases in a file cover.
fn covered(spec: &str, tests: &str) -> Coverage {
    let file = file(tests).unwrap();
    with_subject(spec, |subject| coverage([&file], subject, None))
}

#[test]
fn coverage_counts_parts_without_which_a_case_fails() {
    let spec = "exchanges: {x: {type: topic}}
queues:
  a: {type: classic, deadLetter: none, bindings: [{exchange: x, routingKey: 'a.#'}, {exchange: x, routingKey: a.b}]}
  b: {type: classic, deadLetter: none, bindings: [{exchange: x, routingKey: b}]}
";
    let states =
        |tests: &str| -> Vec<&str> { covered(spec, tests).parts.iter().map(|part| part.state.as_str()).collect() };
    // Every message that matches a.b also matches a.#, so no case can cover a.b.
    let of_key = |key: &str| format!("tests: {{it: {{publish: {{exchange: x, routingKey: {key}}}, to: [a]}}}}\n");
    assert_eq!(states(&of_key("a.c")), ["covered", "redundant", "notExercised"]);
    assert_eq!(states(&of_key("a.b")), ["exercised", "redundant", "notExercised"]);
    let weak = "tests: {it: {publish: {exchange: x, routingKey: b}, never: [a]}}\n";
    assert_eq!(states(weak), ["notExercised", "redundant", "exercised"]);
    let counts = covered(spec, &of_key("a.c"));
    assert_eq!((counts.counts(), counts.percent()), ((1, 2), 50.0));
}

#[test]
fn failed_cases_cover_nothing() {
    let failing = "tests: {it: {publish: {queue: work}, workers: {work: fail}, ends: {dead: expired}}}\n";
    let spec = "queues: {work: {type: classic, deadLetter: dead}}\ndeadLetterQueues: {dead: {type: classic}}\n";
    assert_eq!(covered(spec, failing).counts().0, 0);
    let passing = "tests: {it: {publish: {queue: work}, workers: {work: fail}, ends: {dead: rejected}}}\n";
    assert!(covered(spec, passing).counts().0 > 0);
}

/// Returns the parts that the snapshot of a spec does not cover, and the text of the snapshot.
fn uncovered_by_snapshot(spec: &str) -> (Vec<String>, String) {
    with_subject(spec, |subject| {
        let text = snapshot(
            subject,
            &SnapshotSource {
                specs: &["topology.yaml".to_owned()],
                vhost: None,
                brokers: &[],
                restricted: &BTreeSet::new(),
            },
        )
        .unwrap();
        let file = parse(0, &SourceFile { name: "snapshot".to_owned(), text: text.clone() }).unwrap();
        assert!(file.is_snapshot && !check(&file, subject, false).has_errors(), "{text}");
        assert!(run(&file, subject, "").iter().all(|it| it.outcome == CaseOutcome::Passed), "{text}");
        let coverage = coverage([&file], subject, None);
        let is_uncovered = |state| matches!(state, PartState::Exercised | PartState::NotExercised);
        let found = coverage.parts.iter().filter(|part| is_uncovered(part.state));
        (found.map(|part| format!("{:?}", part.part)).collect(), text)
    })
}

#[test]
fn snapshots_cover_every_strategy() {
    for keys in [
        "type: classic, retry: {delays: [1s, 2s]}, messageTtl: 1m, maxLength: 3",
        "type: quorum, retry: {delays: [1s, 2s]}",
        "type: classic, retry: {strategy: republish, delays: [1s, 2s]}",
        "type: quorum, maxRetries: 2, retry: {strategy: republish}",
        "type: quorum, maxRetries: 2, retry: {strategy: redeliver}",
        "type: quorum, maxRetries: 2, retry: {strategy: delayed, delays: [1s, 2s]}",
        "type: classic",
    ] {
        let spec =
            format!("queues: {{work: {{{keys}, deadLetter: dead}}}}\ndeadLetterQueues: {{dead: {{type: quorum}}}}\n");
        let (uncovered, text) = uncovered_by_snapshot(&spec);
        assert!(uncovered.is_empty(), "{keys}: {uncovered:#?}\n{text}");
    }
}

#[test]
fn snapshots_cover_headers_alternates_and_unusual_names() {
    let spec = "exchanges:
  h: {type: headers}
  t: {type: topic, alternateExchange: 'no: way'}
  'no: way': {type: fanout}
  inner: {type: direct, internal: true, bindings: [{exchange: t, routingKey: 'in.#'}]}
queues:
  'a/b': {type: classic, deadLetter: none, bindings: [{exchange: h, arguments: {x-match: any, region: eu, tier: 2}}]}
  'c d': {type: classic, deadLetter: none, bindings: [{exchange: h, arguments: {x-match: all, region: us}}]}
  '%': {type: classic, deadLetter: none, bindings: [{exchange: inner, routingKey: in.x}]}
  \u{fc}: {type: classic, deadLetter: none, bindings: [{exchange: 'no: way'}, {exchange: t, routingKey: '*'}]}
";
    let (uncovered, text) = uncovered_by_snapshot(spec);
    assert!(uncovered.is_empty(), "{uncovered:#?}\n{text}");
    assert!(text.contains("headers: {region: "), "{text}");
}

#[test]
fn snapshots_cover_random_bindings() {
    let mut state = 7_u64;
    let mut below = move |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let words = ["a", "b", "*", "#"];
    let mut counted = 0;
    for _ in 0..100 {
        let mut spec = "exchanges:\n".to_owned();
        for exchange in 0..3 {
            let kind = ["topic", "direct", "fanout"][below(3) as usize];
            let alternate = if exchange > 0 && below(3) == 0 { ", alternateExchange: x0" } else { "" };
            spec += &format!("  x{exchange}: {{type: {kind}{alternate}}}\n");
        }
        spec += "queues:\n";
        for queue in 0..4 {
            let bindings: BTreeSet<String> = (0..=below(3))
                .map(|_| {
                    let key: Vec<&str> = (0..=below(3)).map(|_| words[below(4) as usize]).collect();
                    format!("{{exchange: x{}, routingKey: '{}'}}", below(3), key.join("."))
                })
                .collect();
            let bindings: Vec<String> = bindings.into_iter().collect();
            spec += &format!("  q{queue}: {{type: classic, deadLetter: none, bindings: [{}]}}\n", bindings.join(", "));
        }
        let (uncovered, text) = uncovered_by_snapshot(&spec);
        assert!(uncovered.is_empty(), "{uncovered:#?}\n{spec}\n{text}");
        counted += text.lines().count();
    }
    assert!(counted > 1_000, "{counted}");
}

#[test]
fn routes_are_known_even_if_later_results_are_not() {
    let spec = "exchanges: {e: {type: direct}, amq.topic: {external: true}}
queues:
  sized: {type: quorum, deadLetter: none, maxLengthBytes: 1MiB, bindings: [{exchange: e, routingKey: k}]}
  short: {type: classic, deadLetter: none, expires: 10s, bindings: [{exchange: e, routingKey: s}]}
  open: {type: classic, deadLetter: none, bindings: [{exchange: amq.topic, routingKey: k}]}
";
    let (uncovered, text) = uncovered_by_snapshot(spec);
    assert!(uncovered.is_empty(), "{uncovered:#?}\n{text}");
    assert!(text.contains("      k: [sized]\n") && text.contains("      s: [short]\n"), "{text}");
    // topo cannot simulate the bindings of an external exchange, so they do not count.
    let states: Vec<&str> = covered(spec, "tests: {it: {publish: {exchange: e, routingKey: k}, to: [sized]}}\n")
        .parts
        .iter()
        .map(|part| part.state.as_str())
        .collect();
    assert_eq!(states, ["unknown", "notExercised", "covered"]);
    let results = |case: &str| {
        let file = file(&format!("tests: {{it: {{{case}}}}}\n")).unwrap();
        with_subject(spec, |subject| run(&file, subject, "")[0].outcome.clone())
    };
    for case in ["publish: {queue: sized}, ends: {sized: waiting}", "publish: {queue: short}, ends: {short: waiting}"] {
        let CaseOutcome::Failed { mismatches, .. } = results(case) else { panic!("{case}") };
        assert_eq!(mismatches[0].aspect.as_str(), "unknown", "{case}");
    }
}

#[test]
fn snapshots_keep_variable_syntax() {
    let spec = "exchanges: {'$${X}': {type: direct}}
queues: {q: {type: classic, deadLetter: none, bindings: [{exchange: '$${X}', routingKey: '$${Y}'}]}}
";
    let (uncovered, text) = uncovered_by_snapshot(spec);
    assert!(uncovered.is_empty() && text.contains("${Y}") && !text.contains("$${Y}"), "{uncovered:#?}\n{text}");
}

#[test]
fn snapshots_detect_narrower_and_wider_patterns() {
    let spec = |key: &str| {
        format!(
            "exchanges: {{e: {{type: topic}}}}\nqueues: {{q: {{type: classic, deadLetter: none, bindings: [{{exchange: e, \
             routingKey: '{key}'}}]}}}}\n"
        )
    };
    let text = uncovered_by_snapshot(&spec("order.#")).1;
    let file = parse(0, &SourceFile { name: "snapshot".to_owned(), text }).unwrap();
    let detects = |key: &str| {
        let outcomes = with_subject(&spec(key), |subject| run(&file, subject, ""));
        outcomes.iter().any(|it| it.outcome != CaseOutcome::Passed)
    };
    for narrower in ["order.*", "order.*.#", "order", "*.*"] {
        assert!(detects(narrower), "{narrower}");
    }
    let text = uncovered_by_snapshot(&spec("order.*")).1;
    let file = parse(0, &SourceFile { name: "snapshot".to_owned(), text }).unwrap();
    for wider in ["order.#", "order.*.#", "#"] {
        let outcomes = with_subject(&spec(wider), |subject| run(&file, subject, ""));
        assert!(outcomes.iter().any(|it| it.outcome != CaseOutcome::Passed), "{wider}");
    }
}

#[test]
fn coverage_does_not_depend_on_large_limits() {
    let spec = "queues: {work: {type: quorum, deadLetter: dead, maxLength: 5000, retry: {delays: [1s]}}}
deadLetterQueues: {dead: {type: quorum}}
";
    let total = |tests: &str| covered(spec, tests).counts().1;
    let some = "tests: {it: {publish: {queue: work}, workers: {work: fail}, ends: {dead: rejected}}}\n";
    let full = "tests: {it: {publish: {queue: work, count: 5001}, ends: {work: 5000, dead: {maxlen: 1}}}}\n";
    assert_eq!(total(some), total(full));
}

#[test]
fn dead_lettering_to_no_queue_is_redundant() {
    let spec = "exchanges: {x: {type: direct}}
queues: {q: {type: classic, messageTtl: 5s, arguments: {x-dead-letter-exchange: x}}}
";
    let coverage = covered(spec, "tests: {it: {publish: {queue: q}, ends: {q: dropped}}}\n");
    assert_eq!(coverage.counts(), (0, 0), "{:?}", coverage.parts);
}
