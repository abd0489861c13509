//! Reads the JUnit report of `topo test` with the library junitparser, which reads reports as CI servers do.

use std::process::Command;

use serde_json::{Value, json};

use crate::editor::tool;
use crate::support::Topo;

/// Prints the suites and cases of a report as JSON. An attribute that a CI server needs must exist.
const READ: &str = r#"
import json, sys
from junitparser import Error, Failure, JUnitXml, Skipped

words = {Error: "error", Failure: "failure", Skipped: "skipped"}
suites = []
for suite in JUnitXml.fromfile(sys.argv[1]):
    cases = []
    for case in suite:
        results = [{"kind": words[type(it)], "message": it.message, "text": it.text} for it in case.result]
        cases.append({"name": case.name, "class": case.classname, "time": case.time, "file": case._elem.get("file"), "line": case._elem.get("line"), "results": results})
    suites.append({"name": suite.name, "tests": suite.tests, "failures": suite.failures, "errors": suite.errors, "skipped": suite.skipped, "cases": cases})
print(json.dumps(suites))
"#;

fn read(topo: &Topo, report: &str) -> Value {
    let output = Command::new(tool("python")).args(["-c", READ]).arg(topo.path(report)).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

const SPEC: &str = "version: 1
vhost: shop <&>
exchanges: {orders: {type: topic}}
queues: {work: {type: quorum, deadLetter: none, bindings: [{exchange: orders, routingKey: 'order.#'}]}}
";

const TESTS: &str = "version: 1
tests:
  passes: {publish: {exchange: orders, routingKey: order.paid}, to: [work]}
  \"<odd> & \\\"name\\\" \\u0007 ü\": {publish: {exchange: orders, routingKey: 'a\\tb'}, to: [work]}
  old: {publish: {queue: work}, only: '< 3.9', ends: {work: waiting}}
";

#[test]
fn junit_report_is_read_by_a_library() {
    let topo = Topo::offline().file("topology.yaml", SPEC).file("topology.test.yaml", TESTS);
    topo.run(["test", "--also", "junit=results.xml", "--coverage"]).expect_code(1);
    let suites = read(&topo, "results.xml");
    let tests = &suites[0];
    assert_eq!(tests["name"], "topology.test.yaml, RabbitMQ 4.3.6");
    let numbers = ["tests", "failures", "errors", "skipped"].map(|name| &tests[name]);
    assert_eq!(numbers, [&json!(3), &json!(1), &json!(0), &json!(1)], "{suites:#}");
    let cases = tests["cases"].as_array().unwrap();
    assert_eq!(
        cases[0],
        json!({"name": "passes", "class": "shop <&>", "time": 0.0, "file": "topology.test.yaml", "line": "3", "results": []})
    );
    let failed = &cases[1];
    assert_eq!(failed["name"], "<odd> & \"name\" \u{fffd} ü", "{failed:#}");
    assert_eq!((&failed["results"][0]["kind"], &failed["line"]), (&json!("failure"), &json!("4")), "{failed:#}");
    assert_eq!(failed["results"][0]["message"], "to: expected work, got no queue", "{failed:#}");
    assert!(failed["results"][0]["text"].as_str().is_some_and(|text| text.contains("no binding of orders matches")));
    assert_eq!(cases[2]["results"][0]["kind"], "skipped", "{suites:#}");
    // The coverage is a suite of its own.
    let coverage = &suites[1];
    assert_eq!(
        (&coverage["name"], &coverage["failures"]),
        (&json!("coverage, topology.yaml"), &json!(0)),
        "{suites:#}"
    );
    assert_eq!(coverage["tests"], coverage["cases"].as_array().unwrap().len(), "{suites:#}");
}
