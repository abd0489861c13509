//! Tests user limits in a spec: topo sets, changes, deletes, prunes and exports them. Some versions do not support
//! them, and some users may not set them.

use serde_json::{Value, json};

use super::cluster::topo;
use crate::support::{Node, Proxy, Topo, User, Vhost, gets, until, writes};

/// RabbitMQ 3.8.10 adds user limits.
fn has_them() -> bool {
    Node::shared().is_at_least_patch(3, 8, 10)
}

/// Returns a cluster document with these limits of a user.
fn limited(user: &User<'_>, limits: &str) -> String {
    format!("version: 1\ncluster: {{}}\nusers:\n  {}: {{limits: {limits}}}\n", user.name)
}

/// Returns the limits of a user on the broker.
fn live(user: &User<'_>) -> Value {
    let listed = Node::shared().http().get("/api/user-limits").expect_status(200);
    let own = listed.as_array().unwrap().iter().find(|entry| entry["user"] == *user.name);
    own.map_or_else(|| json!({}), |entry| entry["value"].clone())
}

fn set(user: &User<'_>, name: &str, value: i64) {
    let path = format!("/api/user-limits/{}/{name}", user.name);
    Node::shared().http().put(&path, &json!({"value": value})).expect_status(204);
}

fn no_changes(topo: &Topo) {
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn user_limits_are_set_changed_and_deleted() {
    if !has_them() {
        return;
    }
    let (vhost, user, other) =
        (Node::shared().vhost("user-limits"), Node::shared().user(""), Node::shared().user("monitoring"));
    set(&other, "max-channels", 5);
    let proxy = Proxy::to(Node::shared());
    let topo = topo(&vhost).through(&proxy).spec(&limited(&user, "{maxConnections: 100, maxChannels: 50}"));
    let line = format!("+ user limit {} max-connections  100", user.name);
    topo.run(["plan"]).expect_code(0).expect_text(&line).expect_text("Plan: 2 objects to create");
    topo.run(["apply", "-y"]).expect_code(0).expect_text("Applied: 2 of 2 steps done. Verified");
    assert_eq!(live(&user), json!({"max-connections": 100, "max-channels": 50}));
    no_changes(&topo);
    let written = proxy.count(&writes());
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(proxy.count(&writes()), written, "a second apply writes nothing");
    topo.rewrite(&limited(&user, "{maxConnections: 200, maxChannels: 40}"));
    topo.run(["plan"]).expect_code(0).expect_text("Plan: 2 objects to change");
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(live(&user), json!({"max-connections": 200, "max-channels": 40}));
    no_changes(&topo);
    // topo deletes a limit that `limits` omits. -1 means unlimited, too.
    topo.rewrite(&limited(&user, "{maxConnections: 200}"));
    topo.run(["plan"]).expect_code(0).expect_text("max-channels  not set in the spec");
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(live(&user), json!({"max-connections": 200}));
    topo.rewrite(&limited(&user, "{maxConnections: -1}"));
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(live(&user), json!({}));
    no_changes(&topo);
    // A negative limit on the broker means that there is no limit.
    set(&user, "max-channels", -5);
    topo.rewrite(&limited(&user, "{}"));
    no_changes(&topo);
    // topo does not compare the limits of a user that the spec does not declare.
    assert_eq!(live(&other), json!({"max-channels": 5}));
}

#[test]
fn user_limits_require_a_version() {
    let text = "user limits require RabbitMQ 3.8.10; the broker is 3.8.9";
    let offline = Topo::offline().spec("version: 1\ncluster: {}\nusers: {app: {limits: {maxChannels: 5}}}\n");
    let refused = offline.run(["validate", "--broker-version=3.8.9"]).expect_code(1);
    assert!(refused.stderr.contains(&format!("error[refused-by-broker]: user limit `app`: {text}")), "{refused}");
    offline.run(["validate", "--broker-version=3.8.10"]).expect_code(0).expect_text("cluster: 1 user limit");
    let against = ["plan", "--against=empty", "--broker-version=3.8.9", "--detailed-exitcode"];
    offline.run(against).expect_code(3).expect_text(text);
    if has_them() {
        return;
    }
    let (vhost, user) = (Node::shared().vhost("user-limits-version"), Node::shared().user(""));
    let proxy = Proxy::to(Node::shared());
    let topo = topo(&vhost).through(&proxy).spec(&limited(&user, "{maxChannels: 5}"));
    topo.run(["apply", "-y"]).expect_code(3).expect_text(text).expect_no_text("did not check");
    assert_eq!((proxy.count(&writes()), proxy.count(&gets().path("/api/user-limits"))), (0, 0));
    topo.rewrite(&limited(&user, "{}"));
    no_changes(&topo);
}

#[test]
fn missing_user_blocks_the_plan() {
    if !has_them() {
        return;
    }
    let vhost = Node::shared().vhost("user-limits-missing");
    let spec = "version: 1\ncluster: {}\nusers: {unknown-user: {limits: {maxChannels: 5, maxConnections: 5}}}\n";
    let proxy = Proxy::to(Node::shared());
    let topo = topo(&vhost).through(&proxy).spec(spec);
    let blocked = topo.run(["apply", "-y"]).expect_code(3);
    let blocked = blocked.expect_text("user unknown-user does not exist").expect_text("BLOCKED by 1 blocker");
    blocked.expect_text("→ set `password`, `initialPassword` or `passwordHash`");
    assert_eq!(proxy.count(&writes()), 0);
}

#[test]
fn unmanaged_user_limits_are_pruned_by_name() {
    if !has_them() {
        return;
    }
    let (vhost, user) = (Node::shared().vhost("user-limits-prune"), Node::shared().user(""));
    set(&user, "max-channels", 5);
    let spec = |rest: &str| format!("version: 1\ncluster: {{}}\nowns: [{}]\nusers: {{}}\n{rest}", user.name);
    let topo = topo(&vhost).spec(&spec(""));
    let listed = format!("user limit {} max-channels  (--prune=userLimits)", user.name);
    topo.run(["plan"]).expect_code(0).expect_text(&listed).expect_text("No changes");
    topo.run(["apply", "-y", "--prune"]).expect_code(0);
    assert_eq!(live(&user), json!({"max-channels": 5}));
    topo.rewrite(&spec(&format!("protect: [{}]\n", user.name)));
    topo.run(["plan", "--prune=userLimits"]).expect_code(0).expect_text("but protected: topo keeps it");
    topo.rewrite(&spec(""));
    topo.run(["apply", "-y", "--prune=userLimits"]).expect_code(3).expect_text("mass-delete");
    topo.run(["apply", "-y", "--prune=userLimits", "--allow=mass-delete"]).expect_code(0);
    assert_eq!(live(&user), json!({}));
    // Without the section, topo does not compare user limits.
    set(&user, "max-channels", 5);
    topo.rewrite(&format!("version: 1\ncluster: {{}}\nowns: [{}]\n", user.name));
    topo.run(["plan"]).expect_code(0).expect_no_text("user limit");
}

#[test]
fn user_limits_are_exported_on_request() {
    if !has_them() {
        return;
    }
    let (vhost, user) = (Node::shared().vhost("user-limits-export"), Node::shared().user(""));
    set(&user, "max-channels", 50);
    set(&user, "max-connections", 7);
    let topo = topo(&vhost).spec("");
    let own = ["--match", &user.name, "--vhost", "{vhost}"];
    let exported = |with: &str| topo.run(["export", with].into_iter().chain(own));
    let export = exported("--with=userLimits").expect_code(0);
    assert!(export.stderr.contains("cluster: 2 user limits\n"), "{export}");
    // With `--vhost`, `all` does not include the kinds of the cluster.
    exported("--with=all").expect_code(1).expect_error("no object matches --match");
    let text = export.stdout;
    let users = format!("users:\n  {}: {{limits: {{maxConnections: 7, maxChannels: 50}}}}\n", user.name);
    assert!(text.starts_with(&format!("version: 1\ncluster: {{}}\n\n{users}---\n")), "{text}");
    topo.write("topology.yaml", &text);
    no_changes(&topo);
    set(&user, "max-connections", -1);
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(live(&user), json!({"max-channels": 50, "max-connections": 7}));
    let folder = topo.run(["export", "--with=userLimits", "--out=specs/"].into_iter().chain(own)).expect_code(0);
    assert!(folder.stdout.is_empty(), "{folder}");
    assert!(topo.read("specs/@cluster.yaml").contains(&user.name));
    topo.run(["plan", "specs", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn definitions_files_have_user_limits() {
    if !has_them() {
        return;
    }
    let (vhost, user) = (Node::shared().vhost("user-limits-definitions"), Node::shared().user(""));
    set(&user, "max-channels", 50);
    let all = Node::shared().http().list("/api/definitions");
    let topo = topo(&vhost).spec(&limited(&user, "{maxChannels: 50}")).file("definitions.json", &all.to_string());
    let plan = || topo.run(["plan", "--against=definitions.json"]);
    plan().expect_code(0).expect_text("No changes");
    topo.rewrite(&limited(&user, "{maxChannels: 60}"));
    plan().expect_code(0).expect_text("50 → 60");
    let from_file = ["export", "--definitions=definitions.json", "--with=userLimits", "--match", &user.name];
    topo.run(from_file).expect_code(0).expect_text("limits: {maxChannels: 50}");
    topo.rewrite("version: 1\ncluster: {}\nusers: {unknown-user: {limits: {maxChannels: 5}}}\n");
    plan().expect_code(0).expect_text("user unknown-user does not exist");
}

#[test]
fn rights_for_user_limits_are_in_the_plan() {
    if !has_them() {
        return;
    }
    let (vhost, user) = (Node::shared().vhost("user-limits-rights"), Node::shared().user(""));
    let manager = Node::shared().user("management").may(&vhost, "", "", "");
    let topo = topo(&vhost).user(&manager).spec(&limited(&user, "{maxChannels: 50}"));
    if Node::shared().at_least(4, 3) {
        let text = "1 user limit cannot be compared: reading user limits requires the administrator tag";
        topo.run(["plan", "--detailed-exitcode"]).expect_code(3).expect_text(text).expect_text("administrator tag");
        return;
    }
    let plan = topo.run(["plan"]).expect_code(0);
    let text = "topo did not check whether 1 user in the spec exists on the broker: reading users requires the administrator tag";
    let plan = plan.expect_text(text);
    plan.expect_text("cannot write user limits: this requires the administrator tag");
    topo.run(["apply", "-y"]).expect_code(1).expect_error("lacks rights for this plan; nothing was changed");
    assert_eq!(live(&user), json!({}));
    set(&user, "max-channels", 50);
    no_changes(&topo);
}

#[test]
fn specs_without_users_do_not_read_user_limits() {
    let vhost: Vhost<'_> = Node::shared().vhost("user-limits-requests");
    let proxy = Proxy::to(Node::shared());
    let topo = topo(&vhost).through(&proxy).spec("version: 1\ncluster: {}\n---\nversion: 1\nvhost: \"{vhost}\"\n");
    no_changes(&topo);
    assert_eq!(proxy.count(&gets().path("/api/user")), 0);
}

/// topo counts the open connections of the user, but not their channels.
#[test]
fn reached_limits_of_a_user_are_hazards() {
    if !has_them() {
        return;
    }
    let vhost = Node::shared().vhost("user-limits-reached");
    let user = Node::shared().user("").may_everything(&vhost);
    let topo = topo(&vhost).spec(&limited(&user, "{maxConnections: 1, maxChannels: 10}"));
    topo.run(["plan"]).expect_code(0).expect_no_text("limit-reached");
    let _connection = user.amqp(&vhost);
    until("the connection is listed", || {
        let listed = Node::shared().http().list("/api/connections?columns=user");
        listed.as_array().unwrap().iter().any(|it| it["user"] == *user.name).then_some(())
    });
    let blocked = topo.run(["apply", "-y"]).expect_code(3);
    for text in [
        format!(
            "max-connections will become 1, and user {} has 1 connection: the broker will keep existing connections and \
             refuse new ones",
            user.name
        ),
        format!(
            "max-channels will become 10, and user {} has an unknown number of channels: the broker will close a \
             connection that opens another channel",
            user.name
        ),
    ] {
        assert!(blocked.says(&text), "{text}\n{blocked}");
    }
    assert_eq!(live(&user), json!({}));
}
