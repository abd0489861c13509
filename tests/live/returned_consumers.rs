//! Tests the wait for the consumers of recreated queues.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use topo::model::BrokerVersion;
use topo::rabbitmq::{may_subscribe_again, needs_pause};

use crate::scenarios::make_live;
use crate::support::{Amqp, Held, Node, SetOnDrop, Topo, Vhost, text, until};

const ALLOWED: &str = "--allow=routing-gap,consumer-disruption";

/// A vhost with an empty queue `q` without a maximum length, and a spec with one.
fn with_queue(name: &str) -> (Vhost<'static>, Topo) {
    let vhost = Node::shared().vhost(name);
    make_live(&vhost, &json!({"queues": [{"name": "q", "arguments": {"x-queue-type": "classic"}}]}));
    let topo = Topo::new(&vhost).spec("queues:\n  q: {type: classic, maxLength: 1000, deadLetter: none}\n");
    (vhost, topo)
}

fn version(vhost: &Vhost<'_>) -> BrokerVersion {
    vhost.node().version().parse().expect("a version")
}

/// Waits until the broker lists this number of consumers with their connections and clients, which it collects
/// separately.
fn until_listed(vhost: &Vhost<'_>, count: usize) {
    until("the clients of the consumers", || {
        let connections = vhost.http().list("/api/connections");
        let connections = connections.as_array().expect("a list");
        let consumers = vhost.list("consumers");
        let listed = consumers.iter().filter(|consumer| {
            let port = &consumer["channel_details"]["peer_port"];
            let is_of = |it: &Value| it["peer_port"] == *port && it["client_properties"]["product"].is_string();
            port.is_number() && connections.iter().any(is_of)
        });
        (listed.count() == count).then_some(())
    });
}

/// Returns true if consumers may not be canceled when their classic queue is recreated in this way.
fn may_keep_consumers(vhost: &Vhost<'_>, how: &str) -> bool {
    may_subscribe_again(version(vhost), false) || how != "migrate" && needs_pause(version(vhost), false)
}

/// Subscribes again whenever the broker cancels the consumer and `prepare` returns true.
fn subscribe_repeatedly(amqp: &Amqp, mut held: Held, over: &AtomicBool, prepare: impl Fn() -> bool) {
    let mut is_canceled = false;
    // The connection of the next consumer. On a busy machine, a handshake takes longer than the pause of a migration.
    let mut next = None;
    while !over.load(Ordering::Relaxed) {
        let connection = next.take().unwrap_or_else(|| amqp.another());
        is_canceled |= !held.is_subscribed();
        let again = if is_canceled && prepare() {
            connection.into_held("q", 0).ok()
        } else {
            next = Some(connection);
            None
        };
        // In lapin 4, each refused declaration permanently uses up a channel.
        let pause = if is_canceled && again.is_none() { 100 } else { 5 };
        if let Some(again) = again {
            (held, is_canceled) = (again, false);
        }
        std::thread::sleep(Duration::from_millis(pause));
    }
}

#[test]
fn clients_that_do_not_return_are_named() {
    for how in ["migrate", "ifEmpty", "discard"] {
        let (vhost, topo) = with_queue("absent-consumers");
        let amqp = vhost.amqp();
        let held = [amqp.hold("q", 0), amqp.hold("q", 0)];
        until_listed(&vhost, 2);
        let recreate = format!("--recreate=queues/{}/q={how}", vhost.name());
        let apply = ["apply", "-y", &recreate, ALLOWED, "--wait-consumers=1s"];
        let output = topo.run(apply.into_iter().chain(["--require-consumers"]));
        if may_keep_consumers(&vhost, how) && !output.says("2 consumers before, 0 now") {
            continue;
        }
        output
            .expect_code(4)
            .expect_text("Queue q: 2 consumers before, 0 now; did not subscribe again: 2 consumers using the unknown client lapin")
            .expect_text(" at 127.0.0.1 (restart these applications).")
            .expect_text("Verified: the broker matches the spec.")
            .expect_error(" steps done, but 2 consumers have not returned");
        drop(held);
    }
}

