//! Tests objects that an import of definitions creates and that no client can declare.

use serde_json::{Value, json};

use super::export::round_trip::{exported, plans_to_nothing};
use crate::support::{Node, Options, Topo, Vhost, until};

/// Imports objects into a vhost unchanged.
fn import(vhost: &Vhost<'_>, mut definitions: Value) {
    for list in definitions.as_object_mut().unwrap().values_mut() {
        for object in list.as_array_mut().unwrap() {
            object["vhost"] = vhost.name().into();
        }
    }
    vhost.http().post("/api/definitions", &definitions).expect_status(204);
}

/// Returns a spec without its comments, which depend on the source.
fn without_comments(spec: &str) -> String {
    spec.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n")
}

/// Up to 4.0, the broker stores `undefined` for the missing field, and never deletes such an exchange automatically.
#[test]
fn exchange_without_auto_delete_is_read() {
    let vhost = Node::shared().vhost("undefined");
    import(&vhost, json!({"exchanges": [{"name": "events", "type": "topic", "durable": true, "arguments": {}}]}));
    let queue = json!({"durable": true, "arguments": {"x-queue-type": "classic"}});
    vhost.http().put(&vhost.path("queues", &["work"]), &queue).expect_status(201);
    let binding = vhost.path("bindings", &["e", "events", "q", "work"]);
    vhost.http().post(&binding, &json!({"routing_key": "a"})).expect_status(201);
    let auto_delete = vhost.exchange("events")["auto_delete"].clone();
    println!("auto_delete is listed as {auto_delete}");
    // The broker keeps such an exchange, but refuses every redeclaration, with either value.
    let declared = vhost.amqp().declare_exchange("events", "topic", &[]);
    let refusal = declared.err();
    assert_eq!(auto_delete.is_boolean(), refusal.is_none(), "{refusal:?}");

    let text = exported(&vhost);
    assert!(text.contains("events: {type: topic}"), "{text}");
    plans_to_nothing(&vhost, &text);
    let unchanged = Topo::new(&vhost).spec(&text);
    let plan = unchanged.run(["plan", "--detailed-exitcode"]).expect_code(0);
    let recreate = format!("exchanges/{}/events=discard", vhost.name());
    match &refusal {
        None => drop(plan.expect_no_text("auto_delete")),
        Some(refusal) => {
            // The plan quotes the refusal, and the suggested command repairs the exchange with its bindings.
            let start = "inequivalent arg 'auto_delete' for exchange 'events'";
            let end = "received 'false' but current is none";
            assert!(refusal.contains(start) && refusal.contains(end), "{refusal}");
            let plan = plan.expect_text("it was imported without auto_delete");
            plan.expect_text(start).expect_text(end).expect_text(&format!("--recreate {recreate}"));
            unchanged.run(["apply", "--yes", "--recreate", &recreate, "--allow", "routing-gap"]).expect_code(0);
            vhost.amqp().declare_exchange("events", "topic", &[]).unwrap();
            unchanged.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_no_text("auto_delete");
        }
    }
    let topo = Topo::new(&vhost).spec("exchanges: {events: {type: fanout}}\nqueues: {work: {type: classic}}");
    topo.run(["plan"]).expect_text("inequivalent arg 'type' for exchange 'events'");
    topo.run(["apply", "--yes", "--recreate", &recreate, "--allow", "routing-gap"]).expect_code(0);
    assert_eq!(vhost.exchange("events")["auto_delete"], false);
}

