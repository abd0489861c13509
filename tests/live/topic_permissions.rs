//! Tests that a recreated exchange keeps its topic permissions on brokers that delete them with the exchange. These
//! brokers store metadata in Khepri: 4.3, and 4.0 to 4.2 with the feature flag `khepri_db`.

use serde_json::json;

use crate::support::topic_permissions::{khepri, permissions, restrict};
use crate::support::{Fault, NONE, Node, Outcome, Proxy, Topo, User, Vhost, deletes, gets, puts};

const SPEC: &str = "exchanges:\n  events: {type: topic, alternateExchange: amq.fanout, onConflict: discard}\nqueues:\n  q: \
                    {type: classic, bindings: [{exchange: events, routingKey: '#'}]}\n";
const APPLY: [&str; 3] = ["apply", "-y", "--allow=routing-gap"];
const ALLOWED: [&str; 3] = ["apply", "-y", "--allow=routing-gap,access-gain"];
const RESTORED: [&str; 3] = ["apply", "-y", "--allow=routing-gap,access-loss"];

/// A vhost with exchange `events`, whose alternate exchange differs from the spec, and with two users whose topic
/// permissions restrict them on this exchange.
struct Stage {
    vhost: Vhost<'static>,
    alice: User<'static>,
    bob: User<'static>,
    topo: Topo,
}

impl Stage {
    fn on(node: &'static Node, hint: &str) -> Self {
        let vhost = node.vhost(hint);
        let amqp = vhost.amqp();
        amqp.declare_exchange("events", "topic", NONE).unwrap();
        amqp.declare_exchange("other", "topic", NONE).unwrap();
        amqp.declare_queue("q", NONE).unwrap();
        amqp.bind_queue("events", "q", "#", NONE);
        amqp.bind_queue("events", "q", "by.others", NONE);
        let [alice, bob] = [(), ()].map(|()| node.user("").may_everything(&vhost));
        restrict(&vhost, &alice.name, "events", "^a\\.");
        restrict(&vhost, &alice.name, "other", "^o\\.");
        restrict(&vhost, &bob.name, "events", "^\"b\\d \u{fc}");
        let topo = Topo::new(&vhost).spec(SPEC);
        Self { vhost, alice, bob, topo }
    }

    fn through(self, proxy: &Proxy) -> Self {
        Self { topo: self.topo.through(proxy), ..self }
    }

    fn is_new(&self) -> bool {
        self.vhost.exchange("events")["arguments"]["alternate-exchange"] == "amq.fanout"
    }

    /// Fails unless alice may publish with `a.1` but not with `secret.1`.
    fn expect_restricted(&self) {
        let amqp = self.alice.amqp(&self.vhost);
        assert_eq!(amqp.try_publish("events", "a.1"), Ok(Outcome::Routed));
        let refused = amqp.try_publish("events", "secret.1").expect_err("a topic that alice may not publish");
        assert!(refused.contains("403") || refused.contains("ACCESS_REFUSED"), "{refused}");
    }
}

#[test]
fn recreated_exchange_keeps_topic_permissions() {
    let node = khepri().unwrap_or_else(Node::shared);
    let stage = Stage::on(node, "restricted");
    let before = permissions(&stage.vhost);
    assert_eq!(before.len(), 3);
    stage.expect_restricted();
    let plan = stage.topo.run(["plan", "--verbose"]).expect_code(0);
    let path = format!("PUT /api/topic-permissions/{}/{}", stage.vhost.name(), stage.alice.name);
    assert_eq!(plan.says(&path), khepri().is_some(), "{plan}");
    let applied = stage.topo.run(APPLY).expect_code(0);
    assert!(applied.says("Verified: the broker matches the spec"), "{applied}");
    assert!(stage.is_new());
    assert_eq!(permissions(&stage.vhost), before);
    stage.expect_restricted();
    assert!(!stage.vhost.names("exchanges").iter().any(|name| name.contains(".topo.")));
    stage.topo.run(["plan", "--detailed-exitcode"]).expect_code(0);
}

