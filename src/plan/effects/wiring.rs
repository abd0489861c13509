//! Checks that dead-lettered messages from a queue with `wiring: policy` reach the destination in the spec, despite
//! unmanaged policies and the queue's arguments. Reports the policies that the generated policy displaces.

use super::Sides;
use crate::model::units::with_unit;
use crate::model::{ObjectId, PolicyName, Queue, QueueName};
use crate::plan::changes_by_kind::PlanBuilder;
use crate::plan::document::Options;
use crate::plan::wiring::{Wired, wired_queues};
use crate::rabbitmq::WIRING_KEYS;
use crate::rabbitmq::{Governed, Governing, Source};

/// Blocks the plan if dead-lettered messages would not reach the destination in the spec, even if the plan changes
/// nothing. Without the block, rejected messages could be lost silently. Also blocks the plan if topo cannot evaluate
/// the pattern of a policy that the generated policy may displace.
pub(super) fn check(builder: &mut PlanBuilder, sides: &Sides<'_>, options: &Options) {
    for wired in wired_queues(&sides.context.desired.topology) {
        let address = sides.context.address(&ObjectId::Policy(wired.name.clone()));
        let of_queue = sides.context.address(&ObjectId::Queue(wired.queue_name.clone()));
        let is_changed = builder.changes.iter().any(|change| change.address == address);
        let is_queue_changed = || builder.changes.iter().any(|change| change.address == of_queue);
        if !options.targets.is_empty() && !is_changed && !is_queue_changed() {
            continue;
        }
        let Some(queue) = sides.queue_after(builder, &wired.queue_name) else { continue };
        let displaced = sides.without_wiring.governing(wired.queue_name.as_str(), Governed::from(&queue));
        if let Some(unclear) = unclear_policy(sides, &displaced, &wired.queue_name, &queue) {
            let text = format!(
                "topo cannot evaluate the pattern of policy {unclear}: if that policy governs queue {}, topo must \
                 merge it into this policy, which wires the dead-lettering of the queue",
                wired.queue_name
            );
            let remedy = "use `wiring: arguments` for that queue, or a simpler pattern for that policy";
            builder.block(&address, text, Some(remedy.to_owned()));
            continue;
        }
        if let Some(why) = misrouting(sides, &wired, &queue) {
            let text = format!(
                "dead-lettered messages from queue {} would not reach the destination in the spec: {why}",
                wired.queue_name
            );
            let remedy =
                "give this policy precedence over all other policies, or use `wiring: arguments` for that queue";
            builder.block(&address, text, Some(remedy.to_owned()));
        }
        if is_changed && let Some(text) = displacement(sides, &displaced, &wired) {
            builder.info(&address, text);
        }
    }
}

/// Returns a policy whose pattern topo cannot evaluate and that would govern the queue if the pattern matched; `None`
/// if there is no such policy.
fn unclear_policy<'a>(
    sides: &Sides<'a>,
    displaced: &Governing<'a>,
    name: &QueueName,
    queue: &Queue,
) -> Option<&'a PolicyName> {
    let possible = displaced.names();
    let candidates = sides.without_wiring.matching(name.as_str(), Governed::from(queue));
    let mut unclear = candidates.iter().filter(|candidate| !candidate.is_certain).map(|candidate| candidate.named.name);
    unclear.find(|name| possible.contains(&Some(*name)))
}

/// Returns the reason why dead-lettered messages might not reach the destination in the spec; `None` if all
/// dead-lettered messages reach the destination.
fn misrouting(sides: &Sides<'_>, wired: &Wired<'_>, queue: &Queue) -> Option<String> {
    for (policy, settings) in sides.governors().possible(&wired.queue_name, queue) {
        for key in WIRING_KEYS {
            let (effective, desired) = (settings.get(key), wired.policy.definition.get(key));
            if effective.map(|it| &it.value) == desired {
                continue;
            }
            return Some(match (effective.map(|it| &it.source), policy) {
                (Some(Source::Argument), _) => format!("the queue's own argument x-{key} overrides every policy"),
                (_, Some(policy)) if policy.name != wired.name => {
                    format!("policy {} takes precedence over this policy", policy.name)
                }
                (_, Some(_)) => format!("the {key} key of a policy has no effect on the queue"),
                (_, None) => "no policy governs the queue".to_owned(),
            });
        }
    }
    None
}

/// Describes the displaced policies; `None` if no policy is displaced. For example: `for queue work it will take
/// precedence over policy limits (not in this spec), and will include its settings: max-length 100`.
fn displacement(sides: &Sides<'_>, displaced: &Governing<'_>, wired: &Wired<'_>) -> Option<String> {
    let likely = displaced.likely()?;
    let declared = &sides.context.desired.topology.policies;
    let names: Vec<String> = displaced
        .possible()
        .iter()
        .flatten()
        .map(|named| {
            let suffix = if declared.contains_key(named.name) { "" } else { " (not in this spec)" };
            format!("{}{suffix}", named.name)
        })
        .collect();
    let is_wiring_key = |key: &str| WIRING_KEYS.contains(&key);
    let definition = &likely.policy.definition;
    let kept: Vec<String> = definition
        .iter()
        .filter(|(key, _)| !is_wiring_key(key))
        .map(|(key, value)| format!("{key} {}", with_unit(key, value)))
        .collect();
    let lost: Vec<&str> = definition
        .iter()
        .filter(|(key, value)| is_wiring_key(key) && wired.policy.definition.get(*key) != Some(value))
        .map(|(key, _)| key.as_str())
        .collect();
    let mut text = format!("for queue {} it will take precedence over policy {}", wired.queue_name, names.join(" or "));
    if !kept.is_empty() {
        text += &format!(", and will include its settings: {}", kept.join(", "));
    }
    if !lost.is_empty() {
        text += &format!("; its {} will no longer apply", lost.join(" and "));
    }
    Some(text)
}
