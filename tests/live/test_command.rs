//! `topo test --live`: the examples, all retry strategies, users without the tag `administrator`, and the cases that do
//! not run on a broker.
//!
//! | file | topic |
//! |---|---|
//! | [`against`] | `--against live` and `--against planned` |
//! | [`random`] | random cases |
//! | [`stopped`] | interrupted and killed runs, and `--clean` |

mod against;
mod random;
mod stopped;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::support::random::is_long;
use crate::support::{Node, Topo, until};

/// Returns the cases of a JSON document.
fn cases(document: &Value) -> &[Value] {
    document["cases"].as_array().expect("cases")
}

/// Checks that the broker and the simulation agree about all cases.
#[track_caller]
fn expect_agreement(document: &Value) {
    for case in cases(document) {
        assert_eq!((&case["mode"], &case["live"]["result"]), (&"live".into(), &"agrees".into()), "{case:#}");
        assert_eq!(case["result"], "passed", "{case:#}");
    }
}

/// Each example passes, and the broker agrees with the simulation. A long run repeats this 20 times.
#[test]
fn examples_agree_with_the_broker() {
    let node = Node::shared();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    // The delays of this example take 26 s.
    let slow = "criticality";
    let folders = std::fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().path());
    let with_tests: BTreeSet<_> = folders.filter(|folder| folder.join("topology.test.yaml").is_file()).collect();
    assert!(with_tests.len() >= 7, "{with_tests:?}");
    for _ in 0..if is_long() { 20 } else { 1 } {
        for folder in &with_tests {
            if folder.ends_with(slow) && !is_long() {
                continue;
            }
            let vhost = node.vhost("examples");
            let path = folder.to_str().unwrap();
            let output = Topo::new(&vhost).run(["test", "--live", "--format", "json", path]).expect_code(0);
            expect_agreement(&output.test_results());
        }
    }
}

/// A queue of each retry strategy, overflow, unacknowledged messages, expiry and streams.
const SPEC: &str = "\
exchanges: {orders: {type: topic}}
queues:
  ladder: {type: quorum, deadLetter: dead, retry: {delays: [5s, 30s, 5m]}, bindings: [{exchange: orders, routingKey: 'order.#'}]}
  republish: {type: classic, deadLetter: dead, retry: {strategy: republish, delays: [5s, 30s, 5m]}}
  redeliver: {type: quorum, deadLetter: dead, maxRetries: 3, retry: {strategy: redeliver}}
  full: {type: classic, maxLength: 3, deadLetter: full.dead}
  held: {type: quorum, deadLetter: dead}
  short: {type: classic, messageTtl: 5s, deadLetter: dead, bindings: [{exchange: orders, routingKey: 'short.*'}]}
  governed: {type: classic}
deadLetterQueues: {dead: {type: classic}, full.dead: {type: classic}}
policies:
  ttl:
    pattern: '^governed$'
    applyTo: queues
    definition: {message-ttl: 10000, dead-letter-exchange: '', dead-letter-routing-key: dead}
";
const CASES: &str = "\
version: 1
spec: topology.yaml
tests:
  no binding matches: {publish: {exchange: orders, routingKey: invoice.sent}, publisher: returned}
  routes: {exchange: orders, routes: {order.eu.paid: [ladder], short.a: [short], orders.created: []}}
  ladder:
    publish: {queue: ladder}
    workers: {ladder: fail}
    attempts: {ladder: [0s, 5s, 35s, 5m35s]}
    ends: {dead: rejected}
    deadLettered: {xDeath: [{queue: ladder, reason: rejected, count: 4}]}
  the second attempt succeeds: {publish: {queue: ladder}, workers: {ladder: [fail, ack]}, ends: {ladder: acked}}
  gives up at once: {publish: {queue: ladder}, workers: {ladder: [giveUp]}, ends: {dead: waiting}}
  republish:
    publish: {queue: republish, headers: {tenant: eu, number: 3, important: true}}
    workers: {republish: fail}
    attempts: {republish: [0s, 5s, 35s, 5m35s]}
    ends: {dead: rejected}
  redeliver: {publish: {queue: redeliver}, workers: {redeliver: [crash, fail, crash, fail]}, ends: {dead: delivery_limit}}
  overflow: {publish: {queue: full, count: 5}, ends: {full: {waiting: 3}, full.dead: {maxlen: 2}}}
  unacknowledged: {publish: {queue: held, count: 2}, workers: {held: hold}, ends: {held: {held: 1, waiting: 1}}}
  after unacknowledged messages: {publish: {queue: held}, workers: {held: ack}, ends: {held: acked}}
  time to live: {publish: {exchange: orders, routingKey: short.a}, ends: {dead: expired}}
  expiration: {publish: {exchange: orders, routingKey: short.b, expiration: 1s}, ends: {dead: expired}}
  time to live of a policy: {publish: {queue: governed}, ends: {dead: expired}}
