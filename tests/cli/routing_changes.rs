//! Tests the routing changes of plans against another spec.

use super::expect_file;
use crate::support::Topo;

const BEFORE: &str = r##"version: 1
vhost: shop
exchanges:
  gateway: {type: fanout}
  orders: {type: topic, alternateExchange: unmatched}
  unmatched: {type: fanout}
  eu: {type: topic}
queues:
  billing:
    type: classic
    bindings: [{exchange: orders, routingKey: "order.#"}, {exchange: orders, routingKey: "order.*"}]
  reports: {type: classic}
  unmatched: {type: classic, bindings: [{exchange: unmatched}]}
  shipping: {type: classic, bindings: [{exchange: eu, routingKey: "#.paid"}]}
bindings:
  - {source: gateway, destination: orders, destinationType: exchange}
"##;

const AFTER: &str = r##"version: 1
vhost: shop
exchanges:
  gateway: {type: fanout}
  orders: {type: topic, alternateExchange: unmatched}
  unmatched: {type: fanout}
  eu: {type: topic}
queues:
  billing: {type: classic, bindings: [{exchange: orders, routingKey: "order.*"}]}
  reports: {type: classic, bindings: [{exchange: orders, routingKey: "report.*"}]}
  unmatched: {type: classic, bindings: [{exchange: unmatched}]}
  shipping: {type: classic, bindings: [{exchange: eu, routingKey: eu.paid}]}
  new: {type: classic, bindings: [{exchange: orders, routingKey: "order.*"}]}
bindings:
  - {source: gateway, destination: orders, destinationType: exchange}
removed:
  bindings:
    - {source: eu, destination: shipping, routingKey: "#.paid"}
    - {source: orders, destination: billing, routingKey: "order.#"}
"##;

fn compared(flags: &[&str]) -> crate::support::Output {
    let topo = Topo::offline().file("old.yaml", BEFORE).spec(AFTER);
    topo.run(["plan", "--against", "old.yaml"].into_iter().chain(flags.iter().copied()))
}

#[test]
fn plan_lists_the_routing_changes() {
    let output = compared(&["--detailed-exitcode"]).expect_code(3);
    expect_file(&output, "plan-routing.txt");
    let all = compared(&["--show", "all"]).expect_code(0);
    all.expect_text("will reach new").expect_no_text("not shown");
    expect_file(&compared(&["--format", "markdown"]).expect_code(0), "plan-routing.md");
    expect_file(&compared(&["--format", "github"]).expect_code(0), "plan-routing.github.txt");
}

#[test]
fn plan_as_json_contains_each_change_with_an_example() {
    let plan = compared(&["--format", "json"]).expect_code(0).plan();
    let changes = plan["vhosts"][0]["routing"]["changes"].as_array().unwrap();
    let of = |exchange: &str, kind: &str, key: &str| {
        let mut found = changes.iter().filter(|it| {
            (it["exchange"].as_str(), it["cause"]["kind"].as_str(), it["cause"]["binding"]["routing_key"].as_str())
                == (Some(exchange), Some(kind), Some(key))
        });
        found.next().unwrap_or_else(|| panic!("no change of {exchange} by {key}: {changes:?}"))
    };
    let change = of("orders", "bindingDeleted", "order.#");
    assert_eq!((&change["lost"][0], &change["gained"][0]), (&"billing".into(), &"unmatched".into()));
    assert_eq!((&change["all"], &change["unaffected"]["routingKey"]), (&false.into(), &"order.x".into()));
    assert_eq!(change["example"]["routingKey"], "order.x.x");
    let change = of("gateway", "bindingCreated", "report.*");
    assert_eq!(
        (&change["all"], &change["before"][0], &change["after"][0]),
        (&serde_json::Value::Null, &"unmatched".into(), &"reports".into())
    );
    // The same plan without a routing change.
    let topo = Topo::offline().file("old.yaml", BEFORE).spec(BEFORE);
    let same = topo.run(["plan", "--against", "old.yaml", "--detailed-exitcode", "--format", "json"]).expect_code(0);
    assert!(!same.stdout.contains("\"routing\""), "{same}");
}

