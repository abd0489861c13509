//! Hazards of a migration.

use super::{Migration, exchange_constraints};
use crate::model::count::{count, number};
use crate::model::{Address, ArgumentValue, Queue, QueueName, QueueType};
use crate::plan::builder::PlanBuilder;
use crate::plan::context::PlanContext;
use crate::plan::hazard::{Hazard, HazardKind};
use crate::plan::recreate::{held_by_unlisted, unlisted_are_cancelled};
use crate::plan::{QueueActivity, Transports};
use crate::rabbitmq::{Governors, Policies, Source};

/// More messages than these take long enough to be told of: the transports do 6,000 to 24,000 a second.
const TAKE_A_SECOND: u64 = 5_000;

/// Adds what the migration of a queue that was `old` cannot promise.
pub(in crate::plan) fn hazards(
    builder: &mut PlanBuilder,
    context: &PlanContext<'_>,
    address: &Address,
    migration: &Migration,
    (old, live): (&Queue, Option<&QueueActivity>),
) {
    let gap = "messages that reach the queue through the default exchange, published or dead-lettered, cannot be \
               redirected: during the swap they can be lost, even if confirmed; all others are held and come back";
    builder.hazard(HazardKind::RoutingGap, address, gap.to_owned(), None);
    // Once it is begun, it may be a transport of topo's that was killed a moment ago.
    let is_begun = context.current.queues.contains_key(&QueueName::new(migration.names().hold));
    let unlisted = live.and_then(QueueActivity::held_by_unlisted).filter(|_| !is_begun);
    if let Some(text) = disruption(migration, old, live, unlisted) {
        builder.hazard(HazardKind::ConsumerDisruption, address, text, None);
    }
    let dividing = exchange_constraints::dividing(context, &migration.queue);
    for source in &dividing {
        let text = format!(
            "exchange {source} redistributes its routing keys when one of its queues is bound again: afterwards, keys \
             go to other queues than before, for all of its queues"
        );
        builder.hazard(HazardKind::Reorder, address, text, None);
    }
    let is_single =
        |queue: &Queue| queue.arguments.get("x-single-active-consumer") == Some(&ArgumentValue::Boolean(true));
    let must_be_allowed = is_single(old) || is_single(&migration.desired);
    let mut shown = |kind, text: &str, must_be_allowed| {
        let (address, text) = (address.clone(), text.to_owned());
        builder.hazards.push(Hazard { kind, address, text, messages: None, must_be_allowed });
    };
    let consumers = live.and_then(|live| live.consumers.as_deref());
    if unlisted.is_some() || consumers.is_none_or(|consumers| consumers.len() > 1) {
        shown(
            HazardKind::Reorder,
            "with competing consumers, or after an abort, the order is not preserved",
            must_be_allowed,
        );
    }
    shown(
        HazardKind::Duplicates,
        "if topo or its connection fails, or a shovel is stopped, messages in flight (at most 1,000) may be delivered \
         twice; so may messages that are published while an application binds the queue again itself",
        must_be_allowed,
    );
    // Seen on 3.8.9 at a load of 25 on two processors, also on the way to a quorum queue; never on 3.10.8 and later. What was
    // mirrored is held in quorum queues.
    let of_it = [old, &migration.desired, &migration.holding];
    if !context.profile.version.is_at_least(3, 10) && of_it.into_iter().any(is_quorum) {
        let text = "before RabbitMQ 3.10, a busy quorum queue can keep a copy of messages that were moved: they are \
                    delivered twice, or the run stops halfway; nothing is lost, and the next run resumes";
        shown(HazardKind::Duplicates, text, true);
    }
    if let Some(limit) = limit_of_deliveries(context, &migration.queue, old) {
        let is_dead_lettered = migration.holding.arguments.contains_key("x-dead-letter-exchange");
        let most = match (limit, &context.activity.transports) {
            (0, _) => "all messages in flight",
            (_, Transports::Amqp) => "at most one",
            (_, Transports::Shovel) => "as many as are in flight",
            (_, Transports::Unknown | Transports::None { .. }) => {
                "at most one over AMQP, with a shovel as many as are in \
                                                           flight"
            }
        };
        let (kind, end) = if is_dead_lettered {
            (HazardKind::Duplicates, "dead-lettered")
        } else {
            (HazardKind::MessageLoss, "dropped")
        };
        let text = format!(
            "its delivery limit is {limit}: if topo is killed, messages in flight that were delivered that often \
             before are {end}: {most}"
        );
        shown(kind, &text, limit == 0);
    }
    // Before, a message that is published again keeps the `x-death` that it comes with.
    if context.profile.version.is_at_least(4, 0) && exchange_constraints::comes_back(context, &migration.queue) {
        let text = format!(
            "a message that is being retried loses its history when it is moved (RabbitMQ 4.0 and later): at its next \
             failure, `x-death` counts from 1, and names exchange {} and a key of the retries instead of the original \
             ones",
            migration.names().back
        );
        shown(HazardKind::ContractChange, &text, false);
    }
}

fn is_quorum(queue: &Queue) -> bool {
    queue.queue_type() == Some(QueueType::Quorum)
}

/// How often a message of a quorum queue may be delivered again, where somebody said so.
pub(super) fn limit_of_deliveries(context: &PlanContext<'_>, name: &QueueName, queue: &Queue) -> Option<i64> {
    if !is_quorum(queue) {
        return None;
    }
    let version = context.profile.version;
    let users = Policies::new(&context.current.policies, version);
    let operator_policies = context.operator_policies();
    let operators = Policies::new(&operator_policies, version);
    let settings = Governors::of(&users, context.profile).with_operators(&operators).likely(name, queue);
    settings.get("delivery-limit").filter(|it| it.source != Source::Default)?;
    settings.delivery_limit()
}

/// What consumers see of it; nothing, where there are none. `unlisted` is how many messages somebody holds whom the broker
/// does not list.
fn disruption(
    migration: &Migration,
    old: &Queue,
    live: Option<&QueueActivity>,
    unlisted: Option<u64>,
) -> Option<String> {
    let pause = if is_quorum(old) || is_quorum(&migration.desired) { "some 13 to 25 s" } else { "about 1 s" };
    let many = live.and_then(|live| live.messages).filter(|messages| *messages > TAKE_A_SECOND);
    let more = many.map(|it| format!(", and for as long as {} messages are moved", number(it))).unwrap_or_default();
    let who = match (live.and_then(|live| live.consumers.as_deref()), unlisted) {
        (_, Some(held)) => {
            format!("{}; consumers are canceled once and receive nothing", held_by_unlisted(held))
        }
        (Some([]), None) => {
            let count = live.and_then(|live| live.unlisted_consumers)?;
            format!("{} and receive nothing", unlisted_are_cancelled(count))
        }
        (Some([one]), None) => format!("1 consumer is canceled once ({one}) and receives nothing"),
        (Some(several), None) => {
            format!("{} are canceled once and receive nothing", count(several.len() as u64, "consumer"))
        }
        (None, None) => {
            "it is not known whether the queue has consumers; consumers are canceled once and receive nothing"
                .to_owned()
        }
    };
    Some(format!(
        "{who} for {pause}{more}; a consumer that declares the queue with the old arguments gets 406 until it is \
         updated, and one that connects during the swap can lose its connection"
    ))
}
