//! Checks statistics that the broker updates rarely, and the waiting times that depend on its intervals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::live::requests::five_quorum_queues;
use crate::scenarios::make_live;
use crate::support::{Fault, Node, Options, Proxy, SetOnDrop, Topo, Vhost, gets, until};

const ALLOWED: &str = "--allow=routing-gap,consumer-disruption";

/// Runs topo without the flags for the intervals of the node.
fn with_default_intervals(vhost: &Vhost<'_>, spec: &str) -> Topo {
    Topo::new(vhost).without_env("TOPO_STATISTICS_INTERVAL").without_env("TOPO_TICK_INTERVAL").spec(spec)
}

fn quorum_queue(vhost: &Vhost<'_>, name: &str) {
    make_live(vhost, &json!({"queues": [{"name": name, "arguments": {"x-queue-type": "quorum"}}]}));
}

#[test]
fn messages_hidden_by_a_slow_tick_are_not_deleted() {
    let node = Node::start(Options::default().intervals(5000, 60_000));
    let vhost = node.vhost("slow-tick");
    quorum_queue(&vhost, "q");
    let amqp = vhost.amqp();
    amqp.fill("q", 5);
    let held = amqp.hold("q", 5);
    let topo = with_default_intervals(&vhost, "queues:\n  q: {type: quorum, maxLength: 1000}\n");
    let recreate = format!("--recreate=queues/{}/q=ifEmpty", vhost.name());
    // The count is from the last tick, before the publish.
    topo.run(["plan", &recreate]).expect_code(0).expect_text("0 messages");
    let output = topo.run(["apply", "-y", &recreate, ALLOWED]);
    let output = output.expect_text("queue q was not deleted: its message count may be out of date");
    output.expect_code(3).expect_text("set --tick-interval to the broker's quorum_tick_interval");
    assert_eq!(vhost.queue("q")["arguments"]["x-max-length"], json!(null), "the old queue is still there");
    drop(held);
    until("the messages come back to the queue", || (amqp.ready("q") == 5).then_some(()));
}

/// The broker omits a queue from the list of counts while the queue does not respond.
#[test]
fn temporarily_missing_counts_are_read_again() {
    let vhost = Node::shared().vhost("missing-counts");
    make_live(&vhost, &json!({"queues": [{"name": "own.q", "arguments": {"x-queue-type": "classic"}}]}));
    vhost.amqp().fill("own.q", 2);
    let counts = || gets().path("enable_queue_totals");
    let without_queue = || Fault::Instead(Box::new(|| json!([])));
    let proxy = Proxy::to(vhost.node()).on(counts().first(2), without_queue());
    let topo = Topo::new(&vhost).spec("owns: [\"own.*\"]\nqueues: {other: {type: classic}}\n").through(&proxy);
    topo.run(["plan", "--prune"]).expect_code(0).expect_text("2 messages will be deleted");
    assert_eq!(proxy.count(&counts()), 3);
    proxy.reset();
    proxy.add(counts(), without_queue());
    topo.run(["plan", "--prune"]).expect_code(0).expect_text("the broker does not report the queue's message count");
}

/// A broker that is starting accepts connections before it lists its listeners.
#[test]
fn empty_list_of_listeners_is_read_again() {
    let vhost = Node::shared().vhost("starting");
    let mut starting = vhost.http().get("/api/overview").expect_status(200);
    starting["listeners"] = json!([]);
    let overview = || gets().path("/api/overview");
    let proxy = Proxy::to(vhost.node()).on(overview().first(2), Fault::Instead(Box::new(move || starting.clone())));
    let amqp = vhost.amqp();
    make_live(&vhost, &json!({"queues": [{"name": "q", "arguments": {"x-queue-type": "classic"}}]}));
    amqp.fill("q", 2);
    let topo = Topo::new(&vhost).spec("queues:\n  q: {type: classic}\n").through(&proxy);
    let output = topo.run(["dlq", "peek", "q", "--any-queue", "--vhost", "{vhost}"]).expect_code(0);
    output.expect_text("2 messages: all inspected and requeued");
}

