//! Statistics that the broker renews rarely, and waits that follow from its intervals.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::live::requests::five_quorum_queues;
use crate::scenarios::make_live;
use crate::support::{Node, Options, Topo, Vhost, until};

const ALLOWED: &str = "--allow=routing-gap,consumer-disruption";

/// Runs topo without options for the intervals of the node.
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
    let output = output.expect_text("queue q was left alone: its message count is not current");
    output.expect_code(3).expect_text("set --tick-interval to the quorum_tick_interval of the broker");
    assert_eq!(vhost.queue("q")["arguments"]["x-max-length"], json!(null), "the old queue is still there");
    drop(held);
    until("the messages come back to the queue", || (amqp.ready("q") == 5).then_some(()));
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
    topo.run(["apply", "-y", "--prune", "--allow", "mass-delete"]).expect_code(0);
    let took = started.elapsed();
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
    output.expect_text("set --tick-interval to the quorum_tick_interval of the broker");
    assert_eq!(vhost.names("queues"), ["other", "own.q"]);
    let started = Instant::now();
    topo.run(prune.into_iter().chain(["--tick-interval", "3s"])).expect_code(0);
    assert!(started.elapsed() >= Duration::from_secs(7), "two ticks of 3 s, and a margin: {:?}", started.elapsed());
    assert_eq!(vhost.names("queues"), ["other"]);
}
