//! Tests alert rules: matchers, PromQL strings, names that break an endpoint, and the alerts for a spec.

use super::*;
use crate::expand::expand;
use crate::model::{BrokerVersion, Topology};
use crate::spec::{SourceFile, Variables, parse};

/// Returns the alerts for a spec.
fn of(text: &str, version: &str, metrics: Metrics) -> VhostAlerts {
    let file = SourceFile { name: "topology.yaml".to_owned(), text: format!("version: 1\nvhost: shop\n{text}") };
    let spec = parse(&[file], &Variables::new()).unwrap_or_else(|found| panic!("{found}")).vhosts.remove(0);
    let profile = BrokerProfile::of(version.parse().unwrap());
    let expansion = expand(&spec, &profile).unwrap_or_else(|found| panic!("{found}"));
    alerts(&spec, &expansion, &profile, &AlertOptions { metrics, matchers: Vec::new() })
}

/// Returns the name, queue, severity and time of each alert.
fn lines(found: &VhostAlerts) -> Vec<String> {
    let line = |it: &Alert| format!("{} {} {} {}", it.name(), it.queue, it.severity.as_str(), time(it.persists));
    found.alerts.iter().map(line).collect()
}

#[test]
fn matchers_are_parsed_and_written_as_promql() {
    for (text, written) in [
        ("job=\"rabbitmq\"", "job=\"rabbitmq\""),
        ("job=rabbitmq", "job=\"rabbitmq\""),
        ("job!=\"a\"", "job!=\"a\""),
        ("instance=~\"rabbit-.*\"", "instance=~\"rabbit-.*\""),
        ("_x9!~\"a\\\\.b\\\"\"", "_x9!~\"a\\\\.b\\\"\""),
        ("env=\"\"", "env=\"\""),
    ] {
        assert_eq!(Matcher::parse(text).map(|it| it.to_string()), Ok(written.to_owned()), "{text}");
    }
    for text in
        ["", "job", "=\"x\"", "9a=\"x\"", "job==\"x\"", "job=\"x", "job=\"x\"}", "job=\"\\q\"", "job=x\"", "a b=\"c\""]
    {
        assert!(Matcher::parse(text).is_err(), "{text}");
    }
    for label in ["vhost", "queue", "__name__"] {
        assert!(Matcher::parse(&format!("{label}=\"x\"")).is_err_and(|it| it.contains(label)), "{label}");
    }
}

