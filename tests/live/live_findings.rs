//! Tests that the findings of a plan take the whole vhost into account, including unmanaged objects.

use lapin::options::QueueDeclareOptions;

use crate::support::{NONE, Node, Output, Topo, Vhost, text};

const SPEC: &str = "\
exchanges:
  dead: {type: fanout}
  events: {type: topic, alternateExchange: unrouted}
  feed: {type: fanout}
  unrouted: {type: fanout}
queues:
  work: {type: classic, deadLetter: {exchange: dead}, bindings: [{exchange: events, routingKey: 'order.#'}]}
";
/// Lint rules, each with the exchange to which a transient queue is bound.
const RULES: [(&str, &str); 3] =
    [("dangling-alternate-exchange", "unrouted"), ("dead-letters-reach-nothing", "dead"), ("unbound-exchange", "feed")];
const UNSURE: &str = "a definitions file does not contain exclusive or transient queues";

fn plan(topo: &Topo, flags: &[&str]) -> Output {
    topo.run(["plan", "--fail-on", "info"].into_iter().chain(flags.iter().copied()))
}

/// Returns the names of these rules that have findings. Every test topology also has findings of other rules.
fn found(output: &Output) -> Vec<&'static str> {
    RULES.iter().map(|(rule, _)| *rule).filter(|rule| output.stderr.contains(rule)).collect()
}

fn definitions(vhost: &Vhost<'_>) -> String {
    vhost.http().get(&vhost.path("definitions", &[])).expect_status(200).to_string()
}

#[test]
fn bindings_to_transient_queues_count() {
    let vhost = Node::shared().vhost("lint");
    let all = RULES.map(|(rule, _)| rule);
    let topo = Topo::new(&vhost).spec(SPEC);
    assert_eq!(found(&plan(&topo, &[])), all);
    topo.run(["apply", "--yes"]).expect_code(0);
    assert_eq!(found(&plan(&topo, &[])), all);

    let amqp = vhost.amqp();
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let exclusive = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    amqp.declare_queue_as("exclusive", exclusive, NONE).unwrap();
    amqp.declare_queue_as("auto-delete", QueueDeclareOptions { auto_delete: true, ..durable }, NONE).unwrap();
    amqp.declare_queue_as("", durable, &[("x-queue-type", text("classic"))]).unwrap();
    let server_named = vhost.names("queues").into_iter().find(|name| name.starts_with("amq.gen")).unwrap();
    for ((_, exchange), queue) in RULES.iter().zip(["exclusive", "auto-delete", &server_named]) {
        amqp.bind_queue(exchange, queue, "", NONE);
    }
    let output = plan(&topo, &[]);
    assert_eq!(found(&output), [""; 0], "{output}");
    let output = topo.run(["apply", "--yes", "--fail-on", "info"]);
    assert_eq!(found(&output), [""; 0], "{output}");
    let export = topo.run(["export", "--vhost", "{vhost}"]).expect_code(0);
    assert!(all.iter().all(|rule| !export.stdout.contains(rule)), "{export}");

    // The file does not contain the exclusive queue, and every command reports this with the same text. On 4.3, the
    // file contains the binding of the queue.
    let definitions = definitions(&vhost);
    let is_sure = definitions.contains("\"destination\":\"exclusive\"");
    let topo = topo.file("definitions.json", &definitions);
    let output = plan(&topo, &["--against", "definitions.json"]);
    let expected = if is_sure { &[][..] } else { &all[..1] };
    assert_eq!((found(&output), output.says(UNSURE)), (expected.to_vec(), !is_sure), "{output}");
    let export = topo.run(["export", "--vhost", "{vhost}", "--definitions", "definitions.json"]).expect_code(0);
    let comments: Vec<&str> = export.stdout.split_whitespace().filter(|word| *word != "#").collect();
    let comments = comments.join(" ");
    assert_eq!((comments.contains(all[0]), comments.contains(UNSURE)), (!is_sure, !is_sure), "{export}");
}

#[test]
fn removed_bindings_do_not_count() {
    let vhost = Node::shared().vhost("lint-removed");
    let topo = Topo::new(&vhost).spec(SPEC);
    topo.run(["apply", "--yes"]).expect_code(0);
    let amqp = vhost.amqp();
    amqp.declare_queue("others", NONE).unwrap();
    amqp.bind_queue("feed", "others", "", NONE);
    assert!(!found(&plan(&topo, &[])).contains(&"unbound-exchange"));
    let others = "  others: {external: true}\nremoved: {bindings: [{source: feed, destination: others}]}\n";
    topo.rewrite(&format!("{SPEC}{others}"));
    let output = plan(&topo, &[]);
    assert!(found(&output).contains(&"unbound-exchange"), "{output}");
}

/// From 4.3 on, the broker refuses a queue that is transient and not exclusive.
#[test]
fn bindings_to_a_transient_queue_count() {
    if Node::shared().at_least(4, 3) {
        return;
    }
    let vhost = Node::shared().vhost("lint-transient");
    let all = RULES.map(|(rule, _)| rule);
    let topo = Topo::new(&vhost).spec(SPEC);
    topo.run(["apply", "--yes"]).expect_code(0);
    assert_eq!(found(&plan(&topo, &[])), all);
    let amqp = vhost.amqp();
    amqp.declare_queue_as("transient", QueueDeclareOptions::default(), NONE).unwrap();
    RULES.iter().for_each(|(_, exchange)| amqp.bind_queue(exchange, "transient", "", NONE));
    let output = plan(&topo, &[]);
    assert_eq!(found(&output), [""; 0], "{output}");
    let export = topo.run(["export", "--vhost", "{vhost}"]).expect_code(0);
    assert!(all.iter().all(|rule| !export.stdout.contains(rule)), "{export}");
    assert!(export.stdout.contains("transient"), "{export}");

    let definitions = definitions(&vhost);
    let is_sure = definitions.contains("\"destination\":\"transient\"");
    let output = plan(&topo.file("definitions.json", &definitions), &["--against", "definitions.json"]);
    let expected = if is_sure { &[][..] } else { &all[..] };
    assert_eq!((found(&output), output.says(UNSURE)), (expected.to_vec(), !is_sure), "{output}");
}
