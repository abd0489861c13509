//! Tests global parameters in a spec: topo sets, changes, deletes, prunes and exports them.

use serde_json::{Value, json};

use super::cluster::topo;
use crate::support::vhost::segment;
use crate::support::{Node, Proxy, Topo, Vhost, gets, writes};

/// Deletes a global parameter at the end of a test. Its name begins with the name of the test's vhost, which is unique.
struct Parameter {
    name: String,
}

impl Parameter {
    fn of(vhost: &Vhost<'_>) -> Self {
        Self { name: vhost.name().to_owned() }
    }

    fn path(&self) -> String {
        format!("/api/global-parameters/{}", segment(&self.name))
    }

    /// Returns the value on the broker; null if the parameter does not exist.
    fn value(&self) -> Value {
        let answer = Node::shared().http().get(&self.path());
        if answer.status == 404 { Value::Null } else { answer.expect_status(200)["value"].clone() }
    }

    fn set(&self, value: &Value) {
        assert!(Node::shared().http().put(&self.path(), &json!({"value": value})).is_success(), "{value}");
    }
}

impl Drop for Parameter {
    fn drop(&mut self) {
        let _ = Node::shared().http().send("DELETE", &self.path(), None);
    }
}

/// Returns a cluster document with this value of the test's parameter.
fn declared(vhost: &Vhost<'_>, value: &str) -> String {
    format!("version: 1\ncluster: {{}}\nglobalParameters:\n  {}: {value}\n", vhost.name())
}