/// If the broker has no default for a missing field, the broker and topo refuse the file. If it has a default, both use
/// it.
#[test]
fn defaults_of_missing_fields_are_those_of_the_broker() {
    // Uses a separate node, because some of these objects and their vhost cannot be deleted.
    let node = Node::start(Options::default());
    let version = node.version();
    let whole = [
        ("queues", json!({"name": "q", "durable": true, "auto_delete": false, "arguments": {}})),
        (
            "exchanges",
            json!({"name": "e", "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": {}}),
        ),
        (
            "bindings",
            json!({
                "source": "amq.topic", "destination": "to", "destination_type": "queue", "routing_key": "k",
                "arguments": {},
            }),
        ),
        (
            "policies",
            json!({
                "name": "p", "pattern": "^to$", "apply-to": "queues", "definition": {"max-length": 5}, "priority": 0,
            }),
        ),
    ];
    for (list, whole) in whole {
        // An object without its identity breaks its vhost, so topo refuses the file.
        let identity = ["name", "source", "destination"];
        for missing in whole.as_object().unwrap().keys().filter(|missing| !identity.contains(&missing.as_str())) {
            let vhost = node.vhost("defaults");
            let to = json!({"durable": true, "arguments": {"x-queue-type": "classic"}});
            vhost.http().put(&vhost.path("queues", &["to"]), &to).expect_status(201);
            let mut object = whole.clone();
            object.as_object_mut().unwrap().remove(missing);
            let file = |vhost: &str| {
                let mut object = object.clone();
                object["vhost"] = vhost.into();
                let to = json!({"name": "to", "vhost": vhost, "durable": true, "auto_delete": false, "arguments": to["arguments"]});
                let mut file = json!({
                    "vhosts": [{"name": vhost}], "queues": [to], "exchanges": [], "bindings": [], "policies": [],
                });
                file[list].as_array_mut().unwrap().push(object);
                file
            };
            let imported = vhost.http().post("/api/definitions", &file(vhost.name()));
            let topo = Topo::new(&vhost).file("definitions.json", &file(vhost.name()).to_string());
            let flags = ["export", "--definitions", "definitions.json", "--broker-version", version, "--quiet"];
            let read = topo.run(flags);
            let what = format!("{list} without {missing} on {version}: {imported:?}\n{read}");
            assert_eq!(imported.is_success(), read.code == Some(0), "{what}");
            if imported.is_success() {
                // From 4.0 on, the broker adds the type of a queue, as the spec does.
                assert_eq!(without_comments(&exported(&vhost)), without_comments(&read.stdout), "{what}");
                plans_to_nothing(&vhost, &read.stdout);
            } else {
                read.expect_code(65)
                    .expect_text(&format!("missing field `{missing}`"))
                    .expect_text("(line 1)")
                    .expect_text(object["name"].as_str().or(object["source"].as_str()).unwrap_or("amq.topic"));
            }
        }
    }
}