#[test]
fn selectors_escape_names() {
    let options = [Matcher::parse("job=\"r\"").unwrap()];
    let of =
        |name: &str| Series::of(Metrics::PerObject, &"a b".into(), &name.into(), &options).of_metric(Metric::Messages);
    assert_eq!(of("o\"\\p"), r#"rabbitmq_queue_messages{vhost="a b",queue="o\"\\p",job="r"}"#);
    assert_eq!(of("\u{1b}\u{e0001}é"), r#"rabbitmq_queue_messages{vhost="a b",queue="\u001b\U000e0001é",job="r"}"#);
}

#[test]
fn alerts_follow_the_thresholds() {
    let found = of(
        "defaults: {queue: {type: quorum}}
queues:
  plain: {deadLetter: none}
  work: {deadLetter: none, thresholds: {depth: {warning: 1000, critical: 2000}, growth: {warning: {messages: 5, within: 1m}}, age: {warning: 1d}, noConsumers: 5m}}
  short: {deadLetter: none, type: classic, autoDelete: true, thresholds: {depth: {critical: 1}}}
deadLetterQueues:
  a.dead: {}
  b.dead: {thresholds: {depth: {critical: 1}, age: {critical: 2h}}}
  c.dead: {thresholds: none}
",
        "4.3.0",
        Metrics::Detailed,
    );
    let expected = [
        "TopoDeadLetters a.dead warning 1m",
        "TopoDeadLetters a.dead critical 1m",
        "TopoQueueNotSeen a.dead warning 10m",
        "TopoDeadLetters b.dead critical 0s",
        "TopoDeadLettersWait b.dead critical 2h",
        "TopoQueueNotSeen b.dead warning 10m",
        // The broker deletes the queue when its last consumer disconnects, so missing metrics do not trigger an alert.
        "TopoBacklog short critical 0s",
        "TopoBacklog work warning 5m",
        "TopoBacklogGrows work warning 0s",
        "TopoBacklogWaits work warning 1d",
        "TopoBacklog work critical 5m",
        "TopoNoConsumers work warning 5m",
        "TopoQueueNotSeen work warning 10m",
    ];
    assert_eq!(lines(&found), expected);
    assert_eq!(found.queues.len(), 6);
}

#[test]
fn tiers_and_queues_with_at_least_once_dead_lettering_have_alerts() {
    let spec = |kind: &str| {
        format!(
            "queues: {{work: {{type: {kind}, retry: {{delays: [5s, 1h]}}, deadLetter: dead}}}}\n\
             deadLetterQueues: {{dead: {{type: {kind}, thresholds: none}}}}"
        )
    };
    let expressions = |found: &VhostAlerts| -> Vec<String> {
        assert!(found.alerts.iter().all(|it| it.name() == "TopoTierStuck"), "{found:#?}");
        found.alerts.iter().map(|it| it.expression.clone()).collect()
    };
    let quorum = of(&spec("quorum"), "4.3.0", Metrics::Detailed);
    assert_eq!(lines(&quorum)[0], "TopoTierStuck work.retry.1.5s warning 10m");
    let messages = "rabbitmq_detailed_queue_messages";
    let labels = r#"{vhost="shop",queue="work.retry.1.5s"}"#;
    assert_eq!(
        expressions(&quorum)[0],
        format!(
            "max by (vhost, queue) ({messages}{labels} - {messages}_ready{labels} - {messages}_unacked{labels}) > 0"
        )
    );
    // Classic tiers do not use at-least-once dead-lettering, so the alert depends on the tier's delay.
    let classic = of(&spec("classic"), "3.8.9", Metrics::PerObject);
    assert_eq!(lines(&classic)[1], "TopoTierStuck work.retry.2.1h warning 1h5m");
    let messages = r#"rabbitmq_queue_messages{vhost="shop",queue="work.retry.2.1h"}"#;
    assert_eq!(
        expressions(&classic)[1],
        format!("max by (vhost, queue) ({messages}) > 0 unless max by (vhost, queue) (resets({messages}[5m])) > 0")
    );
    let text =
        "queues: {work: {type: quorum, deadLetter: dead, deadLetterStrategy: at-least-once, overflow: reject-publish}}
deadLetterQueues: {dead: {type: quorum, thresholds: none}}";
    assert_eq!(lines(&of(text, "4.3.0", Metrics::Detailed)), ["TopoDeadLettersStuck work warning 10m"]);
}

#[test]
fn unusable_names_depend_on_the_endpoint_and_the_version() {
    let mut topology = Topology::missing("shop".into());
    let queue = Queue { durable: true, auto_delete: false, exclusive: false, arguments: Default::default() };
    topology.queues.insert("orders".into(), queue.clone());
    let refused = |topology: &Topology, metrics, version: &str| {
        unusable_name(topology, metrics, version.parse::<BrokerVersion>().unwrap()).is_some()
    };
    assert!(!refused(&topology, Metrics::PerObject, "4.3.0"));
    topology.queues.insert("or\"ders".into(), queue);
    for (version, is_detailed_broken, is_per_object_broken) in
        [("3.8.9", false, false), ("3.10.8", true, true), ("4.0.5", false, false), ("4.3.0", false, true)]
    {
        assert_eq!(refused(&topology, Metrics::Detailed, version), is_detailed_broken, "{version}");
        assert_eq!(refused(&topology, Metrics::PerObject, version), is_per_object_broken, "{version}");
    }
    let vhost = Topology::missing("a\\b".into());
    assert!(refused(&vhost, Metrics::PerObject, "3.10.8"));
}
