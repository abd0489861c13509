//! Renders the current message and consumer counts of the queues in a lifecycle.

use crate::contract::lifecycle::Explanation;
use crate::model::count::{count, number};
use crate::model::{QueueName, VhostName};
use crate::plan::Activity;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The activity of each vhost; `None` without a broker.
pub type Live<'a> = Option<&'a BTreeMap<VhostName, Activity>>;

/// Renders an explanation as JSON, with the current counts of each queue if the activity is known.
pub fn explanation_json(explanation: &Explanation, live: Live<'_>) -> Value {
    let mut document = json!(explanation);
    if let Some(activity) = live.and_then(|live| live.get(explanation.vhost())) {
        let counts = explanation.queues().into_iter().map(|queue| {
            let known = activity.queues.get(queue);
            json!({
                "queue": queue,
                "exists": known.is_some(),
                "messages": known.and_then(|it| it.messages),
                "ready": known.and_then(|it| it.ready),
                "unacknowledged": known.and_then(|it| it.unacknowledged),
                "consumers": known.and_then(|it| it.consumers.as_ref()).map(Vec::len),
            })
        });
        document["counts"] = counts.collect();
    }
    document
}

/// Returns the current counts of a queue, prefixed with a separator. Returns an empty string without a broker.
pub(super) fn live_counts(live: Live<'_>, vhost: &VhostName, queue: &QueueName) -> String {
    let Some(live) = live else { return String::new() };
    let Some(activity) = live.get(vhost).and_then(|activity| activity.queues.get(queue)) else {
        return " · does not exist".to_owned();
    };
    let messages = activity.messages.map_or_else(|| "messages unknown".to_owned(), |it| count(it, "message"));
    let held = activity.unacknowledged.filter(|held| *held > 0);
    let held = held.map_or_else(String::new, |held| format!(" ({} unacknowledged)", number(held)));
    let consumers = match activity.consumers.as_ref().map(Vec::len) {
        Some(0) => String::new(),
        Some(known) => format!(", {}", count(known as u64, "consumer")),
        None => ", consumers unknown".to_owned(),
    };
    format!(" · {messages}{held}{consumers}")
}

/// Adds the name of a queue to its counts, for a list of several queues.
pub(super) fn counts_of_one(queue: &QueueName, counts: &str) -> String {
    counts.strip_prefix(" · ").map_or_else(String::new, |counts| format!(" · {queue}: {counts}"))
}