/// Until its topic permissions are restored, the new exchange has no bindings.
#[test]
fn topic_permissions_are_restored_before_bindings() {
    let Some(node) = khepri() else { return };
    let stage = Stage::on(node, "unbound");
    let (http, bindings) = (node.http(), stage.vhost.path("exchanges", &["events", "bindings", "source"]));
    let look = move || {
        let listed = http.get(&bindings).found();
        // Before the deletion, the topic permissions still exist.
        let is_old = listed.as_array().is_some_and(|listed| listed.len() == 2);
        assert!(is_old || listed == json!([]), "{listed}");
    };
    let proxy = Proxy::to(node).on(puts().path("/api/topic-permissions/"), Fault::Meanwhile(Box::new(look)));
    let stage = stage.through(&proxy);
    stage.topo.run(APPLY).expect_code(0);
    assert_eq!(proxy.count(&puts().path("/api/topic-permissions/")), 4, "each is tried before, and restored");
    stage.expect_restricted();
}

#[test]
fn user_without_the_tag_must_allow_the_loss() {
    let Some(node) = khepri() else { return };
    let stage = Stage::on(node, "hidden");
    let maker = node.user("policymaker").may_everything(&stage.vhost);
    let topo = Topo::new(&stage.vhost).user(&maker).spec(SPEC);
    topo.run(APPLY).expect_code(3).expect_text("access-gain").expect_text("this user cannot read them");
    assert!(!stage.is_new());
    assert_eq!(permissions(&stage.vhost).len(), 3);
    topo.run(ALLOWED).expect_code(0);
    assert!(stage.is_new());
    assert_eq!(permissions(&stage.vhost), [format!("{}: ^o\\. on other", stage.alice.name)]);
}

/// Mnesia keeps the topic permissions, so topo neither requires an allowance nor restores them.
#[test]
fn broker_with_mnesia_keeps_topic_permissions_by_itself() {
    let node = Node::shared();
    if node.at_least(4, 3) {
        return;
    }
    let stage = Stage::on(node, "mnesia");
    let before = permissions(&stage.vhost);
    let maker = node.user("policymaker").may_everything(&stage.vhost);
    Topo::new(&stage.vhost).user(&maker).spec(SPEC).run(APPLY).expect_code(0).expect_no_text("access-gain");
    assert!(stage.is_new());
    assert_eq!(permissions(&stage.vhost), before);
}

#[test]
fn topic_permissions_are_read_only_where_an_exchange_is_deleted() {
    let Some(node) = khepri() else { return };
    let proxy = Proxy::to(node);
    let stage = Stage::on(node, "unread").through(&proxy);
    stage.topo.rewrite("exchanges: {events: {type: topic}, new: {type: topic}}\n");
    stage.topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(proxy.count(&gets().path("topic-permissions")), 0);
    assert_eq!(proxy.count(&gets().path("feature-flags")), 0);
}

#[test]
fn topic_permissions_that_change_before_the_deletion_stop_it() {
    let Some(node) = khepri() else { return };
    let stage = Stage::on(node, "changed");
    let (http, path) = (node.http(), stage.vhost.path("topic-permissions", &[&stage.alice.name]));
    let change = move || {
        let newest = json!({"exchange": "events", "write": "^newest$", "read": ".*"});
        assert!(http.put(&path, &newest).is_success());
    };
    // The plan, the plan under the lock, and the backup read them first.
    let last_look = gets().path("/topic-permissions").nth(4);
    let proxy = Proxy::to(node).on(last_look, Fault::Meanwhile(Box::new(change)));
    let stage = stage.through(&proxy);
    let stopped = stage.topo.run(APPLY);
    assert!(stopped.says("its topic permissions have changed since the plan was made"), "{stopped}");
    assert_ne!(stopped.code, Some(0));
    assert!(!stage.is_new());
    let newest = format!("{}: ^newest$ on events", stage.alice.name);
    assert!(permissions(&stage.vhost).contains(&newest));
    stage.topo.run(APPLY).expect_code(0);
    assert!(stage.is_new() && permissions(&stage.vhost).contains(&newest));
}