/// The broker imports objects of an existing vhost even if the file does not list the vhost.
#[test]
fn objects_of_a_vhost_that_the_file_does_not_list_are_imported_and_exported() {
    let node = Node::shared();
    let vhost = node.vhost("unlisted");
    let name = vhost.name();
    let file = json!({
        "vhosts": [],
        "queues": [{"name": "work", "vhost": name, "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "classic"}}],
        "exchanges": [{"name": "events", "vhost": name, "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": {}}],
        "bindings": [{"source": "events", "vhost": name, "destination": "work", "destination_type": "queue", "routing_key": "a", "arguments": {}}],
        "policies": [{"name": "p", "vhost": name, "pattern": "^work$", "apply-to": "queues", "priority": 1, "definition": {"max-length": 9}}],
        "parameters": [{"component": "operator_policy", "vhost": name, "name": "cap",
            "value": {"pattern": "^work$", "apply-to": "queues", "priority": 1, "definition": {"max-length": 5}}}],
        "permissions": [{"user": "guest", "vhost": name, "configure": "^$", "write": "^$", "read": ".*"}],
        "topic_permissions": [{"user": "guest", "vhost": name, "exchange": "amq.topic", "write": "^$", "read": ".*"}],
    });
    vhost.http().post("/api/definitions", &file).expect_status(204);
    until("the policies to govern", || {
        (vhost.queue("work")["effective_policy_definition"]["max-length"] == 5).then_some(())
    });
    let live = exported(&vhost);
    let topo = Topo::new(&vhost).file("definitions.json", &file.to_string());
    let from_file = ["export", "--definitions", "definitions.json", "--broker-version", node.version()];
    let read = topo.run(from_file).expect_code(0);
    assert_eq!(without_comments(&live), without_comments(&read.stdout), "{read}");
    plans_to_nothing(&vhost, &read.stdout);

    let only_beside = json!({"vhosts": [], "parameters": file["parameters"], "permissions": file["permissions"], "topic_permissions": file["topic_permissions"]});
    let other = node.vhost("beside");
    let only_beside = only_beside.to_string().replace(name, other.name());
    other.http().send_text("POST", "/api/definitions", &only_beside).expect_status(204);
    let topo = Topo::new(&other).file("definitions.json", &only_beside);
    let [from_file, from_broker] = [&from_file[..], &["export", "--vhost", other.name()]]
        .map(|words| topo.run(words.iter().copied()).expect_code(0));
    for output in [from_file, from_broker] {
        for left_out in ["operator policy: cap", "permission: guest", "topic permission: guest"] {
            assert!(output.stderr.contains(left_out), "{output}");
        }
    }
}

/// Any client can declare such arguments, because one request or frame can contain thousands of levels.
#[test]
fn deeply_nested_arguments_do_not_stop_a_vhost() {
    let vhost = Node::shared().vhost("deep");
    let nested = |levels: usize| {
        let mut value = json!("end");
        for _ in 0..levels {
            value = json!([value]);
        }
        value
    };
    let http = vhost.http();
    for (name, levels) in [("shallow", 10), ("deep", 65), ("abyss", 120)] {
        let arguments = json!({"x-queue-type": "classic", "x-nested": nested(levels)});
        http.put(&vhost.path("queues", &[name]), &json!({"durable": true, "arguments": arguments})).expect_status(201);
    }
    let brackets = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let body = format!(r#"{{"durable":true,"arguments":{{"x-nested":{}}}}}"#, brackets(20_000));
    http.send_text("PUT", &vhost.path("queues", &["bottomless"]), &body).expect_status(201);
    // With 20,000 levels in a binding, 3.10.8 crashes with a segmentation fault.
    let body = format!(r#"{{"routing_key":"k","arguments":{{"x-nested":{}}}}}"#, brackets(200));
    http.send_text("POST", &vhost.path("bindings", &["e", "amq.topic", "q", "shallow"]), &body).expect_status(201);
    // With 200,000 values, 3.8.9 needs minutes to delete the queue on a busy machine.
    let wide = if Node::shared().at_least(3, 10) { 200_000 } else { 20_000 };
    let body = format!(r#"{{"durable":true,"arguments":{{"x-wide":[{}1]}}}}"#, "1,".repeat(wide));
    http.send_text("PUT", &vhost.path("queues", &["wide"]), &body).expect_status(201);
    let output = Topo::new(&vhost).run(["export", "--vhost", "{vhost}"]).expect_code(0);
    plans_to_nothing(&vhost, &output.stdout);
    assert!(output.stdout.contains("shallow:"), "{output}");
    for name in ["abyss", "deep", "bottomless", "wide"] {
        assert!(output.says(name), "{output}");
        assert!(!output.stdout.contains(&format!("  {name}:")), "{output}");
        assert!(output.says("a value has more than 64 levels or 10,000 values, or takes too much memory"), "{output}");
    }
    // A conflict shows the arguments. topo refuses a recreation that would lose a truncated value.
    let topo =
        Topo::new(&vhost).spec("queues: {deep: {type: classic, maxLength: 5}, shallow: {type: classic, maxLength: 5}}");
    topo.run(["plan"]).expect_code(0).expect_text("inequivalent arg 'x-max-length' for queue 'deep'");
    for (name, why) in [
        (
            "deep",
            "topo cannot recreate queue deep: one of its arguments has more than 64 levels or 10,000 values, or takes \
             too much memory",
        ),
        ("shallow", "one of its arguments has more than 64 levels"),
    ] {
        let recreate = format!("queues/{}/{name}=discard", vhost.name());
        topo.run(["plan", "--recreate", &recreate]).expect_text(why);
    }
    topo.rewrite("owns: ['*']\nqueues: {shallow: {type: classic, arguments: {x-nested: [[[[[[[[[[end]]]]]]]]]]}}}");
    let prune = ["apply", "--yes", "--prune", "--allow", "routing-gap,routing-loss", "--backup", "backup.json"];
    let output = topo.run(prune).expect_code(0);
    // topo would restore a truncated value incorrectly.
    for left_out in
        ["queue abyss", "queue bottomless", "queue deep", "queue wide", "binding amq.topic ─ k {x-nested: …} → shallow"]
    {
        let line = output.stderr.lines().find(|line| line.starts_with("warning: the backup does not contain"));
        assert!(line.is_some_and(|line| line.contains(left_out)), "{left_out}: {output}");
    }
    assert!(!topo.read("backup.json").contains('…'), "{}", topo.read("backup.json"));
    assert_eq!(vhost.names("queues"), ["shallow"]);
}
