//! Tests cases with `CC` and `BCC` headers.

use super::{file, with_subject};
use crate::cases::{CaseOutcome, check, run};

#[test]
fn messages_are_routed_by_cc_and_bcc() {
    let spec = "exchanges: {orders: {type: topic}}
queues:
  work: {type: classic, deadLetter: {exchange: orders}, bindings: [{exchange: orders, routingKey: work}]}
  keyed: {type: classic, deadLetter: {exchange: orders, routingKey: last}, bindings: [{exchange: orders, routingKey: keyed}]}
  audit: {type: classic, deadLetter: none, bindings: [{exchange: orders, routingKey: audit}]}
  last: {type: classic, deadLetter: none, bindings: [{exchange: orders, routingKey: last}]}
";
    let both = "to: [work, audit], workers: {work: [nack, ack]}, ends: {work: acked, audit: {waiting: 1, rejected: 1}}";
    let death =
        |keys: &str| format!("deadLettered: {{xDeath: [{{queue: work, reason: rejected, routingKeys: [{keys}]}}]}}");
    for case in [
        "publish: {exchange: orders, routingKey: work}, to: [work]".to_owned(),
        "publish: {queue: work, headers: {CC: [last, unknown]}}, to: [work, last]".to_owned(),
        format!("publish: {{exchange: orders, routingKey: work, headers: {{CC: [audit]}}}}, {both}, {}", death("work, audit")),
        format!("publish: {{exchange: orders, routingKey: work, headers: {{BCC: [audit]}}}}, {both}, {}", death("work")),
        // A dead-letter routing key replaces all keys.
        "publish: {exchange: orders, routingKey: keyed, headers: {CC: [audit]}}, workers: {keyed: nack}, ends: {audit: \
         waiting, last: rejected}"
            .to_owned(),
    ] {
        let file = file(&format!("tests: {{it: {{{case}}}}}\n")).unwrap_or_else(|errors| panic!("{errors}"));
        with_subject(spec, |subject| {
            let errors = check(&file, subject, false);
            assert!(!errors.has_errors(), "{errors}");
            let results = run(&file, subject, "");
            assert_eq!(results[0].outcome, CaseOutcome::Passed, "{case}: {results:#?}");
        });
    }
}

#[test]
fn values_other_than_lists_of_strings_are_refused() {
    for (case, header) in [
        ("publish: {exchange: orders, headers: {CC: audit}}, to: []", "CC"),
        ("exchange: orders, routes: [{headers: {BCC: [audit, 1]}, to: []}]", "BCC"),
    ] {
        let errors = file(&format!("tests: {{it: {{{case}}}}}\n")).expect_err(case).to_string();
        assert!(errors.contains(&format!("expected a list of strings for the `{header}` header")), "{errors}");
    }
}