";
const STREAM: &str = "  log: {type: stream, bindings: [{exchange: orders, routingKey: log}]}\n";
const STREAM_CASES: &str = "  \
  stream: {publish: {exchange: orders, routingKey: log}, ends: {log: waiting}}
  worker of a stream: {publish: {exchange: orders, routingKey: log}, workers: {log: ack}, attempts: {log: 1}}
";
const DELAYED: &str =
    "  delayed: {type: quorum, deadLetter: dead, retry: {strategy: delayed, delays: [10s, 20s, 30s]}}\n";
const DELAYED_CASES: &str = "  \
  delayed: {publish: {queue: delayed}, workers: {delayed: fail}, attempts: {delayed: 4}, ends: {dead: delivery_limit}}
";

#[test]
fn strategies_agree_with_the_broker() {
    let vhost = Node::shared().vhost("strategies");
    let (mut queues, mut tests) = (String::new(), CASES.to_owned());
    let node = Node::shared();
    for (is_supported, queue, cases) in
        [(node.at_least(3, 9), STREAM, STREAM_CASES), (node.at_least(4, 3), DELAYED, DELAYED_CASES)]
    {
        if is_supported {
            queues += queue;
            tests += cases;
        }
    }
    let spec = SPEC.replace("deadLetterQueues:", &format!("{queues}deadLetterQueues:"));
    let topo = Topo::new(&vhost).spec(&spec).file("topology.test.yaml", &tests);
    let output = topo.run(["test", "--live", "--format", "json"]).expect_code(0);
    let document = output.test_results();
    expect_agreement(&document);
    assert_eq!(cases(&document)[0]["timeScale"], 40, "{output}");
    assert!(vhost.names("queues").is_empty(), "the vhost of the spec is not used");
}

const SMALL: &str =
    "queues: {work: {type: classic, messageTtl: 20s, deadLetter: dead}}\ndeadLetterQueues: {dead: {type: classic}}\n";
const SMALL_CASES: &str = "\
version: 1
spec: topology.yaml
tests:
  expires: {publish: {queue: work}, ends: {dead: expired}}
  waits: {publish: {queue: dead}, ends: {dead: waiting}}
";

#[test]
fn non_administrator_needs_a_scratch_vhost() {
    let node = Node::shared();
    let vhost = node.vhost("provided");
    let user = node.user("monitoring").may_everything(&vhost);
    let topo = Topo::new(&vhost).user(&user).spec(SMALL).file("topology.test.yaml", SMALL_CASES);
    topo.run(["test", "--live"])
        .expect_code(1)
        .expect_error("only users with the `administrator` tag can create scratch vhosts")
        .expect_text("--scratch-vhost NAME");
    let provided = ["test", "--live", "--scratch-vhost", vhost.name()];
    topo.run(provided).expect_code(0).expect_text("2 cases: 2 passed");
    assert!(vhost.names("queues").is_empty(), "the vhost is empty again");
    assert!(vhost.names("exchanges").iter().all(|name| name.is_empty() || name.starts_with("amq.")));
    // A vhost that is in use is never changed.
    vhost.amqp().declare_queue("live", &[]).unwrap();
    topo.run(provided).expect_code(1).expect_error(&format!("vhost {} is not empty", vhost.name()));
    assert_eq!(vhost.names("queues"), ["live"]);
    topo.run(["test", "--live", "--scratch-vhost", "missing"])
        .expect_code(1)
        .expect_error("vhost missing does not exist");
}

