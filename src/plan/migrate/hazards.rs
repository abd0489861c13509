//! Adds the hazards of a migration. Also finds policies that were created after the plan and would remove messages from
//! the holding queues.

use super::names::removing_key;
use super::{Migration, blockers};
use crate::model::count::{count, number};
use crate::model::{Address, BrokerVersion, Policy, PolicyName, Queue, QueueName, QueueType};
use crate::plan::activity::{QueueActivity, Transports};
use crate::plan::activity::{unlisted_consumers_text, unlisted_holder_text};
use crate::plan::changes_by_kind::PlanBuilder;
use crate::plan::context::PlanContext;
use crate::plan::hazard::{Hazard, HazardKind};
use crate::rabbitmq::{ActivePolicies, Governed, Policies, Source};
use std::collections::BTreeMap;

/// The number of messages above which a hazard mentions how long it takes to move the messages. The transports move
/// 6,000 to 24,000 messages per second.
const LONG_MOVE: u64 = 5_000;

/// Adds the hazards of migrating a queue. `old` is the current queue, and `live` is its activity.
pub(in crate::plan) fn add_hazards(
    builder: &mut PlanBuilder,
    context: &PlanContext<'_>,
    address: &Address,
    migration: &Migration,
    (old, live): (&Queue, Option<&QueueActivity>),
) {
    let unroutable = "messages that are published or dead-lettered to the queue through the default exchange cannot \
                      be redirected: during the swap they can be lost, even if confirmed; all other messages \
                      are held and returned";
    builder.hazard(HazardKind::RoutingGap, address, unroutable.to_owned(), None);
    // After an interruption, the unlisted client may be a transport of a topo process that was just killed.
    let is_started = context.current.queues.contains_key(&QueueName::new(migration.names().hold));
    let unlisted = live.and_then(QueueActivity::held_by_unlisted).filter(|_| !is_started);
    if let Some(text) = disruption(migration, old, live, unlisted) {
        builder.hazard(HazardKind::ConsumerDisruption, address, text, None);
    }
    for source in blockers::redistributing_sources(context, &migration.queue) {
        let text = format!(
            "exchange {source} redistributes its routing keys when one of its queues is bound again: afterward, all \
             of its queues receive different keys"
        );
        builder.hazard(HazardKind::Reorder, address, text, None);
    }
    let must_be_allowed = old.has_single_active_consumer() || migration.desired.has_single_active_consumer();
    let mut add = |kind, text: &str, must_be_allowed| {
        let (address, text) = (address.clone(), text.to_owned());
        builder.hazards.push(Hazard { kind, address, text, messages: None, must_be_allowed });
    };
    let consumers = live.and_then(|live| live.consumers.as_deref());
    if unlisted.is_some() || consumers.is_none_or(|consumers| consumers.len() > 1) {
        add(
            HazardKind::Reorder,
            "with competing consumers, or after an abort, the order is not preserved",
            must_be_allowed,
        );
    }
    add(
        HazardKind::Duplicates,
        "if topo or its connection fails, or a shovel is stopped, messages in flight (at most 1,000) may be delivered \
         twice; messages that are published while an application creates its own binding to the queue may also be \
         delivered twice",
        must_be_allowed,
    );
    // Duplicates were observed on 3.8.9 with a load average of 25 on two processors, even for migrations to a quorum
    // queue. None were observed on 3.10.8 or later. The holding queues of a mirrored queue are quorum queues.
    let queues = [old, &migration.desired, &migration.holding];
    if !context.profile.version.is_at_least(3, 10) && queues.into_iter().any(is_quorum) {
        let text = "before RabbitMQ 3.10, a busy quorum queue can keep a copy of messages that were moved: they are \
                    delivered twice, or the run stops halfway; nothing is lost, and the next run resumes \
                    the migration";
        add(HazardKind::Duplicates, text, true);
    }
    if let Some(limit) = configured_delivery_limit(context, &migration.queue, old) {
        let is_dead_lettered = migration.holding.arguments.contains_key("x-dead-letter-exchange");
        let at_risk = match (limit, &context.activity.transports) {
            (0, _) => "all messages in flight",
            (_, Transports::Amqp) => "at most one",
            (_, Transports::Shovel) => "possibly all messages in flight",
            (_, Transports::Unknown | Transports::None { .. }) => {
                "at most one over AMQP, or possibly all messages in flight with a shovel"
            }
        };
        let (kind, fate) = if is_dead_lettered {
            (HazardKind::Duplicates, "dead-lettered")
        } else {
            (HazardKind::MessageLoss, "dropped")
        };
        let text = format!(
            "its delivery limit is {limit}: if topo is killed, messages in flight that have reached this limit \
             ({at_risk}) are {fate}"
        );
        add(kind, &text, limit == 0);
    }
    // On RabbitMQ 3.13 and earlier, a republished message keeps its `x-death` header.
    if context.profile.version.is_at_least(4, 0) && blockers::has_dead_letter_cycle(context, &migration.queue) {
        let text = format!(
            "a message that is being retried loses its history when it is moved (RabbitMQ 4.0 and later): at its next \
             failure, `x-death` counts from 1, and contains exchange {} and a retry routing key instead of the \
             original exchange and routing key",
            migration.names().back
        );
        add(HazardKind::ContractChange, &text, false);
    }
}