fn no_changes(topo: &Topo) {
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn global_parameters_are_set_changed_and_deleted() {
    let vhost = Node::shared().vhost("global");
    let parameter = Parameter::of(&vhost);
    let proxy = Proxy::to(Node::shared());
    let topo = topo(&vhost).through(&proxy).spec(&declared(&vhost, "{team: payments}"));
    let line = format!("+ global parameter {}", vhost.name());
    topo.run(["plan"]).expect_code(0).expect_text(&line).expect_text("Plan: 1 object to create");
    let values = ["{team: payments}", "{team: shop, on-call: [a, b], level: 2}", "text", "5", "[1, 2.5, true]", "{}"];
    for yaml in values {
        let value = match yaml {
            "{team: payments}" => json!({"team": "payments"}),
            "{team: shop, on-call: [a, b], level: 2}" => json!({"team": "shop", "on-call": ["a", "b"], "level": 2}),
            "text" => json!("text"),
            "5" => json!(5),
            "[1, 2.5, true]" => json!([1, 2.5, true]),
            // The broker lists an empty object as an empty list.
            _ => json!([]),
        };
        topo.rewrite(&declared(&vhost, yaml));
        topo.run(["apply", "-y"]).expect_code(0).expect_text("Verified: the broker matches the spec.");
        assert_eq!(parameter.value(), value, "{yaml}");
        no_changes(&topo);
        let written = proxy.count(&writes());
        topo.run(["apply", "-y"]).expect_code(0);
        assert_eq!(proxy.count(&writes()), written, "a second apply writes nothing");
    }
    // An empty list is the same value.
    topo.rewrite(&declared(&vhost, "[]"));
    no_changes(&topo);
    topo.rewrite(&format!("version: 1\ncluster: {{}}\nremoved: {{globalParameters: [{}]}}\n", vhost.name()));
    topo.run(["plan"]).expect_code(0).expect_text(&format!("- global parameter {}", vhost.name()));
    topo.run(["apply", "-y", "--allow=mass-delete"]).expect_code(0);
    assert_eq!(parameter.value(), Value::Null);
    no_changes(&topo);
}

#[test]
fn prune_deletes_global_parameters_only_if_their_kind_is_listed() {
    let vhost = Node::shared().vhost("global-prune");
    let parameter = Parameter::of(&vhost);
    parameter.set(&json!(5));
    let spec =
        |rest: &str| format!("version: 1\ncluster: {{}}\nowns: [{}]\nglobalParameters: {{}}\n{rest}", vhost.name());
    let topo = topo(&vhost).spec(&spec(""));
    let listed = format!("global parameter {}  (--prune=globalParameters)", vhost.name());
    topo.run(["plan"]).expect_code(0).expect_text(&listed).expect_text("No changes");
    topo.run(["apply", "-y", "--prune"]).expect_code(0);
    assert_eq!(parameter.value(), 5);
    topo.rewrite(&spec(&format!("protect: [{}]\n", vhost.name())));
    topo.run(["plan", "--prune=globalParameters"]).expect_code(0).expect_text("but protected: topo keeps it");
    topo.rewrite(&spec(""));
    topo.run(["apply", "-y", "--prune=globalParameters", "--allow=mass-delete"]).expect_code(0);
    assert_eq!(parameter.value(), Value::Null);
}

#[test]
fn odd_names_and_nested_nulls_are_written_and_exported() {
    let vhost = Node::shared().vhost("global-odd");
    let topo = topo(&vhost);
    for suffix in ["a/b", "a b", "100%", "zürich", "a.b:c"] {
        let parameter = Parameter { name: format!("{} {suffix}", vhost.name()) };
        let spec =
            |value: &str| format!("version: 1\ncluster: {{}}\nglobalParameters:\n  {:?}: {value}\n", parameter.name);
        topo.rewrite(&spec("{a: null, b: [null, 1]}"));
        topo.run(["apply", "-y"]).expect_code(0).expect_text("Verified: the broker matches the spec.");
        assert_eq!(parameter.value(), json!({"a": null, "b": [null, 1]}), "{suffix}");
        no_changes(&topo);
        let words = ["export", "--with=globalParameters", "--vhost", "{vhost}", "--match", &parameter.name];
        topo.write("topology.yaml", &topo.run(words).expect_code(0).stdout);
        no_changes(&topo);
    }
}

#[test]
fn values_that_topo_cannot_write_are_reported() {
    let offline = Topo::offline();
    for (value, text) in [
        ("null", "expected a value"),
        ("", "expected a value"),
        ("12345678901234567890", "contains a number that topo cannot represent exactly"),
        ("{id: [12345678901234567890]}", "contains a number that topo cannot represent exactly"),
    ] {
        offline.rewrite(&format!("version: 1\ncluster: {{}}\nglobalParameters:\n  x: {value}\n"));
        offline.run(["validate"]).expect_code(65).expect_text(text).expect_text("topology.yaml:4:");
    }
    let spec = "version: 1\ncluster: {}\nglobalParameters: {db: {password: hunter2}}\n";
    offline.rewrite(spec);
    for words in [&["validate"][..], &["plan", "--against=empty"]] {
        let output = offline.run(words.iter().copied()).expect_text("`password` looks like a password");
        assert!(!output.stderr.contains("hunter2\n"), "{output}");
    }
}

/// Two kinds can have records of the same name. Only the record that a spec cannot represent is left out.
#[test]
fn other_records_of_the_same_name_are_exported() {
    let file = json!({"rabbit_version": "4.0.5", "vhosts": [{"name": "v"}], "queues": [],
        "users": [{"name": "app", "password_hash": "", "tags": [], "limits": {"max-connections": 5}}],
        "global_parameters": [{"name": "app", "value": 12_345_678_901_234_567_890_u64}, {"name": "other", "value": [1]}]});
    let topo = Topo::offline().file("definitions.json", &file.to_string());
    let export = topo.run(["export", "--definitions=definitions.json", "--with=all"]).expect_code(0);
    assert!(export.stdout.contains("app: {tags: [], password: none, limits: {maxConnections: 5}}"), "{export}");
    assert!(export.stdout.contains("other: [1]") && !export.stdout.contains("1234567"), "{export}");
    assert!(
        export.stderr.contains("not in the spec: 1 global parameter: app (a spec cannot represent this)"),
        "{export}"
    );
}

/// A spec cannot declare or delete these parameters, and `--prune` keeps them.
#[test]
fn reserved_global_parameters_are_kept() {
    let vhost = Node::shared().vhost("global-reserved");
    let offline = Topo::offline().spec("version: 1\ncluster: {}\nglobalParameters: {cluster_name: x}\n");
    offline.run(["validate"]).expect_code(65).expect_text("the global parameter `cluster_name` is reserved");
    offline.rewrite("version: 1\ncluster: {}\nremoved: {globalParameters: [internal_cluster_id]}\n");
    offline.run(["validate"]).expect_code(65).expect_text("`internal_cluster_id`");
    let topo = topo(&vhost).spec("version: 1\ncluster: {}\nowns: ['*cluster*']\nglobalParameters: {}\n");
    let names = Node::shared().http().get("/api/global-parameters").expect_status(200);
    let has_id = names.as_array().unwrap().iter().any(|it| it["name"] == "internal_cluster_id");
    assert!(has_id, "{names}");
    topo.run(["plan", "--prune=globalParameters"]).expect_code(0).expect_no_text("cluster_").expect_text("No changes");
}

#[test]
fn global_parameters_are_exported_and_read_from_definitions_files() {
    let vhost = Node::shared().vhost("global-export");
    let parameter = Parameter::of(&vhost);
    let value = json!({"team": "payments", "levels": [1, 2.5, true], "text": "5"});
    parameter.set(&value);
    let topo = topo(&vhost).spec("");
    let own = ["--match", vhost.name(), "--vhost", "{vhost}"];
    let export = topo.run(["export", "--with=globalParameters"].into_iter().chain(own)).expect_code(0);
    assert!(export.stderr.contains("cluster: 1 global parameter\n"), "{export}");
    topo.write("topology.yaml", &export.stdout);
    no_changes(&topo);
    let all = Node::shared().http().list("/api/definitions");
    topo.write("definitions.json", &all.to_string());
    topo.run(["plan", "--against=definitions.json", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
    let from_file = ["export", "--definitions=definitions.json", "--with=globalParameters"].into_iter().chain(own);
    topo.run(from_file).expect_code(0).expect_text("levels: [1, 2.5, true]");
    // Without `--with`, the name is reported.
    let without = topo.run(["export", "--definitions=definitions.json"]).expect_code(0);
    let named = |output: &crate::support::Output| {
        output.stderr.lines().any(|line| line.starts_with("not in any spec:") && line.contains(vhost.name()))
    };
    assert!(named(&without), "{without}");
    let with = topo.run(["export", "--definitions=definitions.json", "--with=globalParameters"]).expect_code(0);
    assert!(!named(&with), "{with}");
}

#[test]
fn plans_and_applies_of_global_parameters_require_a_policymaker() {
    let vhost = Node::shared().vhost("global-rights");
    let parameter = Parameter::of(&vhost);
    let manager = Node::shared().user("management").may(&vhost, "", "", "");
    let topo = topo(&vhost).user(&manager).spec(&declared(&vhost, "5"));
    let text = "1 global parameter cannot be compared: reading global parameters requires the policymaker tag";
    topo.run(["plan", "--detailed-exitcode"]).expect_code(3).expect_text(text).expect_text("policymaker tag");
    for (spec, words) in [
        (format!("removed: {{globalParameters: [{}]}}", vhost.name()), &["plan", "--detailed-exitcode"][..]),
        ("owns: ['**']\nglobalParameters: {}".to_owned(), &["plan", "--detailed-exitcode", "--prune=globalParameters"]),
    ] {
        topo.rewrite(&format!("version: 1\ncluster: {{}}\n{spec}\n"));
        topo.run(words.iter().copied()).expect_code(3).expect_text("requires the policymaker tag");
    }
    topo.rewrite("version: 1\ncluster: {}\nglobalParameters: {}\n");
    topo.run(["plan"])
        .expect_code(0)
        .expect_text("global parameters are not compared: reading them requires the policymaker tag");
    assert_eq!(parameter.value(), Value::Null);
    let policymaker = Node::shared().user("policymaker").may_everything(&vhost);
    let topo = self::topo(&vhost).user(&policymaker).spec(&declared(&vhost, "5"));
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(parameter.value(), 5);
}

#[test]
fn global_parameters_are_not_read_without_their_section() {
    let vhost = Node::shared().vhost("global-requests");
    let proxy = Proxy::to(Node::shared());
    let topo = topo(&vhost).through(&proxy).spec("version: 1\ncluster: {}\n---\nversion: 1\nvhost: \"{vhost}\"\n");
    no_changes(&topo);
    assert_eq!(proxy.count(&gets().path("/api/global-parameters")), 0);
}
