//! Tests `topo alerts` with the real binary, and its rules with promtool.

use std::process::Command;

use super::expect_file;
use crate::support::Topo;

/// A spec with every kind of alert.
const SPEC: &str = "\
version: 1
vhost: shop
defaults: {queue: {type: quorum}}
exchanges:
  orders: {type: topic}
queues:
  orders.work:
    bindings: [{exchange: orders, routingKey: \"order.#\"}]
    retry: {delays: [5s, 30s]}
    deadLetter: orders.dead
    thresholds:
      depth: {warning: 1000, critical: 2000}
      growth: {warning: {messages: 500, within: 10s}}
      age: {critical: 90s}
      noConsumers: 5m
  mail: {type: classic, retry: {delays: [10s], strategy: republish, maxRetries: 1}, deadLetter: orders.dead}
  payments.work: {deadLetter: payments.dead, deadLetterStrategy: at-least-once, overflow: reject-publish}
deadLetterQueues:
  orders.dead: {thresholds: {growth: {warning: {messages: 10, within: 1h}, critical: {messages: 50, within: 5m}}}}
  payments.dead: {thresholds: {depth: {critical: 1}, age: {warning: 1h}}}
  legacy.dead: {thresholds: none}
";

/// A spec whose names contain the special characters of PromQL, YAML, templates and shells.
const HOSTILE: &str = "\
version: 1
vhost: \"a \\\"b\\\" {{$labels}}\"
defaults: {queue: {type: quorum}}
queues:
  \"it's: {{ $value }} \\\\d+ \\\"x\\\" #\": {deadLetter: none, thresholds: {depth: {warning: 2}, noConsumers: 1m}}
deadLetterQueues:
  \"dead {{x}} 100% \\u001b[31m\": {}
";

const EVERYTHING: [&str; 7] =
    ["alerts", "--out", "rules.yaml", "--tests", "tests/rules.yaml", "--dashboard", "queues.json"];

fn topo(spec: &str) -> Topo {
    Topo::offline().spec(spec).file("tests/empty", "")
}

/// Runs promtool in the folder of the specs, and expects that it succeeds. Returns its output.
#[track_caller]
fn promtool(topo: &Topo, arguments: [&str; 3]) -> String {
    let output = Command::new("promtool").args(arguments).current_dir(topo.path("")).output();
    let output = output.expect("promtool is installed: apt-get install prometheus");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    assert!(output.status.success(), "promtool {arguments:?}: {text}");
    text
}

/// Writes all files, and checks the rules with promtool.
#[track_caller]
fn checked(topo: Topo, more: &[&str]) -> Topo {
    let arguments = EVERYTHING.iter().chain(more).copied();
    let output = topo.run(arguments).expect_code(0);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
    promtool(&topo, ["check", "rules", "rules.yaml"]);
    promtool(&topo, ["test", "rules", "tests/rules.yaml"]);
    topo
}

#[test]
fn rules_are_printed() {
    let topo = topo(SPEC);
    expect_file(&topo.run(["alerts"]).expect_code(0), "alerts.yaml");
    let matched = ["alerts", "--match", "job=\"rabbitmq\"", "--metrics", "per-object", "--broker-version", "3.10"];
    expect_file(&topo.run(matched).expect_code(0), "alerts-per-object.yaml");
    // The same rules are the same bytes.
    assert_eq!(topo.run(["alerts"]).stdout, topo.run(["alerts"]).stdout);
}

#[test]
fn every_rule_fires_at_its_threshold_and_not_below() {
    let topo = checked(topo(SPEC), &[]);
    let (rules, tests) = (topo.read("rules.yaml"), topo.read("tests/rules.yaml"));
    let names = |text: &str, key: &str| -> std::collections::BTreeSet<String> {
        text.lines().filter_map(|line| Some(line.split_once(key)?.1.to_owned())).collect()
    };
    let declared = names(&rules, "- alert: ");
    assert_eq!(declared.len(), 10, "{declared:?}");
    assert_eq!(names(&tests, "alertname: "), declared);
    // The tests are not vacuous: they fail with a threshold that is one message higher.
    for (from, to) in [(">= 1000", ">= 1001"), (">= 50'", ">= 51'"), ("> 0'", "> 1'"), ("for: 5m", "for: 6m")] {
        assert!(rules.contains(from), "{from}");
        topo.write("rules.yaml", &rules.replace(from, to));
        let output =
            Command::new("promtool").args(["test", "rules", "tests/rules.yaml"]).current_dir(topo.path("")).output();
        assert!(!output.unwrap().status.success(), "{from}");
    }
}

#[test]
fn tests_of_long_ages_are_fast() {
    let spec = "version: 1\nvhost: shop\ndeadLetterQueues:\n  a.dead: {type: quorum, thresholds: {age: {warning: 100m, critical: 30d}}}\n";
    let topo = checked(topo(spec), &[]);
    assert!(topo.read("tests/rules.yaml").contains("evaluation_interval: 3h\n"));
}

#[test]
fn rules_of_old_brokers_and_matchers_are_valid() {
    let classic = SPEC.replace("type: quorum", "type: classic").replace("deadLetterStrategy: at-least-once, ", "");
    let topo =
        checked(topo(&classic), &["--broker-version", "3.8", "--match", "job=\"rabbitmq\"", "--match", "env=a b"]);
    let rules = topo.read("rules.yaml");
    assert!(
        rules.contains("prometheus.return_per_object_metrics = true") && rules.contains("#   /metrics\n"),
        "{rules}"
    );
    assert!(
        rules.contains(r#"rabbitmq_queue_messages{vhost="shop",queue="mail.retry.1.10s",job="rabbitmq",env="a b"}"#)
    );
}

#[test]
fn hostile_names_are_escaped() {
    let topo = checked(topo(HOSTILE), &[]);
    let (rules, dashboard) = (topo.read("rules.yaml"), topo.read("queues.json"));
    for text in [&rules, &dashboard, &topo.read("tests/rules.yaml")] {
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    assert!(rules.contains("topo dlq list"), "{rules}");
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    assert_eq!(dashboard["panels"].as_array().unwrap().len(), 8);
}

#[test]
fn dashboard_has_a_row_for_each_queue() {
    let topo = checked(topo(SPEC), &[]);
    let output = topo.run(["alerts", "--dashboard", "/dev/stderr"]).expect_code(0);
    assert_eq!(output.stderr, topo.read("queues.json"));
    let dashboard: serde_json::Value = serde_json::from_str(&output.stderr).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let rows: Vec<&str> =
        panels.iter().filter(|it| it["type"] == "row").map(|it| it["title"].as_str().unwrap()).collect();
    assert_eq!(
        rows,
        [
            "Dead-letter queue legacy.dead in vhost shop",
            "Dead-letter queue orders.dead in vhost shop",
            "Dead-letter queue payments.dead in vhost shop",
            "Queue mail in vhost shop",
            "Queue orders.work in vhost shop",
            "Queue payments.work in vhost shop",
        ]
    );
    let ids: std::collections::BTreeSet<u64> = panels.iter().map(|it| it["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    let colors = &panels[6]["fieldConfig"]["defaults"]["thresholds"]["steps"];
    assert_eq!(colors[1], serde_json::json!({"color": "orange", "value": 50}));
    assert_eq!(colors[2], serde_json::json!({"color": "red", "value": 200}));
    let is_tiers = |it: &&serde_json::Value| it["title"] == "Messages waiting for a retry";
    let tiers: Vec<usize> = panels.iter().filter(is_tiers).map(|it| it["targets"].as_array().unwrap().len()).collect();
    assert_eq!(tiers, [1, 2]);
}

#[test]
fn unusable_metrics_are_refused() {
    let topo = topo(SPEC);
    let old = ["alerts", "--metrics", "detailed", "--broker-version", "3.9"];
    let refused = topo.run(old).expect_code(64).expect_error("--metrics detailed requires RabbitMQ 3.10 or later");
    refused.expect_text("use --metrics per-object");
    let quoted = SPEC.replace("legacy.dead", "'leg\"acy'");
    let topo = Topo::offline().spec(&quoted);
    topo.run(["alerts"]).expect_code(0);
    let per_object = topo.run(["alerts", "--metrics", "per-object"]).expect_code(1).expect_no_result();
    per_object
        .expect_error("the name of queue `leg\"acy` breaks /metrics/per-object")
        .expect_text("use --metrics detailed");
    topo.run(["alerts", "--broker-version", "3.10"])
        .expect_code(1)
        .expect_text("choose a name without these characters");
    topo.run(["alerts", "--broker-version", "4.0", "--metrics", "per-object"]).expect_code(0);
}

#[test]
fn invalid_matchers_are_refused() {
    let topo = topo(SPEC);
    for matcher in ["job", "job=\"x", "queue=\"x\"", "job=\"x\"} or up{a=\"b\""] {
        topo.run(["alerts", "--match", matcher]).expect_code(64).expect_no_result();
    }
    let arguments = EVERYTHING.iter().copied().chain(["--match", "job=~\"r.*\""]);
    topo.run(arguments).expect_code(64).expect_error("--tests supports only matchers with =");
    topo.run(["alerts", "--match", "job=~\"r.*\""]).expect_code(0).expect_text("job=~\"r.*\"");
    topo.run(["alerts", "--tests", "tests.yaml"]).expect_code(64).expect_text("--out <FILE>");
}

#[test]
fn other_files_are_not_replaced() {
    let topo = topo(SPEC).file("other.yaml", "groups: []\n");
    for flag in ["--out", "--dashboard"] {
        let refused = topo.run(["alerts", flag, "other.yaml"]).expect_code(64);
        refused.expect_error("was not created by topo alerts").expect_text("--force");
        assert_eq!(topo.read("other.yaml"), "groups: []\n");
    }
    topo.run(["alerts", "--out", "other.yaml", "--force"]).expect_code(0);
    topo.run(["alerts", "--out", "other.yaml", "--metrics", "per-object"]).expect_code(0);
    assert!(topo.read("other.yaml").contains("/metrics/per-object"));
    topo.run(EVERYTHING).expect_code(0);
    topo.run(EVERYTHING).expect_code(0);
}

#[test]
fn specs_without_alerts_are_reported() {
    let output = topo("version: 1\nvhost: shop\nqueues: {a: {type: classic, deadLetter: none}}\n").run(["alerts"]);
    let output = output.expect_code(0).expect_text("no alert rules");
    assert!(output.stdout.ends_with("groups: []\n"), "{output}");
}
