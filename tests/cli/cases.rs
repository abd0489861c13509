//! Definitions files of real brokers, unchanged, for which earlier versions of topo printed incorrect statements.

use serde_json::{Value, json};

use crate::support::Topo;

const NOWHERE: &str = include_str!("../cases/dead-letters-nowhere.json");
const SHARED: &str = include_str!("../cases/shared-retry-queue.json");

fn exported(definitions: &str) -> (Topo, String) {
    let topo = Topo::offline().file("definitions.json", definitions);
    topo.run(["export", "--definitions", "definitions.json", "--out", "spec.yaml"]).expect_code(0);
    let spec = topo.read("spec.yaml");
    (topo, spec)
}

#[test]
fn dead_letters_that_the_broker_drops_arrive_nowhere() {
    let (topo, spec) = exported(NOWHERE);
    assert!(spec.contains("# dead-letters-reach-nothing: "), "{spec}");
    let json = |line: &[&str]| {
        topo.run(line.iter().copied().chain(["-f", "spec.yaml", "--format", "json"])).expect_code(0).json()
    };
    let contract = &json(&["contract"])["vhosts"]["/"]["queues"]["orders"];
    assert_eq!(contract["deadLetters"]["reach"], "never", "{contract}");
    assert_eq!(contract["deadLetters"]["queue"], Value::Null);
    assert_eq!(contract["deadLetters"]["droppedKeys"], json!(["order.created"]));
    assert_eq!(contract["deadLetteredMessage"], Value::Null);
    let explanation = &json(&["explain", "orders"])["explanations"][0];
    assert_eq!(explanation["steps"].as_array().unwrap().last().unwrap()["state"]["name"], "dropped", "{explanation}");
    let graph = &json(&["graph"])["vhosts"][0];
    let arrows = graph["arrows"].as_array().unwrap();
    assert!(arrows.iter().all(|arrow| arrow["kind"] != "deadLetter"), "{graph}");
}

#[test]
fn shared_waiting_queue_is_credited_to_no_queue() {
    let (topo, spec) = exported(SHARED);
    assert!(spec.contains("  # messages wait here for 5s, and then go to exchange `ev`\n  wait: "), "{spec}");
    assert!(!spec.contains("manual retr") && !spec.contains("delays"), "{spec}");
    let plan = ["plan", "-f", "spec.yaml", "--against", "definitions.json", "--detailed-exitcode"];
    topo.run(plan).expect_code(0).expect_text("No changes");
}
