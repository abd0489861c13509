//! The type of a queue that is declared without one.

use serde_json::{Value, json};

use super::{Stage, since};

/// A vhost that was made with a default type, by both names of the setting.
fn defaulting_to(kind: &str) -> Stage {
    let stage = Stage::new("default-type");
    stage.vhost.recreate(&json!({"default_queue_type": kind, "defaultqueuetype": kind}));
    stage
}

fn default_of(stage: &Stage) -> Option<String> {
    let vhost = stage.http.get(&stage.path("vhosts", &[])).expect_status(200);
    vhost.get("default_queue_type").and_then(Value::as_str).map(str::to_owned)
}

/// `diff`, `plan::verdict::is_equal`: the argument is there without having been sent.
#[test]
fn the_type_is_written_into_the_arguments_since_4_0() {
    let stage = Stage::new("injected");
    stage.queue("q", "", json!({})).created();
    let expected = if since(4, 0) { json!({"x-queue-type": "classic"}) } else { json!({}) };
    assert_eq!(stage.listed("q")["arguments"], expected);
    assert_eq!(stage.listed("q")["type"], "classic");
}

/// `plan::request`: topo says the type of every queue.
#[test]
fn a_vhost_has_a_default_type_since_3_10() {
    let stage = defaulting_to("quorum");
    stage.queue("q", "", json!({})).created();
    assert_eq!(stage.listed("q")["type"], if since(3, 10) { "quorum" } else { "classic" });
    // Not where it could not be: the queue becomes a classic one.
    stage.put("queues", "transient", json!({"durable": true, "auto_delete": true})).created();
    assert_eq!(stage.listed("transient")["type"], "classic");
}

/// `broker::lock`: the lock says that it is classic.
#[test]
fn a_type_that_is_said_wins_over_the_default() {
    let stage = defaulting_to("quorum");
    stage.queue("q", "classic", json!({})).created();
    assert_eq!(stage.listed("q")["type"], "classic");
}

/// `broker::snapshot`: what a vhost without a default shows.
#[test]
fn no_default_type_is_shown_as_undefined_before_4_0() {
    let shown = default_of(&Stage::new("undefined"));
    let expected = match (since(3, 10), since(4, 0)) {
        (_, true) => Some("classic"),
        (true, _) => Some("undefined"),
        (false, _) => None,
    };
    assert_eq!(shown.as_deref(), expected);
}

/// `plan::conflict`: the note about applications that declare existing queues without a type.
#[test]
fn a_new_default_type_makes_old_queues_unequal_since_4_0() {
    let stage = Stage::new("changed-type");
    stage.queue("q", "", json!({})).created();
    stage.http.put(&stage.path("vhosts", &[]), &json!({"default_queue_type": "quorum"})).expect_status(204);
    let said = stage.queue("q", "", json!({}));
    if since(4, 0) {
        said.unequal("x-queue-type", "received 'quorum' but current is 'classic'");
    } else {
        said.taken();
    }
    stage.queue("q", "classic", json!({})).taken();
}

/// `plan::request`: two names, because 3.10 knows the first alone, and only when the vhost is made.
#[test]
fn the_default_type_has_two_names() {
    for (name, when_made, later) in
        [("default_queue_type", since(4, 0), since(4, 0)), ("defaultqueuetype", since(3, 10), since(4, 0))]
    {
        let stage = Stage::new("two-names");
        let path = stage.path("vhosts", &[]);
        stage.http.put(&path, &json!({name: "quorum"})).expect_status(204);
        assert_eq!(default_of(&stage).as_deref() == Some("quorum"), later, "{name} of a vhost that is there");
        stage.vhost.recreate(&json!({name: "quorum"}));
        assert_eq!(default_of(&stage).as_deref() == Some("quorum"), when_made, "{name} of a new vhost");
    }
}

/// `plan::request`: a default type that is not to change must be sent again.
#[test]
fn a_default_type_that_is_left_out_is_lost_since_4_1() {
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

/// `plan::request`: a type that does not exist is refused by the newest only.
#[test]
fn a_default_type_is_validated_since_4_3() {
    let stage = Stage::new("bogus-type");
    let said = stage.said(stage.http.put(&stage.path("vhosts", &[]), &json!({"default_queue_type": "bogus"})));
    if since(4, 3) {
        said.refused("bogus is not a valid queue type");
    } else {
        said.taken();
    }
}
