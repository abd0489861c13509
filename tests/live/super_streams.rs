//! Tests super streams in a spec: they equal those of `rabbitmq-streams add_super_stream`, can grow but not shrink, and
//! are exported.

use serde_json::{Value, json};

use crate::support::amqp::text as text_value;
use crate::support::{NONE, Node, Proxy, Topo, Vhost, writes};

/// Streams exist since 3.9.
fn has_streams() -> bool {
    Node::shared().at_least(3, 9)
}

const SPEC: &str = "superStreams:\n  invoices: {partitions: 3}\n";
const REGIONS: &str = "superStreams:\n  regions: {bindingKeys: [amer, emea, apac], maxAge: 7D}\n";

fn no_changes(topo: &Topo) {
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

/// Returns the exchanges, queues and bindings of a vhost as a definitions file contains them.
fn definitions(vhost: &Vhost<'_>) -> Value {
    let mut all = vhost.http().get(&vhost.path("definitions", &[])).expect_status(200);
    let mut sorted = json!({});
    for list in ["exchanges", "queues", "bindings"] {
        let mut entries = all[list].take();
        let entries = entries.as_array_mut().unwrap();
        for entry in entries.iter_mut() {
            // From 4.0 on, `add_super_stream` sets this argument.
            entry["arguments"].as_object_mut().unwrap().remove("x-queue-leader-locator");
        }
        entries.sort_by_key(ToString::to_string);
        sorted[list] = json!(entries);
    }
    sorted
}

fn add_super_stream(vhost: &Vhost<'_>, name: &str, partitions: &str) {
    let node = vhost.node();
    node.ctl(["rabbitmq-streams", "add_super_stream", name, "--partitions", partitions, "--vhost", vhost.name()]);
}

#[test]
fn super_streams_equal_those_of_rabbitmq_streams() {
    if !has_streams() {
        return;
    }
    let (vhost, of_tool) = (Node::shared().vhost("super"), Node::shared().vhost("super-tool"));
    let topo = Topo::new(&vhost).spec(SPEC);
    topo.run(["plan"]).expect_code(0).expect_text("Plan: 4 objects and 3 bindings to create");
    topo.run(["apply", "-y"]).expect_code(0).expect_text("Verified");
    no_changes(&topo);
    add_super_stream(&of_tool, "invoices", "3");
    assert_eq!(definitions(&vhost), definitions(&of_tool));
    // A spec takes over a super stream of the tool. Adding a partition changes no existing partition.
    let adopted = Topo::new(&of_tool).spec(SPEC);
    no_changes(&adopted);
    adopted.rewrite(&SPEC.replace('3', "4"));
    adopted.run(["plan"]).expect_code(0).expect_text("Plan: 1 object and 1 binding to create");
    adopted.run(["apply", "-y"]).expect_code(0);
    no_changes(&adopted);
    topo.rewrite(&SPEC.replace('3', "4"));
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(definitions(&vhost), definitions(&of_tool));
    // The tool deletes a super stream that topo created.
    let node = vhost.node();
    node.ctl(["rabbitmq-streams", "delete_super_stream", "invoices", "--vhost", vhost.name()]);
    assert!(vhost.names("queues").is_empty() && vhost.exchange("invoices").is_null());
}

#[test]
fn partitions_are_neither_removed_nor_reordered() {
    if !has_streams() {
        return;
    }
    let vhost = Node::shared().vhost("super-order");
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).spec(REGIONS);
    topo.run(["apply", "-y"]).expect_code(0);
    let before = definitions(&vhost);
    proxy.reset();
    for (keys, others) in [
        ("[amer, emea]", "regions-apac (position 2)"),
        ("[emea, amer, apac]", "regions-amer (position 0), regions-emea (position 1)"),
        ("[new, amer, emea, apac]", "regions-amer (position 0), regions-apac (position 2), regions-emea (position 1)"),
    ] {
        topo.rewrite(&REGIONS.replace("[amer, emea, apac]", keys));
        let text =
            format!("partitions of super stream regions that the spec does not declare at the same position: {others}");
        topo.run(["apply", "-y", "--prune"]).expect_code(3).expect_text(&text);
    }
    // A target does not remove the blocker.
    topo.rewrite(&REGIONS.replace("[amer, emea, apac]", "[emea, amer, apac]"));
    let target = format!("--target=queues/{}/regions-amer", vhost.name());
    topo.run(["apply", "-y", &target]).expect_code(3).expect_text("does not declare at the same position");
    assert_eq!(proxy.count(&writes()), 0);
    assert_eq!(definitions(&vhost), before);
    topo.rewrite(&REGIONS.replace("apac]", "apac, 'a b/c']"));
    topo.run(["apply", "-y"]).expect_code(0);
    no_changes(&topo);
    assert_eq!(vhost.names("queues"), ["regions-a b/c", "regions-amer", "regions-apac", "regions-emea"]);
    // A changed setting concerns each stream.
    topo.rewrite(&REGIONS.replace("apac]", "apac, 'a b/c']").replace("7D", "14D"));
    topo.run(["plan"]).expect_code(0).expect_text("BLOCKED by 4 conflicts");
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let resolutions = plan["vhosts"][0]["changes"][0]["conflict"]["resolutions"].to_string();
    assert!(resolutions.contains("superStreams:") && !resolutions.contains("queues:\\n"), "{resolutions}");
}

