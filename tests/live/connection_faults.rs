//! Checks connection and broker failures during an apply: closed connections, missing responses, 429, 503, and a killed
//! node. The report matches the broker, and a second apply converges.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Fault, Gate, Node, Options, Output, Proxy, Topo, Vhost, any, child, gets, puts, until, writes};

const SPEC: &str = "\
exchanges: {orders: {type: topic}, audit: {type: fanout}}
queues: {orders.mail: {type: classic}, orders.work: {type: classic, messageTtl: 30s}}
bindings: [{source: orders, destination: orders.work, routingKey: 'order.#'}]
";

/// The number of writes of an apply without failures: acquire the lock, create five objects, release the lock.
const WRITES: usize = 7;

fn exists(vhost: &Vhost<'_>, address: &str) -> bool {
    let parts: Vec<&str> = address.split('/').collect();
    match parts[0] {
        "exchanges" => !vhost.exchange(parts[2]).is_null(),
        "queues" => !vhost.queue(parts[2]).is_null(),
        "bindings" => !vhost.list("bindings").is_empty(),
        other => panic!("{other}: not in this spec"),
    }
}

/// Compares the report with the broker. Returns the numbers of steps that are done, failed and not attempted.
fn report_is_true(vhost: &Vhost<'_>, output: &Output) -> [usize; 3] {
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output}"));
    let steps = |list: &str| report["vhosts"][0][list].as_array().cloned().unwrap_or_default();
    for step in steps("done") {
        assert!(exists(vhost, step["address"].as_str().unwrap()), "reported as done: {step}");
    }
    for step in steps("failed") {
        let there = exists(vhost, step["address"].as_str().unwrap());
        assert!(!there || step["mayBeDone"] == true, "reported as failed: {step}");
    }
    for step in steps("notAttempted") {
        assert!(!exists(vhost, step["address"].as_str().unwrap()), "reported as not attempted: {step}");
    }
    ["done", "failed", "notAttempted"].map(|list| steps(list).len())
}

fn converges(topo: &Topo, vhost: &Vhost<'_>) {
    // If the connection stays closed, topo cannot release the lock. The test does not wait a minute for the lock to
    // expire.
    vhost.http().delete(&vhost.path("queues", &["topo.lock"]));
    topo.run(["apply", "--yes"]).expect_code(0);
    topo.run(["plan", "--detailed-exitcode"])
        .expect_code(0)
        .expect_text("No changes. 5 objects and 1 binding compared.");
    assert_eq!(vhost.names("queues"), ["orders.mail", "orders.work"]);
}

