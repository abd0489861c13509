//! What changed policies do to live queues: who governs, which limits hold, and what the broker would drop at once.

use super::document::ChangeKind;
use super::draft::Draft;
use super::governing::{Governing, Policies};
use super::hazard::HazardKind;
use super::situation::Situation;
use crate::model::units::with_unit;
use crate::model::{ArgumentValue, Arguments, Object, ObjectId, Policy, PolicyName, Queue, QueueName, QueueType};
use std::collections::{BTreeMap, BTreeSet};

/// Adds the hazards of policies that are created, changed or deleted.
pub(super) fn hazards(draft: &mut Draft, situation: &Situation<'_>) {
    let before = Policies::new(situation.current.policies.clone(), situation.dialect.version);
    let mut after = situation.current.policies.clone();
    let mut touched = BTreeSet::new();
    for change in &draft.changes {
        match (change.kind, &change.before, &change.after) {
            (ChangeKind::Create | ChangeKind::Change, _, Some(Object::Policy(name, policy))) => {
                after.insert(name.clone(), policy.clone());
                touched.insert(name.clone());
            }
            (ChangeKind::Delete, Some(Object::Policy(name, _)), _) => {
                after.remove(name);
                touched.insert(name.clone());
            }
            _ => {}
        }
    }
    if touched.is_empty() {
        return;
    }
    let after = Policies::new(after, situation.dialect.version);
    let operator = Policies::new(situation.operator_policies.clone(), situation.dialect.version);
    for (name, policy) in after.0.iter().filter(|(_, matcher)| matcher.regex.is_none()) {
        let address = situation.address(&ObjectId::Policy(name.clone()));
        draft.note(
            &address,
            format!("pattern {:?} cannot be evaluated here; what it governs is not known", policy.policy.pattern),
        );
    }
    shadowed(draft, situation, &after, &touched);
    for (name, queue) in &situation.current.queues {
        let id = ObjectId::Queue(name.clone());
        let goes = |change: &super::PlannedChange| {
            matches!(change.kind, ChangeKind::Delete | ChangeKind::Recreate) && change.id().as_ref() == Some(&id)
        };
        if draft.changes.iter().any(goes) {
            continue;
        }
        let (was, is) = (before.governing(name, queue), after.governing(name, queue));
        if was == is {
            continue;
        }
        let operator = operator.governing(name, queue).map(|(_, policy)| policy);
        one_queue(draft, situation, (name, queue), (was, is), operator);
    }
}

/// A policy that is written, matches queues, and governs none of them does nothing: somebody else's goes before it.
fn shadowed(draft: &mut Draft, situation: &Situation<'_>, policies: &Policies, touched: &BTreeSet<PolicyName>) {
    let queues: BTreeMap<&QueueName, &Queue> =
        situation.current.queues.iter().chain(&situation.wanted.topology.queues).collect();
    for (name, matcher) in policies.0.iter().filter(|(name, _)| touched.contains(*name)) {
        let mut winner = None;
        let governs = queues.iter().filter(|(queue_name, queue)| matcher.matches(queue_name, queue)).any(
            |(queue_name, queue)| {
                let governing = policies.governing(queue_name, queue).map(|(name, _)| name);
                winner = winner.or(governing);
                governing == Some(name)
            },
        );
        if let Some(winner) = winner.filter(|_| !governs) {
            let address = situation.address(&ObjectId::Policy(name.clone()));
            let text = format!("it governs no queue: policy {winner} goes before it wherever it matches");
            draft.note(&address, text);
        }
    }
}