#[test]
fn unlisted_consumer_is_found_over_amqp() {
    let node = Node::start(Options::default().intervals(60_000, 500));
    let vhost = node.vhost("slow-statistics");
    make_live(&vhost, &json!({"queues": [{"name": "q", "arguments": {"x-queue-type": "classic"}}]}));
    let amqp = vhost.amqp();
    amqp.fill("q", 1);
    let _held = amqp.hold("q", 1);
    assert_eq!(vhost.list("consumers"), [json!(null); 0], "the statistics list it already");
    let topo = Topo::new(&vhost).spec("queues:\n  q: {type: classic, maxLength: 1000}\n");
    let recreate = format!("--recreate=queues/{}/q=discard", vhost.name());
    let plan = topo.run(["plan", &recreate, "--format", "json"]).expect_code(0).plan();
    let change = &plan["vhosts"][0]["changes"][0];
    assert_eq!(change["live"]["unlistedConsumers"], 1, "{change}");
    topo.run(["plan", &recreate]).expect_code(0).expect_text("1 consumer (not listed yet)");
    let none = topo.run(["plan", &recreate, "--transport", "shovel", "--format", "json"]).expect_code(0).plan();
    assert_eq!(none["vhosts"][0]["changes"][0]["live"]["unlistedConsumers"], json!(null), "AMQP was not to be used");
}

#[test]
fn default_intervals_are_observed_once_per_run() {
    let node = Node::start(Options::default().default_intervals());
    let vhost = node.vhost("default-intervals");
    let topo = five_quorum_queues(&vhost).without_env("TOPO_STATISTICS_INTERVAL").without_env("TOPO_TICK_INTERVAL");
    let started = Instant::now();
    let output = topo.run(["apply", "-y", "--prune", "--allow", "mass-delete"]).expect_code(0);
    let took = started.elapsed();
    output.expect_text("confirming that it is empty takes two broker ticks (12 s): delete queue own.q");
    assert_eq!(vhost.names("queues"), ["other"]);
    assert!(took >= Duration::from_secs(12), "two ticks must pass: {took:?}");
    assert!(took < Duration::from_secs(50), "one by one it would be a minute: {took:?}");
    println!("five empty quorum queues were deleted in {took:.1?}");
}

#[test]
fn missing_statistics_require_a_tick_interval() {
    let node = Node::start(Options::default().line("management.disable_stats = true"));
    let vhost = node.vhost("no-statistics");
    quorum_queue(&vhost, "own.q");
    let topo = with_default_intervals(&vhost, "owns: [\"own.*\"]\nqueues: {other: {type: classic}}\n");
    let prune = ["apply", "-y", "--prune", "--allow=mass-delete,consumer-disruption"];
    let output = topo.run(prune).expect_code(4);
    output.expect_text("set --tick-interval to the broker's quorum_tick_interval");
    assert_eq!(vhost.names("queues"), ["other", "own.q"]);
    let started = Instant::now();
    topo.run(prune.into_iter().chain(["--tick-interval", "3s"])).expect_code(0);
    assert!(started.elapsed() >= Duration::from_secs(7), "two ticks of 3 s, and a margin: {:?}", started.elapsed());
    assert_eq!(vhost.names("queues"), ["other"]);
}

