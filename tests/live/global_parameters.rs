//! Tests global parameters in a spec: topo sets, changes, deletes, prunes and exports them.

use serde_json::{Value, json};

use super::cluster::topo;
use crate::support::{Node, Proxy, Topo, Vhost, gets, writes};

/// Deletes a global parameter at the end of a test. Its name is the name of the test's vhost, which is unique.
struct Parameter<'a>(&'a Vhost<'a>);

impl Parameter<'_> {
    fn path(&self) -> String {
        format!("/api/global-parameters/{}", self.0.name())
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

impl Drop for Parameter<'_> {
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
    let parameter = Parameter(&vhost);
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
fn unmanaged_global_parameters_are_pruned_by_name() {
    let vhost = Node::shared().vhost("global-prune");
    let parameter = Parameter(&vhost);
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

/// The broker itself sets these parameters.
#[test]
fn parameters_of_the_broker_are_not_touched() {
    let vhost = Node::shared().vhost("global-reserved");
    let offline = Topo::offline().spec("version: 1\ncluster: {}\nglobalParameters: {cluster_name: x}\n");
    offline.run(["validate"]).expect_code(65).expect_text("RabbitMQ itself sets the global parameter `cluster_name`");
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
    let parameter = Parameter(&vhost);
    let value = json!({"team": "payments", "levels": [1, 2.5, true], "text": "5"});
    parameter.set(&value);
    let topo = topo(&vhost).spec("");
    let own = ["--match", vhost.name(), "--vhost", "{vhost}"];
    let export = topo.run(["export", "--with=globalParameters"].into_iter().chain(own)).expect_code(0);
    assert!(export.stderr.contains("cluster: 1 global parameter\n"), "{export}");
    topo.write("topology.yaml", &export.stdout);
    no_changes(&topo);
    let all = Node::shared().http().get("/api/definitions").expect_status(200);
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
fn rights_for_global_parameters_are_in_the_plan() {
    let vhost = Node::shared().vhost("global-rights");
    let parameter = Parameter(&vhost);
    let manager = Node::shared().user("management").may(&vhost, "", "", "");
    let topo = topo(&vhost).user(&manager).spec(&declared(&vhost, "5"));
    let text = "1 global parameter not compared: this user may not read global parameters";
    topo.run(["plan", "--detailed-exitcode"]).expect_code(3).expect_text(text).expect_text("tag policymaker");
    assert_eq!(parameter.value(), Value::Null);
    let policymaker = Node::shared().user("policymaker").may_everything(&vhost);
    let topo = self::topo(&vhost).user(&policymaker).spec(&declared(&vhost, "5"));
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(parameter.value(), 5);
}

#[test]
fn specs_without_the_section_do_not_read_global_parameters() {
    let vhost = Node::shared().vhost("global-requests");
    let proxy = Proxy::to(Node::shared());
    let topo = topo(&vhost).through(&proxy).spec("version: 1\ncluster: {}\n---\nversion: 1\nvhost: \"{vhost}\"\n");
    no_changes(&topo);
    assert_eq!(proxy.count(&gets().path("/api/global-parameters")), 0);
}