fn one_queue(
    draft: &mut Draft,
    situation: &Situation<'_>,
    (name, queue): (&QueueName, &Queue),
    (was, is): (Governing<'_>, Governing<'_>),
    operator: Option<&Policy>,
) {
    let id = ObjectId::Queue(name.clone());
    let address = situation.address(&id);
    let named =
        |governing: Governing<'_>| governing.map_or_else(|| "no policy".to_owned(), |(name, _)| name.to_string());
    if was.map(|(name, _)| name) != is.map(|(name, _)| name) {
        draft.hazard(HazardKind::PolicyShift, &address, format!("governed by {} → {}", named(was), named(is)), None);
    }
    let old = Limits::of(queue, was.map(|(_, policy)| policy), operator);
    let new = Limits::of(queue, is.map(|(_, policy)| policy), operator);
    let live = situation.live(&id);
    let messages = live.and_then(|live| live.messages);
    let lowered = |old: Option<i64>, new: Option<i64>| match (old, new) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(old), Some(new)) => new < old,
    };
    if lowered(old.expires, new.expires) {
        let value = with_unit("expires", &ArgumentValue::Integer(new.expires.unwrap_or(0)));
        let text = format!("expires becomes {value}: the queue itself is deleted when nobody uses it for so long");
        draft.hazard(HazardKind::MessageDrop, &address, text, messages.filter(|count| *count > 0));
    }
    if queue.queue_type() == Some(QueueType::Stream) {
        let age = |governing: Governing<'_>| {
            governing
                .and_then(|(_, policy)| policy.definition.get("max-age"))
                .or(queue.arguments.get("x-max-age"))
                .cloned()
        };
        if let Some(after) = age(is).filter(|after| Some(after) != age(was).as_ref()) {
            let text = format!("max-age becomes {after}: what is older is deleted");
            draft.hazard(HazardKind::MessageDrop, &address, text, None);
        }
    } else if messages == Some(0) {
        return;
    }
    let holds = messages.map_or_else(|| "an unknown number of".to_owned(), |count| count.to_string());
    let limit = new.max_length.unwrap_or(i64::MAX);
    let over = messages.is_none_or(|count| i64::try_from(count).unwrap_or(i64::MAX) > limit);
    if over && new.max_length.is_some() && (lowered(old.max_length, new.max_length) || old.rejects && !new.rejects) {
        // A classic queue takes in `max-length` before `overflow` (`rabbit_amqqueue_process:process_args_policy`): one
        // that did not reject before drops first and rejects afterwards (seen live: 4 messages, limit 2, 2 were left).
        let drops = !new.rejects || !old.rejects && queue.queue_type() != Some(QueueType::Quorum);
        if drops {
            let dropped = messages.map(|count| count.saturating_sub(u64::try_from(limit).unwrap_or(0)));
            let text = format!("max-length becomes {limit}, and it holds {holds} messages: the oldest go at once");
            draft.hazard(HazardKind::MessageDrop, &address, text, dropped);
        }
        if new.rejects {
            let text = format!("max-length becomes {limit}, and it holds {holds} messages: publishers are refused");
            draft.hazard(HazardKind::PublisherBlock, &address, text, None);
        }
    }
    for (key, old, new) in [
        ("max-length-bytes", old.max_length_bytes, new.max_length_bytes),
        ("message-ttl", old.message_ttl, new.message_ttl),
    ] {
        if lowered(old, new) {
            let value = with_unit(key, &ArgumentValue::Integer(new.unwrap_or(0)));
            let text = format!("{key} becomes {value}, and it holds {holds} messages: some of them can go");
            draft.hazard(HazardKind::MessageDrop, &address, text, messages);
        }
    }
    if !old.rejects && new.rejects && new.max_length.or(new.max_length_bytes).is_some() {
        let text = format!(
            "overflow becomes reject-publish, and it holds {holds} messages: when it is full, publishers are refused"
        );
        draft.hazard(HazardKind::PublisherBlock, &address, text, None);
    }
}

/// The limits that hold for a queue.
#[derive(Clone, Copy)]
struct Limits {
    max_length: Option<i64>,
    max_length_bytes: Option<i64>,
    message_ttl: Option<i64>,
    expires: Option<i64>,
    rejects: bool,
}

impl Limits {
    /// The smallest of argument, policy and operator policy; overflow by argument wins on a classic queue, by policy on
    /// a quorum queue (`rabbit_amqqueue_process`, `rabbit_quorum_queue`).
    fn of(queue: &Queue, policy: Option<&Policy>, operator: Option<&Policy>) -> Self {
        let empty = Arguments::new();
        let policy = policy.map_or(&empty, |policy| &policy.definition);
        let operator = operator.map_or(&empty, |policy| &policy.definition);
        let stream = queue.queue_type() == Some(QueueType::Stream);
        let smallest = |key: &str| {
            let argument = queue.arguments.get(&format!("x-{key}"));
            // On a stream the policy holds, whatever the argument says (`rabbit_stream_queue`).
            if let Some(policy) = policy.get(key).filter(|_| stream) {
                return policy.as_integer();
            }
            [argument, policy.get(key), operator.get(key)]
                .into_iter()
                .flatten()
                .filter_map(ArgumentValue::as_integer)
                .min()
        };
        let overflow = (queue.arguments.get("x-overflow"), policy.get("overflow"));
        let overflow = match (overflow, queue.queue_type()) {
            ((_, Some(policy)), Some(QueueType::Quorum)) => Some(policy),
            ((Some(argument), _), _) => Some(argument),
            ((None, policy), _) => policy,
        };
        Self {
            max_length: smallest("max-length"),
            max_length_bytes: smallest("max-length-bytes"),
            message_ttl: smallest("message-ttl"),
            expires: smallest("expires"),
            rejects: overflow.and_then(ArgumentValue::as_text).is_some_and(|text| text.starts_with("reject-publish")),
        }
    }
}
