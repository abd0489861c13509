//! What a migration cannot promise, in words.

use super::{Migration, around};
use crate::behaviour::{Governed, Policies, Source, effective};
use crate::model::count::{count, number};
use crate::model::{Address, ArgumentValue, Queue, QueueName, QueueType};
use crate::plan::draft::Draft;
use crate::plan::hazard::{Hazard, HazardKind};
use crate::plan::recreate::{held_by_unlisted, unlisted_are_cancelled};
use crate::plan::situation::Situation;
use crate::plan::{Movers, QueueActivity};

/// More messages than these take long enough to be told of: the movers do 6,000 to 24,000 a second.
const TAKE_A_SECOND: u64 = 5_000;

/// Adds what the migration of a queue that was `old` cannot promise.
pub(in crate::plan) fn hazards(
    draft: &mut Draft,
    situation: &Situation<'_>,
    address: &Address,
    migration: &Migration,
    (old, live): (&Queue, Option<&QueueActivity>),
) {
    let gap = "publishers that use the default exchange, and dead letters that go straight to it, cannot be redirected: \
               while it is exchanged their messages can be lost, even though confirmed; all others are held and come back";
    draft.hazard(HazardKind::RoutingGap, address, gap.to_owned(), None);
    // Once it is begun, it may be a mover of topo's that was killed a moment ago.
    let is_begun = situation.current.queues.contains_key(&QueueName::new(migration.beside().hold));
    let unlisted = live.and_then(QueueActivity::held_by_unlisted).filter(|_| !is_begun);
    if let Some(text) = disruption(migration, old, live, unlisted) {
        draft.hazard(HazardKind::ConsumerDisruption, address, text, None);
    }
    let dividing = around::dividing(situation, &migration.queue);
    for source in &dividing {
        let text = format!(
            "exchange {source} divides its keys among its queues anew when one of them is bound again: afterwards keys go to \
             other queues than before, also those of the others"
        );
        draft.hazard(HazardKind::Reorder, address, text, None);
    }
    let is_single =
        |queue: &Queue| queue.arguments.get("x-single-active-consumer") == Some(&ArgumentValue::Boolean(true));
    let must_be_allowed = is_single(old) || is_single(&migration.wanted);
    let mut shown = |kind, text: &str, must_be_allowed| {
        let (address, text) = (address.clone(), text.to_owned());
        draft.hazards.push(Hazard { kind, address, text, messages: None, must_be_allowed });
    };
    let consumers = live.and_then(|live| live.consumers.as_deref());
    if unlisted.is_some() || consumers.is_none_or(|consumers| consumers.len() > 1) {
        shown(
            HazardKind::Reorder,
            "with competing consumers, or after an abort, the order is not kept",
            must_be_allowed,
        );
    }
    shown(
        HazardKind::Duplicates,
        "if topo or its connection breaks off, or a shovel is stopped, what is under way (at most 1,000 messages) may come \
         twice; so does what is published while an application binds the queue again by itself",
        must_be_allowed,
    );
    // Seen on 3.8.9 at a load of 25 on two processors, also on the way to a quorum queue; never on 3.10.8 and later. What was
    // mirrored is held in quorum queues.
    let of_it = [old, &migration.wanted, &migration.holding];
    if !situation.dialect.version.is_at_least(3, 10) && of_it.into_iter().any(is_quorum) {
        let text = "before RabbitMQ 3.10, where quorum queues take part and are busy, a copy of what was moved can stay behind: \
                    it comes twice, or the run stops halfway; nothing is lost, and the next run goes on";
        shown(HazardKind::Duplicates, text, true);
    }
    if let Some(limit) = limit_of_deliveries(situation, &migration.queue, old) {
        let is_dead_lettered = migration.holding.arguments.contains_key("x-dead-letter-exchange");
        let most = match (limit, &situation.activity.movers) {
            (0, _) => "all that is under way",
            (_, Movers::Amqp) => "one at most",
            (_, Movers::Shovel) => "as many as are under way",
            (_, Movers::Unknown | Movers::None { .. }) => "one at most over AMQP, by a shovel as many as are under way",
        };
        let (kind, end) = if is_dead_lettered {
            (HazardKind::Duplicates, "dead-lettered")
        } else {
            (HazardKind::MessageLoss, "dropped")
        };
        let text = format!(
            "its delivery limit is {limit}: if topo is killed, what is under way and was delivered as often before is {end}: \
             {most}"
        );
        shown(kind, &text, limit == 0);
    }
    // Before, a message that is published again keeps the `x-death` that it comes with.
    if situation.dialect.version.is_at_least(4, 0) && around::comes_back(situation, &migration.queue) {
        let text = format!(
            "a message that is being retried forgets its past when it is moved (RabbitMQ 4.0 and later): at its next failure \
             `x-death` counts from 1, and names exchange {} and a key of the retries instead of those it was published with",
            migration.beside().back
        );
        shown(HazardKind::ContractChange, &text, false);
    }
}

fn is_quorum(queue: &Queue) -> bool {
    queue.queue_type() == Some(QueueType::Quorum)
}

/// How often a message of a quorum queue may be delivered again, where somebody said so.
pub(super) fn limit_of_deliveries(situation: &Situation<'_>, name: &QueueName, queue: &Queue) -> Option<i64> {
    if !is_quorum(queue) {
        return None;
    }
    let version = situation.dialect.version;
    let users = Policies::new(&situation.current.policies, version);
    let operators = Policies::new(situation.operator_policies, version);
    let policy = users.governing(name.as_str(), Governed::from(queue)).likely();
    let bound = operators.governing(name.as_str(), Governed::from(queue)).likely();
    let holds = effective(queue, policy, bound, situation.dialect);
    let limit = holds.get("delivery-limit").filter(|it| it.source != Source::Default)?.value.as_integer()?;
    // From 4.0 on, -1 is none; before, it was like 0.
    (limit >= 0 || !version.is_at_least(4, 0)).then(|| limit.max(0))
}

/// What consumers see of it; nothing, where there are none. `unlisted` is how many messages somebody holds whom the broker
/// does not list.
fn disruption(
    migration: &Migration,
    old: &Queue,
    live: Option<&QueueActivity>,
    unlisted: Option<u64>,
) -> Option<String> {
    let pause = if is_quorum(old) || is_quorum(&migration.wanted) { "some 13 to 25 s" } else { "about 1 s" };
    let many = live.and_then(|live| live.messages).filter(|messages| *messages > TAKE_A_SECOND);
    let more = many.map(|it| format!(", and for as long as {} messages are moved", number(it))).unwrap_or_default();
    let who = match (live.and_then(|live| live.consumers.as_deref()), unlisted) {
        (_, Some(held)) => {
            format!("{}; consumers are cancelled once and get nothing", held_by_unlisted(held))
        }
        (Some([]), None) => {
            let count = live.and_then(|live| live.unlisted_consumers)?;
            format!("{} and get nothing", unlisted_are_cancelled(count))
        }
        (Some([one]), None) => format!("1 consumer is cancelled once ({one}) and gets nothing"),
        (Some(several), None) => {
            format!("{} are cancelled once and get nothing", count(several.len() as u64, "consumer"))
        }
        (None, None) => {
            "whether anybody consumes from it is not known; consumers are cancelled once and get nothing".to_owned()
        }
    };
    Some(format!(
        "{who} for {pause}{more}; one that declares it with the old arguments gets 406 until it is updated, and one that \
         comes in the moment of the swap can lose its connection"
    ))
}
