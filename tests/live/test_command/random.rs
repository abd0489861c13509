//! Runs random cases with `topo test --live`: the broker and the simulation never differ.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use topo::simulation::Behavior;

use super::cases;
use crate::live::simulation::case::{Case, spec};
use crate::live::simulation::random::random_case;
use crate::support::random::cases as number_of_cases;
use crate::support::{Node, Random, Topo, seed};

/// The number of cases in a file.
const BATCH: usize = 20;

/// Returns the test file of a batch. Only the comparison with the broker matters, so any expectation is sufficient.
fn test_file(batch: &[Case]) -> String {
    let mut text = "version: 1\nspec: topology.yaml\ntests:\n".to_owned();
    for (number, case) in batch.iter().enumerate() {
        let (exchange, key) = (Case::numbered(case.exchange, number), Case::numbered(case.key, number));
        let mut publish = format!("count: {}", case.count);
        match exchange.as_str() {
            "" => write!(publish, ", queue: {key}").unwrap(),
            exchange => write!(publish, ", exchange: {exchange}, routingKey: {key}").unwrap(),
        }
        if let Some((name, key)) = case.more_keys {
            write!(publish, ", headers: {{{name}: [{}]}}", Case::numbered(key, number)).unwrap();
        }
        if let Some(expiration) = case.expiration {
            write!(publish, ", expiration: {expiration}ms").unwrap();
        }
        let workers = case.behaviors.as_ref().map_or_else(String::new, |behaviors| {
            let words: Vec<&str> = behaviors.iter().map(|behavior| behavior.as_str()).collect();
            // A single behavior applies to every delivery. It must end the message.
            let words = match behaviors.as_slice() {
                [Behavior::Requeue | Behavior::NackRequeue | Behavior::Crash] => format!("[{}]", words.join(", ")),
                [_] => words.join(""),
                _ => format!("[{}]", words.join(", ")),
            };
            format!(", workers: {{work.{number}: {words}}}")
        });
        writeln!(text, "  case {number}: {{publish: {{{publish}}}{workers}, publisher: confirmed}}").unwrap();
    }
    text
}

#[test]
fn random_cases_agree_with_the_broker() {
    let node = Node::shared();
    let mut random = Random::new(seed() ^ 8);
    let number = number_of_cases(40, 500);
    let mut results: BTreeMap<String, usize> = BTreeMap::new();
    let all: Vec<Case> = (0..number).map(|_| random_case(&mut random, node)).collect();
    for batch in all.chunks(BATCH) {
        let vhost = node.vhost("random-tests");
        let topo = Topo::new(&vhost).spec(&spec(batch)).file("topology.test.yaml", &test_file(batch));
        // Some cases fail, because their publish is refused or their worker receives more messages.
        let output = topo.run(["test", "--live", "--format", "json"]);
        assert!(matches!(output.code, Some(0 | 1)), "{output}");
        let document: Value = output.test_results();
        assert_eq!(cases(&document).len(), batch.len(), "{output}");
        for case in cases(&document) {
            let result = case["live"]["result"].as_str().expect("a result");
            assert_ne!(
                result,
                "differs",
                "{case:#}\n{}\n{}",
                topo.read("topology.yaml"),
                topo.read("topology.test.yaml")
            );
            *results.entry(result.to_owned()).or_default() += 1;
        }
    }
    println!("{number} cases: {results:?}");
    assert!(results["agrees"] * 10 >= number * 9, "{results:?}");
}
