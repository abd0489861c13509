//! Tests `requires`: a cluster without the required version, plugins or feature flags blocks the plan.

use serde_json::Value;

use super::cluster::topo;
use crate::support::{Node, Proxy, Topo, gets, writes};

fn spec(requires: &str) -> String {
    format!(
        "version: 1\ncluster: {{}}\nrequires: {{{requires}}}\n---\nversion: 1\nvhost: \"{{vhost}}\"\nqueues: {{q: {{type: classic}}}}\n"
    )
}

/// Returns the name of an enabled feature flag.
fn enabled_flag() -> String {
    let flags = Node::shared().http().get("/api/feature-flags").expect_status(200);
    let enabled = flags.as_array().unwrap().iter().find(|flag| flag["state"] == "enabled").expect("an enabled flag");
    enabled["name"].as_str().unwrap().to_owned()
}

#[test]
fn unmet_requirements_block_the_plan() {
    let vhost = Node::shared().vhost("requires");
    let version = Node::shared().version();
    let series = version.rsplit_once('.').unwrap().0;
    let proxy = Proxy::to(Node::shared());
    let topo = topo(&vhost).through(&proxy).spec("");
    for (requires, text, remedy) in [
        (
            format!("version: '> {series}'"),
            format!("the spec requires RabbitMQ > {series}; the broker is {version}"),
            "change `requires.version` in the spec",
        ),
        (
            "plugins: [rabbitmq_management, rabbitmq_nothing]".to_owned(),
            "the spec requires the rabbitmq_nothing plugin, which is not enabled".to_owned(),
            "rabbitmq-plugins enable rabbitmq_nothing",
        ),
        (
            format!("featureFlags: [{}, not_a_flag]", enabled_flag()),
            "the spec requires the not_a_flag feature flag, which is not enabled".to_owned(),
            "rabbitmqctl enable_feature_flag not_a_flag",
        ),
    ] {
        topo.rewrite(&spec(&requires));
        topo.run(["plan", "--detailed-exitcode"]).expect_code(3).expect_text(&text).expect_text(remedy);
        topo.run(["apply", "-y"]).expect_code(3).expect_text("BLOCKED by 1 blocker");
    }
    assert_eq!(proxy.count(&writes()), 0);
}

#[test]
fn met_requirements_permit_the_apply() {
    let vhost = Node::shared().vhost("requires-met");
    let version = Node::shared().version();
    let requires =
        format!("version: '>= 3.8, = {version}', plugins: [rabbitmq_management], featureFlags: [{}]", enabled_flag());
    let topo = topo(&vhost).spec(&spec(&requires));
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(vhost.names("queues"), ["q"]);
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
    // The saved plan contains the requirements, and apply checks them again.
    topo.rewrite(&spec(&requires).replace("{q: {type: classic}}", "{q2: {type: classic}}"));
    topo.run(["plan", "--out", "saved.plan"]).expect_code(0);
    let saved: Value = serde_json::from_str(&topo.read("saved.plan")).unwrap();
    assert!(saved.to_string().contains("rabbitmq_management"), "{saved}");
    topo.run(["apply", "-y", "--plan", "saved.plan"]).expect_code(0);
}

#[test]
fn requirements_that_cannot_be_checked_block_the_plan() {
    let vhost = Node::shared().vhost("requires-rights");
    let manager = Node::shared().user("management").may_everything(&vhost);
    let topo = topo(&vhost).user(&manager).spec(&spec("plugins: [rabbitmq_management]"));
    let text = "topo could not check the plugins that the spec requires: this user cannot read them";
    topo.run(["plan", "--detailed-exitcode"]).expect_code(3).expect_text(text).expect_text("monitoring tag");
    topo.rewrite(&spec("featureFlags: [quorum_queue]"));
    let plan = topo.run(["plan", "--detailed-exitcode"]);
    if Node::shared().at_least(4, 0) {
        plan.expect_no_text("could not check");
    } else {
        plan.expect_code(3).expect_text("the feature flags that the spec requires").expect_text("administrator tag");
    }
}

#[test]
fn requirements_are_checked_without_a_broker() {
    let offline = Topo::offline().spec(&spec("version: '>= 4.0', plugins: [rabbitmq_shovel]").replace("{vhost}", "v"));
    let plan =
        |version: &str| offline.run(["plan", "--against=empty", "--detailed-exitcode", "--broker-version", version]);
    plan("3.13").expect_code(3).expect_text("the spec requires RabbitMQ >= 4.0; the broker is 3.13");
    plan("4.0").expect_code(2).expect_text("topo did not check the broker for 1 plugin that the spec requires");
    for range in ["'3.12'", "'~> 3.12'", "newest", "''"] {
        offline.rewrite(&format!("version: 1\ncluster: {{}}\nrequires: {{version: {range}}}\n"));
        let refused = offline.run(["validate"]).expect_code(65).expect_text("invalid version range");
        refused.expect_text("topology.yaml:3:21").expect_text("for example `>= 3.12, < 5`");
    }
    offline.rewrite("version: 1\ncluster: {}\nrequires: {plugins: rabbitmq_shovel}\n");
    offline.run(["validate"]).expect_code(65).expect_text("a list");
    offline.rewrite("version: 1\nvhost: v\nrequires: {version: '>= 3.12'}\n");
    offline.run(["validate"]).expect_code(65).expect_text("requires");
}

#[test]
fn specs_without_requirements_read_neither_nodes_nor_feature_flags() {
    let vhost = Node::shared().vhost("requires-nothing");
    let proxy = Proxy::to(Node::shared());
    let topo = topo(&vhost).through(&proxy).spec(&spec("version: '>= 3.8'"));
    topo.run(["plan"]).expect_code(0);
    assert_eq!(proxy.count(&gets().path("/api/feature-flags")), 0);
    assert_eq!(proxy.count(&gets().path("enabled_plugins")), 0);
}
