//! Applies every example, and checks that a second plan is empty. Runs the clean-up of `examples/all-dead-letters`.

use crate::examples::examples;
use crate::support::{Node, Outcome, Topo, Vhost, until};
use std::path::Path;

/// Returns the spec of an example for a vhost of the tests.
fn spec_for_vhost(text: &str) -> String {
    let (head, rest) = text.split_once("\nvhost: ").expect("an example names its vhost");
    let (_, rest) = rest.split_once('\n').unwrap();
    format!("{head}\nvhost: '{{vhost}}'\n{rest}")
}

#[test]
fn every_example_is_applied() {
    for (folder, text) in examples() {
        let vhost = Node::shared().vhost("example");
        let topo = Topo::new(&vhost).file("topology.yaml", &spec_for_vhost(&text));
        topo.run(["apply", "--yes"]).expect_code(0).expect_text("the broker matches the spec");
        let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes.");
        assert_eq!(plan.stderr, "", "{}", folder.display());
    }
}

/// Returns the clean-up script of the example, for a vhost.
fn clean_up(folder: &Path, vhost: &Vhost<'_>) -> Topo {
    let topo = Path::new(env!("CARGO_BIN_EXE_topo")).parent().unwrap();
    Topo::of(&folder.join("clean-up"))
        .env("PATH", &format!("{}:{}", topo.display(), std::env::var("PATH").unwrap()))
        .env("TOPO_VHOST", vhost.name())
        .url(&vhost.node().url())
        .env("TOPO_USERNAME", "guest")
        .env("TOPO_PASSWORD", "guest")
}

#[test]
fn clean_up_replays_or_drops_the_messages_of_one_queue() {
    let (folder, text) = examples().into_iter().find(|(folder, _)| folder.ends_with("all-dead-letters")).unwrap();
    let vhost = Node::shared().vhost("clean-up");
    Topo::new(&vhost).file("topology.yaml", &spec_for_vhost(&text)).run(["apply", "--yes"]).expect_code(0);
    let (amqp, script) = (vhost.amqp(), clean_up(&folder, &vhost));
    let dead = "all.dead-letters";
    for (key, count) in [("user.renamed", 3), ("session.ended", 2)] {
        for _ in 0..count {
            assert_eq!(amqp.publish("message-bus", key, key), Outcome::Routed);
        }
    }
    for (queue, count) in [("users.events", 3), ("sessions.events", 2)] {
        let mut left = count;
        until("the messages to be rejected", || {
            left -= amqp.reject(queue, left);
            (left == 0).then_some(())
        });
    }
    until("all dead-lettered messages", || (amqp.ready(dead) == 5).then_some(()));

    script.run(["list"]).expect_code(0).expect_text("users.events").expect_text("sessions.events");
    script.run(["replay", "users.events", "--yes", "--allow", "no-consumers", "--canary", "0"]).expect_code(0);
    assert_eq!((amqp.ready("users.events"), amqp.ready(dead)), (3, 2));
    script.run(["drop", "sessions.events", "--yes"]).expect_code(0);
    assert_eq!(amqp.ready(dead), 0);
    assert_eq!(script.read("sessions.events.dropped.jsonl").lines().count(), 2);
    script.run(["restore", "sessions.events.dropped.jsonl", "--yes"]).expect_code(0);
    assert_eq!(amqp.ready(dead), 2);
    for words in [&[][..], &["purge"], &["drop"]] {
        script.run(words.iter().copied()).expect_code(64).expect_text("clean-up replay users.events");
    }
}
