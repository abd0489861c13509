//! Tests the settings of a vhost: description, tags and default queue type. A change of one setting keeps the others.

use serde_json::{Value, json};

use crate::support::{Node, Proxy, Topo, Vhost, writes};

/// Up to RabbitMQ 3.9.4, the description and the tags of an existing vhost cannot change.
fn can_change() -> bool {
    Node::shared().is_at_least_patch(3, 9, 5)
}

fn shown(vhost: &Vhost<'_>, field: &str) -> Value {
    vhost.http().get(&vhost.path("vhosts", &[])).expect_status(200)[field].clone()
}

fn no_changes(topo: &Topo) {
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

fn spec(settings: &str) -> String {
    format!("version: 1\nvhost: {{name: \"{{vhost}}\"{settings}}}\n")
}

#[test]
fn tags_are_set_on_a_new_vhost() {
    let vhost = Node::shared().vhost("tags-new");
    vhost.delete();
    let topo = Topo::new(&vhost).spec(&spec(", description: The shop, tags: [payments, eu]"));
    topo.run(["plan"]).expect_code(0).expect_text("\"The shop\" · tags eu, payments");
    topo.run(["apply", "-y"]).expect_code(0).expect_text("Verified: the broker matches the spec.");
    assert_eq!((shown(&vhost, "tags"), shown(&vhost, "description")), (json!(["eu", "payments"]), json!("The shop")));
    no_changes(&topo);
    let export = topo.run(["export", "--vhost", "{vhost}"]).expect_code(0);
    assert!(export.stdout.contains("tags: [eu, payments]"), "{export}");
    topo.write("topology.yaml", &export.stdout);
    no_changes(&topo);
}

#[test]
fn changes_of_other_settings_keep_the_tags() {
    let vhost = Node::shared().vhost("tags-change");
    vhost.recreate(&json!({"description": "old", "tags": "b,a"}));
    let topo = Topo::new(&vhost).spec(&spec(", tags: [a, b]"));
    // The order of tags is not significant.
    no_changes(&topo);
    topo.rewrite(&spec(", tags: [a, c]"));
    let plan = topo.run(["plan", "--detailed-exitcode"]);
    if !can_change() {
        plan.expect_code(3).expect_text("changing the tags on an existing vhost requires RabbitMQ 3.9.5");
        assert_eq!(shown(&vhost, "tags"), json!(["b", "a"]));
        return;
    }
    plan.expect_code(2).expect_text("[a, b] → [a, c]");
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!((shown(&vhost, "tags"), shown(&vhost, "description")), (json!(["a", "c"]), json!("old")));
    no_changes(&topo);
    // A change of the description keeps the tags, which the spec does not set.
    topo.rewrite(&spec(", description: new"));
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!((shown(&vhost, "tags"), shown(&vhost, "description")), (json!(["a", "c"]), json!("new")));
    if Node::shared().is_at_least_patch(3, 11, 17) {
        topo.rewrite(&spec(", defaultQueueType: quorum"));
        topo.run(["apply", "-y"]).expect_code(0);
        topo.rewrite(&spec(", tags: []"));
        topo.run(["apply", "-y"]).expect_code(0);
        let settings = ["tags", "description", "default_queue_type"].map(|field| shown(&vhost, field));
        assert_eq!(settings, [json!([]), json!("new"), json!("quorum")]);
        no_changes(&topo);
    }
}

#[test]
fn tags_outside_ascii_require_a_version() {
    let vhost = Node::shared().vhost("tags-unicode");
    vhost.delete();
    let topo = Topo::new(&vhost).spec(&spec(", tags: [zürich]"));
    let output = topo.run(["apply", "-y"]);
    if Node::shared().is_at_least_patch(3, 11, 5) {
        output.expect_code(0);
        assert_eq!(shown(&vhost, "tags"), json!(["zürich"]));
        no_changes(&topo);
    } else {
        output.expect_code(3).expect_text("tag `zürich` requires RabbitMQ 3.11.5");
    }
}

/// A spec cannot contain such a tag. A part of the tags would remove the others.
#[test]
fn tags_that_a_spec_cannot_contain_are_not_exported() {
    let file = json!({"rabbit_version": "4.0.5", "vhosts": [{"name": "v", "tags": ["a,b", "c"]}], "queues": []});
    let topo = Topo::offline().file("definitions.json", &file.to_string());
    let export = topo.run(["export", "--definitions=definitions.json"]).expect_code(0);
    assert!(!export.stdout.contains("\nvhost: {"), "{export}");
    assert!(export.stderr.contains("not in the spec: 2 vhost tags: a,b, c"), "{export}");
}

/// An import of the backup must not clear the settings of the vhost.
#[test]
fn backups_contain_the_settings() {
    let vhost = Node::shared().vhost("tags-backup");
    vhost.recreate(&json!({"description": "The shop", "tags": "b,a"}));
    let topo = Topo::new(&vhost).spec("queues: {q: {type: classic}}\n");
    topo.run(["apply", "-y"]).expect_code(0);
    topo.rewrite("queues: {other: {type: classic}}\nremoved: {queues: [q]}\n");
    topo.run(["apply", "-y", "--backup", "backup.json"]).expect_code(0);
    let backup: Value = serde_json::from_str(&topo.read("backup.json")).unwrap();
    let entry = &backup["vhosts"][0];
    assert_eq!((&entry["description"], &entry["tags"]), (&json!("The shop"), &json!(["a", "b"])), "{backup:#}");
}

#[test]
fn invalid_tags_are_reported() {
    let offline = Topo::offline();
    for tag in ["'a,b'", "''", "' a'"] {
        offline.write("topology.yaml", &format!("version: 1\nvhost: {{name: v, tags: [{tag}]}}\n"));
        offline.run(["validate"]).expect_code(65).expect_text("invalid tag").expect_text("topology.yaml:2:25");
    }
    offline.write("topology.yaml", "version: 1\nvhost: {name: v, tags: production}\n");
    offline.run(["validate"]).expect_code(65).expect_text("a list");
}

#[test]
fn tags_of_several_documents_are_merged() {
    let offline = Topo::offline();
    offline.write(
        "topology.yaml",
        "version: 1\nvhost: {name: v, tags: [a]}\n---\nversion: 1\nvhost: {name: v, tags: [b]}\n",
    );
    offline.run(["plan", "--against=empty"]).expect_code(0).expect_text("tags a, b");
}

/// The protection of a vhost is set, kept by other changes, and removed.
#[test]
fn deletion_protection_is_set_kept_and_removed() {
    let vhost = Node::shared().vhost("vhost-protection");
    let proxy = Proxy::to(Node::shared());
    let spec = |settings: &str| format!("version: 1\nvhost: {{name: \"{{vhost}}\", {settings}}}\n");
    let topo = Topo::new(&vhost).through(&proxy).spec(&spec("protectFromDeletion: true"));
    if !Node::shared().is_at_least_patch(4, 0, 6) {
        let text = "deletion protection requires RabbitMQ 4.0.6";
        topo.run(["plan", "--detailed-exitcode"]).expect_code(3).expect_text(text);
        return;
    }
    let is_protected = || {
        let found = vhost.http().get(&format!("/api/vhosts/{}", vhost.name())).expect_status(200);
        found["protected_from_deletion"].as_bool().unwrap()
    };
    let no_changes = || topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
    topo.run(["apply", "-y"]).expect_code(0).expect_text("Verified");
    assert!(is_protected());
    assert_eq!(vhost.http().delete(&format!("/api/vhosts/{}", vhost.name())).status, 412);
    no_changes();
    let written = proxy.count(&writes());
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(proxy.count(&writes()), written, "a second apply writes nothing");
    let exported = topo.run(["export", "--with=deletionProtection", "--vhost", vhost.name()]).expect_code(0);
    let exported = exported.expect_text("protectFromDeletion: true").stdout;
    // A change of the description keeps the protection. A spec without the key also keeps it.
    topo.rewrite(&spec("description: docks, protectFromDeletion: true"));
    topo.run(["apply", "-y"]).expect_code(0).expect_text("1 of 1 step done");
    assert!(is_protected());
    topo.rewrite(&spec("description: docks"));
    no_changes();
    let definitions = Node::shared().http().list("/api/definitions");
    topo.write("definitions.json", &definitions.to_string());
    topo.rewrite(&spec("protectFromDeletion: true"));
    topo.run(["plan", "--against=definitions.json", "--detailed-exitcode"]).expect_code(0);
    topo.rewrite(&spec("description: docks, protectFromDeletion: false"));
    topo.run(["apply", "-y"]).expect_code(0).expect_text("1 of 1 step done");
    assert!(!is_protected());
    no_changes();
    let two = spec("protectFromDeletion: true") + "---\n" + &spec("protectFromDeletion: false");
    topo.rewrite(&two);
    let text = "two documents set different values for the vhost's `protectFromDeletion`";
    topo.run(["validate", "topology.yaml"]).expect_code(65).expect_text(text);
    topo.write("topology.yaml", &exported);
    topo.run(["apply", "-y"]).expect_code(0);
    assert!(is_protected());
    vhost.http().delete(&format!("/api/vhosts/{}/deletion/protection", vhost.name())).expect_status(204);
}