#[test]
fn wait_ends_when_all_consumers_have_returned() {
    let (vhost, topo) = with_queue("returning-consumers");
    let amqp = vhost.amqp();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = SetOnDrop([&over]);
        scope.spawn(|| subscribe_repeatedly(&amqp, amqp.hold("q", 0), &over, || true));
        until_listed(&vhost, 1);
        let recreate = format!("--recreate=queues/{}/q=migrate", vhost.name());
        let apply = ["apply", "-y", &recreate, ALLOWED, "--wait-consumers=60s", "--require-consumers"];
        let report = topo.run(apply.into_iter().chain(["--format=json"])).expect_code(0).json();
        assert_eq!(report["result"], "applied");
        let expected = json!([{"queue": "q", "before": 1, "after": 1, "missing": []}]);
        assert_eq!(report["vhosts"][0]["consumers"], expected);
    });
}

/// Without the flag, missing consumers are part of the report only.
#[test]
fn missing_consumers_are_no_failure_by_default() {
    let (vhost, topo) = with_queue("optional-consumers");
    let amqp = vhost.amqp();
    let held = amqp.hold("q", 0);
    until_listed(&vhost, 1);
    let recreate = format!("--recreate=queues/{}/q=discard", vhost.name());
    let apply = ["apply", "-y", &recreate, ALLOWED, "--wait-consumers=0s", "--format=json"];
    until("the client", || {
        topo.run(["plan", &recreate]).says("1 consumer using the unknown client lapin").then_some(())
    });
    let report = topo.run(apply).expect_code(0).json();
    let consumers = &report["vhosts"][0]["consumers"][0];
    if may_keep_consumers(&vhost, "discard") && consumers["after"] == 1 {
        return;
    }
    assert_eq!((&consumers["before"], &consumers["after"]), (&json!(1), &json!(0)), "{report}");
    let missing = consumers["missing"][0].as_str().unwrap_or_else(|| panic!("no client: {report}"));
    assert!(missing.starts_with("1 consumer using the unknown client lapin "), "{missing}");
    drop(held);
}

/// The application declares the old queue whenever the broker cancels its consumer. From 3.9 to 3.13, topo must wait
/// between the deletion and the declaration, so the application is always first.
#[test]
fn queue_that_is_redeclared_twice_is_rolled_back() {
    let (vhost, topo) = with_queue("redeclaring-consumer");
    let amqp = vhost.amqp();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = SetOnDrop([&over]);
        scope.spawn(|| {
            let declare = || amqp.declare_queue("q", &[("x-queue-type", text("classic"))]).is_ok();
            subscribe_repeatedly(&amqp, amqp.hold("q", 0), &over, declare);
        });
        until_listed(&vhost, 1);
        let recreate = format!("--recreate=queues/{}/q=migrate", vhost.name());
        let apply = ["apply", "-y", &recreate, ALLOWED, "--wait-consumers=0s"];
        let output = topo.run(apply);
        let is_rolled_back = output.code != Some(0);
        assert!(is_rolled_back || !needs_pause(version(&vhost), false), "{output}");
        let exists = vhost.list("queues").into_iter().find(|queue| queue["name"] == "q").expect("the queue");
        assert_eq!(exists["arguments"].get("x-max-length").is_none(), is_rolled_back, "{output}");
        if is_rolled_back {
            output
                .expect_code(1)
                .expect_text("an application (possibly the unknown client lapin")
                .expect_text("redeclared the old queue twice while topo was recreating it")
                .expect_text("Queue q: 1 consumer before, ")
                .expect_text(
                    "The objects are back in their original state, but a queue was temporarily deleted, which canceled its consumers.",
                )
                .expect_no_text("unchanged")
                .expect_text("Rolled back: the migration of queue q");
        }
    });
}

/// The broker counts only the active consumer of a quorum queue.
#[test]
fn number_of_consumers_is_unknown_with_a_single_active_consumer() {
    let vhost = Node::shared().vhost("single-active");
    let arguments = json!({"x-queue-type": "quorum", "x-single-active-consumer": true});
    make_live(&vhost, &json!({"queues": [{"name": "q", "arguments": arguments}]}));
    let spec = "queues:\n  q: {type: quorum, singleActiveConsumer: true, maxLength: 1000, deadLetter: none}\n";
    let topo = Topo::new(&vhost).spec(spec);
    let amqp = vhost.amqp();
    let held = [amqp.hold("q", 0), amqp.hold("q", 0)];
    until_listed(&vhost, 2);
    let recreate = format!("--recreate=queues/{}/q=ifEmpty", vhost.name());
    let output = topo.run(["apply", "-y", &recreate, ALLOWED, "--require-consumers"]).expect_code(4);
    output
        .expect_text("Queue q: 2 consumers before, an unknown number now")
        .expect_error(" steps done, but the number of consumers is unknown");
    drop(held);
}
