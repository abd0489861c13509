//! Operator policies: which are accepted, who may write them, and what they do.

use serde_json::{Value, json};

use super::{Stage, since};
use crate::support::{NONE, Node};

/// `model::record_kinds`: one PUT writes all fields, and what it leaves out gets its default.
#[test]
fn an_operator_policy_is_written_over_in_place() {
    let stage = Stage::new("operator-written");
    let full = json!({"pattern": "x", "apply-to": "queues", "priority": 3, "definition": {"max-length": 1}});
    stage.put("operator-policies", "p", full).created();
    let short = json!({"pattern": "y", "definition": {"expires": 1000}});
    stage.put("operator-policies", "p", short.clone()).taken();
    let listed = stage.get("operator-policies", "p");
    assert_eq!(
        ["pattern", "apply-to", "priority", "definition"].map(|key| &listed[key]),
        [&json!("y"), &json!("all"), &json!(0), &json!({"expires": 1000})]
    );
    stage.put("operator-policies", "p", short).taken();
    stage.delete("operator-policies", "p").taken();
    let again = stage.delete("operator-policies", "p");
    assert_eq!(again.status, 404, "{again:?}");
}

/// `rabbitmq::declare::record`: an operator policy can only set limits.
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
        let said = put(definition.clone());
        if is_known {
            said.taken();
        } else {
            assert_eq!(said.status, 400, "{definition}");
            assert!(said.words.contains("are not recognised policy settings"), "{said:?}");
        }
    }
}

/// `model::record_kinds`: the tags.
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

/// `plan::effects`: an operator policy acts on live queues at once, and bounds their policy and their arguments.
#[test]
fn an_operator_policy_acts_at_once() {
    let stage = Stage::new("operator-acts");
    let amqp = stage.amqp();
    amqp.declare_queue("q", NONE).unwrap();
    (0..6).for_each(|_| drop(amqp.publish("", "q", "m")));
    stage.policy("limit", 0.0, json!({"max-length": 50})).created();
    let body = json!({"pattern": "^q$", "apply-to": "queues", "definition": {"max-length": 2}});
    stage.put("operator-policies", "bound", body).created();
    stage.vhost.until_counted("q", 2);
}
