//! Tests queues that expire, and objects that a spec cannot declare.

use serde_json::json;

use super::round_trip::{exported, plans_to_nothing, round_trip, without_comments};
use crate::scenarios::make_live;
use crate::support::{NONE, Node, Options, Output, Topo};

#[test]
fn queues_that_expire_round_trip() {
    let vhost = Node::shared().vhost("expires");
    let queue = |name: String, kind: &str, expires: u64| json!({"name": name, "arguments": {"x-queue-type": kind, "x-expires": expires}});
    // Quorum queues of 3.8.9 refuse `expires`.
    let kinds = if Node::shared().at_least(3, 9) { &["classic", "quorum"][..] } else { &["classic"][..] };
    let values = [60_000, 1_800_000, 5_400_123, 4_294_967_296, 315_360_000_000];
    let mut queues: Vec<_> =
        kinds.iter().flat_map(|kind| values.map(|value| queue(format!("{kind}.{value}"), kind, value))).collect();
    // The export leaves out queues that expire and that are not connected to other objects.
    let bound = queues.iter().map(|queue| {
        json!({"source": "amq.direct", "destination": queue["name"], "routing_key": "k", "destination_type": "queue"})
    });
    let mut bindings: Vec<_> = bound.collect();
    bindings.push(json!({"source": "dead.dlx", "destination": "dead", "routing_key": "", "destination_type": "queue"}));
    queues.push(json!({"name": "dead", "arguments": {"x-queue-type": "classic", "x-expires": 10_800_000}}));
    let work = json!({"x-queue-type": "classic", "x-expires": 7_200_000, "x-dead-letter-exchange": "dead.dlx"});
    queues.push(json!({"name": "work", "arguments": work}));
    make_live(
        &vhost,
        &json!({
            "exchanges": [{"name": "dead.dlx", "type": "fanout"}],
            "queues": queues,
            "bindings": bindings,
        }),
    );
    let text = round_trip(&vhost);
    assert!(text.contains("work: {expires: 2h, deadLetter: dead}") && text.contains("dead: {expires: 3h}"), "{text}");
}

#[test]
fn retries_of_queues_that_expire_round_trip() {
    let vhost = Node::shared().vhost("expires-retries");
    let spec = "queues:\n  work: {type: classic, expires: 2h, deadLetter: dead, retry: {delays: [5s, 30s]}}\n\
                deadLetterQueues:\n  dead: {type: classic, expires: 3h}\n";
    Topo::new(&vhost).spec(spec).run(["apply", "--yes"]).expect_code(0);
    let text = round_trip(&vhost);
    assert!(
        text.contains("work: {type: classic, expires: 2h, retry: {delays: [5s, 30s]}, deadLetter: dead}"),
        "{text}"
    );
    // topo never generates a tier that expires, so the export contains the objects of the ladder with all arguments.
    let tier = "work.retry.2.30s";
    let path = vhost.path("queues", &[tier]);
    let mut arguments = vhost.queue(tier)["arguments"].clone();
    arguments["x-expires"] = json!(3_600_000);
    vhost.http().delete(&path).expect_status(204);
    vhost.http().put(&path, &json!({"durable": true, "arguments": arguments})).expect_status(201);
    vhost.amqp().bind_queue("work.retry", tier, "work.retry.1", NONE);
    let text = exported(&vhost);
    plans_to_nothing(&vhost, &text);
    assert!(
        text.contains("expires: 1h") && without_comments(&text).iter().all(|line| !line.contains("delays")),
        "{text}"
    );
}

#[test]
fn users_and_permissions_are_counted_for_an_administrator() {
    let node = Node::start(Options::default());
    let vhost = node.vhost("counted");
    let user = node.user("management").may_everything(&vhost);
    vhost.amqp().declare_queue("q", NONE).unwrap();
    let topic = json!({"exchange": "amq.topic", "write": "^a", "read": "^b"});
    let path = vhost.path("topic-permissions", &[&user.name]);
    assert!(vhost.http().put(&path, &topic).is_success());
    vhost.http().put("/api/global-parameters/ours", &json!({"name": "ours", "value": 1})).expect_status(201);
    let of_vhost = [
        format!("  not in the spec: 2 permissions: guest, {}\n", user.name),
        format!("  not in the spec: 1 topic permission: {}\n", user.name),
    ];
    let of_cluster = [format!("not in any spec: 2 users: guest, {}\n", user.name)];
    let topo = Topo::new(&vhost);
    let has = |output: &Output, lines: &[String]| lines.iter().all(|line| output.stderr.contains(line));
    let all = topo.run(["export", "--out", "all"]).expect_code(0);
    assert!(has(&all, &of_vhost) && has(&all, &of_cluster), "{all}");
    // The broker sets some parameters itself, on 3.8 also a cluster name.
    let parameters = all.stderr.lines().find(|line| line.contains(" global parameter")).unwrap_or_default();
    assert!(parameters.ends_with("ours") && !parameters.contains("internal_cluster_id"), "{all}");
    let one = topo.run(["export", "--vhost", "{vhost}"]).expect_code(0).expect_no_text("not in any spec");
    assert!(has(&one, &of_vhost), "{one}");
    topo.run(["export", "--vhost", "{vhost}", "--match", "q"]).expect_code(0).expect_no_text("permission");
    // The spec is the same for all users with access to the vhost.
    let others = Topo::new(&vhost).user(&user).run(["export"]).expect_code(0);
    assert_eq!(others.stdout, one.stdout);
    others
        .expect_text("info: users and permissions are not counted: counting them requires the administrator tag")
        .expect_no_text("not in the spec")
        .expect_no_text("not in any spec");
}