#[test]
fn cases_not_run_on_the_broker_are_reported() {
    let vhost = Node::shared().vhost("only-offline");
    let topo = Topo::new(&vhost).spec(SMALL).file("topology.test.yaml", SMALL_CASES);
    let limited = ["test", "--live", "--time-scale", "1", "--time-limit", "10s"];
    let output = topo.run(limited).expect_code(0).expect_text("2 cases: 2 passed");
    output.expect_text("not run on the broker: the case takes 20s; --time-limit is 10s");
    let other = if Node::shared().at_least(4, 0) { "3.10" } else { "4.0" };
    topo.write("topology.test.yaml", &SMALL_CASES.replace("tests:", &format!("brokers: [\"{other}\"]\ntests:")));
    topo.run(["test", "--live"])
        .expect_code(0)
        .expect_text("2 cases: 2 skipped")
        .expect_text(&format!("`brokers` ({other}"));
    topo.write("topology.yaml", &format!("version: 1\nvhost: v\n{SMALL}exchanges: {{other: {{external: true}}}}\n"));
    topo.write("topology.test.yaml", SMALL_CASES);
    topo.run(["test", "--live"])
        .expect_code(0)
        .expect_text("not run on the broker: at least one external object has no stand-in");
    // With a stand-in, they run.
    topo.write(
        "topology.test.yaml",
        &SMALL_CASES.replace("tests:", "standIns: {exchanges: {other: {type: fanout}}}\ntests:"),
    );
    let output = topo.run(["test", "--live", "--format", "json"]).expect_code(0);
    expect_agreement(&output.test_results());
}

/// Each scratch vhost contains the predeclared exchanges.
#[test]
fn external_predeclared_exchange_needs_no_stand_in() {
    let vhost = Node::shared().vhost("predeclared");
    let spec = format!("{SMALL}exchanges: {{amq.topic: {{external: true}}}}\n");
    let topo = Topo::new(&vhost).spec(&spec).file("topology.test.yaml", SMALL_CASES);
    expect_agreement(&topo.run(["test", "--live", "--format", "json"]).expect_code(0).test_results());
}

/// A case fails if the broker behaves differently. Here, another client removes the message.
#[test]
fn difference_fails_the_case() {
    let node = Node::shared();
    let vhost = node.vhost("differs");
    let topo = Topo::new(&vhost).spec(SMALL).file("topology.test.yaml", SMALL_CASES);
    let provided = ["test", "--live", "--scratch-vhost", vhost.name(), "--time-scale", "1", "--run", "expires"];
    let mut running = topo.start(provided);
    let amqp = vhost.amqp();
    // The queue does not exist yet. Also stops waiting when the run ends, so that the test reports its output.
    until("the message was published", || (amqp.try_get("work").is_some() || running.is_over()).then_some(()));
    let output = running.wait().expect_code(1).expect_text("1 case: 1 failed");
    let output = output.expect_text("the broker and the simulation differ");
    output.expect_text("0 messages on the broker, 1 in the simulation");
}

#[test]
fn broker_that_refuses_the_topology_is_reported() {
    let vhost = Node::shared().vhost("refused");
    let spec = "exchanges: {delayed: {type: x-unknown}}\nqueues: {work: {type: classic, deadLetter: none}}\n";
    let tests = "version: 1\nspec: topology.yaml\ntests: {waits: {publish: {queue: work}, ends: {work: waiting}}}\n";
    let topo = Topo::new(&vhost).spec(spec).file("topology.test.yaml", tests);
    let output = topo.run(["test", "--live"]).expect_code(1).expect_error("the topology could not be declared");
    output.expect_text("x-unknown");
}
