//! Renders dead-letter queues, their messages, and the plans and reports of replays and drops.

mod groups;
mod message;
mod plan;
mod queues;
mod report;
mod table;

pub use groups::{groups_json, groups_text};
pub use message::{BodyFormat, message_text};
pub use plan::{drop_plan_json, drop_plan_text, plan_json, plan_text};
pub use queues::{queues_json, queues_text};
pub use report::{
    StoppedRun, audit_line, inspection_notes, report_json, report_text, restore_audit_line, restore_json, restore_text,
    stopped_audit_line,
};

use crate::model::count::number;
use std::time::{SystemTime, UNIX_EPOCH};

/// The format version of the JSON documents.
const FORMAT_VERSION: u32 = 1;

/// Formats a number. Returns `?` if the number is unknown.
fn known(value: Option<u64>) -> String {
    value.map_or_else(|| "?".to_owned(), number)
}

/// Formats the time since an event with the two largest units, such as `2h 4m`. `event` is in seconds since 1970.
/// Returns `?` if `event` is unknown.
fn ago(event: Option<u64>, now: SystemTime) -> String {
    let Some(event) = event else { return "?".to_owned() };
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let since = now.saturating_sub(event);
    match since {
        0..60 => format!("{since}s"),
        60..3600 => format!("{}m {}s", since / 60, since % 60),
        3600..86_400 => format!("{}h {}m", since / 3600, since % 3600 / 60),
        _ => format!("{}d {}h", since / 86_400, since % 86_400 / 3600),
    }
}

/// Formats a time in seconds since 1970 as RFC 3339. Returns `?` if the time is unknown.
fn rfc3339(seconds: Option<u64>) -> String {
    seconds.map_or_else(|| "?".to_owned(), crate::operate::dlq::rfc3339)
}