type Cut = (&'static str, fn() -> Fault);

fn faults() -> [Cut; 3] {
    [("before", || Fault::CutBefore), ("after", || Fault::CutAfter), ("within", || Fault::CutWithin)]
}

#[test]
fn single_cut_at_any_write_is_retried() {
    let node = Node::shared();
    let plain = node.vhost("uncut");
    let proxy = Proxy::to(node);
    Topo::new(&plain).through(&proxy).spec(SPEC).run(["apply", "--yes"]).expect_code(0);
    assert_eq!(proxy.count(&writes()), WRITES, "{:?}", proxy.requests());
    thread::scope(|scope| {
        for (name, fault) in faults() {
            scope.spawn(move || {
                for nth in 1..=WRITES {
                    let vhost = node.vhost(&format!("cut-{name}-{nth}"));
                    let proxy = Proxy::to(node).on(writes().nth(nth), fault());
                    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
                    let output = topo.run(["apply", "--yes", "--format", "json"]).expect_code(0);
                    assert_eq!(report_is_true(&vhost, &output), [5, 0, 0], "{name} {nth}: {output}");
                    assert!(vhost.queue("topo.lock").is_null(), "{name} {nth}: {output}");
                    let output = topo.run(["plan", "--detailed-exitcode"]).expect_code(0);
                    output.expect_text("No changes. 5 objects and 1 binding compared.");
                }
            });
        }
    });
}

#[test]
fn permanent_cut_at_any_write_is_reported() {
    let node = Node::shared();
    thread::scope(|scope| {
        for (name, fault) in faults() {
            for nth in 1..=WRITES {
                scope.spawn(move || {
                    let vhost = node.vhost(&format!("lost-{name}-{nth}"));
                    let proxy = Proxy::to(node).on(writes().from(nth), fault());
                    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
                    let output = topo.run(["apply", "--yes", "--format", "json"]);
                    match nth {
                        // Without the lock, no step starts.
                        1 if output.code == Some(1) => {
                            let output = output.expect_no_result().expect_error("the connection was lost");
                            assert!(vhost.names("exchanges").is_empty(), "{output}");
                        }
                        // All steps are done; only the lock remains.
                        WRITES => {
                            let output = output.expect_code(0);
                            assert_eq!(report_is_true(&vhost, &output), [5, 0, 0], "{output}");
                        }
                        _ => {
                            let output = output.expect_code(4).expect_error("stopped halfway");
                            let [done, failed, rest] = report_is_true(&vhost, &output);
                            assert_eq!(done + failed + rest, 5, "{name} {nth}: {output}");
                            assert!(failed > 0, "{name} {nth}: {output}");
                        }
                    }
                    proxy.reset();
                    converges(&topo, &vhost);
                });
            }
        }
    });
}

#[test]
fn cut_during_a_read_is_retried() {
    let vhost = Node::shared().vhost("reading");
    for (_, fault) in faults() {
        let proxy = Proxy::to(Node::shared()).on(gets().nth(1), fault()).on(gets().nth(3), fault());
        Topo::new(&vhost)
            .through(&proxy)
            .spec(SPEC)
            .run(["plan"])
            .expect_code(0)
            .expect_text("4 objects and 1 binding to create");
    }
}

#[test]
fn busy_broker_is_retried() {
    let node = Node::shared();
    thread::scope(|scope| {
        for status in [429, 500, 503] {
            scope.spawn(move || {
                let vhost = node.vhost(&format!("busy-{status}"));
                let proxy = Proxy::to(node)
                    .on(gets().path("/api/overview").first(2), Fault::Status(status))
                    .on(puts().path("orders.work").first(3), Fault::Status(status));
                let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
                topo.run(["apply", "--yes"]).expect_code(0).expect_no_text("error");
                assert_eq!(proxy.count(&puts().path("orders.work")), 4);
            });
        }
    });
}

#[test]
fn permanently_busy_broker_fails_in_bounded_time() {
    let vhost = Node::shared().vhost("always-busy");
    let begun = Instant::now();
    let proxy = Proxy::to(Node::shared()).on(any(), Fault::Status(503));
    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
    let output = topo.run(["plan"]).expect_code(1).expect_no_result();
    output.expect_error("the broker failed to process GET /api/overview: 503 status 503 for the test");
    assert_eq!(proxy.count(&gets().path("/api/overview")), 5);
    // If one object fails, topo completes the other steps of its wave, and does not attempt the steps that depend on
    // it.
    proxy.reset();
    proxy.add(puts().path("orders.work"), Fault::Status(503));
    let output = topo.run(["apply", "--yes", "--format", "json"]).expect_code(4).expect_error("stopped halfway");
    assert_eq!(report_is_true(&vhost, &output), [3, 1, 1], "{output}");
    assert_eq!(proxy.count(&puts().path("orders.work")), 5);
    println!("given up after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
    proxy.reset();
    assert!(vhost.queue("topo.lock").is_null());
    converges(&topo, &vhost);
}

#[test]
fn missing_response_fails_after_the_timeout() {
    let vhost = Node::shared().vhost("hanging");
    // topo retries after a single missing response.
    let exchanges = gets().path("/api/exchanges");
    let proxy = Proxy::to(Node::shared()).on(exchanges.clone().nth(1), Fault::HangBefore);
    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
    topo.run(["plan", "--timeout", "4s"]).expect_code(0);
    assert_eq!(proxy.count(&exchanges), 2);
    // topo gives up if all responses are missing.
    let proxy = Proxy::to(Node::shared()).on(exchanges.clone(), Fault::HangBefore);
    let begun = Instant::now();
    let output = topo.through(&proxy).run(["plan", "--timeout", "4s"]).expect_code(1).expect_no_result();
    output.expect_error("did not respond to GET /api/exchanges/").expect_text("within 4s");
    assert_eq!(proxy.count(&exchanges), 5);
    println!("given up after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(100), "{:?}", begun.elapsed());
}

#[test]
fn write_without_a_response_may_have_been_executed() {
    let vhost = Node::shared().vhost("hanging-write");
    let proxy = Proxy::to(Node::shared()).on(puts().path("orders.work"), Fault::HangAfter);
    let topo = Topo::new(&vhost).through(&proxy).spec(SPEC);
    let output = topo.run(["apply", "--yes", "--timeout", "3s"]).expect_code(4);
    output.expect_error("stopped halfway").expect_text("the broker may have executed this step");
    // The broker did execute the write.
    until("the queue", || exists(&vhost, "queues/x/orders.work").then_some(()));
    proxy.reset();
    converges(&topo, &vhost);
}

#[test]
fn killed_broker_is_reported() {
    let node = Node::start(Options::default());
    let vhost = node.vhost("killed");
    let gate = Gate::default();
    let (pid, port) = (node.pids()[0].to_string(), node.http_port());
    let opens = gate.clone();
    let kill = move || {
        let killed = child("bash").args(["-c", "kill -s KILL \"$0\"", &pid]).status();
        assert!(killed.is_ok_and(|status| status.success()));
        until("the broker to exit", || TcpStream::connect(("127.0.0.1", port)).is_err().then_some(()));
        opens.open();
    };
    let queues: String = (1..=60).map(|number| format!("  q{number:02}: {{type: classic}}\n")).collect();
    // Sixteen requests are in flight. When the fortieth request is sent, 24 are done, in any order. The broker executes
    // none of the later requests, and topo has not sent at least five of them.
    let queue = puts().path(&format!("/{}/q", vhost.name()));
    let proxy =
        Proxy::to(&node).on(queue.clone().nth(40), Fault::Meanwhile(Box::new(kill))).on(queue.from(41), gate.fault());
    let topo = Topo::new(&vhost).through(&proxy).spec(&format!("queues:\n{queues}"));
    let output = topo.run(["apply", "--yes", "--format", "json"]).expect_code(4).expect_error("stopped halfway");
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let count = |list: &str| report["vhosts"][0][list].as_array().unwrap().len();
    assert_eq!(count("done") + count("failed") + count("notAttempted"), 60, "{output}");
    assert!(count("done") >= 24 && count("failed") >= 1 && count("notAttempted") >= 5, "{output}");
    output.expect_text("warning: the lock was not released");
    // topo reads the lock twice before it holds the lock, once before the queues, five times at the release, and
    // possibly for a renewal.
    let looks = proxy.count(&gets().path("/topo.lock?"));
    assert!((8..=16).contains(&looks), "{looks} reads of the lock");
}

#[test]
fn missing_list_is_not_a_missing_vhost() {
    let vhost = Node::shared().vhost("not-found");
    for list in ["queues", "exchanges", "bindings", "policies"] {
        let proxy = Proxy::to(Node::shared()).on(gets().path(&format!("/api/{list}/")), Fault::Status(404));
        let output = Topo::new(&vhost).through(&proxy).spec(SPEC).run(["plan"]).expect_code(1).expect_no_result();
        output.expect_error(&format!("the broker returned 404 for GET /api/{list}/"));
    }
    let proxy = Proxy::to(Node::shared()).on(gets().path("/api/operator-policies/"), Fault::Status(404));
    Topo::new(&vhost)
        .through(&proxy)
        .spec(SPEC)
        .run(["plan"])
        .expect_code(0)
        .expect_text("4 objects and 1 binding to create");
}
