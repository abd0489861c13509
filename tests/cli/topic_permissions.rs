//! Tests the hazards of topic permissions, against a definitions file.

use serde_json::json;

use crate::support::{Output, Topo};

/// Plans a spec against a vhost with user `app`, exchange `events` and a topic permission on it. `permissions` are the
/// current permissions of the user, if any.
fn plan(permissions: Option<&str>, spec: &str) -> Output {
    let permissions: Vec<_> = permissions
        .iter()
        .map(|it| json!({"user": "app", "vhost": "shop", "configure": it, "write": it, "read": it}))
        .collect();
    let definitions = json!({
        "rabbit_version": "4.3.6", "vhosts": [{"name": "shop"}], "permissions": permissions,
        "users": [{"name": "app", "password_hash": "", "tags": []}],
        "exchanges": [{"name": "events", "vhost": "shop", "type": "topic", "durable": true}],
        "topic_permissions": [{"user": "app", "vhost": "shop", "exchange": "events", "write": "^a", "read": "^b"}],
    });
    let cluster =
        "version: 1\ncluster: {}\nowns: [app]\n---\nversion: 1\nvhost: shop\nexchanges: {events: {type: topic}}\n";
    let topo =
        Topo::offline().file("d.json", &definitions.to_string()).file("topology.yaml", &format!("{cluster}{spec}"));
    topo.run(["plan", "--against", "d.json", "--prune=topicPermissions"]).expect_code(0)
}

const GAIN: &str = "after the apply, user app may publish and bind with any routing key on exchange events";

/// A user without permissions gains access if the same plan sets permissions and deletes the restriction.
#[test]
fn deleted_restriction_of_a_user_with_new_permissions_is_a_gain() {
    plan(None, "permissions: {app: all}\ntopicPermissions: {}\n").expect_text(GAIN).expect_text("access-gain");
    plan(Some(".*"), "permissions: {app: all}\ntopicPermissions: {}\n").expect_text(GAIN);
    plan(None, "permissions: {}\ntopicPermissions: {}\n").expect_text("delete").expect_no_text("access-gain");
    // Without the section, topo does not know the permissions.
    plan(None, "topicPermissions: {}\n").expect_text(GAIN);
}

#[test]
fn patterns_for_every_routing_key_are_a_gain() {
    let changed = |write: &str, read: &str| {
        format!("topicPermissions: {{app: {{events: {{write: '{write}', read: '{read}'}}}}}}\n")
    };
    for pattern in [".*", "^.*$", ".+", "^"] {
        plan(Some(".*"), &changed(pattern, pattern)).expect_text(GAIN).expect_no_text("access-loss");
    }
    let partly = plan(Some(".*"), &changed(".*", "^b.c"));
    let partly = partly.expect_text("user app may publish with any routing key on exchange events");
    partly.expect_text("bind only with routing keys that match `^b.c`").expect_text("access-loss");
}