#[test]
fn saved_plan_is_stale_when_topic_permissions_changed() {
    let Some(node) = khepri() else { return };
    let stage = Stage::on(node, "stale");
    stage.topo.run(["plan", "--out=plan.json"]).expect_code(0);
    restrict(&stage.vhost, &stage.bob.name, "events", "^later");
    let apply = ["apply", "--plan=plan.json", "--allow=routing-gap"];
    stage.topo.run(apply).expect_code(5).expect_text("the broker no longer matches the plan");
    assert!(!stage.is_new());
}

#[test]
fn refused_topic_permission_stops_the_recreate_before_the_deletion() {
    let Some(node) = khepri() else { return };
    let fault = Fault::Reason(400, "not today".to_owned());
    let proxy = Proxy::to(node).on(puts().path("/api/topic-permissions/").nth(1), fault);
    let stage = Stage::on(node, "refused").through(&proxy);
    stage.topo.run(APPLY).expect_text("would not be able to restore").expect_text("not today");
    assert!(!stage.is_new());
    assert_eq!(proxy.count(&deletes().path("/events").but(".topo.keep")), 0);
    assert!(!stage.vhost.names("exchanges").iter().any(|name| name.contains(".topo.")));
    assert_eq!(permissions(&stage.vhost).len(), 3);
}

/// Prepares a recreation in which the broker refuses to restore the second topic permission.
fn half_restored(node: &'static Node, hint: &str) -> (Stage, Vec<String>) {
    let fault = Fault::Reason(400, "not today".to_owned());
    let proxy = Proxy::to(node).on(puts().path("/api/topic-permissions/").nth(4), fault);
    let stage = Stage::on(node, hint).through(&proxy);
    let before = permissions(&stage.vhost);
    stage.topo.run(APPLY).expect_code(4).expect_text("not today");
    assert!(stage.is_new() && stage.vhost.names("exchanges").contains(&"events.topo.keep".to_owned()));
    assert_eq!(permissions(&stage.vhost).len(), 2);
    let topo = stage.topo.url(&node.url());
    (Stage { topo, ..stage }, before)
}

#[test]
fn next_apply_restores_what_was_refused() {
    let Some(node) = khepri() else { return };
    let (stage, before) = half_restored(node, "half");
    // If the user may not restore the topic permission, topo keeps the exchange `NAME.topo.keep`.
    let maker = node.user("policymaker").may_everything(&stage.vhost);
    let topo = Topo::new(&stage.vhost).user(&maker).spec(SPEC);
    topo.run(APPLY).expect_code(3).expect_text("only an administrator can restore 2 topic permissions");
    // The exchange has its bindings, so another user could have declared the exchange `NAME.topo.keep`.
    let blocked = stage.topo.run(APPLY).expect_code(3);
    blocked.expect_text("access-loss").expect_text("1 topic permission will be restored from events.topo.keep");
    let resumed = stage.topo.run(RESTORED).expect_code(0);
    resumed.expect_text("0 of its bindings will be restored, and 1 topic permission (user ");
    assert_eq!(permissions(&stage.vhost), before);
    assert!(!stage.vhost.names("exchanges").contains(&"events.topo.keep".to_owned()));
    stage.expect_restricted();
}

#[test]
fn newest_topic_permission_is_not_overwritten() {
    let Some(node) = khepri() else { return };
    let (stage, _) = half_restored(node, "newest");
    let missing = [&stage.alice, &stage.bob].map(|user| user.name.clone()).into_iter();
    let missing = missing.filter(|user| {
        !permissions(&stage.vhost).iter().any(|line| line.starts_with(&format!("{user}: ")) && line.ends_with("events"))
    });
    let [user] = missing.collect::<Vec<_>>().try_into().expect("one is missing");
    restrict(&stage.vhost, &user, "events", "^newest$");
    stage.topo.run(APPLY).expect_code(0);
    assert!(permissions(&stage.vhost).contains(&format!("{user}: ^newest$ on events")));
}

#[test]
fn deleted_user_is_skipped() {
    let Some(node) = khepri() else { return };
    let (stage, _) = half_restored(node, "deleted");
    for user in [&stage.alice, &stage.bob] {
        assert!(node.http().delete(&format!("/api/users/{}", user.name)).is_success());
    }
    stage.topo.run(RESTORED).expect_code(0);
    assert_eq!(permissions(&stage.vhost), [""; 0]);
    stage.topo.run(["plan", "--detailed-exitcode"]).expect_code(0);
}

