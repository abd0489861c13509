//! Renders the report of an apply as JSON.

use super::report_text::action;
use crate::apply::{Consumers, Migrated, Report, StoppedShovel};
use crate::model::Address;
use crate::plan::Step;
use serde_json::{Value, json};

fn migration(one: &Migrated) -> Value {
    json!({
        "queue": one.queue,
        "isRolledBack": one.is_rolled_back,
        "isInterrupted": one.is_interrupted,
        "rollbackError": one.rollback_error,
        "returned": one.returned,
        "keeps": one.keeps,
        "possibleDuplicates": one.possible_duplicates,
        "reordered": one.reordered,
        "behind": one.behind,
        "missing": one.missing.map(|it| json!({ "messages": it.messages, "of": it.total })),
        "fallback": one.fallback,
        "conflictingPolicy": one.conflicting_policy,
        "unroutedMilliseconds": one.gap.map(|gap| gap.as_millis()),
        "redeclared": one.redeclared,
        "redeclaredBy": one.redeclared_by,
    })
}

fn consumers(of_queue: &Consumers) -> Value {
    let Consumers { queue, before, after, missing } = of_queue;
    json!({ "queue": queue, "before": before, "after": after, "missing": missing })
}

/// Renders one JSON document: the overall result, and every step with its result. `left` contains the addresses that
/// still differ, or is `None` if topo could not read the broker after the apply. `stopped` contains the shovels
/// that the run wrote and that are not running.
pub fn report(
    reports: &[Report],
    left: Option<&[Address]>,
    stopped: &[StoppedShovel],
    fingerprint: &str,
    result: &str,
) -> Value {
    let step = |step: &Step| {
        json!({
            "id": step.id,
            "address": step.address,
            "what": action(&step.action),
            "request": step.request,
        })
    };
    let part = |report: &Report| {
        let failed = report.failed.iter().map(|failed| {
            let mut value = step(&failed.step);
            value["error"] = json!(failed.error.to_string());
            value["mayBeDone"] = json!(failed.error.may_have_been_processed());
            value
        });
        let waiting = report.waiting.iter().map(|waiting| {
            let mut value = step(&waiting.step);
            value["why"] = json!(waiting.why.as_ref().map(ToString::to_string));
            value
        });
        json!({
            "vhost": report.vhost,
            "interrupted": report.is_interrupted,
            "done": report.done.iter().map(|done| step(&done.step)).collect::<Vec<_>>(),
            "rolledBack": report.rolled_back.iter().map(|back| step(&back.step)).collect::<Vec<_>>(),
            "failed": failed.collect::<Vec<_>>(),
            "waiting": waiting.collect::<Vec<_>>(),
            "migrated": report.migrated.iter().map(migration).collect::<Vec<_>>(),
            "consumers": report.consumers.iter().map(consumers).collect::<Vec<_>>(),
            "notAttempted": report.not_attempted.iter().map(step).collect::<Vec<_>>(),
        })
    };
    let (of_cluster, of_vhosts): (Vec<&Report>, Vec<&Report>) =
        reports.iter().partition(|report| report.vhost.is_cluster());
    let mut document = json!({
        "formatVersion": 1,
        "result": result,
        "fingerprint": fingerprint,
        "left": left,
        "vhosts": of_vhosts.into_iter().map(part).collect::<Vec<_>>(),
    });
    if let Some(report) = of_cluster.first() {
        let mut value = part(report);
        value.as_object_mut().and_then(|fields| fields.shift_remove("vhost"));
        document["cluster"] = value;
    }
    if !stopped.is_empty() {
        let shovel = |it: &StoppedShovel| json!({ "address": it.address, "text": it.text });
        document["stoppedShovels"] = stopped.iter().map(shovel).collect();
    }
    document
}
