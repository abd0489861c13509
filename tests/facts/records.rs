//! Operator policies, limits and global parameters: accepted values, required tags, and effects.

use serde_json::{Value, json};

use super::{Stage, since};
use crate::support::{NONE, Node};

/// Used by `model::record_kinds`: a PUT writes all fields and resets omitted fields.
#[test]
fn operator_policy_is_overwritten_in_place() {
    let stage = Stage::new("operator-written");
    let full = json!({"pattern": "x", "apply-to": "queues", "priority": 3, "definition": {"max-length": 1}});
    stage.put("operator-policies", "p", full).expect_created();
    let short = json!({"pattern": "y", "definition": {"expires": 1000}});
    stage.put("operator-policies", "p", short.clone()).expect_no_content();
    let listed = stage.get("operator-policies", "p");
    assert_eq!(
        ["pattern", "apply-to", "priority", "definition"].map(|key| &listed[key]),
        [&json!("y"), &json!("all"), &json!(0), &json!({"expires": 1000})]
    );
    stage.put("operator-policies", "p", short).expect_no_content();
    stage.delete("operator-policies", "p").expect_no_content();
    let again = stage.delete("operator-policies", "p");
    assert_eq!(again.status, 404, "{again:?}");
}

/// Used by `rabbitmq::declare::record`: an operator policy can only set limits.
#[test]
fn keys_of_an_operator_policy_are_limits() {
    let stage = Stage::new("operator-keys");
    let put =
        |definition: Value| stage.put("operator-policies", "p", json!({"pattern": "x", "definition": definition}));
    let always = ["expires", "message-ttl", "max-length", "max-length-bytes", "max-in-memory-length"];
    for key in always.into_iter().chain(["max-in-memory-bytes", "delivery-limit"]) {
        assert!(matches!(put(json!({key: 1000})).status, 201 | 204), "{key}");
    }
    for (definition, is_known) in [
        (json!({"queue-version": 2}), since(3, 12)),
        (json!({"overflow": "reject-publish"}), since(3, 12)),
        (json!({"target-group-size": 3}), since(3, 13)),
        (json!({"dead-letter-exchange": "x"}), false),
        (json!({"alternate-exchange": "x"}), false),
        (json!({"ha-mode": "all"}), false),
    ] {
        let reply = put(definition.clone());
        if is_known {
            reply.expect_no_content();
        } else {
            assert_eq!(reply.status, 400, "{definition}");
            assert!(reply.words.contains("are not recognised policy settings"), "{reply:?}");
        }
    }
}

/// Used by `model::record_kinds` for the required tags.
#[test]
fn only_administrators_write_operator_policies() {
    let stage = Stage::new("operator-rights");
    let path = stage.path("operator-policies", &["p"]);
    let body = json!({"pattern": "x", "definition": {"max-length": 1}});
    for tag in ["management", "policymaker", "monitoring"] {
        let user = Node::shared().user(tag).may_everything(&stage.vhost);
        assert_eq!(user.http().put(&path, &body).status, 401, "{tag}");
        assert_eq!(user.http().get(&stage.path("operator-policies", &[])).expect_status(200), json!([]), "{tag}");
    }
    let user = Node::shared().user("administrator").may_everything(&stage.vhost);
    assert_eq!(user.http().put(&path, &body).status, 201);
}

/// Used by `plan::effects`: an operator policy affects existing queues immediately, and limits their policies and
/// arguments.
#[test]
fn operator_policy_is_effective_immediately() {
    let stage = Stage::new("operator-acts");
    let amqp = stage.amqp();
    amqp.declare_queue("q", NONE).unwrap();
    for _ in 0..6 {
        amqp.publish("", "q", "m");
    }
    stage.policy("limit", 0.0, json!({"max-length": 50})).expect_created();
    let body = json!({"pattern": "^q$", "apply-to": "queues", "definition": {"max-length": 2}});
    stage.put("operator-policies", "bound", body).expect_created();
    stage.vhost.until_counted("q", 2);
}

/// Used by `model::record_kinds`: each limit is a separate number, and a negative number means no limit.
#[test]
fn vhost_limit_is_an_integer() {
    let stage = Stage::new("limits");
    let put = |name: &str, value: Value| stage.put("vhost-limits", name, json!({"value": value}));
    for name in ["max-connections", "max-queues"] {
        for value in [5, 0, -1, -7] {
            put(name, json!(value)).expect_no_content();
        }
        for value in [json!(1.5), json!("5"), json!(null)] {
            assert_eq!(put(name, value.clone()).status, 400, "{value}");
        }
    }
    let unknown = put("max-channels", json!(5));
    assert_eq!(unknown.status, 400, "{unknown:?}");
    let listed = stage.http.get(&stage.path("vhost-limits", &[])).expect_status(200);
    assert_eq!(listed[0]["value"], json!({"max-connections": -7, "max-queues": -7}));
    stage.delete("vhost-limits", "max-queues").expect_no_content();
    stage.delete("vhost-limits", "max-queues").expect_no_content();
    stage.delete("vhost-limits", "max-connections").expect_no_content();
    let listed = stage.http.get(&stage.path("vhost-limits", &[])).expect_status(200);
    let rest = listed.get(0).map_or(&json!({}), |entry| &entry["value"]).clone();
    assert!([json!([]), json!({})].contains(&rest), "{listed}");
}

