//! Tests vhost limits in a spec: topo sets, changes, deletes and exports them, and plans take them into account.

use serde_json::{Value, json};

use crate::support::{NONE, Node, Proxy, Topo, Vhost, gets, until, writes};

/// Returns a spec with these limits, as YAML.
fn limited(limits: &str) -> String {
    format!("version: 1\nvhost: {{name: \"{{vhost}}\", limits: {limits}}}\n")
}

const UNLIMITED: &str = "version: 1\nvhost: \"{vhost}\"\n";

/// Returns the limits of a vhost. If there are none, old versions return an empty list.
fn live(vhost: &Vhost<'_>) -> Value {
    let listed = vhost.list("vhost-limits");
    let value = listed.first().map_or_else(|| json!({}), |entry| entry["value"].clone());
    if value == json!([]) { json!({}) } else { value }
}

fn set(vhost: &Vhost<'_>, name: &str, value: i64) {
    vhost.http().put(&vhost.path("vhost-limits", &[name]), &json!({"value": value})).expect_status(204);
}

fn no_changes(topo: &Topo) {
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn limits_are_set_changed_and_deleted() {
    let vhost = Node::shared().vhost("limits");
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).spec(&limited("{maxConnections: 100, maxQueues: 50}"));
    topo.run(["plan"]).expect_code(0).expect_text("+ vhost limit max-connections  100");
    topo.run(["apply", "-y"]).expect_code(0).expect_text("put vhost limit max-queues");
    assert_eq!(live(&vhost), json!({"max-connections": 100, "max-queues": 50}));
    no_changes(&topo);
    let written = proxy.count(&writes());
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(proxy.count(&writes()), written, "a second apply writes nothing");
    topo.rewrite(&limited("{maxConnections: 200, maxQueues: 40}"));
    topo.run(["plan"]).expect_code(0).expect_text("~ vhost limit max-queues");
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(live(&vhost), json!({"max-connections": 200, "max-queues": 40}));
    no_changes(&topo);
    // topo does not compare the limits with a spec without `limits`.
    topo.rewrite(UNLIMITED);
    no_changes(&topo);
    // topo deletes a limit that `limits` omits. -1 means unlimited, too.
    topo.rewrite(&limited("{maxConnections: 200}"));
    topo.run(["plan"]).expect_code(0).expect_text("- vhost limit max-queues").expect_text("not set in the spec");
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(live(&vhost), json!({"max-connections": 200}));
    no_changes(&topo);
    topo.rewrite(&limited("{maxConnections: -1, maxQueues: -1}"));
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(live(&vhost), json!({}));
    no_changes(&topo);
    // A negative limit on the broker means that there is no limit.
    set(&vhost, "max-queues", -5);
    topo.rewrite(&limited("{}"));
    no_changes(&topo);
}

#[test]
fn limits_rise_before_queues_are_declared_and_fall_after_deletions() {
    let vhost = Node::shared().vhost("limits-order");
    set(&vhost, "max-queues", 2);
    let queues = "queues: {a: {type: classic}, b: {type: classic}, c: {type: classic}}\n";
    let topo = Topo::new(&vhost).spec(&(limited("{maxQueues: 5}") + queues));
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!((vhost.names("queues").len(), live(&vhost)), (3, json!({"max-queues": 5})));
    topo.rewrite(&(limited("{maxQueues: 2}") + "queues: {a: {type: classic}}\nremoved: {queues: [b, c]}\n"));
    topo.run(["apply", "-y"]).expect_code(0).expect_no_text("limit-reached");
    assert_eq!((vhost.names("queues"), live(&vhost)), (vec!["a".to_owned()], json!({"max-queues": 2})));
    no_changes(&topo);
}

#[test]
fn reached_limit_of_connections_is_a_hazard() {
    let vhost = Node::shared().vhost("limits-connections");
    let connections = [vhost.amqp(), vhost.amqp(), vhost.amqp()];
    let path = format!("/api/vhosts/{}/connections", vhost.name());
    until("three listed connections", || {
        let answer = vhost.http().get(&path);
        (answer.status == 200 && answer.body.as_array()?.len() == 3).then_some(())
    });
    let topo = Topo::new(&vhost).spec(&limited("{maxConnections: 3}"));
    let text = "max-connections will become 3, and the vhost has 3 connections: the broker will keep existing \
                connections and refuse new ones";
    topo.run(["apply", "-y"]).expect_code(3).expect_text("limit-reached").expect_text(text);
    assert_eq!(live(&vhost), json!({}));
    topo.run(["apply", "-y", "--allow=limit-reached"]).expect_code(0);
    assert_eq!(live(&vhost), json!({"max-connections": 3}));
    connections[0].declare_queue("still", NONE).unwrap();
    drop(connections);
    topo.rewrite(&limited("{maxConnections: 4}"));
    topo.run(["apply", "-y"]).expect_code(0).expect_no_text("limit-reached");
    topo.rewrite(&limited("{maxConnections: 0}"));
    topo.run(["plan"]).expect_code(0).expect_text("max-connections will become 0");
}