#[test]
fn specs_to_compare_with_can_be_incomplete_or_wrong() {
    let topo = Topo::offline()
        .file("other.yaml", "version: 1\nvhost: other\nqueues: {q: {type: classic}}\n")
        .file("broken.yaml", "version: 1\nvhost: shop\nqueues: {q: {typ: classic}}\n")
        .file("external.yaml", "version: 1\nvhost: shop\nexchanges: {theirs: {external: true}}\nqueues: {}\n")
        .file("with.yaml", "version: 1\nvhost: ${NAME}\nqueues: {}\n")
        .file("folder/old.yaml", BEFORE)
        .spec(AFTER);
    let against = |path: &str| topo.run(["plan", "--against", path]);
    // A vhost that the other spec does not declare does not exist.
    against("other.yaml").expect_code(0).expect_text("+ vhost shop");
    against("folder").expect_code(0).expect_text("Routing changes");
    let broken = against("broken.yaml").expect_code(65);
    assert!(broken.stderr.contains("broken.yaml:3:14"), "{broken}");
    against("missing.yaml").expect_code(65).expect_error("cannot read missing.yaml");
    let unset = against("with.yaml").expect_code(65);
    assert!(unset.stderr.contains("NAME"), "{unset}");
    topo.run(["plan", "--against", "with.yaml", "--var", "NAME=shop"]);
    // External objects are assumed to exist.
    let topo = topo.file(
        "bound.yaml",
        "version: 1\nvhost: shop\nexchanges: {theirs: {external: true}}\nqueues: {q: {type: classic, bindings: [{exchange: \
         theirs, routingKey: a}]}}\n",
    );
    let plan = topo.run(["plan", "bound.yaml", "--against", "external.yaml"]).expect_code(0);
    plan.expect_text("unknown effect on messages to exchange theirs");
    // An external object has the settings of the spec that declares it. Predeclared exchanges keep their type.
    let topo = topo
        .file(
            "theirs.yaml",
            "version: 1\nvhost: shop\nexchanges: {e: {external: true}, amq.topic: {external: true}}\nqueues: {q: {external: true, \
             bindings: [{exchange: e}, {exchange: amq.topic, routingKey: a}]}}\n",
        )
        .file(
            "ours.yaml",
            "version: 1\nvhost: shop\nexchanges: {e: {type: topic}, amq.topic: {external: true}}\nqueues: {q: {type: quorum, bindings: \
             [{exchange: e, routingKey: b}, {exchange: amq.topic, routingKey: a.b}]}}\n",
        );
    let plan = topo.run(["plan", "ours.yaml", "--against", "theirs.yaml"]).expect_code(0);
    plan.expect_text("all matching messages published to exchange amq.topic will reach q").expect_no_text("unknown");
}

const DEAD_LETTERS_BEFORE: &str = r##"version: 1
vhost: shop
exchanges:
  failed: {type: direct}
queues:
  direct: {type: quorum, deadLetter: dead}
  retried: {type: quorum, deadLetter: dead, retry: {delays: [5s, 30s]}}
  by-key: {type: classic, deadLetter: {exchange: failed}, bindings: [{exchange: amq.topic, routingKey: a}]}
  unchanged: {type: quorum, deadLetter: dead, retry: {delays: [5s]}}
  failed.a: {type: classic, bindings: [{exchange: failed, routingKey: a}]}
deadLetterQueues:
  dead: {type: quorum}
  quarantine: {type: quorum}
"##;