/// Used by `plan::optional_activity`: existing objects remain above a limit, and the broker refuses the next one.
#[test]
fn queue_limit_refuses_new_queues() {
    let stage = Stage::new("limits-queues");
    stage.queue("a", "classic", json!({})).expect_created();
    stage.queue("b", "classic", json!({})).expect_created();
    stage.put("vhost-limits", "max-queues", json!({"value": 1})).expect_no_content();
    stage.queue("a", "classic", json!({})).expect_no_content();
    let refused = stage.queue("c", "classic", json!({}));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.words.contains("queue limit"), "{refused:?}");
    assert_eq!(stage.vhost.names("queues"), ["a", "b"]);
}

#[test]
fn only_administrators_write_limits() {
    let stage = Stage::new("limits-rights");
    let path = stage.path("vhost-limits", &["max-queues"]);
    for tag in ["management", "policymaker", "monitoring"] {
        let user = Node::shared().user(tag).may_everything(&stage.vhost);
        assert_eq!(user.http().put(&path, &json!({"value": 5})).status, 401, "{tag}");
        assert_eq!(user.http().get(&stage.path("vhost-limits", &[])).status, 200, "{tag}");
    }
}

/// Used by `model::record_kinds`: one list of the cluster contains all user limits. Some versions do not support them,
/// and the user must exist.
#[test]
fn user_limit_requires_an_existing_user() {
    let node = Node::shared();
    let (http, user) = (node.http(), node.user(""));
    let put = |user: &str, name: &str, value: Value| {
        http.put(&format!("/api/user-limits/{user}/{name}"), &json!({"value": value}))
    };
    if !node.is_at_least_patch(3, 8, 10) {
        assert_eq!(http.get("/api/user-limits").status, 404);
        assert_eq!(put(&user.name, "max-channels", json!(5)).status, 405);
        return;
    }
    for name in ["max-connections", "max-channels"] {
        put(&user.name, name, json!(5)).expect_status(204);
        put(&user.name, name, json!(-3)).expect_status(204);
    }
    assert_eq!(put(&user.name, "max-queues", json!(5)).status, 400);
    let missing = put("unknown-user", "max-channels", json!(5)).expect_status(400);
    assert_eq!(missing["reason"], json!(["no_such_user", "unknown-user"]));
    let of_user = || {
        let listed = http.get("/api/user-limits").expect_status(200);
        listed.as_array().unwrap().iter().find(|entry| entry["user"] == *user.name).cloned()
    };
    assert_eq!(of_user().unwrap()["value"], json!({"max-channels": -3, "max-connections": -3}));
    for name in ["max-connections", "max-channels", "max-channels"] {
        http.delete(&format!("/api/user-limits/{}/{name}", user.name)).expect_status(204);
    }
    assert_eq!(of_user(), None);
}

/// Used by `model::record_kinds` for the required tags. Only administrators can see whether a user exists.
#[test]
fn only_administrators_write_limits_of_users() {
    let node = Node::shared();
    if !node.is_at_least_patch(3, 8, 10) {
        return;
    }
    let user = node.user("");
    for tag in ["management", "policymaker", "monitoring"] {
        let tagged = node.user(tag);
        let http = tagged.http();
        let path = format!("/api/user-limits/{}/max-channels", user.name);
        assert_eq!(http.put(&path, &json!({"value": 5})).status, 401, "{tag}");
        assert_eq!(http.get("/api/users?columns=name").status, 401, "{tag}");
        let listed = if node.at_least(4, 3) { 401 } else { 200 };
        assert_eq!(http.get("/api/user-limits").status, listed, "{tag}");
    }
}

/// Used by `model::record_kinds`: a value can be of any JSON type, and nested values can be null. Reading and writing
/// requires the tag `policymaker` or `administrator`.
#[test]
fn policymaker_sets_global_parameters_of_any_type() {
    let stage = Stage::new("global-parameters");
    let path = format!("/api/global-parameters/{}", stage.vhost.name());
    let values = [
        (json!({"team": "payments", "n": [1, 2.5, true]}), None),
        (json!("text"), None),
        (json!(5), None),
        (json!(1.0), None),
        (json!([{"a": 1}, {"b": null}]), None),
        (json!([]), None),
        // An empty object is listed as an empty list.
        (json!({}), Some(json!([]))),
        (json!({"a": {}}), None),
    ];
    for (value, listed) in values {
        let put = stage.http.put(&path, &json!({"value": value}));
        assert!(matches!(put.status, 201 | 204), "{value}: {put:?}");
        let read = stage.http.get(&path).expect_status(200);
        assert_eq!(read["value"], listed.unwrap_or(value));
    }
    assert_eq!(stage.http.put(&path, &json!({})).status, 400, "a PUT without a value");
    let listed = stage.http.get("/api/global-parameters").expect_status(200);
    assert!(listed.as_array().unwrap().iter().any(|it| it["name"] == stage.vhost.name()), "{listed}");
    for (tags, is_allowed) in [("management", false), ("monitoring", false), ("policymaker", true)] {
        let user = Node::shared().user(tags);
        let http = user.http();
        assert_eq!(http.get("/api/global-parameters").status == 200, is_allowed, "{tags}");
        assert_eq!(http.put(&path, &json!({"value": 1})).status == 204, is_allowed, "{tags}");
    }
    stage.http.delete(&path).expect_status(204);
    assert_eq!(stage.http.delete(&path).status, 404);
}
