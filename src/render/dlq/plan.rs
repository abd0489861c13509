//! Renders the plans of replays and drops.

use super::FORMAT_VERSION;
use super::report::inspection_notes;
use crate::model::count::{count, number};
use crate::model::printable::{clean, clean_json};
use crate::model::units::duration;
use crate::model::{QueueName, VhostName, naming};
use crate::operate::dlq::{Inspection, ReplayOptions, ReplayPlan, ReplayTarget, ReturnPath};
use crate::render::style::{BOLD, Painted, YELLOW, fold};
use serde_json::json;
use std::fmt::Write;
use std::time::Duration;

/// The maximum number of routing keys that are listed for a target.
const MAX_KEYS: usize = 3;

/// Renders the plan of a replay.
pub fn plan_text(plan: &ReplayPlan, options: &ReplayOptions, width: usize) -> String {
    let mut text = String::new();
    let queue = clean(plan.queue.as_str());
    let of = if plan.is_complete {
        count(plan.before, "message")
    } else {
        format!("the first {} of {}", number(plan.inspected), count(plan.before, "message"))
    };
    let selected = options.limit.map_or(plan.messages(), |limit| limit.min(plan.messages()));
    let heading = format!("Replay {} of {of} in {queue}", number(selected));
    let _ = writeln!(text, "{}", Painted(BOLD, heading));
    for target in &plan.targets {
        let line = |text: &str| fold(text, width.saturating_sub(6)).replace('\n', "\n      ");
        let to = format!("to {} {}: {}", arrow(target), clean(target.queue.as_str()), keys(target));
        let _ = writeln!(text, "  {}", line(&to));
        let _ = writeln!(text, "      {}", line(&path_text(target)));
        let consumers =
            target.consumers.map_or_else(|| "number of consumers unknown".to_owned(), |it| count(it, "consumer"));
        let backlog = target.backlog.map_or_else(String::new, |it| format!(", {} in the queue", count(it, "message")));
        let _ = writeln!(text, "      {consumers}{backlog}");
        if let Some(expiry) = target.expiry {
            let note = format!(
                "messages expire after {} in this queue, even while they wait behind other messages",
                span(expiry)
            );
            let _ = writeln!(text, "      {}", line(&Painted(YELLOW, note).to_string()));
        }
    }
    let mut notes = Vec::new();
    if selected < plan.messages() {
        notes.push(format!(
            "{} match; --limit restricts the replay to {}",
            count(plan.messages(), "message"),
            number(selected)
        ));
    }
    if plan.unknown_source > 0 {
        notes.push(format!("{}: source unknown; to replay, use --to QUEUE", count(plan.unknown_source, "message")));
    }
    if plan.replayed_before > 0 {
        notes
            .push(format!("{}: replayed before; to replay again, use --again", count(plan.replayed_before, "message")));
    }
    if !plan.is_complete {
        notes.push(
            "during the replay, topo also selects from the messages that were not inspected for this plan".to_owned(),
        );
    }
    notes.push(pace(plan, options));
    for (hazard, reason) in plan.hazards.iter().filter(|(hazard, _)| !options.allowed.contains(hazard)) {
        notes.push(format!("{} {}: {}", Painted(YELLOW, "hazard"), hazard.as_str(), clean(reason)));
    }
    for note in notes {
        let _ = writeln!(text, "  {}", fold(&note, width.saturating_sub(2)).replace('\n', "\n  "));
    }
    text
}

fn arrow(target: &ReplayTarget) -> &'static str {
    if target.path == ReturnPath::OriginalExchange { "the original exchanges of messages from" } else { "queue" }
}

fn keys(target: &ReplayTarget) -> String {
    let messages = count(target.messages, "message");
    let mut keys: Vec<(&String, &u64)> = target.routing_keys.iter().collect();
    keys.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shown: Vec<String> =
        keys.iter().take(MAX_KEYS).map(|(key, count)| format!("{} ({})", clean(key), number(**count))).collect();
    let at_least = if target.of_other_keys > 0 { "at least " } else { "" };
    let more = if keys.len() > MAX_KEYS {
        format!(" and {at_least}{} more", number((keys.len() - MAX_KEYS) as u64))
    } else {
        String::new()
    };
    let known = format!("with their original routing keys: {}{more}", shown.join(", "));
    let unknown =
        format!("{} without an original routing key, published with the current key", number(target.of_unknown_keys));
    match (shown.is_empty(), target.of_unknown_keys) {
        (true, 0) => messages,
        (false, 0) => format!("{messages} {known}"),
        (true, _) => format!("{messages}, {unknown}"),
        (false, _) => format!("{messages} {known}; {unknown}"),
    }
}