#[test]
fn consumers_of_any_number_of_queues_are_asked_for_over_amqp() {
    let node = Node::start(Options::default().intervals(60_000, 500));
    let vhost = node.vhost("many-queues");
    let queues: Vec<_> = (0..250)
        .map(|number| json!({"name": format!("own.{number:03}"), "arguments": {"x-queue-type": "classic"}}))
        .collect();
    make_live(&vhost, &json!({"queues": queues}));
    let amqp = vhost.amqp();
    let _held = amqp.hold("own.249", 0);
    assert_eq!(vhost.list("consumers"), [json!(null); 0], "the statistics list it already");
    let topo = Topo::new(&vhost).spec("owns: [\"own.*\"]\nqueues: {other: {type: classic}}\n");
    let prune = ["plan", "--prune", "--format", "json"];
    let plan = topo.run(prune).expect_code(0).plan();
    let changes = plan["vhosts"][0]["changes"].as_array().expect("a list").clone();
    assert_eq!(changes.iter().filter(|change| change["kind"] == "delete").count(), 250);
    let found: Vec<_> = changes.iter().filter(|change| change["live"]["unlistedConsumers"] == 1).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0]["address"].as_str().is_some_and(|address| address.ends_with("/own.249")), "{found:?}");
    assert_eq!(plan["vhosts"][0]["infos"], json!([]));
}

#[test]
fn queues_that_cannot_be_asked_are_counted_with_the_reason() {
    let vhost = Node::shared().vhost("unasked");
    let classic = |name| json!({"name": name, "arguments": {"x-queue-type": "classic"}});
    make_live(&vhost, &json!({"queues": [classic("own.a"), classic("own.b")]}));
    let topo = Topo::new(&vhost).spec("owns: [\"own.*\"]\nqueues: {other: {type: classic}}\n");
    let output = topo.run(["plan", "--prune", "--amqp-url", "amqp://127.0.0.1:1"]).expect_code(0);
    let output = output.expect_text("2 queues could not be queried over AMQP for current consumers and messages");
    output.expect_text("cannot connect to amqp://127.0.0.1:1: connection refused");
    let output = topo.run(["plan", "--prune", "--transport", "shovel"]).expect_code(0);
    output.expect_text("2 queues could not be queried over AMQP").expect_text("the transport is `shovel`");
    topo.run(["plan", "--prune"]).expect_code(0).expect_no_text("could not be queried");
}

#[test]
fn a_longer_tick_lengthens_the_proof_that_a_queue_is_empty() {
    let node = Node::start(Options::default().intervals(5000, 8000));
    let vhost = node.vhost("longer-tick");
    quorum_queue(&vhost, "own.q");
    let topo = with_default_intervals(&vhost, "owns: [\"own.*\"]\nqueues: {other: {type: classic}}\n");
    let started = Instant::now();
    let prune = ["apply", "-y", "--prune", "--allow=mass-delete", "--tick-interval", "8s"];
    let output = topo.run(prune).expect_code(0);
    assert!(started.elapsed() >= Duration::from_secs(18), "two ticks of 8 s, and a margin: {:?}", started.elapsed());
    assert_eq!(vhost.names("queues"), ["other"]);
    output.expect_text(
        "waiting: queue own.q: confirming that it is empty takes two broker ticks (18 s): delete queue own.q",
    );
}

#[test]
fn a_longer_statistics_interval_lengthens_the_wait_for_consumers() {
    let node = Node::start(Options::default().intervals(20_000, 500));
    let vhost = node.vhost("late-consumers");
    make_live(&vhost, &json!({"queues": [{"name": "q", "arguments": {"x-queue-type": "classic"}}]}));
    let (amqp, is_over) = (vhost.amqp(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _stop = SetOnDrop([&is_over]);
        scope.spawn(|| {
            let mut consumer = amqp.hold("q", 0);
            while !is_over.load(Ordering::Relaxed) {
                if !consumer.is_subscribed() {
                    until("the queue is back", || vhost.names("queues").contains(&"q".to_owned()).then_some(()));
                    consumer = amqp.hold("q", 0);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        until("the statistics list the consumer", || (vhost.list("consumers").len() == 1).then_some(()));
        let topo = Topo::new(&vhost).spec("queues:\n  q: {type: classic, maxLength: 1000}\n");
        let recreate = format!("--recreate=queues/{}/q=migrate", vhost.name());
        let output = topo.run(["apply", "-y", &recreate, ALLOWED, "--transport=shovel"]);
        output.expect_code(0).expect_text("1 consumer before, 1 now");
    });
}
