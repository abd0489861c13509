//! The type of a queue that is declared without a type.

use serde_json::{Value, json};

use super::{Stage, since};

/// Creates a vhost with this default type, under both names of the setting.
fn defaulting_to(kind: &str) -> Stage {
    let stage = Stage::new("default-type");
    stage.vhost.recreate(&json!({"default_queue_type": kind, "defaultqueuetype": kind}));
    stage
}

fn default_of(stage: &Stage) -> Option<String> {
    let vhost = stage.http.get(&stage.path("vhosts", &[])).expect_status(200);
    vhost.get("default_queue_type").and_then(Value::as_str).map(str::to_owned)
}

/// Used by `diff` and `plan::verdict`: the argument exists although the client does not send it.
#[test]
fn type_is_added_to_the_arguments_since_4_0() {
    let stage = Stage::new("injected");
    stage.queue("q", "", json!({})).expect_created();
    let expected = if since(4, 0) { json!({"x-queue-type": "classic"}) } else { json!({}) };
    assert_eq!(stage.listed("q")["arguments"], expected);
    assert_eq!(stage.listed("q")["type"], "classic");
}

/// Used by `plan::request`, which sends the type of every queue.
#[test]
fn vhost_has_a_default_type_since_3_10() {
    let stage = defaulting_to("quorum");
    stage.queue("q", "", json!({})).expect_created();
    assert_eq!(stage.listed("q")["type"], if since(3, 10) { "quorum" } else { "classic" });
    // A queue that the default type does not support is classic.
    stage.put("queues", "transient", json!({"durable": true, "auto_delete": true})).expect_created();
    assert_eq!(stage.listed("transient")["type"], "classic");
}

/// Used by `broker::lock`, which declares the lock as a classic queue.
#[test]
fn explicit_type_takes_precedence_over_the_default() {
    let stage = defaulting_to("quorum");
    stage.queue("q", "classic", json!({})).expect_created();
    assert_eq!(stage.listed("q")["type"], "classic");
}

/// Used by `broker::snapshot`, which reads the fields of a vhost without a default type.
#[test]
fn missing_default_type_is_undefined_before_4_0() {
    let shown = default_of(&Stage::new("undefined"));
    let expected = match (since(3, 10), since(4, 0)) {
        (_, true) => Some("classic"),
        (true, _) => Some("undefined"),
        (false, _) => None,
    };
    assert_eq!(shown.as_deref(), expected);
}

/// Used by `plan::conflict` for the info about applications that redeclare existing queues without a type.
#[test]
fn new_default_type_conflicts_with_old_queues_since_4_0() {
    let stage = Stage::new("changed-type");
    stage.queue("q", "", json!({})).expect_created();
    stage.http.put(&stage.path("vhosts", &[]), &json!({"default_queue_type": "quorum"})).expect_status(204);
    let reply = stage.queue("q", "", json!({}));
    if since(4, 0) {
        reply.expect_difference("x-queue-type", "received 'quorum' but current is 'classic'");
    } else {
        reply.expect_no_content();
    }
    stage.queue("q", "classic", json!({})).expect_no_content();
}

/// Used by `plan::request`, which sends both names, because 3.10 supports only the first, and only at creation.
#[test]
fn default_type_has_two_names() {
    for (name, when_made, later) in
        [("default_queue_type", since(4, 0), since(4, 0)), ("defaultqueuetype", since(3, 10), since(4, 0))]
    {
        let stage = Stage::new("two-names");
        let path = stage.path("vhosts", &[]);
        stage.http.put(&path, &json!({name: "quorum"})).expect_status(204);
        assert_eq!(default_of(&stage).as_deref() == Some("quorum"), later, "{name} of an existing vhost");
        stage.vhost.recreate(&json!({name: "quorum"}));
        assert_eq!(default_of(&stage).as_deref() == Some("quorum"), when_made, "{name} of a new vhost");
    }
}

/// Used by `plan::request`, which sends an unchanged default type again.
#[test]
fn omitted_default_type_is_reset_since_4_1() {
    let stage = defaulting_to("quorum");
    stage.http.put(&stage.path("vhosts", &[]), &json!({"description": "d"})).expect_status(204);
    let left = match (since(3, 10), since(4, 1)) {
        (false, _) => None,
        // 4.1.0 still keeps it.
        (true, false) => Some("quorum"),
        (true, true) => Some("classic"),
    };
    assert_eq!(default_of(&stage).as_deref(), left);
}

/// Used by `plan::request`: only the newest versions refuse an unknown type.
#[test]
fn default_type_is_validated_since_4_3() {
    let stage = Stage::new("bogus-type");
    let reply = stage.reply(stage.http.put(&stage.path("vhosts", &[]), &json!({"default_queue_type": "bogus"})));
    if since(4, 3) {
        reply.expect_refusal("bogus is not a valid queue type");
    } else {
        reply.expect_no_content();
    }
}