fn path_text(target: &ReplayTarget) -> String {
    match &target.path {
        ReturnPath::ReturnExchange(exchange) => {
            format!("through {}, which routes only to this queue", clean(exchange.as_str()))
        }
        ReturnPath::TemporaryExchange => {
            let exchange: QueueName = QueueName::new(naming::replay_exchange(&target.queue).as_str());
            format!("through the temporary exchange {}, which routes only to this queue", clean(exchange.as_str()))
        }
        ReturnPath::DefaultExchange => {
            format!(
                "through the default exchange: {}",
                Painted(YELLOW, "workers see the queue name as the routing key")
            )
        }
        ReturnPath::OriginalExchange => {
            let exchanges: Vec<String> = target.exchanges.keys().map(|it| clean(it)).collect();
            format!("through {}: every bound queue receives a copy", exchanges.join(", "))
        }
    }
}

fn span(it: Duration) -> String {
    i64::try_from(it.as_millis()).ok().and_then(duration).unwrap_or_else(|| "0s".to_owned())
}

fn pace(plan: &ReplayPlan, options: &ReplayOptions) -> String {
    let rate = options.rate.map_or_else(|| "no rate limit".to_owned(), |rate| format!("rate limit {rate}/s"));
    if !plan.is_observed {
        return format!(
            "{rate}; topo cannot detect messages that come back until it has received all messages in the queue, because \
             they arrive through the default exchange"
        );
    }
    let share = options.breaker.share * 100.0;
    let stop = format!("stops if more than {share}% come back");
    match options.breaker.canary {
        0 => format!("{rate}; {stop}"),
        canary if plan.waits_too_long(options.breaker) => {
            let verdict = span(plan.verdict(options.breaker.settle));
            format!(
                "{rate}; the outcome of the first {} is known only after {verdict}, but topo waits for at most 10 minutes: use \
                 --canary 0",
                count(canary, "message")
            )
        }
        canary => {
            let verdict = span(plan.verdict(options.breaker.settle));
            format!(
                "replays up to {} first, then waits {verdict} for their outcome; {rate}; {stop}",
                count(canary, "message")
            )
        }
    }
}

/// Renders the plan of a drop: the number of messages to drop, and the result of the inspection.
pub fn drop_plan_text(queue: &QueueName, inspected: &Inspection, limit: Option<u64>) -> String {
    let selected = limit.unwrap_or(u64::MAX).min(inspected.matched);
    let name = clean(queue.as_str());
    let heading = format!("Drop {} of {} in {name}", number(selected), count(inspected.before, "message"));
    format!("{}\n{}", Painted(BOLD, heading), inspection_notes(queue, inspected))
}

/// Renders the plan of a drop as JSON.
pub fn drop_plan_json(vhost: &VhostName, queue: &QueueName, inspected: &Inspection, limit: Option<u64>) -> String {
    let document = json!({
        "formatVersion": FORMAT_VERSION, "vhost": vhost, "queue": queue, "before": inspected.before,
        "inspected": inspected.received, "complete": inspected.is_complete(), "matched": inspected.matched,
        "messages": limit.unwrap_or(u64::MAX).min(inspected.matched), "limit": limit,
    });
    clean_json(format!("{document:#}\n"))
}

/// Renders the plan of a replay as JSON.
pub fn plan_json(vhost: &VhostName, plan: &ReplayPlan, options: &ReplayOptions) -> String {
    let target = |it: &ReplayTarget| {
        let (way, exchange) = match &it.path {
            ReturnPath::ReturnExchange(exchange) => ("returnExchange", Some(exchange.as_str().to_owned())),
            ReturnPath::TemporaryExchange => {
                ("temporaryExchange", Some(naming::replay_exchange(&it.queue).as_str().to_owned()))
            }
            ReturnPath::DefaultExchange => ("defaultExchange", Some(String::new())),
            ReturnPath::OriginalExchange => ("originalExchange", None),
        };
        json!({
            "queue": it.queue, "messages": it.messages, "routingKeys": it.routing_keys,
            "ofOtherRoutingKeys": it.of_other_keys, "ofUnknownRoutingKeys": it.of_unknown_keys, "way": way,
            "exchange": exchange, "consumers": it.consumers, "backlog": it.backlog,
            "expiryMs": it.expiry.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
            "retriesMs": u64::try_from(it.retries.as_millis()).unwrap_or(u64::MAX),
        })
    };
    let document = json!({
        "formatVersion": FORMAT_VERSION, "vhost": vhost, "queue": plan.queue, "before": plan.before,
        "inspected": plan.inspected, "complete": plan.is_complete, "messages": plan.messages(),
        "limit": options.limit,
        "unknownSource": plan.unknown_source, "replayedBefore": plan.replayed_before,
        "hazards": plan.hazards.iter().map(|(hazard, reason)| json!({"hazard": hazard.as_str(), "reason": reason})).collect::<Vec<_>>(),
        "targets": plan.targets.iter().map(target).collect::<Vec<_>>(),
    });
    clean_json(format!("{document:#}\n"))
}
