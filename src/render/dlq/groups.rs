//! Renders groups of messages in a dead-letter queue.

use super::report::inspection_notes;
use super::table::{Align, table};
use super::{FORMAT_VERSION, ago, rfc3339};
use crate::model::count::{count, number};
use crate::model::printable::{clean, clean_json};
use crate::model::{QueueName, VhostName};
use crate::operate::dlq::{Group, GroupKey, Groups, Inspection};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::SystemTime;

/// Renders the groups as a table, with the result of the inspection.
pub fn groups_text(
    queue: &QueueName,
    groups: &Groups,
    inspection: &Inspection,
    now: SystemTime,
    width: usize,
) -> String {
    let mut text = String::new();
    let sorted = groups.sorted();
    if !sorted.is_empty() {
        let mut heading = vec![("messages", Align::Right), ("oldest", Align::Left), ("newest", Align::Left)];
        heading.extend(groups.keys().iter().map(|key| (key.as_str(), Align::Left)));
        let row = |group: &&Group| {
            let counts = [number(group.messages), ago(group.oldest, now), ago(group.newest, now)];
            let values = groups.keys().iter().zip(&group.values).map(|(key, value)| {
                let value = value.as_deref().map_or_else(|| "–".to_owned(), clean);
                let others = group.other_sources.iter().filter(|_| *key == GroupKey::Source);
                others.fold(value, |value, other| format!("{value} or {}", clean(other.as_str())))
            });
            counts.into_iter().chain(values).collect()
        };
        text.push_str(&table(&heading, &sorted.iter().map(row).collect::<Vec<_>>(), width));
        text.push('\n');
    }
    if groups.ungrouped > 0 {
        let _ = writeln!(text, "{} in other groups, which are not listed.", count(groups.ungrouped, "message"));
    }
    text.push_str(&inspection_notes(queue, inspection));
    text
}

/// Renders the groups as JSON.
pub fn groups_json(vhost: &VhostName, queue: &QueueName, groups: &Groups, inspection: &Inspection) -> String {
    let group = |group: &&Group| -> Value {
        let values = groups.keys().iter().zip(&group.values);
        let values: Map<String, Value> =
            values.map(|(key, value)| (key.as_str().to_owned(), value.clone().into())).collect();
        json!({
            "values": values,
            "messages": group.messages,
            "bytes": group.bytes,
            "oldest": group.oldest.map(|it| rfc3339(Some(it))),
            "newest": group.newest.map(|it| rfc3339(Some(it))),
            "otherSources": group.other_sources,
        })
    };
    let document = json!({
        "formatVersion": FORMAT_VERSION,
        "vhost": vhost,
        "queue": queue,
        "messages": inspection.before,
        "inspected": inspection.received,
        "matched": inspection.matched,
        "renewed": inspection.renewed,
        "complete": inspection.is_complete(),
        "groups": groups.sorted().iter().map(group).collect::<Vec<_>>(),
        "ungrouped": groups.ungrouped,
    });
    clean_json(format!("{document:#}\n"))
}
