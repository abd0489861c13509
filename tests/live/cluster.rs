//! Checks the cluster part of a plan: the cluster name, the lock, the order before the vhosts, saved plans and targets.

use serde_json::{Value, json};

use super::lock::{LONG, put_lock};
use crate::support::{Fault, Gate, Node, Proxy, Topo, User, Vhost, puts, until};

/// The lock of the test's vhost also protects the cluster, because other tests change the cluster at the same time.
pub(super) fn topo(vhost: &Vhost<'_>) -> Topo {
    Topo::new(vhost).env("TOPO_LOCK_VHOST", vhost.name())
}

/// RabbitMQ 3.8.10 adds user limits, the only kind of object in a cluster document.
fn has_records() -> bool {
    Node::shared().is_at_least_patch(3, 8, 10)
}

fn limited(user: &User<'_>, channels: u64) -> String {
    format!("version: 1\ncluster: {{}}\nusers: {{{}: {{limits: {{maxChannels: {channels}}}}}}}\n", user.name)
}

fn with_queue(user: &User<'_>) -> String {
    limited(user, 50) + "---\nversion: 1\nvhost: \"{vhost}\"\nqueues: {q: {type: classic}}\n"
}

fn channels(user: &User<'_>) -> Value {
    let listed = Node::shared().http().get("/api/user-limits").expect_status(200);
    let own = listed.as_array().unwrap().iter().find(|entry| entry["user"] == *user.name);
    own.map_or(Value::Null, |entry| entry["value"]["max-channels"].clone())
}

#[test]
fn cluster_of_another_name_blocks_the_plan() {
    let vhost = Node::shared().vhost("cluster-name");
    let topo = topo(&vhost).spec("version: 1\ncluster: {name: elsewhere}\n");
    let text = "the spec is for cluster elsewhere, but this broker belongs to cluster";
    topo.run(["plan", "--detailed-exitcode"]).expect_code(3).expect_text(text);
    let name = Node::shared().http().get("/api/overview").expect_status(200)["cluster_name"].clone();
    topo.rewrite(&format!("version: 1\ncluster: {{name: {name}}}\n"));
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes. 0 objects");
}

#[test]
fn cluster_is_changed_before_the_vhosts() {
    if !has_records() {
        return;
    }
    let (vhost, user) = (Node::shared().vhost("cluster-first"), Node::shared().user(""));
    let proxy = Proxy::to(Node::shared()).on(puts().path("/api/user-limits"), Fault::Status(400));
    let topo = topo(&vhost).through(&proxy).spec(&with_queue(&user));
    let failed = topo.run(["apply", "-y"]).expect_code(1).expect_text("not attempted declare queue q");
    failed.expect_text(&format!("failed        put user limit {} max-channels", user.name));
    assert!(vhost.names("queues").is_empty());
    let topo = self::topo(&vhost).spec(&with_queue(&user));
    let done = topo.run(["apply", "-y", "--format=json"]).expect_code(0).json();
    assert_eq!(done["cluster"]["done"][0]["address"], format!("userLimits/{}/max-channels", user.name), "{done}");
    assert_eq!(done["vhosts"][0]["done"][0]["address"], format!("queues/{}/q", vhost.name()), "{done}");
    assert_eq!((channels(&user), vhost.names("queues")), (json!(50), vec!["q".to_owned()]));
}

#[test]
fn lock_of_the_agreed_vhost_protects_the_cluster() {
    if !has_records() {
        return;
    }
    let (vhost, user) = (Node::shared().vhost("cluster-lock"), Node::shared().user(""));
    put_lock(&vhost, "topo.lock", "another apply", LONG);
    let topo = topo(&vhost).spec(&limited(&user, 50));
    topo.run(["apply", "-y"]).expect_code(6).expect_error("another apply");
    assert_eq!(channels(&user), Value::Null);
    topo.run(["lock"]).expect_code(6).expect_text(&format!("vhost {}: locked by another apply", vhost.name()));
    vhost.http().delete(&vhost.path("queues", &["topo.lock"])).expect_status(204);
    let gate = Gate::default();
    let proxy = Proxy::to(Node::shared()).on(puts().path("/api/user-limits"), gate.fault());
    let through = self::topo(&vhost).through(&proxy).spec(&limited(&user, 50));
    let first = through.start(["apply", "-y"]);
    until("the lock", || vhost.queue("topo.lock")["arguments"]["x-topo-holder"].is_string().then_some(()));
    topo.rewrite(&limited(&user, 60));
    topo.run(["apply", "-y"]).expect_code(6).expect_error("lock");
    gate.open();
    first.wait().expect_code(0);
    assert_eq!(channels(&user), json!(50));
    assert!(vhost.names("queues").is_empty(), "the lock is released");
}

#[test]
fn missing_vhost_of_the_lock_is_an_error() {
    if !has_records() {
        return;
    }
    let (vhost, user) = (Node::shared().vhost("cluster-lock-vhost"), Node::shared().user(""));
    let topo = topo(&vhost).spec(&limited(&user, 50));
    let failed = topo.run(["apply", "-y", "--lock-vhost=cluster-lock-nowhere"]).expect_code(1);
    assert!(failed.stderr.contains("set_permissions -p cluster-lock-nowhere"), "{failed}");
    assert_eq!(channels(&user), Value::Null);
}

