//! Tests `topo show --expanded`, `forEach` and super streams without a broker.

use crate::support::Topo;

const SPEC: &str = "\
version: 1
vhost: shop
exchanges:
  orders: {type: topic}
queues:
  \"orders.{region}\":
    forEach: {region: {eu: {limit: 1000, priorities: 5}, us: {limit: 2000, priorities: 9}}}
    type: classic
    maxLength: \"{region.limit}\"
    maxPriority: \"{region.priorities}\"
    bindings: [{exchange: orders, routingKey: \"{region}.${KEY:-order}.{{x}}\"}]
  \"audit.{number}\": {forEach: {number: [1, 2]}, type: stream, maxAge: 7D}
superStreams:
  invoices: {partitions: 2, maxAge: 7D}
";

#[test]
fn expansion_declares_the_same_objects() {
    let topo = Topo::offline().file("topology.yaml", SPEC);
    let text = topo.run(["show", "--expanded", "topology.yaml"]).expect_code(0).stdout;
    let expected = "\
version: 1
vhost: shop

exchanges:
  invoices: {type: direct, arguments: {x-super-stream: true}}
  orders: {type: topic}

queues:
  audit.1: {type: stream, maxAge: 7D}
  audit.2: {type: stream, maxAge: 7D}
  invoices-0:
    type: stream
    maxAge: 7D
    bindings: [{exchange: invoices, routingKey: \"0\", arguments: {x-stream-partition-order: 0}}]
  invoices-1:
    type: stream
    maxAge: 7D
    bindings: [{exchange: invoices, routingKey: \"1\", arguments: {x-stream-partition-order: 1}}]
  orders.eu:
    type: classic
    maxLength: 1000
    maxPriority: 5
    bindings: [{exchange: orders, routingKey: \"eu.order.{x}\"}]
  orders.us:
    type: classic
    maxLength: 2000
    maxPriority: 9
    bindings: [{exchange: orders, routingKey: \"us.order.{x}\"}]
";
    assert_eq!(text, expected);
    topo.write("expanded.yaml", &text);
    let plan = topo.run(["plan", "expanded.yaml", "--against", "topology.yaml", "--detailed-exitcode"]).expect_code(0);
    plan.expect_text("No changes");
    topo.run(["show", "--expanded", "--var", "KEY=key"]).expect_code(0).expect_text("eu.key.{x}");
}

#[test]
fn expansion_contains_generated_objects() {
    let spec = "queues: {work: {type: quorum, deadLetter: dead, maxRetries: 2, retry: {delays: [1s, 2s]}}}\ndeadLetterQueues: \
                {dead: {type: quorum}}\n";
    let topo = Topo::offline().spec(spec);
    let shown = || topo.run(["show", "--expanded", "--broker-version=4.0"]).expect_code(0);
    for name in ["work.retry", "dead.dlx", "deliveryLimit: -1", "messageTtl: 2s"] {
        shown().expect_text(name);
    }
    topo.run(["show"]).expect_code(64);
    topo.run(["show", "a", "b"]).expect_code(64).expect_error("a saved plan is one file");
    topo.run(["show", "--expanded", "missing.yaml"]).expect_code(65).expect_error("cannot read missing.yaml");
}

/// A small file must not expand to values that do not fit into memory.
#[test]
fn size_of_the_expansion_is_limited() {
    let items: Vec<String> = (0..1_000).map(|index| index.to_string()).collect();
    let binding = |index: usize| format!("{{exchange: amq.topic, routingKey: 'k{index}'}}");
    let bindings: Vec<String> = (0..500).map(binding).collect();
    let (items, bindings) = (items.join(", "), bindings.join(", "));
    let spec =
        format!("queues: {{\"q.{{i}}\": {{forEach: {{i: [{items}]}}, type: classic, bindings: [{bindings}]}}}}\n");
    let refused = Topo::offline().spec(&spec).run(["validate"]).expect_code(65);
    refused.expect_text("`forEach` expands the files to more than 1,000,000 values");
}

#[test]
fn many_items_are_expanded() {
    let items: Vec<String> = (0..2_000).map(|index| format!("i{index}")).collect();
    let spec = format!("queues: {{\"q.{{i}}\": {{forEach: {{i: [{}]}}, type: classic}}}}\n", items.join(", "));
    let topo = Topo::offline().spec(&spec);
    topo.run(["validate"]).expect_code(0).expect_text("2,000 queues");
}
