//! Renders results as JSON.

use super::{Counts, coverage, sentence};
use crate::cases::{Against, Aspect, CaseOutcome, CaseResult, CoverageReport, FileReport, LiveResult, Mismatch};
use crate::model::printable::clean_json;
use crate::simulation::{EndedCopy, Event, EventKind};
use serde_json::{Value, json};

/// Renders the results of all test files, and the coverage if it was computed, as one JSON document.
pub fn json(reports: &[FileReport], coverages: &[CoverageReport]) -> String {
    let counts = Counts::of(reports);
    let cases: Vec<Value> =
        reports.iter().flat_map(|report| report.results.iter().map(|result| case(report, result))).collect();
    let mut document = json!({
        "formatVersion": 1, "passed": counts.passed, "failed": counts.failed, "skipped": counts.skipped, "cases": cases,
    });
    if !coverages.is_empty() {
        document["coverage"] = coverages.iter().map(coverage::json).collect();
    }
    clean_json(format!("{document:#}\n"))
}

fn case(report: &FileReport, result: &CaseResult) -> Value {
    let mode = if report.live.is_some() { "live" } else { "offline" };
    let mut document = json!({
        "name": result.name, "vhost": report.vhost, "brokerVersion": report.version, "mode": mode,
        "source": {"file": report.file, "line": result.at.line},
    });
    let against = report.against.as_ref().map(|against| match against {
        Against::Live(url) => json!({"topology": "live", "url": url}),
        Against::Planned(url) => json!({"topology": "planned", "url": url}),
        Against::File(file) => json!({"topology": "file", "file": file}),
    });
    if let Some(against) = against {
        document["against"] = against;
    }
    if let Some(live) = &report.live {
        document["timeScale"] = live.time_scale.into();
    }
    match &result.live {
        None => {}
        Some(LiveResult::Agrees) => document["live"] = json!({"result": "agrees"}),
        Some(LiveResult::Differs) => document["live"] = json!({"result": "differs"}),
        Some(LiveResult::NotRun(reason)) => document["live"] = json!({"result": "notRun", "reason": reason}),
    }
    match &result.outcome {
        CaseOutcome::Passed => document["result"] = "passed".into(),
        CaseOutcome::Skipped => document["result"] = "skipped".into(),
        CaseOutcome::Failed { mismatches, simulated } => {
            let is_known = mismatches.iter().all(|it| it.aspect != Aspect::Unknown);
            document["result"] = if is_known { "failed" } else { "unknown" }.into();
            document["mismatches"] = mismatches.iter().map(|it| mismatch(report, it)).collect();
            document["events"] = simulated.events.iter().map(event).collect();
            document["ends"] = simulated.ends.iter().map(end).collect();
        }
    }
    document
}

fn mismatch(report: &FileReport, it: &Mismatch) -> Value {
    json!({
        "aspect": it.aspect.as_str(), "queue": it.queue, "expected": it.expected, "actual": it.actual,
        "message": sentence(it), "because": it.because,
        "spec": it.at.and_then(|at| Some(json!({"file": report.spec_files.get(at.file)?, "line": at.line}))),
    })
}

fn end(it: &EndedCopy) -> Value {
    json!({"queue": it.queue, "end": it.end.as_str(), "exchange": it.exchange, "routingKey": it.routing_key})
}

fn event(it: &Event) -> Value {
    let mut document = match &it.kind {
        EventKind::Published { exchange, routing_key, queues } => {
            json!({"event": "published", "exchange": exchange, "routingKey": routing_key, "queues": queues})
        }
        EventKind::Delivered { queue, attempt, behavior, method } => json!({
            "event": "delivered", "queue": queue, "attempt": attempt, "behavior": behavior.map(|it| it.as_str()),
            "method": method.map(|(method, _)| method.as_str()), "requeue": method.and_then(|(_, requeue)| requeue),
        }),
        EventKind::DeadLettered { queue, reason, exchange, queues } => json!({
            "event": "deadLettered", "queue": queue, "reason": reason.as_str(), "exchange": exchange, "queues": queues,
        }),
        EventKind::Refused { queue } => json!({"event": "refused", "queue": queue}),
    };
    document["atMs"] = it.at.into();
    document["message"] = it.message.into();
    document
}
