//! Tests the parsing and the comparison of test files.

use super::{CaseOutcome, CaseResult, Subject, TestFile, check, parse, run};
use crate::expand::expand;
use crate::model::BrokerVersion;
use crate::rabbitmq::BrokerProfile;
use crate::spec::{Diagnostics, SourceFile, Variables, parse as parse_specs};

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

/// Runs the cases of a file. Returns the errors of the file as text.
fn results(text: &str) -> Result<Vec<CaseResult>, String> {
    let file = file(text).map_err(|errors| errors.to_string())?;
    let source = SourceFile { name: "topology.yaml".to_owned(), text: SPEC.to_owned() };
    let specs = parse_specs(&[source], &Variables::default()).unwrap();
    let (spec, profile) = (&specs.vhosts[0], BrokerProfile::of(BrokerVersion::NEWEST_KNOWN));
    let expansion = expand(spec, &profile).unwrap();
    let subject = Subject::new(spec, &expansion, &profile);
    let errors = check(&file, &subject);
    if errors.has_errors() { Err(errors.to_string()) } else { Ok(run(&file, &subject, "")) }
}

/// Returns the differences of the only case.
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
        ("publish: {queue: work}, workers: {work: [fail]}, ends: {work: held}", &["workers work: 1 delivery / 2"]),
        (
            "publish: {queue: work}, workers: {dead: ack}, ends: {work: waiting}",
            &["workers dead: at least 1 delivery / no delivery"],
        ),
        ("publish: {queue: work}, never: [work]", &["never work: no copy / a copy"]),
        ("publish: {queue: work}, reaches: [dead]", &["reaches dead: a copy / no copy"]),
        ("publish: {queue: work}, publisher: returned", &["publisher: returned / confirmed"]),
        ("publish: {queue: work}, refused: 1", &["refused: 1 message / 0 messages"]),
        (
            "publish: {queue: work}, workers: {work: fail}, ends: [dead], within: 4s",
            &["within: 4s / messages moved until 5s"],
        ),
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
        ("tests: {it: {publish: {queue: wrok}, to: [work]}}", "queue `wrok` does not exist"),
        ("tests: {it: {publish: {exchange: order}, to: [work]}}", "exchange `order` does not exist"),
        ("tests: {it: {publish: {exchange: inner}, to: []}}", "clients cannot publish to internal exchange `inner`"),
        ("tests: {it: {publish: {queue: work}, workers: {log: fail}, never: [dead]}}", "`fail` requires a contract"),
        ("tests: {it: {publish: {queue: work}, workers: {work: nak}, to: [work]}}", "cannot be `nak`"),
        ("tests: {it: {publish: {queue: work}, ends: {work: gone}}}", "gone"),
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