#[test]
fn saved_plans_contain_the_cluster() {
    if !has_records() {
        return;
    }
    let (vhost, user) = (Node::shared().vhost("cluster-saved"), Node::shared().user(""));
    let topo = topo(&vhost).spec(&with_queue(&user));
    let plan = topo.run(["plan", "--out=plan.json", "--format=json"]).expect_code(0).plan();
    assert_eq!(plan["cluster"]["steps"][0]["request"]["path"], format!("/api/user-limits/{}/max-channels", user.name));
    assert_eq!(plan["cluster"].get("vhost"), None);
    let short = topo.run(["show", "plan.json", "--short"]).expect_code(0).stdout;
    assert!(short.starts_with(&format!("cluster\n  + user limit {} max-channels", user.name)), "{short}");
    let markdown = topo.run(["show", "plan.json", "--format=markdown"]).expect_code(0);
    markdown.expect_text("### topo plan: cluster, vhost **").expect_text("user limit");
    let address = format!("userLimits/{}/max-channels will be created", user.name);
    topo.run(["show", "plan.json", "--format=github"]).expect_code(0).expect_text(&address);
    let edited = topo.read("plan.json").replace("\"value\": 50", "\"value\": 51");
    topo.write("edited.json", &edited);
    topo.run(["apply", "-y", "--plan=edited.json"]).expect_code(65).expect_error("was edited");
    topo.run(["apply", "-y", "--plan=plan.json"]).expect_code(0);
    assert_eq!(channels(&user), json!(50));
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0);
    // The limit in the plan changed after the review.
    topo.rewrite(&limited(&user, 70));
    topo.run(["plan", "--out=plan.json"]).expect_code(0);
    let path = format!("/api/user-limits/{}/max-channels", user.name);
    Node::shared().http().put(&path, &json!({"value": 60})).expect_status(204);
    let stale = topo.run(["apply", "-y", "--plan=plan.json"]).expect_code(5);
    assert!(stale.stderr.contains("max-channels: it changed after the plan"), "{stale}");
    assert_eq!(channels(&user), json!(60));
}

#[test]
fn targets_select_objects_of_the_cluster() {
    if !has_records() {
        return;
    }
    let (vhost, user) = (Node::shared().vhost("cluster-target"), Node::shared().user(""));
    let topo = topo(&vhost).spec(&with_queue(&user));
    let queue = topo.run(["plan", "--target=queues/{vhost}/q"]).expect_code(0).expect_text("1 object to create");
    queue.expect_text("--target excludes 1 of the changes");
    let target = format!("--target=userLimits/{}/*", user.name);
    topo.run(["apply", "-y", &target]).expect_code(0).expect_text("Applied: 1 of 1 step done");
    assert_eq!((channels(&user), vhost.names("queues").len()), (json!(50), 0));
    topo.run(["plan", "--target=userLimits/unknown-user/*"])
        .expect_code(64)
        .expect_error("the address matches no object");
}

#[test]
fn plans_without_a_document_of_the_cluster_have_no_part_for_it() {
    let vhost = Node::shared().vhost("cluster-none");
    let topo = topo(&vhost).spec("queues: {q: {type: classic}}\n");
    let plan = topo.run(["plan", "--format=json"]).expect_code(0).plan();
    assert_eq!(plan.get("cluster"), None);
    // `--vhost` selects a single vhost of several documents.
    topo.rewrite("version: 1\ncluster: {}\n---\nversion: 1\nvhost: \"{vhost}\"\n");
    let plan = topo.run(["plan", "--format=json", "--vhost={vhost}"]).expect_code(0).plan();
    assert_eq!(plan.get("cluster"), None);
    let plan = topo.run(["plan", "--format=json"]).expect_code(0).plan();
    assert_eq!(plan["cluster"]["comparedObjects"], 0, "{plan}");
}

/// An environment sets the URL and the expected cluster. `--url` overrides only the URL.
#[test]
fn environment_selects_the_broker_and_its_cluster() {
    let vhost = Node::shared().vhost("environment");
    let name = Node::shared().http().get("/api/overview").expect_status(200)["cluster_name"].clone();
    let spec = format!(
        "version: 1\nenvironments:\n  right: {{url: '{url}', cluster: {name}, variables: {{MAX: 5}}}}\n  wrong: {{url: '{url}', \
         cluster: elsewhere, variables: {{MAX: 6}}}}\n  nowhere: {{url: 'http://127.0.0.1:1', variables: {{MAX: 7}}}}\n---\nversion: \
         1\nvhost: {}\nqueues: {{q: {{type: classic, maxLength: '${{MAX}}', deadLetter: none}}}}\n",
        vhost.name(),
        url = Node::shared().url(),
    );
    let topo = Topo::new(&vhost).without_env("TOPO_URL").file("topology.yaml", &spec);
    let text = "the spec is for cluster elsewhere, but this broker belongs to cluster";
    let blocked = topo.run(["apply", "-y", "--env=wrong"]).expect_code(3).expect_text(text);
    blocked.expect_text("or select a different environment");
    topo.run(["plan", "--env=nowhere"]).expect_code(1).expect_text("cannot connect to http://127.0.0.1:1");
    let url = Node::shared().url();
    topo.run(["plan", "--env=nowhere", "--url", &url]).expect_code(0).expect_text("x-max-length 7");
    topo.run(["status", "--env=right"]).expect_text("changes");
    topo.run(["plan", "--env=right", "--out=plan.json"]).expect_code(0).expect_text("environment right");
    topo.run(["apply", "--plan=plan.json", "--url", &url]).expect_code(0).expect_text("environment right");
    assert_eq!(vhost.queue("q")["arguments"]["x-max-length"], 5);
    topo.run(["plan", "--env=right", "--detailed-exitcode"]).expect_code(0);
}