#[test]
fn deletion_of_a_restricted_exchange_must_be_allowed() {
    let Some(node) = khepri() else { return };
    let stage = Stage::on(node, "pruned");
    stage.topo.rewrite("exchanges: {other: {type: topic}}\nremoved: {exchanges: [events]}\n");
    let blocked = stage.topo.run(APPLY).expect_code(3);
    blocked.expect_text("access-gain").expect_text("2 topic permissions");
    stage.topo.run(ALLOWED).expect_code(0);
    assert_eq!(permissions(&stage.vhost).len(), 1);
}

#[test]
fn deletion_by_a_user_who_may_not_read_topic_permissions_must_be_allowed() {
    let Some(node) = khepri() else { return };
    let stage = Stage::on(node, "pruned");
    let maker = node.user("policymaker").may_everything(&stage.vhost);
    let spec = "exchanges: {other: {type: topic}}\nremoved: {exchanges: [events]}\n";
    let topo = Topo::new(&stage.vhost).user(&maker).spec(spec);
    let blocked = topo.run(APPLY).expect_code(3);
    blocked
        .expect_text("access-gain")
        .expect_text("this user cannot read them")
        .expect_text("if the exchange is declared again");
    assert_eq!(permissions(&stage.vhost).len(), 3);
    topo.run(ALLOWED).expect_code(0);
    assert_eq!(permissions(&stage.vhost).len(), 1);
}

/// A user who may declare exchanges must not be able to restrict other users through an administrator's apply.
#[test]
fn topic_permissions_of_a_forged_keep_must_be_allowed() {
    let Some(node) = khepri() else { return };
    let stage = Stage::on(node, "forged-keep");
    let carol = node.user("").may_everything(&stage.vhost);
    let before = permissions(&stage.vhost);
    let stored = json!([{"user": carol.name, "exchange": "events", "write": "^$", "read": "^$"}]).to_string();
    let arguments = [
        ("x-topo-kept-bindings", "[]"),
        ("x-topo-kept-for", "exchange events"),
        ("x-topo-kept-topic-permissions", &stored),
    ];
    let arguments: serde_json::Map<_, _> =
        arguments.into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect();
    let keep = json!({"type": "fanout", "durable": true, "arguments": arguments});
    node.http().put(&stage.vhost.path("exchanges", &["events.topo.keep"]), &keep).expect_status(201);
    stage.topo.rewrite("exchanges: {events: {type: topic}}\n");
    let blocked = stage.topo.run(APPLY).expect_code(3);
    blocked.expect_text("access-loss").expect_text(&format!("user {}: write \"^$\", read \"^$\"", carol.name));
    assert_eq!(permissions(&stage.vhost), before);
    stage.topo.run(RESTORED).expect_code(0);
    assert_eq!(permissions(&stage.vhost).len(), before.len() + 1);
}

/// The files of a backup are imported in the order in which topo lists them.
#[test]
fn backup_restores_topic_permissions() {
    let Some(node) = khepri() else { return };
    let stage = Stage::on(node, "backup");
    let before = permissions(&stage.vhost);
    stage.topo.rewrite("exchanges: {other: {type: topic}}\nremoved: {exchanges: [events]}\n");
    let backup = ["--backup=b.json"].into_iter();
    let applied = stage.topo.run(ALLOWED.into_iter().chain(backup)).expect_code(0);
    assert!(stage.vhost.exchange("events").is_null());
    let files: &[&str] = if node.at_least(4, 3) { &["b.json"] } else { &["b.json", "b.topic-permissions.json"] };
    for file in files {
        assert!(applied.stderr.contains(&format!("import --file {file}")), "{applied}");
        let import = serde_json::from_str(&stage.topo.read(file)).unwrap();
        assert!(node.http().post("/api/definitions", &import).is_success());
    }
    assert!(!stage.vhost.exchange("events").is_null());
    assert_eq!(permissions(&stage.vhost), before);
    stage.expect_restricted();
}
