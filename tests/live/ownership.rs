//! Tests ownership: topo deletes only objects that it may delete, and keeps unmanaged objects.

use std::collections::BTreeSet;

use lapin::options::{ExchangeDeclareOptions, QueueDeclareOptions};
use serde_json::{Value, json};

use crate::support::{Argument, Fault, NONE, Node, Proxy, Topo, Vhost, deletes, gets, text};

/// The flag with every allowance.
const ALLOW_ALL: &str = "--allow=message-loss,message-drop,mass-delete,routing-gap,routing-loss,consumer-disruption,publisher-block,\
                         durability-down,contract-change,duplicates,reorder,policy-shift";

/// Returns every object of a vhost, one per line; bindings with their routing keys and arguments.
pub(super) fn objects(vhost: &Vhost<'_>) -> BTreeSet<String> {
    let named = |kind: &'static str| vhost.names(kind).into_iter().map(move |name| format!("{kind} {name}"));
    let binding = |binding: Value| {
        let [source, key, kind, destination] = ["source", "routing_key", "destination_type", "destination"]
            .map(|field| binding[field].as_str().unwrap_or_default().to_owned());
        let arguments = &binding["arguments"];
        let arguments = if *arguments == json!({}) { String::new() } else { arguments.to_string() };
        format!("{source} -{key}{arguments}-> {kind} {destination}")
    };
    let bindings = vhost.list("bindings").into_iter().map(binding);
    named("queues").chain(named("exchanges")).chain(named("policies")).chain(bindings).collect()
}

fn lines(expected: &[&str]) -> BTreeSet<String> {
    expected.iter().map(|line| (*line).to_owned()).collect()
}

/// Creates a queue, an exchange, a policy and bindings with this prefix, without topo.
fn furnish(vhost: &Vhost<'_>, prefix: &str) {
    let amqp = vhost.amqp();
    let name = |what: &str| format!("{prefix}{what}");
    amqp.declare_queue(&name("queue"), NONE).unwrap();
    amqp.declare_exchange(&name("exchange"), "topic", NONE).unwrap();
    amqp.bind_queue(&name("exchange"), &name("queue"), "k", NONE);
    amqp.bind_exchange("amq.topic", &name("exchange"), "k", NONE);
    let policy = json!({"pattern": format!("^{prefix}none$"), "definition": {"max-length": 5}, "apply-to": "queues"});
    vhost.http().put(&vhost.path("policies", &[&name("policy")]), &policy).expect_status(201);
}

#[test]
fn without_owns_only_declared_objects_are_compared() {
    let vhost = Node::shared().vhost("declared");
    furnish(&vhost, "their.");
    let before = objects(&vhost);
    let topo = Topo::new(&vhost).spec("queues: {mine: {type: classic}, their.queue: {type: classic}}");
    let plan = topo.run(["plan", "--prune", "--format=json"]).expect_code(0).plan();
    assert_eq!((&plan["summary"]["create"], &plan["vhosts"][0]["unmanaged"]), (&json!(1), &json!([])));
    topo.run(["apply", "-y", "--prune", ALLOW_ALL]).expect_code(0);
    assert_eq!(objects(&vhost), &before | &lines(&["queues mine"]));
}

