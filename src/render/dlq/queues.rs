//! Renders the dead-letter queues of a vhost.

use super::table::{Align, table};
use super::{FORMAT_VERSION, known};
use crate::model::VhostName;
use crate::model::printable::{clean, clean_json};
use crate::operate::dlq::DeadLetterQueue;
use crate::render::shell::quote;
use serde_json::{Value, json};

/// Renders the queues as a table. Unless all queues are empty, ends with a command that shows the messages in the
/// fullest queue. `flags` contains the flags of this command.
pub fn queues_text(vhost: &VhostName, queues: &[DeadLetterQueue], flags: &str, width: usize) -> String {
    if queues.is_empty() {
        return format!("vhost {}: no queue dead-letters messages to another queue\n", clean(vhost.as_str()));
    }
    let row = |it: &DeadLetterQueue| {
        let sources: Vec<String> = it.sources.iter().map(|source| clean(source.as_str())).collect();
        vec![
            clean(it.name.as_str()),
            known(it.messages),
            known(it.consumers),
            it.kind.map_or("plugin", |kind| kind.as_str()).to_owned(),
            sources.join(", "),
        ]
    };
    let heading = [
        ("dead-letter queue", Align::Left),
        ("messages", Align::Right),
        ("consumers", Align::Right),
        ("type", Align::Left),
        ("receives from", Align::Left),
    ];
    let mut text = table(&heading, &queues.iter().map(row).collect::<Vec<_>>(), width);
    let fullest = queues.iter().filter(|it| it.messages != Some(0)).max_by_key(|it| it.messages);
    if let Some(it) = fullest {
        text.push_str(&format!("\nNext: topo dlq list {}{flags}\n", quote(it.name.as_str())));
    }
    text
}

/// Renders the queues as JSON.
pub fn queues_json(vhost: &VhostName, queues: &[DeadLetterQueue]) -> String {
    let queue = |it: &DeadLetterQueue| -> Value {
        json!({
            "queue": it.name,
            "type": it.kind.map(|kind| kind.as_str()),
            "messages": it.messages,
            "consumers": it.consumers,
            "sources": it.sources,
        })
    };
    let queues: Vec<Value> = queues.iter().map(queue).collect();
    clean_json(format!("{:#}\n", json!({ "formatVersion": FORMAT_VERSION, "vhost": vhost, "queues": queues })))
}
