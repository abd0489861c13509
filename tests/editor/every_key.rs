//! Tests that an editor completes every key of users, permissions, limits, shovels and the other kinds of records, each with
//! documentation.

use std::collections::BTreeSet;

use serde_json::Value;

use super::server::Server;

const VHOST: &str = "version: 1\nvhost: shop\n";
const CLUSTER: &str = "version: 1\ncluster: {name: rabbit}\n";

/// The definitions of the schema, with a text whose cursor `|` is in such an object.
const PLACES: [(&str, &str, &str); 23] = [
    ("Document", VHOST, "|\n"),
    ("ClusterDocument", CLUSTER, "|\n"),
    ("EnvironmentsDocument", "", "version: 1\nenvironments: {}\n|\n"),
    ("Environment", "", "version: 1\nenvironments:\n  prod:\n    |\n"),
    ("Cluster", "", "version: 1\ncluster:\n  |\n"),
    ("Requirements", CLUSTER, "requires:\n  |\n"),
    ("ClusterRemoved", CLUSTER, "removed:\n  |\n"),
    ("User", CLUSTER, "users:\n  app:\n    |\n"),
    ("UserLimits", CLUSTER, "users:\n  app:\n    limits:\n      |\n"),
    ("SecretFromEnvironment", CLUSTER, "users:\n  app:\n    password:\n      |\n"),
    ("SecretFromFile", CLUSTER, "users:\n  app:\n    password:\n      |\n"),
    ("Vhost", "", "version: 1\nvhost:\n  |\n"),
    ("VhostLimits", "", "version: 1\nvhost:\n  name: shop\n  limits:\n    |\n"),
    ("Removed", VHOST, "removed:\n  |\n"),
    ("Permission", VHOST, "permissions:\n  app:\n    |\n"),
    ("TopicPermission", VHOST, "topicPermissions:\n  app:\n    amq.topic:\n      |\n"),
    ("OperatorPolicy", VHOST, "operatorPolicies:\n  limits:\n    |\n"),
    ("SuperStream", VHOST, "superStreams:\n  orders:\n    |\n"),
    ("Shovel", VHOST, "shovels:\n  orders:\n    |\n"),
    ("ShovelSource", VHOST, "shovels:\n  orders:\n    source:\n      |\n"),
    ("ShovelDestination", VHOST, "shovels:\n  orders:\n    destination:\n      |\n"),
    ("Upstream", VHOST, "upstreams:\n  berlin:\n    |\n"),
    ("UpstreamSetMember", VHOST, "upstreamSets:\n  regions:\n    - |\n"),
];

/// The definitions of queues, exchanges, bindings and policies, whose keys depend on other keys. Other tests cover them.
const OTHERS: [&str; 33] = [
    "AgeThresholds",
    "Backoff",
    "Binding",
    "ClassicArguments",
    "ClassicDeadLetterQueue",
    "ClassicQueue",
    "DeadLetterQueueExchange",
    "DeadLetterToExchange",
    "DeadLetterToQueue",
    "Defaults",
    "DepthThresholds",
    "ExternalDeadLetterQueue",
    "ExternalExchange",
    "ExternalQueue",
    "Growth",
    "GrowthThresholds",
    "IncomingBinding",
    "Lint",
    "OwnDeadLetterQueue",
    "OwnExchange",
    "OwnQueue",
    "Policy",
    "QueueArguments",
    "QueueDefaults",
    "QuorumArguments",
    "QuorumDeadLetterQueue",
    "QuorumQueue",
    "Retry",
    "RetryPolicy",
    "StreamArguments",
    "StreamDeadLetterQueue",
    "StreamQueue",
    "Thresholds",
];

#[test]
fn every_key_of_every_kind_is_completed_and_explained() {
    let schema: Value = serde_json::from_str(include_str!("../../schema/topology.schema.json")).unwrap();
    let definitions = schema["definitions"].as_object().unwrap();
    let keys_of = |name: &str| -> BTreeSet<&str> {
        let properties = definitions[name]["properties"].as_object().into_iter().flatten();
        properties.map(|(key, _)| key.as_str()).collect()
    };
    let mut server = Server::start();
    let mut count = 0;
    for (name, head, text) in PLACES {
        let found = server.completions(&format!("{head}{text}"));
        // The editor does not offer the keys that the object already contains.
        let text = format!("\n{head}{text}");
        let is_present = |key: &str| name.ends_with("Document") && text.contains(&format!("\n{key}:"));
        for key in keys_of(name).into_iter().filter(|key| !is_present(key)) {
            let meaning = found.iter().find(|(label, _)| label == key).map(|(_, meaning)| meaning.as_str());
            assert!(meaning.is_some_and(|meaning| !meaning.is_empty()), "{name}: {key}: {meaning:?} in {found:?}");
            count += 1;
        }
    }
    println!("{count} keys");
    let known: BTreeSet<&str> = PLACES.iter().map(|(name, ..)| *name).chain(OTHERS).collect();
    let missing: Vec<&String> =
        definitions.keys().filter(|name| !keys_of(name).is_empty() && !known.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "no place for {missing:?}");
}
