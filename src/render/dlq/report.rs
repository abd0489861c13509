//! Renders the results of inspections, replays, drops and restores.

use super::FORMAT_VERSION;
use crate::model::count::{count, number};
use crate::model::printable::{clean, clean_json, one_line};
use crate::model::{QueueName, VhostName};
use crate::operate::dlq::{
    Continuation, HOLD_FULL, Inspection, InspectionEnd, RestoreReport, ReturnedMessage, RunEnd, RunReport,
};
use crate::render::style::{GREEN, Painted, RED, YELLOW};
use serde_json::{Value, json};
use std::fmt::Write;

/// The maximum number of returned messages to list.
const MAX_CAME_BACK: usize = 5;
/// The maximum length of a displayed error, in characters.
const MAX_ERROR: usize = 100;

/// Describes the result of an inspection.
pub fn inspection_notes(queue: &QueueName, it: &Inspection) -> String {
    let queue = clean(queue.as_str());
    let mut text = match (it.before, it.received) {
        (0, 0) => format!("{queue} contains no ready messages.\n"),
        (before, received) if before == received => {
            format!("{}: all inspected and requeued.\n", count(before, "message"))
        }
        (before, received) => {
            format!("{}: {} inspected and requeued.\n", count(before, "message"), number(received))
        }
    };
    if it.matched != it.received {
        let _ = writeln!(text, "{} matched.", count(it.matched, "message"));
    }
    if it.renewed > 0 {
        let _ =
            writeln!(text, "{} near the delivery limit: moved to the end of the queue.", count(it.renewed, "message"));
    }
    let reason = match &it.end {
        InspectionEnd::Complete | InspectionEnd::Limit => return text,
        InspectionEnd::HoldFull => HOLD_FULL.to_owned(),
        InspectionEnd::Incomplete(reason) => clean(reason),
    };
    let _ = writeln!(text, "{} {reason}", Painted(YELLOW, "Incomplete:"));
    text
}

/// Renders the report of a replay or a drop. `verb` is `replayed` or `dropped`.
pub fn report_text(report: &RunReport, verb: &str) -> String {
    let RunReport { run: _, vhost: _, queue, before, after, counts, other_users, came_back, end, continuation } =
        report;
    let queue = clean(queue.as_str());
    let mut text = String::new();
    let done = count(counts.done, "message");
    let _ = match end {
        RunEnd::Complete | RunEnd::Limit => {
            writeln!(text, "{} {done} {verb}.", Painted(GREEN, "Done:"))
        }
        RunEnd::Breaker { judged } => writeln!(
            text,
            "{} {} of {} came back. {done} {verb}.",
            Painted(RED, "Stopped by the circuit breaker:"),
            number(counts.came_back),
            count(*judged, "message"),
        ),
        RunEnd::Interrupted => writeln!(text, "{} {done} {verb}.", Painted(YELLOW, "Interrupted:")),
        RunEnd::Stopped(reason) => {
            writeln!(text, "{} {}. {done} {verb}.", Painted(RED, "Stopped:"), clean(reason).trim_end_matches('.'))
        }
    };
    let after = after.map_or_else(|| "an unknown number of messages".to_owned(), |after| count(after, "message"));
    let _ = writeln!(text, "  {queue}: {} before, {after} now", count(*before, "message"));
    let mut line = |value: u64, what: &str| {
        if value > 0 {
            let _ = writeln!(text, "  {} {what}", count(value, "message"));
        }
    };
    if !matches!(end, RunEnd::Breaker { .. }) {
        line(counts.came_back, "came back during the run");
    }
    line(counts.pending, "may still come back: the outcome is not known yet");
    for it in came_back.iter().take(MAX_CAME_BACK) {
        let _ = writeln!(text, "  came back: {}", came_back_text(it));
    }
    let mut line = |value: u64, what: &str| {
        if value > 0 {
            let _ = writeln!(text, "  {} {what}", count(value, "message"));
        }
    };
    line(counts.arrived, "arrived during the run");
    line(counts.replayed_before, "skipped: already replayed by an earlier run (use --again)");
    line(counts.unknown_source, "not replayed: source unknown (use --to QUEUE)");
    line(counts.unreadable, "not replayed: unreadable properties");
    line(counts.renewed, "near the delivery limit: moved to the end of the queue");
    if counts.of_other_users > 0 {
        let users: Vec<String> = other_users.iter().map(|user| format!("`{}`", clean(user))).collect();
        let what = format!(
            "not published: `user_id` names a different user ({}); to publish them, add the `impersonator` tag to \
             your user",
            users.join(", ")
        );
        line(counts.of_other_users, &what);
    }
    line(counts.in_doubt, "may be duplicated: processed, but possibly still in the queue");
    if !end.is_complete() {
        let next = match continuation {
            Continuation::OtherPositions => {
                "Their positions have changed: list the messages before you continue.".to_owned()
            }
            Continuation::Limit(limit) if *limit > 0 => {
                format!("To continue, run the command again with --limit {limit}.")
            }
            Continuation::Limit(_) | Continuation::SameCommand => "To continue, run the same command again.".to_owned(),
        };
        let next = match end {
            RunEnd::Breaker { .. } => "Fix the cause, then run the command again.".to_owned(),
            RunEnd::Complete | RunEnd::Limit | RunEnd::Interrupted | RunEnd::Stopped(_) => next,
        };
        let _ = writeln!(text, "  All other messages are still in the queue. {next}");
    }
    text
}