#[test]
fn owned_objects_are_reported_and_pruned_on_request() {
    let vhost = Node::shared().vhost("owns");
    furnish(&vhost, "a.");
    furnish(&vhost, "b.");
    let amqp = vhost.amqp();
    amqp.declare_queue("a.mine", NONE).unwrap();
    amqp.bind_queue("b.exchange", "a.mine", "theirs", NONE);
    amqp.bind_queue("amq.fanout", "b.queue", "", NONE);
    let before = objects(&vhost);
    let topo = Topo::new(&vhost).spec("owns: [\"a.*\"]\nqueues: {a.mine: {type: classic}}");
    let planned = topo.run(["plan", "--detailed-exitcode"]).expect_code(0);
    let planned = planned.expect_text("Unmanaged objects that match `owns` (kept; --prune deletes them)");
    for object in ["queue a.queue", "exchange a.exchange", "policy a.policy", "binding b.exchange ─ theirs → a.mine"]
    {
        assert!(planned.stdout.contains(&format!("    {object}\n")), "{object}: {planned}");
    }
    planned.expect_no_text("b.queue").expect_no_text("b.policy");
    topo.run(["apply", "-y", ALLOW_ALL]).expect_code(0);
    assert_eq!(objects(&vhost), before);

    let unbound = &before - &lines(&["b.exchange -theirs-> queue a.mine"]);
    topo.run(["apply", "-y", "--prune=bindings"])
        .expect_code(3)
        .expect_text("its last binding will be deleted: no more messages will be routed to it");
    topo.run(["apply", "-y", "--prune=bindings", ALLOW_ALL]).expect_code(0);
    assert_eq!(objects(&vhost), unbound);
    let without_policy = &unbound - &lines(&["policies a.policy"]);
    topo.run(["apply", "-y", "--prune=policies", ALLOW_ALL]).expect_code(0);
    assert_eq!(objects(&vhost), without_policy);
    topo.run(["apply", "-y", "--prune", ALLOW_ALL]).expect_code(0);
    let gone = [
        "queues a.queue",
        "exchanges a.exchange",
        "a.exchange -k-> queue a.queue",
        "amq.topic -k-> exchange a.exchange",
    ];
    assert_eq!(objects(&vhost), &without_policy - &lines(&gone));
    topo.run(["plan", "--prune", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn old_routing_key_remains_until_pruned() {
    let vhost = Node::shared().vhost("key");
    let spec = |key: &str| {
        format!(
            "owns: [\"orders*\"]\nexchanges: {{orders: {{type: topic}}}}\nqueues:\n  orders.work:\n    type: classic\n    \
             bindings: [{{exchange: orders, routingKey: \"{key}\"}}]\n"
        )
    };
    let topo = Topo::new(&vhost).spec(&spec("order.#"));
    topo.run(["apply", "-y"]).expect_code(0);
    topo.rewrite(&spec("order.*"));
    topo.run(["plan"]).expect_code(0).expect_text("binding orders ─ order.# → orders.work");
    topo.run(["apply", "-y"]).expect_code(0);
    let [old, new] = ["order.#", "order.*"].map(|key| format!("orders -{key}-> queue orders.work"));
    assert!(objects(&vhost).is_superset(&lines(&[&old, &new])));
    topo.run(["apply", "-y", "--prune", "--allow=routing-loss"]).expect_code(0);
    let after = objects(&vhost);
    assert!(after.contains(&new) && !after.contains(&old), "{after:?}");

    // In the same apply, topo creates the new binding first, so that no message that both match is unroutable.
    topo.rewrite(&spec("order.a"));
    let plan = topo.run(["plan", "--prune", "--format=json"]).expect_code(0).plan();
    let steps: Vec<&str> = plan["vhosts"][0]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|step| step["action"]["do"].as_str())
        .collect();
    let hazards = plan["vhosts"][0]["hazards"].as_array().unwrap();
    assert_eq!(steps, ["bind", "unbind"]);
    assert!(hazards.iter().all(|hazard| hazard["kind"] == "routing-loss"), "{hazards:?}");
    topo.run(["apply", "-y", "--prune", "--allow=routing-loss"]).expect_code(0);
    topo.run(["plan", "--prune", "--detailed-exitcode"]).expect_code(0);
}

#[test]
fn only_removed_objects_are_deleted() {
    let vhost = Node::shared().vhost("removed");
    furnish(&vhost, "old.");
    furnish(&vhost, "new.");
    vhost.amqp().bind_queue("amq.topic", "new.queue", "gone", NONE);
    let before = objects(&vhost);
    let topo = Topo::new(&vhost).spec(
        "removed:\n  queues: [old.queue, never.there]\n  exchanges: [old.exchange]\n  policies: [old.policy]\n  \
         bindings: [{source: amq.topic, destination: new.queue, routingKey: gone}]\nqueues: {new.queue: {type: classic}}\n",
    );
    topo.run(["apply", "-y"]).expect_code(3);
    assert_eq!(objects(&vhost), before);
    topo.run(["apply", "-y", ALLOW_ALL]).expect_code(0);
    let gone: BTreeSet<String> =
        before.iter().filter(|line| line.contains("old.") || line.contains("-gone-")).cloned().collect();
    assert_eq!(gone.len(), 6);
    assert_eq!(objects(&vhost), &before - &gone);
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn protected_objects_are_kept_with_any_flags() {
    let vhost = Node::shared().vhost("protect");
    furnish(&vhost, "a.");
    let amqp = vhost.amqp();
    amqp.declare_queue("a.old", NONE).unwrap();
    amqp.declare_queue("a.differs", &[("x-max-length", Argument::LongInt(1))]).unwrap();
    let before = objects(&vhost);
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).spec("owns: [\"*\"]\nprotect: [\"a.*\"]\n");
    let plan = topo.run(["plan", "--prune"]).expect_code(0);
    plan.expect_text("queue a.queue is unmanaged, but protected: topo keeps it");
    topo.run(["apply", "-y", "--prune", ALLOW_ALL]).expect_code(0);
    assert_eq!(objects(&vhost), before);

    let head = "owns: [\"*\"]\nprotect: [\"a.*\"]\n";
    topo.rewrite(&format!("{head}removed: {{queues: [a.old], exchanges: [a.exchange], policies: [a.policy]}}\n"));
    let refused = topo.run(["apply", "-y", "--prune", ALLOW_ALL]).expect_code(3);
    for id in ["queue a.old", "exchange a.exchange", "policy a.policy"] {
        assert!(refused.stdout.contains(&format!("{id} is both in `removed` and in `protect`")), "{refused}");
    }
    refused.expect_text("remove it from one of them");

    topo.rewrite(&format!(
        "{head}queues: {{a.differs: {{type: classic, maxLength: 2, onConflict: discard}}}}\nexchanges: \
         {{a.exchange: {{type: fanout, onConflict: discard}}}}\n"
    ));
    let address = format!("--recreate=queues/{}/a.differs=discard", vhost.name());
    for flags in [vec![], vec![address.as_str()]] {
        let refused = topo.run(["apply", "-y", "--prune", ALLOW_ALL].into_iter().chain(flags)).expect_code(3);
        refused
            .expect_text("queue a.differs is protected: it is never recreated")
            .expect_text("exchange a.exchange is protected: it is never recreated")
            .expect_text("type: topic")
            .expect_text("recreate not possible now: remove it from `protect`, and plan again")
            .expect_no_text("--recreate queues")
            .expect_no_text("--recreate exchanges");
    }
    assert_eq!((proxy.count(&deletes()), objects(&vhost)), (0, before));
}

#[test]
fn ignored_objects_are_not_reported() {
    let vhost = Node::shared().vhost("ignore");
    furnish(&vhost, "a.tmp.");
    furnish(&vhost, "b.");
    let amqp = vhost.amqp();
    amqp.declare_queue("a.mine", NONE).unwrap();
    amqp.bind_queue("a.tmp.exchange", "a.mine", "k", NONE);
    let before = objects(&vhost);
    let topo = Topo::new(&vhost).spec("owns: [\"a.*\"]\nignore: [\"a.tmp.*\"]\nqueues: {a.mine: {type: classic}}");
    let plan = topo.run(["plan", "--prune", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
    plan.expect_no_text("a.tmp");
    topo.run(["apply", "-y", "--prune", ALLOW_ALL]).expect_code(0);
    assert_eq!(objects(&vhost), before);
    topo.rewrite("ignore: [\"a.tmp.*\"]\nqueues: {a.tmp.queue: {type: classic}}");
    topo.run(["plan"]).expect_code(65).expect_text("a.tmp.queue");
}

#[test]
fn unownable_objects_are_never_changed() {
    let vhost = Node::shared().vhost("untouchable");
    let amqp = vhost.amqp();
    let exclusive = QueueDeclareOptions { exclusive: true, ..Default::default() };
    let passing = QueueDeclareOptions { auto_delete: true, durable: true, ..Default::default() };
    amqp.declare_queue_as("exclusive", exclusive, NONE).unwrap();
    amqp.declare_queue_as("passing", passing, NONE).unwrap();
    amqp.declare_queue_as("", QueueDeclareOptions { durable: true, ..Default::default() }, NONE).unwrap();
    let lock = [("x-topo-holder", text("me@elsewhere")), ("x-expires", Argument::LongInt(600_000))];
    amqp.declare_queue("topo.lock", &lock).unwrap();
    amqp.declare_queue("own", &[("x-topo-anything", text("a"))]).unwrap();
    amqp.declare_exchange("own", "fanout", &[("x-topo-anything", text("a"))]).unwrap();
    let short = ExchangeDeclareOptions { auto_delete: true, durable: true, ..Default::default() };
    amqp.declare_exchange_as("short", "topic", short, NONE).unwrap();
    amqp.declare_queue("mine", NONE).unwrap();
    for queue in ["exclusive", "passing", "own", "mine"] {
        amqp.bind_queue("short", queue, "k", NONE);
        if queue != "mine" {
            amqp.bind_queue("amq.topic", queue, "k", NONE);
        }
    }
    let before = objects(&vhost);
    assert_eq!((vhost.names("queues").len(), before.len()), (6, 6 + 2 + 7));
    let predeclared = vhost.http().get(&vhost.path("exchanges", &[])).expect_status(200);
    let topo = Topo::new(&vhost).spec("owns: [\"*\"]\nqueues: {mine: {type: classic}}\n");
    let prune = ["apply", "-y", "--prune", "--lock-name=another.lock", ALLOW_ALL];
    topo.run(prune).expect_code(0);
    assert_eq!(objects(&vhost), before);
    amqp.declare_queue("extra", NONE).unwrap();
    topo.run(prune).expect_code(0);
    assert_eq!(objects(&vhost), before, "only ownable objects were deleted");
    assert_eq!(vhost.http().get(&vhost.path("exchanges", &[])).expect_status(200), predeclared);

    // The result is the same if their names are under `removed`.
    topo.rewrite("removed: {queues: [exclusive, passing, own], exchanges: [short, own]}\n");
    let refused = topo.run(prune).expect_code(3);
    for id in ["queue exclusive", "queue passing", "queue own", "exchange short", "exchange own"] {
        assert!(
            refused.stdout.contains(&format!("{id} is exclusive, auto-delete, server-named, or internal")),
            "{refused}"
        );
    }
    for spec in
        ["removed: {exchanges: [amq.topic]}", "removed: {queues: [topo.lock]}", "exchanges: {\"\": {type: direct}}"]
    {
        topo.rewrite(spec);
        topo.run(prune).expect_code(65);
    }
    assert_eq!(objects(&vhost), before);
}

#[test]
fn recreated_queue_keeps_every_binding() {
    let vhost = Node::shared().vhost("recreate");
    let amqp = vhost.amqp();
    let short = ExchangeDeclareOptions { auto_delete: true, durable: true, ..Default::default() };
    amqp.declare_queue("q", &[("x-max-length", Argument::LongInt(1))]).unwrap();
    amqp.declare_exchange("theirs", "headers", NONE).unwrap();
    amqp.declare_exchange_as("short", "topic", short, NONE).unwrap();
    amqp.bind_queue("theirs", "q", "", &[("x-match", text("all")), ("tier", Argument::LongLongInt(2))]);
    amqp.bind_queue("theirs", "q", "", &[("x-match", text("all")), ("tier", text("2"))]);
    amqp.bind_queue("short", "q", "a", NONE);
    amqp.bind_queue("short", "q", "b", NONE);
    // topo does not report ignored bindings, but keeps them.
    amqp.declare_exchange("hidden", "topic", NONE).unwrap();
    amqp.bind_queue("hidden", "q", "h", NONE);
    let before = objects(&vhost);
    let spec =
        "exchanges: {mine: {type: topic}}\nqueues:\n  q: {type: classic, maxLength: 2, bindings: [{exchange: mine}]}\n";
    let topo = Topo::new(&vhost).spec(spec);
    let recreate = format!("--recreate=queues/{}/q=ifEmpty", vhost.name());
    topo.run(["plan", &recreate]).expect_code(0).expect_text("0 declared, 5 unmanaged (");
    topo.run(["apply", "-y", &recreate, ALLOW_ALL]).expect_code(0);
    assert_eq!(vhost.queue("q")["arguments"]["x-max-length"], 2);
    assert_eq!(objects(&vhost), &before | &lines(&["exchanges mine", "mine --> queue q"]));
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn recreated_exchange_keeps_every_binding() {
    let vhost = Node::shared().vhost("hub");
    let amqp = vhost.amqp();
    let short = ExchangeDeclareOptions { auto_delete: true, durable: true, ..Default::default() };
    amqp.declare_exchange("hub", "topic", NONE).unwrap();
    amqp.declare_exchange("next", "topic", NONE).unwrap();
    amqp.declare_exchange_as("short", "topic", short, NONE).unwrap();
    amqp.declare_queue("theirs", NONE).unwrap();
    amqp.bind_exchange("amq.topic", "hub", "in", NONE);
    amqp.bind_exchange("short", "hub", "in", NONE);
    amqp.bind_exchange("hub", "next", "out", NONE);
    amqp.bind_exchange("hub", "hub", "round", NONE);
    amqp.bind_queue("hub", "theirs", "k", &[("n", Argument::Boolean(true))]);
    let before = objects(&vhost);
    // Both ends of one binding are recreated, one after the other.
    let topo = Topo::new(&vhost)
        .spec("exchanges:\n  hub: {type: direct, onConflict: discard}\n  next: {type: fanout, onConflict: discard}\n");
    let refused = topo.run(["apply", "-y"]).expect_code(3);
    refused.expect_text("messages published to it will be unroutable until its 5 bindings are restored");
    topo.run(["apply", "-y", ALLOW_ALL]).expect_code(0);
    assert_eq!(vhost.exchange("hub")["type"], "direct");
    assert_eq!(vhost.exchange("next")["type"], "fanout");
    assert_eq!(objects(&vhost), before);
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn concurrent_binding_stops_the_recreate() {
    let vhost = Node::shared().vhost("meanwhile");
    let amqp = vhost.amqp();
    amqp.declare_queue("q", &[("x-max-length", Argument::LongInt(1))]).unwrap();
    amqp.bind_queue("amq.topic", "q", "before", NONE);
    // The plan, the plan under the lock, and a read immediately before the deletion.
    let bind = Fault::Meanwhile(Box::new(move || amqp.bind_queue("amq.topic", "q", "meanwhile", NONE)));
    let proxy = Proxy::to(Node::shared()).on(gets().path(&format!("/bindings/{}", vhost.name())).nth(3), bind);
    let topo =
        Topo::new(&vhost).through(&proxy).spec("queues: {q: {type: classic, maxLength: 2, onConflict: ifEmpty}}");
    let stopped = topo.run(["apply", "-y", ALLOW_ALL]).expect_code(3);
    stopped.expect_text(
        "queue q was not deleted: a binding was added after the plan was made (amq.topic ─ meanwhile → q)",
    );
    assert_eq!(vhost.queue("q")["arguments"]["x-max-length"], 1);
    assert_eq!((vhost.list("bindings").len(), vhost.names("exchanges")), (2, Vec::new()));
    topo.run(["apply", "-y", ALLOW_ALL]).expect_code(0);
    assert_eq!((vhost.queue("q")["arguments"]["x-max-length"].as_i64(), vhost.list("bindings").len()), (Some(2), 2));
}
