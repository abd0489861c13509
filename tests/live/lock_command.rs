//! Tests that `topo lock` shows and deletes the lock of a vhost.

use std::time::Duration;

use serde_json::json;

use super::lock::{LONG, SPEC, lock_of, put_lock};
use crate::support::{Fault, Node, Proxy, Topo, any, deletes, gets, puts};

#[test]
fn free_lock_exits_with_0_and_held_lock_with_6() {
    let vhost = Node::shared().vhost("shown-lock");
    let topo = Topo::new(&vhost);
    let lock = ["lock", "--vhost", "{vhost}"];
    let json = ["lock", "--vhost", "{vhost}", "--format", "json"];
    topo.run(lock).expect_code(0).expect_text(&format!("vhost {}: free\n", vhost.name()));
    let free = topo.run(json).expect_code(0).json();
    assert_eq!(
        free["locks"],
        json!([{"vhost": vhost.name(), "exists": true, "queue": "topo.lock", "held": null, "deleted": false}])
    );
    put_lock(&vhost, "topo.lock", "me@far-away", LONG);
    let node = vhost.queue("topo.lock")["node"].as_str().unwrap().to_owned();
    let held = topo.run(lock).expect_code(6);
    let held = held.expect_text(&format!("vhost {}: locked by me@far-away\n", vhost.name()));
    let held = held.expect_text(&format!("  node    {node}, which is up\n"));
    held.expect_text("  lease   600 s; ").expect_text(&format!("topo lock --break --vhost {}\n", vhost.name()));
    let held = topo.run(json).expect_code(6).json();
    let expected =
        json!({"holder": "me@far-away", "isLock": true, "node": node, "nodeIsUp": true, "leaseSeconds": 600});
    assert_eq!(held["locks"][0]["held"], expected);
    // For a user who cannot list the nodes, topo prints an info.
    let user = Node::shared().user("management").may_everything(&vhost);
    let other = Topo::new(&vhost).user(&user);
    other.run(lock).expect_code(6).expect_text("monitoring tag");
    assert_eq!(other.run(json).expect_code(6).json()["locks"][0]["held"]["nodeIsUp"], json!(null));
    // `topo lock` neither renews the lease nor writes.
    let proxy = Proxy::to(Node::shared());
    Topo::new(&vhost).through(&proxy).run(lock).expect_code(6);
    assert_eq!(proxy.count(&any()), proxy.count(&gets()));
}

#[test]
fn down_node_is_named() {
    let vhost = Node::shared().vhost("shown-down");
    put_lock(&vhost, "topo.lock", "me@down", LONG);
    let node = vhost.queue("topo.lock")["node"].clone();
    let nodes = Fault::Instead(Box::new(move || json!([{"name": node, "running": false}])));
    let proxy = Proxy::to(Node::shared()).on(gets().path("/api/nodes"), nodes);
    let output = Topo::new(&vhost).through(&proxy).run(["lock", "--vhost", "{vhost}"]).expect_code(6);
    output.expect_text(", which is down\n").expect_text("does not expire while the node is down");
}

#[test]
fn all_vhosts_of_the_specs_are_shown() {
    let (free, held) = (Node::shared().vhost("specs-free"), Node::shared().vhost("specs-held"));
    put_lock(&held, "topo.lock", "me@far-away", LONG);
    let spec = |vhost: &str| format!("version: 1\nvhost: {}\n", json!(vhost));
    let missing = format!("{}-to-come", free.name());
    let topo = Topo::new(&free).file("a.yaml", &spec(free.name())).file("b.yaml", &spec(held.name()));
    topo.write("c.yaml", &spec(&missing));
    let output = topo.run(["lock", "a.yaml", "b.yaml", "c.yaml"]).expect_code(6);
    let output = output.expect_text(&format!("vhost {}: free\n", free.name()));
    let output = output.expect_text(&format!("vhost {}: locked by me@far-away\n", held.name()));
    output.expect_text(&format!("vhost {missing}: free (the vhost does not exist)\n"));
    topo.run(["lock", "a.yaml", "c.yaml"]).expect_code(0);
    topo.run(["lock", "a.yaml", "b.yaml", "--vhost", "{vhost}"]).expect_code(0).expect_no_text("far-away");
    // Only one vhost is locked, and topo deletes only its lock.
    let output = topo.run(["lock", "--break", "--yes", "a.yaml", "b.yaml", "c.yaml"]).expect_code(0);
    let output = output.expect_text(&format!("vhost {}: deleted the lock of me@far-away\n", held.name()));
    output.expect_text(&format!("vhost {}: not locked; nothing was deleted\n", free.name()));
    assert!(held.queue("topo.lock").is_null());
    Topo::new(&free).run(["lock"]).expect_code(64).expect_error("neither topology.yaml nor");
}

#[test]
fn missing_vhost_and_wrong_password_are_reported() {
    let vhost = Node::shared().vhost("shown-missing");
    let topo = Topo::new(&vhost);
    for flags in ["", " --break --yes"] {
        let line = format!("lock --vhost no-such-vhost{flags}");
        let output = topo.run(line.split(' ')).expect_code(1).expect_no_result();
        output.expect_error("vhost `no-such-vhost` does not exist");
        let line = format!("lock --vhost {}{flags}", vhost.name());
        let wrong = Topo::new(&vhost).env("TOPO_PASSWORD", "S3CRET").run(line.split(' '));
        wrong.expect_code(1).expect_no_result().expect_text("TOPO_PASSWORD").expect_no_text("S3CRET");
    }
    topo.run(["lock", "--vhost", "{vhost}", "--yes"]).expect_code(64).expect_text("--break");
}