fn is_quorum(queue: &Queue) -> bool {
    queue.queue_type() == Some(QueueType::Quorum)
}

/// Returns the delivery limit of a quorum queue; `None` if neither an argument nor a policy sets a limit.
pub(super) fn configured_delivery_limit(context: &PlanContext<'_>, name: &QueueName, queue: &Queue) -> Option<i64> {
    if !is_quorum(queue) {
        return None;
    }
    let version = context.profile.version;
    let user_policies = Policies::new(&context.current.policies, version);
    let operator_policies = context.operator_policies();
    let bounding_policies = Policies::new(&operator_policies, version);
    let settings =
        ActivePolicies::of(&user_policies, context.profile).with_operators(&bounding_policies).likely(name, queue);
    settings.get("delivery-limit").filter(|it| it.source != Source::Default)?;
    settings.delivery_limit()
}

/// Describes the effect on consumers; `None` if the queue has no consumers. `unlisted` is the number of unacknowledged
/// messages if the broker lists no consumers.
fn disruption(
    migration: &Migration,
    old: &Queue,
    live: Option<&QueueActivity>,
    unlisted: Option<u64>,
) -> Option<String> {
    let pause = if is_quorum(old) || is_quorum(&migration.desired) { "about 13 to 25 s" } else { "about 1 s" };
    let many = live.and_then(|live| live.messages).filter(|messages| *messages > LONG_MOVE);
    let more =
        many.map(|it| format!(", and for as long as it takes to move {} messages", number(it))).unwrap_or_default();
    let clients = match (live.and_then(|live| live.consumers.as_deref()), unlisted) {
        (_, Some(held)) => {
            format!("{}; consumers will be canceled once and receive nothing", unlisted_holder_text(held))
        }
        (Some([]), None) => {
            let count = live.and_then(|live| live.unlisted_consumers)?;
            format!("{} and receive nothing", unlisted_consumers_text(count))
        }
        // The broker does not report the address of every consumer.
        (Some([one]), None) if one.is_empty() => "1 consumer will be canceled once and receive nothing".to_owned(),
        (Some([one]), None) => format!("1 consumer will be canceled once ({one}) and receive nothing"),
        (Some(several), None) => {
            format!("{} will be canceled once and receive nothing", count(several.len() as u64, "consumer"))
        }
        (None, None) => {
            "the broker does not report whether the queue has consumers; consumers will be canceled once and receive \
             nothing"
                .to_owned()
        }
    };
    Some(format!(
        "{clients} for {pause}{more}; a consumer that declares the queue with the old arguments will receive a 406 \
         until it is updated, and a consumer that connects during the swap may lose its connection"
    ))
}

impl Migration {
    /// Describes the first current policy or operator policy that would remove messages from the holding queues; `None`
    /// if there is no such policy.
    pub fn conflicting_policy(
        &self,
        policies: &BTreeMap<PolicyName, Policy>,
        operator_policies: &BTreeMap<PolicyName, Policy>,
        version: BrokerVersion,
    ) -> Option<String> {
        let names = self.names();
        // An operator policy applies in addition to a user policy, so the shield cannot override an operator policy.
        [("policy", policies), ("operator policy", operator_policies)].into_iter().find_map(|(kind, all)| {
            let all = Policies::new(all, version);
            [&names.hold, &names.drained].into_iter().find_map(|name| {
                let governing = all.governing(name, Governed::from(&self.holding));
                let named = governing.likely().filter(|named| *named.name != names.shield)?;
                removing_key(&named).map(|key| format!("{kind} {} sets {key} on {name}", named.name))
            })
        })
    }
}