/// The broker treats each stream that is bound to the exchange as a partition.
#[test]
fn other_streams_are_not_bound_to_a_super_stream() {
    if !has_streams() {
        return;
    }
    let vhost = Node::shared().vhost("super-other");
    let other = "queues: {other: {type: stream, bindings: [{exchange: invoices, routingKey: x}]}, plain: {type: classic, \
                 bindings: [{exchange: invoices, routingKey: '0'}]}}\n";
    let topo = Topo::new(&vhost).spec(&format!("{SPEC}{other}"));
    let text = "would make stream other a partition of super stream invoices";
    topo.run(["apply", "-y"]).expect_code(3).expect_text(text).expect_no_text("plain a partition");
    // The bindings of another tool may have no position.
    let amqp = vhost.amqp();
    amqp.declare_exchange("invoices", "direct", NONE).unwrap();
    amqp.declare_queue("invoices-0", &[("x-queue-type", text_value("stream"))]).unwrap();
    amqp.bind_queue("invoices", "invoices-0", "0", NONE);
    topo.rewrite(SPEC);
    topo.run(["plan"]).expect_code(0).expect_text("invoices-0 (no position)").expect_text("BLOCKED");
}

#[test]
fn super_streams_are_exported() {
    if !has_streams() {
        return;
    }
    let vhost = Node::shared().vhost("super-export");
    let entries = "  invoices: {partitions: 12, maxLengthBytes: 10GiB, maxAge: 7D}\n  regions: {bindingKeys: [amer, emea, apac]}\n";
    let more = "queues:\n  other: {type: classic, bindings: [{exchange: regions, routingKey: apac}]}\nbindings: [{source: amq.topic, \
                destination: regions, destinationType: exchange, routingKey: '#'}]\n";
    let topo = Topo::new(&vhost).spec(&format!("superStreams:\n{entries}{more}"));
    topo.run(["apply", "-y"]).expect_code(0);
    let export = || topo.run(["export", "--vhost", "{vhost}", "--quiet"]).expect_code(0).stdout;
    let lines =
        |text: &str| text.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
    let text = export();
    assert!(lines(&text).contains(&format!("superStreams:\n{}", entries.trim_end())), "{text}");
    topo.rewrite(&text);
    no_changes(&topo);
    // A filter that selects only some of the streams exports them one by one.
    let part = topo.run(["export", "--vhost", "{vhost}", "--match", "regions-a*"]).expect_code(0);
    part.expect_text("regions-amer").expect_no_text("superStreams");
    // An incomplete super stream is exported as its objects.
    assert!(vhost.http().delete(&vhost.path("queues", &["regions-emea"])).is_success());
    let text = export();
    assert!(text.contains("  regions-apac:") && text.contains("  invoices: {partitions: 12"), "{text}");
    topo.rewrite(&text);
    no_changes(&topo);
}

#[test]
fn super_streams_require_streams() {
    let spec = Topo::offline().spec(SPEC);
    spec.run(["validate", "--broker-version=3.8"]).expect_code(1).expect_text("streams require RabbitMQ 3.9");
    spec.run(["validate", "--broker-version=3.10"]).expect_code(0);
}
