//! Tests that the resolution `keep` contains the same keys and values as an export of the queue.

use serde_json::{Map, Value, json};

use crate::live::export::round_trip::exported;
use crate::support::apply_resolution::{apply_resolution_to, resolutions_of};
use crate::support::{Node, Topo};

/// Returns the keys of a queue, including the defaults of its document, without bindings and without `none`.
pub(super) fn keys(spec: &Value, queue: &str) -> Map<String, Value> {
    let defaults = &spec["defaults"];
    let mut keys = defaults["queue"].as_object().cloned().unwrap_or_default();
    keys.extend(defaults.get("deadLetter").map(|to| ("deadLetter".to_owned(), to.clone())));
    keys.extend(spec["queues"][queue].as_object().cloned().unwrap_or_default());
    keys.retain(|key, value| key != "bindings" && value != "none");
    keys
}

/// Adds the values that topo infers: `maxRetries` from the delays, and the strategy.
fn complete(mut keys: Map<String, Value>) -> Map<String, Value> {
    let delays = keys.get("retry").and_then(|retry| retry["delays"].as_array()).map(Vec::len);
    if let Some(delays) = delays {
        keys.entry("maxRetries").or_insert_with(|| delays.into());
    }
    if keys.contains_key("maxRetries") {
        let strategy = if delays.is_some() { "ladder" } else { "redeliver" };
        let retry = keys.entry("retry").or_insert_with(|| json!({}));
        retry.as_object_mut().unwrap().entry("strategy").or_insert_with(|| strategy.into());
    }
    keys
}

/// A queue, its current arguments, and different settings in the spec.
type Case = (&'static str, Value, &'static str);

fn cases(node: &Node) -> Vec<Case> {
    let mut cases = vec![
        (
            "classic",
            json!({
                "x-queue-type": "classic", "x-message-ttl": 60_000, "x-max-length": 10, "x-max-length-bytes": 2_097_152,
                "x-overflow": "reject-publish", "x-expires": 7_200_000, "x-single-active-consumer": true,
                "x-max-priority": 5, "x-dead-letter-exchange": "live.dlx", "x-dead-letter-routing-key": "3.0",
            }),
            "    type: classic\n    messageTtl: 30s\n    maxLength: 5\n    maxLengthBytes: 1MiB\n    overflow: drop-head\n    \
             expires: 1h\n    singleActiveConsumer: false\n    maxPriority: 3\n    deadLetter: other\n",
        ),
        (
            "odd",
            json!({"x-queue-type": "classic", "x-message-ttl": 3_723_000, "x-max-length-bytes": 1_000_001}),
            "    type: classic\n    messageTtl: 30s\n    maxLengthBytes: 1MiB\n    deadLetter: none\n",
        ),
        (
            "quorum",
            json!({"x-queue-type": "quorum", "x-delivery-limit": 9, "x-max-length": 11}),
            "    type: quorum\n    deliveryLimit: 4\n    maxLength: 6\n    deadLetter: none\n",
        ),
        (
            "counted",
            json!({"x-queue-type": "quorum", "x-delivery-limit": 7, "x-dead-letter-exchange": "live.dlx"}),
            "    type: quorum\n    maxRetries: 3\n    deadLetter: other\n",
        ),
        (
            "nowhere",
            json!({"x-queue-type": "classic", "x-dead-letter-exchange": "gone"}),
            "    type: classic\n    deadLetter: other\n",
        ),
        // This queue already exists.
        ("ladder", Value::Null, "    type: classic\n    deadLetter: other\n"),
        ("type", json!({"x-queue-type": "quorum", "x-max-length": 12}), "    type: classic\n    maxLength: 12\n"),
    ];
    if node.at_least(3, 10) {
        cases.push((
            "stream",
            json!({"x-queue-type": "stream", "x-max-age": "7D", "x-max-length-bytes": 20_000_000_000_i64}),
            "    type: stream\n    maxAge: 1D\n    maxLengthBytes: 1GiB\n",
        ));
    }
    cases
}

#[test]
fn kept_settings_equal_those_of_an_export() {
    let node = Node::shared();
    let vhost = node.vhost("kept");
    let exchange = json!({"type": "fanout", "durable": true});
    vhost.http().put(&vhost.path("exchanges", &["live.dlx"]), &exchange).expect_status(201);
    let spec = |queues: &str| {
        let dead = "deadLetterQueues:\n  dead:\n    type: classic\n  other:\n    type: classic\n";
        format!("version: 1\nvhost: {}\nqueues:\n{queues}{dead}", vhost.name())
    };
    let ladder = "  ladder:\n    type: classic\n    deadLetter: dead\n    retry: {delays: [5s, 30s]}\n";
    let topo = Topo::new(&vhost).file("topology.yaml", &spec(ladder));
    topo.run(["apply", "--yes"]).expect_code(0);
    let cases = cases(node);
    for (name, arguments, _) in cases.iter().filter(|(_, arguments, _)| !arguments.is_null()) {
        let body = json!({"durable": true, "auto_delete": false, "arguments": arguments});
        vhost.http().put(&vhost.path("queues", &[name]), &body).expect_status(201);
    }
    let export: Value = serde_yaml::from_str(&exported(&vhost)).unwrap();

    let others: String = cases.iter().map(|(name, _, settings)| format!("  {name}:\n{settings}")).collect();
    let mut kept = spec(&others);
    topo.rewrite(&kept);
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    for (name, ..) in &cases {
        let keep = resolutions_of(&plan, &format!("queues/{}/{name}", vhost.name()), "keep")[0];
        assert_eq!(keep["applicability"], "yes", "{name}: {keep:#}");
        kept = apply_resolution_to(&kept, ("queues", name), keep);
    }
    let pasted: Value = serde_yaml::from_str(&kept).unwrap();
    for (name, ..) in &cases {
        assert_eq!(complete(keys(&pasted, name)), complete(keys(&export, name)), "{name}: {kept}\n{export:#}");
    }
    // Both contain the exchange that does not exist, with the same settings.
    let gone = json!({"external": true, "optional": true});
    assert_eq!((&pasted["exchanges"]["gone"], &export["exchanges"]["gone"]), (&gone, &gone));
    topo.rewrite(&kept);
    let again = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    assert_eq!(again["summary"]["conflict"], 0, "{kept}\n{again:#}");
}