#[test]
fn reached_limit_of_queues_is_a_hazard() {
    let vhost = Node::shared().vhost("limits-queues");
    vhost.amqp().declare_queue("others", NONE).unwrap();
    let queues = "queues: {a: {type: classic}}\n";
    let topo = Topo::new(&vhost).spec(&(limited("{maxQueues: 2}") + queues));
    let text = "max-queues will become 2, and the vhost has 2 queues: the broker will keep existing queues and refuse \
                new ones, including topo's lock queue";
    let plan = topo.run(["plan", "--format=json"]).expect_code(0).plan();
    assert_eq!(plan["vhosts"][0]["hazards"][0]["kind"], "limit-reached", "{plan}");
    assert!(plan["vhosts"][0]["hazards"][0]["text"].as_str().unwrap().starts_with(text), "{plan}");
    topo.run(["apply", "-y"]).expect_code(3);
    topo.rewrite(&(limited("{maxQueues: 3}") + queues));
    topo.run(["apply", "-y"]).expect_code(0);
    no_changes(&topo);
}

#[test]
fn limits_are_exported_on_request() {
    let vhost = Node::shared().vhost("limits-export");
    set(&vhost, "max-queues", 50);
    set(&vhost, "max-connections", 7);
    let topo = Topo::new(&vhost).spec(UNLIMITED);
    topo.run(["export", "--vhost", "{vhost}"]).expect_code(0).expect_no_text("limits:");
    for kinds in ["--with=vhostLimits", "--with=operatorPolicies,vhostLimits", "--with=all"] {
        let export = topo.run(["export", "--vhost", "{vhost}", kinds]).expect_code(0);
        let text = export.stdout.clone();
        export.expect_text("limits: {maxConnections: 7, maxQueues: 50}");
        topo.write("topology.yaml", &text);
        no_changes(&topo);
    }
    // An apply to an empty vhost creates the same limits.
    let fresh = Node::shared().vhost("limits-import");
    let text = topo.read("topology.yaml").replace(vhost.name(), fresh.name());
    Topo::new(&fresh).file("topology.yaml", &text).run(["apply", "-y"]).expect_code(0);
    assert_eq!(live(&fresh), live(&vhost));
}

#[test]
fn definitions_files_have_limits() {
    let vhost = Node::shared().vhost("limits-definitions");
    set(&vhost, "max-queues", 50);
    let topo = Topo::new(&vhost).spec(&limited("{maxQueues: 50}"));
    let all = vhost.http().list("/api/definitions");
    topo.write("definitions.json", &all.to_string());
    topo.run(["plan", "--against=definitions.json"]).expect_code(0).expect_text("No changes");
    let from_file = ["export", "--definitions=definitions.json", "--vhost={vhost}"];
    topo.run(from_file.into_iter().chain(["--with=all"])).expect_code(0).expect_text("limits: {maxQueues: 50}");
    let export = topo.run(from_file).expect_code(0);
    assert!(export.stderr.contains("not in the spec: 1 vhost limit: max-queues 50"), "{export}");
}

#[test]
fn missing_tag_for_limits_is_in_the_plan() {
    let vhost = Node::shared().vhost("limits-rights");
    let user = Node::shared().user("policymaker").may_everything(&vhost);
    let topo = Topo::new(&vhost).user(&user).spec(&limited("{maxQueues: 50}"));
    let lacks = "cannot write vhost limits: this requires the administrator tag";
    topo.run(["plan"]).expect_code(0).expect_text(lacks);
    topo.run(["apply", "-y"]).expect_code(1).expect_error("lacks rights for this plan; nothing was changed");
    assert_eq!(live(&vhost), json!({}));
    set(&vhost, "max-queues", 50);
    let user = Node::shared().user("management").may(&vhost, "", "", "");
    no_changes(&Topo::new(&vhost).user(&user).spec(&limited("{maxQueues: 50}")));
}

#[test]
fn specs_without_limits_do_not_read_them() {
    let vhost = Node::shared().vhost("limits-requests");
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).spec(UNLIMITED);
    no_changes(&topo);
    assert_eq!(proxy.count(&gets().path("/api/vhost-limits")), 0);
    topo.rewrite(&limited("{}"));
    no_changes(&topo);
    assert_eq!(proxy.count(&gets().path("/api/vhost-limits")), 1);
}

/// A definitions file contains all limits of a vhost together, so importing a single limit would delete the other.
#[test]
fn backups_hold_all_limits() {
    let vhost = Node::shared().vhost("limits-backup");
    set(&vhost, "max-queues", 50);
    set(&vhost, "max-connections", 60);
    let topo = Topo::new(&vhost).spec(&limited("{maxConnections: 60, maxQueues: 70}"));
    topo.run(["apply", "-y", "--backup=backup.json"]).expect_code(0);
    assert_eq!(live(&vhost), json!({"max-connections": 60, "max-queues": 70}));
    let body: Value = serde_json::from_str(&topo.read("backup.json")).unwrap();
    assert!(vhost.http().post("/api/definitions", &body).is_success(), "{body}");
    until("the limits of the backup", || {
        (live(&vhost) == json!({"max-connections": 60, "max-queues": 50})).then_some(())
    });
}

#[test]
fn limits_of_a_new_vhost_are_set() {
    let node = Node::shared();
    let vhost = Vhost::to_come(node, "limits-new");
    let topo = Topo::new(&vhost).spec(&limited("{maxQueues: 50}"));
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(live(&vhost), json!({"max-queues": 50}));
    no_changes(&topo);
}
