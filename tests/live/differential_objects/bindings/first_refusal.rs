//! Whether the broker names what topo names first.

use std::collections::BTreeMap;

use topo::model::{Binding, Destination, Topology};
use topo::rabbitmq::{BrokerProfile, Ends, Refusal, binding_refusals};

use crate::live::differential_objects::reason;
use crate::support::http::Answer;

/// What a binding was refused for; else how the two differ.
pub(super) fn subject(
    types: &BTreeMap<&'static str, &'static str>,
    binding: &Binding,
    topology: &Topology,
    profile: &BrokerProfile,
    answer: &Answer,
) -> Result<String, String> {
    let queue = match &binding.destination {
        Destination::Queue(queue) => topology.queues.get(queue),
        Destination::Exchange(_) => None,
    };
    let ends = Ends { source: types.get(binding.source.as_str()).copied(), queue };
    let refused = binding_refusals(binding, ends, profile);
    let said = reason(answer);
    match refused.first() {
        Some(first) if is_named(first, &said, answer.status) => Ok(first.subject.clone()),
        Some(_) | None => Err(format!("{binding}: the broker said {} {said}; topo {refused:?}", answer.status)),
    }
}

/// What is in the broker's answer when it names this; it has no words for a `null`, and crashes.
fn is_named(first: &Refusal, said: &str, status: u16) -> bool {
    match first.subject.as_str() {
        _ if first.text.contains("contains null") => status == 500,
        "body" => said.contains("Payload size limit exceeded"),
        // From 4.0 on, a sentence with a letter beyond ASCII in it cannot be written: 500 without a word
        // (`rabbit_mgmt_util:direct_request`).
        "x-match" if !first.text.is_ascii() => status == 500 || said.contains("Invalid x-match field"),
        "x-match" => said.contains("Invalid x-match field"),
        "routing_key" => ["The binding key must", "Topic binding key", "Non empty binding '"]
            .into_iter()
            .any(|words| said.contains(words)),
        _ => false,
    }
}