/// Describes a message that came back: its identifier for `--id`, its routing key and its error.
fn came_back_text(it: &ReturnedMessage) -> String {
    let source = it.source.as_ref().map_or_else(String::new, |source| format!(" from {}", clean(source.as_str())));
    let error: String = it.error.as_deref().map(one_line).unwrap_or_default().chars().take(MAX_ERROR).collect();
    let error = if error.is_empty() { error } else { format!(": {}", clean(&error)) };
    format!("{}{source}, routing key {}{error}", it.fingerprint, clean(&it.routing_key))
}

/// Renders the report as JSON.
pub fn report_json(report: &RunReport, command: &str) -> String {
    clean_json(format!("{:#}\n", report_value(report, command)))
}

/// Returns the audit line for a run.
pub fn audit_line(report: &RunReport, command: &str, time: &str, user: &str) -> String {
    audited(report_value(report, command), time, user)
}

/// Returns the audit line for a run that a second signal stopped immediately. `done` is the number of messages that
/// were replayed, dropped or restored before the signal.
pub fn stopped_audit_line(run: &StoppedRun<'_>, time: &str, user: &str) -> String {
    let StoppedRun { command, run, vhost, queue, done } = run;
    let value = json!({
        "formatVersion": FORMAT_VERSION, "command": command, "run": run, "vhost": vhost, "queue": queue,
        "end": "stoppedImmediately", "done": done,
    });
    audited(value, time, user)
}

/// A run that a second signal stopped immediately.
#[derive(Clone, Copy, Debug)]
pub struct StoppedRun<'a> {
    /// The command.
    pub command: &'a str,
    /// The identifier of the run; `None` for a restore.
    pub run: Option<&'a str>,
    /// The vhost.
    pub vhost: &'a VhostName,
    /// The dead-letter queue.
    pub queue: &'a QueueName,
    /// The number of messages that were processed.
    pub done: u64,
}

/// Returns the audit line for a restore.
pub fn restore_audit_line(report: &RestoreReport, time: &str, user: &str) -> String {
    audited(restore_value(report), time, user)
}

fn audited(mut value: Value, time: &str, user: &str) -> String {
    if let Value::Object(map) = &mut value {
        map.insert("time".to_owned(), time.into());
        map.insert("user".to_owned(), user.into());
    }
    clean_json(format!("{value}\n"))
}

fn report_value(report: &RunReport, command: &str) -> Value {
    let RunReport { run, vhost, queue, before, after, counts, other_users, came_back, end, continuation: _ } = report;
    let reason = if let RunEnd::Stopped(reason) = end { Some(reason) } else { None };
    json!({
        "formatVersion": FORMAT_VERSION,
        "command": command,
        "run": run,
        "vhost": vhost,
        "queue": queue,
        "end": end.as_str(),
        "reason": reason,
        "before": before,
        "after": after,
        "received": counts.received,
        "matched": counts.matched,
        "done": counts.done,
        "cameBack": counts.came_back,
        "cameBackMessages": came_back.iter().map(|it| json!({
            "fingerprint": it.fingerprint, "source": it.source, "originalRoutingKey": it.routing_key, "error": it.error,
        })).collect::<Vec<_>>(),
        "pending": counts.pending,
        "arrived": counts.arrived,
        "replayedBefore": counts.replayed_before,
        "unknownSource": counts.unknown_source,
        "ofOtherUsers": counts.of_other_users,
        "otherUsers": other_users,
        "unreadable": counts.unreadable,
        "renewed": counts.renewed,
        "mayExistTwice": counts.in_doubt,
    })
}

/// Renders the report of a restore.
pub fn restore_text(report: &RestoreReport) -> String {
    let RestoreReport { vhost: _, queue, skipped, restored, in_doubt, stopped, is_interrupted } = report;
    let done = format!("{} restored to {}", count(*restored, "message"), clean(queue.as_str()));
    let mut text = match (stopped, is_interrupted) {
        (Some(reason), _) => format!("{} {}. {done}.\n", Painted(RED, "Stopped:"), clean(reason)),
        (None, true) => format!("{} {done}.\n", Painted(YELLOW, "Interrupted:")),
        (None, false) => format!("{} {done}.\n", Painted(GREEN, "Done:")),
    };
    if *skipped > 0 {
        let _ = writeln!(text, "  {} skipped: already restored by an earlier run", count(*skipped, "message"));
    }
    if *in_doubt > 0 {
        let _ = writeln!(text, "  {} may be restored twice", count(*in_doubt, "message"));
    }
    if stopped.is_some() || *is_interrupted {
        text.push_str("  To continue, run the same command again.\n");
    }
    text
}

/// Renders the report of a restore as JSON.
pub fn restore_json(report: &RestoreReport) -> String {
    clean_json(format!("{:#}\n", restore_value(report)))
}

fn restore_value(report: &RestoreReport) -> Value {
    let RestoreReport { vhost, queue, skipped, restored, in_doubt, stopped, is_interrupted } = report;
    json!({
        "formatVersion": FORMAT_VERSION, "command": "restore", "vhost": vhost, "queue": queue,
        "restoredBefore": skipped, "restored": restored, "mayExistTwice": in_doubt, "reason": stopped,
        "interrupted": is_interrupted,
    })
}
