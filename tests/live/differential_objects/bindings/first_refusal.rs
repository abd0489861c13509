//! Compares the subject of the broker's refusal with topo's first predicted refusal.

use std::collections::BTreeMap;

use topo::model::{Binding, Destination, Topology};
use topo::rabbitmq::{BrokerProfile, Ends, Refusal, binding_refusals};

use crate::live::differential_objects::reason;
use crate::support::http::Answer;

/// Returns the subject of a refused binding, or the difference.
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
    let text = reason(answer);
    match refused.first() {
        Some(first) if is_named(first, &text, answer.status) => Ok(first.subject.clone()),
        Some(_) | None => Err(format!("{binding}: the broker answered {} {text}; topo {refused:?}", answer.status)),
    }
}

/// Returns true if the broker's response contains this subject. A `null` crashes the broker, without an error text.
fn is_named(first: &Refusal, text: &str, status: u16) -> bool {
    match first.subject.as_str() {
        _ if first.text.contains("contains null") => status == 500,
        "body" => text.contains("Payload size limit exceeded"),
        // From 4.0 on, the broker cannot write an error with a non-ASCII character, and responds with 500 without a
        // text (`rabbit_mgmt_util:direct_request`).
        "x-match" if !first.text.is_ascii() => status == 500 || text.contains("Invalid x-match field"),
        "x-match" => text.contains("Invalid x-match field"),
        "routing_key" => ["The binding key must", "Topic binding key", "Non empty binding '"]
            .into_iter()
            .any(|words| text.contains(words)),
        _ => false,
    }
}
