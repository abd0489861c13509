//! Tests that a dynamic shovel that uses a deleted or recreated queue blocks the plan.

use serde_json::{Value, json};

use crate::support::{Argument, Node, Proxy, Topo, User, Vhost, gets, text};

const SPEC: &str = "queues: {q: {type: classic, messageTtl: 2h}}\n";
const DISCARD: &str = "--recreate=queues/{vhost}/q=discard";
const OTHERS: &str = "--allow=message-loss,consumer-disruption,routing-gap";

/// Creates a vhost with queue `q`, whose TTL differs from the spec, and a second queue.
fn prepare(hint: &str) -> (Vhost<'static>, Topo) {
    let vhost = Node::shared().vhost(hint);
    let ttl = ("x-message-ttl", Argument::LongLongInt(60_000));
    vhost.amqp().declare_queue("q", &[("x-queue-type", text("classic")), ttl]).unwrap();
    vhost.amqp().declare_queue("other", &[("x-queue-type", text("classic"))]).unwrap();
    let topo = Topo::new(&vhost).spec(SPEC);
    (vhost, topo)
}

/// Returns a URI with a password and an unreachable port, so that the shovel moves no messages.
fn uri(vhost: &Vhost<'_>) -> String {
    format!("amqp://carrier:S3CRET-PASSWORD@127.0.0.1:1/{}", vhost.name())
}

fn put_shovel(vhost: &Vhost<'_>, name: &str, source: &str, destination: &str) {
    let uri = uri(vhost);
    let value = json!({
        "src-protocol": "amqp091", "src-uri": uri, "src-queue": source,
        "dest-protocol": "amqp091", "dest-uri": [uri], "dest-queue": destination,
    });
    let path = vhost.path("parameters/shovel", &[name]);
    vhost.http().put(&path, &json!({ "value": value })).expect_status(201);
}

fn remove_shovel(vhost: &Vhost<'_>, name: &str) {
    let deleted = vhost.http().delete(&vhost.path("parameters/shovel", &[name]));
    assert_eq!(deleted.status, 204);
}

fn hazards(plan: &Value) -> Vec<(&str, &str, bool)> {
    let hazards = plan["vhosts"][0]["hazards"].as_array().unwrap().iter();
    let hazards = hazards.filter(|hazard| hazard["kind"] == "shovel-interference");
    hazards
        .map(|it| {
            (it["address"].as_str().unwrap(), it["text"].as_str().unwrap(), it["mustBeAllowed"].as_bool().unwrap())
        })
        .collect()
}

#[test]
fn shovel_blocks_a_recreate_until_it_is_deleted() {
    let (vhost, topo) = prepare("source");
    put_shovel(&vhost, "carrier", "q", "other");
    let blocked = topo.run(["apply", "-y", DISCARD, OTHERS]).expect_code(3);
    let blocked =
        blocked.expect_text("shovel-interference").expect_text("shovel carrier in vhost").expect_no_text("S3CRET");
    assert!(!blocked.stderr.contains("S3CRET"), "{blocked}");
    assert_eq!(vhost.queue("q")["arguments"]["x-message-ttl"], 60_000);
    let plan = topo.run(["plan", DISCARD, "--format=json"]).expect_no_text("S3CRET").plan();
    let address = format!("queues/{}/q", vhost.name());
    let [(of, text, must_be_allowed)] = hazards(&plan)[..] else { panic!("{plan:#}") };
    assert_eq!((of, must_be_allowed), (address.as_str(), true));
    assert!(text.contains("reads from this queue"), "{text}");
    remove_shovel(&vhost, "carrier");
    topo.run(["apply", "-y", DISCARD, OTHERS]).expect_code(0).expect_no_text("shovel");
    assert_eq!(vhost.queue("q")["arguments"]["x-message-ttl"], 7_200_000);
}

#[test]
fn allowed_shovel_does_not_block() {
    let (vhost, topo) = prepare("allowed");
    put_shovel(&vhost, "carrier", "other", "q");
    let flag = format!("--allow=shovel-interference@queues/{}/q", vhost.name());
    topo.run(["apply", "-y", DISCARD, OTHERS]).expect_code(3).expect_text("writes to this queue");
    topo.run(["apply", "-y", DISCARD, OTHERS, &flag]).expect_code(0);
    assert_eq!(vhost.queue("q")["arguments"]["x-message-ttl"], 7_200_000);
}

#[test]
fn shovel_of_another_vhost_blocks_a_deletion() {
    let (vhost, topo) = prepare("elsewhere");
    let home = Node::shared().vhost("home");
    let value = json!({
        "src-protocol": "amqp091", "src-uri": uri(&vhost), "src-queue": "other",
        "dest-protocol": "amqp091", "dest-uri": uri(&home), "dest-queue": "q",
    });
    let path = home.path("parameters/shovel", &["far"]);
    home.http().put(&path, &json!({ "value": value })).expect_status(201);
    topo.rewrite("queues: {q: {type: classic, messageTtl: 1m}}\nremoved: {queues: [other]}\n");
    let blocked = topo.run(["apply", "-y", OTHERS]).expect_code(3);
    blocked.expect_text("shovel far in vhost").expect_text("reads from this queue: within seconds");
    assert!(!vhost.queue("other").is_null());
    assert_eq!(home.http().delete(&path).status, 204);
    topo.run(["apply", "-y", OTHERS]).expect_code(0);
    assert!(vhost.queue("other").is_null());
}

/// For a user who may not read shovels, the plan contains a hazard that does not block it.
#[test]
fn unreadable_shovels_are_a_note() {
    let (vhost, topo) = prepare("hidden");
    put_shovel(&vhost, "carrier", "other", "q");
    let user: User<'_> = Node::shared().user("monitoring").may_everything(&vhost);
    let topo = topo.user(&user);
    let plan = topo.run(["plan", DISCARD, "--format=json"]).plan();
    let [(_, text, must_be_allowed)] = hazards(&plan)[..] else { panic!("{plan:#}") };
    assert!(!must_be_allowed && text.contains("cannot check whether a shovel uses the queue"), "{text}");
}

#[test]
fn shovels_are_read_only_for_deletions() {
    let (vhost, topo) = prepare("unread");
    put_shovel(&vhost, "carrier", "q", "other");
    let proxy = Proxy::to(Node::shared());
    let topo = topo.through(&proxy);
    topo.rewrite("queues: {q: {type: classic, messageTtl: 1m}, new: {type: classic}}\n");
    topo.run(["apply", "-y"]).expect_code(0).expect_no_text("shovel");
    assert_eq!(proxy.count(&gets().path("/api/parameters/shovel")), 0);
}
