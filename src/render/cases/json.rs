//! Renders results as JSON.

use super::document::{Against, Case, CaseResult, EndedCopy, Event, EventKind, FORMAT_VERSION, Live, Mismatch, Mode};
use super::document::{Position, Results};
use super::{Counts, coverage, sentence};
use crate::cases::{self, Aspect, CaseOutcome, CoverageReport, FileReport, LiveResult};
use crate::model::printable::clean_json;
use crate::simulation;
use serde_json::json;

/// Renders the results of all test files, and the coverage if it was computed, as one JSON document.
pub fn json(reports: &[FileReport], coverages: &[CoverageReport]) -> String {
    let counts = Counts::of(reports);
    let results = Results {
        format_version: FORMAT_VERSION,
        passed: counts.passed,
        failed: counts.failed,
        skipped: counts.skipped,
        cases: reports.iter().flat_map(|report| report.results.iter().map(|result| case(report, result))).collect(),
        coverage: coverages.iter().map(coverage::document).collect(),
    };
    clean_json(format!("{:#}\n", json!(results)))
}

fn case(report: &FileReport, result: &cases::CaseResult) -> Case {
    let (found, mismatches, simulated) = match &result.outcome {
        CaseOutcome::Passed => (CaseResult::Passed, &[][..], None),
        CaseOutcome::Skipped => (CaseResult::Skipped, &[][..], None),
        CaseOutcome::Failed { mismatches, simulated } => {
            let is_known = mismatches.iter().all(|it| it.aspect != Aspect::Unknown);
            let found = if is_known { CaseResult::Failed } else { CaseResult::Unknown };
            (found, mismatches.as_slice(), Some(simulated))
        }
    };
    Case {
        name: result.name.clone(),
        vhost: report.vhost.clone(),
        broker_version: report.version,
        mode: if report.live.is_some() { Mode::Live } else { Mode::Offline },
        source: Position { file: report.file.clone(), line: result.at.line },
        against: report.against.as_ref().map(|against| match against.clone() {
            cases::Against::Live(url) => Against::Live { url },
            cases::Against::Planned(url) => Against::Planned { url },
            cases::Against::File(file) => Against::File { file },
        }),
        time_scale: report.live.as_ref().map(|live| live.time_scale),
        live: result.live.as_ref().map(|live| match live {
            LiveResult::Agrees => Live::Agrees,
            LiveResult::Differs => Live::Differs,
            LiveResult::NotRun(reason) => Live::NotRun { reason: reason.clone() },
        }),
        result: found,
        mismatches: mismatches.iter().map(|it| mismatch(report, it)).collect(),
        events: simulated.iter().flat_map(|it| &it.events).map(event).collect(),
        ends: simulated.iter().flat_map(|it| &it.ends).map(end).collect(),
    }
}

fn mismatch(report: &FileReport, it: &cases::Mismatch) -> Mismatch {
    let position =
        |at: crate::spec::Location| Some(Position { file: report.spec_files.get(at.file)?.clone(), line: at.line });
    Mismatch {
        aspect: it.aspect.as_str(),
        queue: it.queue.clone(),
        expected: it.expected.clone(),
        actual: it.actual.clone(),
        message: sentence(it),
        because: it.because.clone(),
        spec: it.at.and_then(position),
    }
}

fn end(it: &simulation::EndedCopy) -> EndedCopy {
    EndedCopy {
        queue: it.queue.clone(),
        end: it.end.as_str(),
        exchange: it.exchange.clone(),
        routing_key: it.routing_key.clone(),
    }
}

fn event(it: &simulation::Event) -> Event {
    let kind = match it.kind.clone() {
        simulation::EventKind::Published { exchange, routing_key, more_keys, queues } => {
            EventKind::Published { exchange, routing_key, additional_routing_keys: more_keys, queues }
        }
        simulation::EventKind::Delivered { queue, attempt, behavior, method } => EventKind::Delivered {
            queue,
            attempt,
            behavior: behavior.map(|it| it.as_str()),
            method: method.map(|(method, _)| method.as_str()),
            requeue: method.and_then(|(_, requeue)| requeue),
        },
        simulation::EventKind::DeadLettered { queue, reason, exchange, queues } => {
            EventKind::DeadLettered { queue, reason: reason.as_str(), exchange, queues }
        }
        simulation::EventKind::Refused { queue } => EventKind::Refused { queue },
    };
    Event { kind, at_ms: it.at, message: it.message }
}
