//! Writes and visibility of vhosts.

use serde_json::{Value, json};

use super::{Stage, since};
use crate::support::{Node, until};

/// Used by `plan::request`, which writes all fields of a vhost.
#[test]
fn put_clears_omitted_description_and_tags() {
    let stage = Stage::new("whole");
    let path = stage.path("vhosts", &[]);
    let shown = || {
        let vhost = stage.http.get(&path).expect_status(200);
        (vhost["description"].clone(), vhost["tags"].clone())
    };
    stage.vhost.recreate(&json!({"description": "d", "tags": "a,b"}));
    assert_eq!(shown(), (json!("d"), json!(["a", "b"])));
    stage.http.put(&path, &json!({"description": "e"})).expect_status(204);
    let tags = if since(3, 9) { json!([]) } else { json!(["a", "b"]) };
    let new = |text: &str| if since(3, 9) { json!(text) } else { json!("d") };
    assert_eq!(shown(), (new("e"), tags));
    stage.http.put(&path, &json!({"tags": "c"})).expect_status(204);
    let tags = if since(3, 9) { json!(["c"]) } else { json!(["a", "b"]) };
    assert_eq!(shown(), (new(""), tags));
}

/// Used by `plan::request`, which sends tags as a comma-separated string.
#[test]
fn all_versions_accept_tags_as_a_string() {
    let stage = Stage::new("tags");
    let path = stage.path("vhosts", &[]);
    for tags in [json!("a,b"), json!("")] {
        stage.vhost.recreate(&json!({"description": "", "tags": tags}));
        let expected = if tags == "" { json!([]) } else { json!(["a", "b"]) };
        assert_eq!(stage.http.get(&path).expect_status(200)["tags"], expected);
    }
}

/// Used by `plan::request`: versions without `defaultqueuetype` ignore this field.
#[test]
fn unknown_keys_are_ignored() {
    let stage = Stage::new("unknown-keys");
    stage.http.put(&stage.path("vhosts", &[]), &json!({"nonsense": 1})).expect_status(204);
    stage.put("queues", "q", json!({"durable": true, "nonsense": 1})).expect_created();
    stage.put("exchanges", "e", json!({"durable": true, "nonsense": 1})).expect_created();
    let policy = json!({"pattern": "x", "definition": {"max-length": 1}, "nonsense": 1});
    stage.put("policies", "p", policy).expect_created();
}

/// Used by `apply`: topo can continue in a vhost that it creates.
#[test]
fn vhost_creator_gets_full_permissions() {
    let node = Node::shared();
    let maker = node.user("administrator");
    let stage = Stage::new("made-by");
    let path = stage.path("vhosts", &[]);
    // A busy 3.8 closes connections that wait for more than a minute.
    let made = until("a new vhost", || {
        stage.vhost.delete();
        maker.http().send("PUT", &path, Some(&json!({}))).ok().filter(|answer| answer.status < 500)
    });
    made.expect_status(201);
    maker.http().put(&stage.path("queues", &["q"]), &json!({"durable": true})).expect_status(201);
    let granted = stage.http.get(&stage.path("permissions", &[&maker.name])).expect_status(200);
    assert_eq!(
        (&granted["configure"], &granted["write"], &granted["read"]),
        (&json!(".*"), &json!(".*"), &json!(".*"))
    );
}

/// Used by `broker::read`, which reads the list, never a single vhost.
#[test]
fn list_has_accessible_vhosts_and_a_single_vhost_requires_an_administrator() {
    let stage = Stage::new("reach");
    let user = Node::shared().user("management").may(&stage.vhost, "", "", "");
    let list = user.http().get("/api/vhosts?columns=name,description,tags,default_queue_type").expect_status(200);
    let names: Vec<&Value> = list.as_array().unwrap().iter().map(|vhost| &vhost["name"]).collect();
    assert_eq!(names, [stage.vhost.name()]);
    stage.reply(user.http().get(&stage.path("vhosts", &[]))).expect(401, "Not administrator user");
}

/// Used by `broker::read`: all lists of a missing vhost respond with 404, and so do writes.
#[test]
fn everything_of_a_missing_vhost_is_404() {
    let stage = Stage::new("missing");
    stage.vhost.delete();
    for kind in ["queues", "exchanges", "bindings", "policies", "operator-policies", "consumers", "vhosts"] {
        let reply = stage.reply(stage.http.get(&stage.path(kind, &[])));
        assert_eq!(reply.body["error"], "Object Not Found", "{kind}");
        reply.expect(404, "Not Found");
    }
    let exchange = json!({"type": "topic", "durable": true});
    for reply in [
        stage.queue("q", "classic", json!({})),
        stage.put("exchanges", "e", exchange),
        stage.put("policies", "p", json!({"pattern": "x", "definition": {"max-length": 1}})),
        stage.bind("e", "q", json!({"routing_key": "k"})),
    ] {
        assert_eq!(reply.body["error"], "not_found");
        reply.expect(404, "vhost_not_found");
    }
}