#[test]
fn break_requires_confirmation() {
    let vhost = Node::shared().vhost("break");
    put_lock(&vhost, "topo.lock", "me@far-away", LONG);
    let topo = Topo::new(&vhost);
    let refused = topo.run(["lock", "--break", "--vhost", "{vhost}"]).expect_code(64).expect_no_result();
    refused.expect_error("no terminal is available to ask for confirmation").expect_text("topo lock --break --yes");
    assert!(!vhost.queue("topo.lock").is_null());
    let broken = topo.run(["lock", "--break", "-y", "--vhost", "{vhost}"]).expect_code(0);
    assert_eq!(broken.stdout, format!("vhost {}: deleted the lock of me@far-away\n", vhost.name()));
    broken.expect_text("locked by me@far-away");
    assert_eq!(vhost.names("queues"), [""; 0]);
    let again = topo.run(["lock", "--break", "-y", "--vhost", "{vhost}"]).expect_code(0);
    again.expect_text("not locked; nothing was deleted");
    put_lock(&vhost, "my.lock", "me@far-away", LONG);
    let named = "lock --break -y --vhost {vhost} --lock-name my.lock --format json";
    let broken = topo.run(named.split(' ')).expect_code(0).json();
    assert_eq!((&broken["locks"][0]["deleted"], &broken["locks"][0]["queue"]), (&json!(true), &json!("my.lock")));
    // The permission to configure the lock is sufficient to delete it.
    let user = Node::shared().user("management").may(&vhost, "^topo\\.lock$", "^$", "^$");
    put_lock(&vhost, "topo.lock", "me@far-away", LONG);
    Topo::new(&vhost).user(&user).run(["lock", "--break", "-y", "--vhost", "{vhost}"]).expect_code(0);
    assert_eq!(vhost.names("queues"), [""; 0]);
    let user = user.may(&vhost, "^$", "^$", "^$");
    put_lock(&vhost, "topo.lock", "me@far-away", LONG);
    let refused = Topo::new(&vhost).user(&user).run(["lock", "--break", "-y", "--vhost", "{vhost}"]).expect_code(1);
    refused.expect_error("Access refused.").expect_no_result();
    assert!(!vhost.queue("topo.lock").is_null());
}

#[test]
fn application_queue_is_not_deleted() {
    let vhost = Node::shared().vhost("break-no-lock");
    let amqp = vhost.amqp();
    amqp.declare_queue("jobs", &[]).unwrap();
    amqp.fill("jobs", 3);
    let topo = Topo::new(&vhost);
    let lock = "lock --vhost {vhost} --lock-name jobs";
    topo.run(lock.split(' ')).expect_code(6).expect_text("that topo did not create").expect_no_text("--break");
    let refused = topo.run(format!("{lock} --break --yes").split(' ')).expect_code(6);
    refused.expect_error("is not a lock; it was not deleted").expect_no_result();
    assert_eq!(amqp.ready("jobs"), 3);
}

/// Another run acquires the lock between the confirmation and the deletion.
#[test]
fn replaced_lock_is_not_deleted() {
    let vhost = Node::shared().vhost("break-late");
    put_lock(&vhost, "topo.lock", "me@first", LONG);
    let (http, path) = (vhost.http(), vhost.path("queues", &["topo.lock"]));
    let exchange = move || {
        http.delete(&path).expect_status(204);
        http.put(&path, &lock_of("me@second", LONG)).expect_status(201);
    };
    let proxy = Proxy::to(Node::shared());
    proxy.add(puts().path("topo.lock.topo.deleting"), Fault::Meanwhile(Box::new(exchange)));
    let output = Topo::new(&vhost).through(&proxy).run(["lock", "--break", "-y", "--vhost", "{vhost}"]);
    output.expect_code(0).expect_text("is locked again, by me@second");
    assert_eq!(proxy.count(&deletes().path("/topo.lock")), 1, "of its right to delete it");
    assert_eq!(vhost.queue("topo.lock")["arguments"]["x-topo-holder"], "me@second");
}

/// The apply stops with the documented exit code, and the next run completes it.
#[test]
fn apply_whose_lock_is_broken_stops() {
    let vhost = Node::shared().vhost("broken");
    let breaker = Topo::new(&vhost).timeout(Duration::from_secs(60));
    let break_it = move || {
        let broken = breaker.run(["lock", "--break", "--yes", "--vhost", "{vhost}"]).expect_code(0);
        broken.expect_text(": deleted the lock of ").expect_text(", pid ");
    };
    let proxy = Proxy::to(Node::shared()).on(puts().path("/exchanges/").nth(1), Fault::Meanwhile(Box::new(break_it)));
    let output = Topo::new(&vhost).through(&proxy).spec(SPEC).run(["apply", "--yes"]).expect_code(4);
    let output = output.expect_error("stopped halfway: 1 of 3 steps done, 1 failed, 1 not attempted");
    output
        .expect_text(&format!("the lock on vhost {} was lost: ", vhost.name()))
        .expect_text("it had expired or was deleted");
    assert_eq!(vhost.names("queues"), [""; 0]);
    let topo = Topo::new(&vhost).spec(SPEC);
    topo.run(["lock"]).expect_code(0).expect_text(": free");
    topo.run(["apply", "--yes"]).expect_code(0);
    assert_eq!(vhost.names("queues"), ["orders.work"]);
}