/// The dead letters of a queue go to another queue, with and without retries. A routing key that matches no binding drops
/// them. More retries change nothing.
#[test]
fn changed_dead_lettering_is_compared() {
    let after = DEAD_LETTERS_BEFORE
        .replace("direct: {type: quorum, deadLetter: dead}", "direct: {type: quorum, deadLetter: quarantine}")
        .replace("retried: {type: quorum, deadLetter: dead,", "retried: {type: quorum, deadLetter: quarantine,")
        .replace("{exchange: failed}, bind", "{exchange: failed, routingKey: b}, bind")
        .replace("retry: {delays: [5s]}", "retry: {delays: [5s, 10s]}");
    let topo = Topo::offline().file("old.yaml", DEAD_LETTERS_BEFORE).spec(&after);
    let recreated = ["--recreate", "queues/shop/direct=discard", "--recreate", "queues/shop/by-key=discard"];
    let words = ["plan", "--against", "old.yaml"].into_iter().chain(recreated);
    let compared = |flags: &[&str]| topo.run(words.clone().chain(flags.iter().copied()));
    expect_file(&compared(&[]).expect_code(0), "plan-dead-letters.txt");
    let document = compared(&["--format", "json"]).expect_code(0).plan();
    let changes = document["vhosts"][0]["routing"]["deadLetters"].as_array().unwrap().clone();
    let queues: Vec<&str> = changes.iter().map(|change| change["queue"].as_str().unwrap()).collect();
    assert_eq!(queues, ["by-key", "direct", "retried"], "{changes:#?}");
    assert_eq!(changes[2]["lost"], serde_json::json!(["dead"]), "{changes:#?}");
    assert_eq!(changes[2]["gained"], serde_json::json!(["quarantine"]), "{changes:#?}");
    let hazards = document["vhosts"][0]["hazards"].as_array().unwrap();
    let losses: Vec<_> = hazards.iter().filter(|hazard| hazard["kind"] == "routing-loss").collect();
    assert_eq!(losses.len(), 1, "{hazards:#?}");
    assert_eq!(losses[0]["address"], "queues/shop/by-key");
}

/// The target of dead letters through the default exchange is deleted.
#[test]
fn deleted_dead_letter_queue_is_a_routing_loss() {
    let queue = "  work: {type: classic, deadLetter: {exchange: '', routingKey: parked}}\n";
    let before = format!("version: 1\nvhost: shop\nqueues:\n{queue}  parked: {{type: classic}}\n");
    let after = format!("version: 1\nvhost: shop\nqueues:\n{queue}removed: {{queues: [parked]}}\n");
    let topo = Topo::offline().file("old.yaml", &before).spec(&after);
    let plan = topo.run(["plan", "--against", "old.yaml", "--format", "json"]).plan();
    let change = &plan["vhosts"][0]["routing"]["deadLetters"][0];
    assert_eq!((&change["queue"], &change["lost"][0]), (&"work".into(), &"parked".into()), "{plan:#}");
    let hazards = plan["vhosts"][0]["hazards"].as_array().unwrap();
    let is_loss = |hazard: &&serde_json::Value| hazard["kind"] == "routing-loss";
    let loss = hazards.iter().find(is_loss).expect("a hazard");
    assert_eq!(loss["address"], "queues/shop/work");
    // Without the deletion, nothing changes.
    let kept = topo.run(["plan", "old.yaml", "--against", "old.yaml", "--format", "json"]).expect_code(0).plan();
    assert!(kept["vhosts"][0]["routing"]["deadLetters"].is_null(), "{kept:#}");
}

const HASH: &str = r##"version: 1
vhost: shop
exchanges: {e: {type: fanout}, h: {type: x-consistent-hash}}
queues:
  first: {type: classic, bindings: [{exchange: e}]}
  second: {type: classic}
  one: {type: classic, bindings: [{exchange: h, routingKey: "1"}]}
  two: {type: classic, bindings: [{exchange: h, routingKey: "1"}]}
"##;

/// The example for one new binding also matches another, which leads to a consistent-hash exchange.
#[test]
fn uncertain_queues_of_an_example_are_reported() {
    let bindings =
        "bindings:\n  - {source: e, destination: second}\n  - {source: e, destination: h, destinationType: exchange}\n";
    let topo = Topo::offline().file("old.yaml", HASH).spec(&format!("{HASH}{bindings}"));
    let output = topo.run(["plan", "--against", "old.yaml"]).expect_code(0);
    let output = output.expect_text("(before: first; after: first, second, and possibly others)");
    output.expect_text("the example may reach additional queues: the type of exchange `h`");
    topo.run(["plan", "--against", "old.yaml", "--format", "markdown"])
        .expect_code(0)
        .expect_text("| first | first, second, and possibly others |");
    let plan = topo.run(["plan", "--against", "old.yaml", "--format", "json"]).expect_code(0).plan();
    let change = &plan["vhosts"][0]["routing"]["changes"][0];
    assert!(change["afterUnclear"].as_str().is_some_and(|reason| reason.contains("`h`")), "{change:#}");
    assert!(change["beforeUnclear"].is_null(), "{change:#}");
}
