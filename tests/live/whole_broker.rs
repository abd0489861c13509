//! Applies the example of a whole broker, and exports it again. The test has its own node, because all tests of a node
//! share its users.

use crate::examples::copy_whole_broker;
use crate::support::{Node, Options, Topo};

/// The variables with the passwords of the example.
const SECRETS: [(&str, &str); 5] = [
    ("SHOP_APP_PASSWORD", "tulip-app"),
    ("SHOP_AUDIT_PASSWORD", "tulip-audit"),
    ("SHOP_ONCALL_PASSWORD", "tulip-oncall"),
    ("US_PASSWORD", "tulip-us"),
    ("EU_URI", "amqps://federation:tulip-eu@eu.example/shop"),
];

/// Copies the example, without the objects that the version of the node does not support, and with all other kinds.
fn prepare(topo: &Topo, node: &Node) {
    copy_whole_broker(topo);
    let change = |file: &str, old: &str, new: &str| {
        let text = topo.read(file);
        assert!(text.contains(old), "{old} in {file}");
        topo.write(file, &text.replace(old, new));
    };
    // RabbitMQ 3.8 has no super streams, and 3.8.9 has no limits of users.
    if !node.at_least(3, 10) {
        change("cluster.yaml", "rabbitmq_shovel, rabbitmq_stream]", "rabbitmq_shovel]");
        change("cluster.yaml", ">= 3.10", ">= 3.8");
        change("cluster.yaml", "    limits: {maxConnections: 200, maxChannels: 2000}\n", "");
        change("shop.yaml", "superStreams:\n  order-history: {partitions: 2, maxAge: 7D}\n", "");
    }
    if node.is_at_least_patch(4, 0, 6) {
        change("shop.yaml", "  tags: [payments]\n", "  tags: [payments]\n  protectFromDeletion: true\n");
    }
}

/// Returns the number of objects of each kind on the broker.
fn counts(node: &Node) -> Vec<(&'static str, usize)> {
    let kinds = [
        "users",
        "vhosts",
        "permissions",
        "topic-permissions",
        "queues",
        "exchanges",
        "bindings",
        "policies",
        "operator-policies",
        "parameters",
        "global-parameters",
        "vhost-limits",
    ];
    let count = |kind: &'static str| {
        let listed = node.http().get(&format!("/api/{kind}")).expect_status(200);
        let is_lock = |it: &&serde_json::Value| {
            it["name"] == "topo.lock" || it["source"] == "" && it["destination"] == "topo.lock"
        };
        (kind, listed.as_array().unwrap().iter().filter(|it| !is_lock(it)).count())
    };
    kinds.into_iter().map(count).collect()
}

#[test]
fn whole_broker_is_applied_exported_and_applied_again() {
    let node = Node::start(Options::default());
    let with_secrets = |topo: Topo| SECRETS.into_iter().fold(topo, |topo, (name, value)| topo.env(name, value));
    let topo = with_secrets(Topo::for_name(&node, "/").without_env("TOPO_URL"));
    let url = format!("--url={}", node.url());
    prepare(&topo, &node);
    let apply = ["apply", ".", "-y", "--env=staging", &url, "--allow=access-gain"];
    let applied = topo.run(apply).expect_code(0).expect_text("Verified");
    assert!(!applied.says("is not running"), "{applied}");
    let plan = topo.run(["plan", ".", "--env=staging", &url, "--detailed-exitcode"]).expect_code(0);
    plan.expect_text("No changes. ");
    // The other environment requires a cluster with another name.
    let other = topo.run(["plan", ".", "--env=prod", &url, "--detailed-exitcode"]).expect_code(3);
    assert!(other.says("the spec is for cluster prod-eu, but this broker belongs to cluster"), "{other}");
    let original = counts(&node);
    // An export of all kinds has no changes, also without the variables.
    let exported = Topo::for_name(&node, "/");
    exported.run(["export", "--with=all", "--vhost=shop", "--vhost=audit", "--out=vhosts.yaml"]).expect_code(0);
    let cluster = exported.run(["export", "--with=users,userLimits,globalParameters", "--match=shop*"]).expect_code(0);
    let cluster = cluster.stdout.split("---\n").find(|document| document.contains("\ncluster:")).unwrap().to_owned();
    exported.write("cluster.yaml", &cluster);
    exported.run(["plan", ".", "--detailed-exitcode"]).expect_code(0);
    // The same export, on an empty broker.
    for vhost in ["shop", "audit"] {
        if node.is_at_least_patch(4, 0, 6) {
            node.http().delete(&format!("/api/vhosts/{vhost}/deletion/protection"));
        }
        node.http().delete(&format!("/api/vhosts/{vhost}")).expect_status(204);
    }
    for user in ["shop-app", "shop-audit", "shop-oncall", "shop-mesh"] {
        node.http().delete(&format!("/api/users/{user}")).expect_status(204);
    }
    node.http().delete("/api/global-parameters/shop_contact").expect_status(204);
    // The export does not contain the passwords of users.
    let with_passwords: String = cluster
        .lines()
        .map(|line| match line.strip_prefix("  shop-") {
            Some(rest) if !rest.contains("password:") => {
                let with = line.replacen('{', "{initialPassword: {env: INITIAL}, ", 1).replace(", }", "}");
                with + "\n"
            }
            Some(_) | None => format!("{line}\n"),
        })
        .collect();
    exported.write("cluster.yaml", &with_passwords);
    let exported = exported.env("INITIAL", "tulip-new").env("US_PASSWORD", "tulip-us");
    let exported = exported.env("EU_PASSWORD", "tulip-eu");
    exported.run(["apply", ".", "-y", "--allow=access-gain"]).expect_code(0).expect_text("Verified");
    exported.run(["plan", ".", "--detailed-exitcode"]).expect_code(0);
    assert_eq!(counts(&node), original);
}
