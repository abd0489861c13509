//! Compares the routing before and after the steps of a plan: which messages reach different queues, and which become
//! unroutable.
//!
//! The comparison covers messages that are published or dead-lettered to an exchange that exists before and after the
//! steps. [`compare_dead_letters`](super::compare_dead_letters) covers changes to a queue's dead-letter exchange.
//! Neither module considers permissions, or messages with a CC or BCC header.

use super::action::Action;
use super::changes_by_kind::PlanBuilder;
use super::compare_dead_letters::Sides;
use super::context::PlanContext;
use super::document::Step;
use super::hazard::HazardKind;
use super::routing_changes::{CauseKind, NotCompared, RoutedMessage, RoutingCause, RoutingChange, RoutingChanges};
use super::{before_migrations, compare_dead_letters, simulate};
use crate::model::count::number;
use crate::model::{Exchange, ExchangeName, ObjectId, Policy, PolicyName, QueueName, Topology};
use crate::rabbitmq::profile::predeclared_in_every_vhost;
use crate::rabbitmq::routing::Routing;
use crate::rabbitmq::routing::difference::{self, Cause, Extent};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The maximum number of queues in the text of a hazard.
const MAX_QUEUES: usize = 5;

/// Compares the routing before and after the steps. Adds a hazard for each exchange if some messages to the exchange
/// reach a queue before the plan but no queue after it.
pub(super) fn compare(builder: &mut PlanBuilder, context: &PlanContext<'_>, steps: &[Step]) -> RoutingChanges {
    if !steps.iter().any(|step| changes_routing(&step.action)) {
        return RoutingChanges::default();
    }
    // If the steps cannot be simulated, the plan is blocked anyway.
    let Ok(after) = simulate::run(context.current, steps) else { return RoutingChanges::default() };
    // During an interrupted migration, the holding queues receive the messages. topo moves these messages back.
    let before = before_migrations(context.current).map_or(Cow::Borrowed(context.current), Cow::Owned);
    let after = before_migrations(&after).map_or(after, Cow::Owned);
    let none = BTreeSet::new();
    let no_operator: [(&PolicyName, &Policy); 0] = [];
    let before_routing = Routing::new(&before, no_operator, &none, context.profile).complete();
    let after_routing = Routing::new(&after, no_operator, &none, context.profile).complete();
    let entries = entries(context, &after, &before_routing);
    let sides = Sides { before: &before_routing, after: &after_routing, entries: &entries };
    let dead_letters = compare_dead_letters::compare(builder, context, &sides);
    let found = difference::routing_changes(&before_routing, &after_routing, &entries);
    for (exchange, example) in found.losses {
        let reached = before_routing.route(&exchange, &example.message()).certain_queues;
        let queues: Vec<&str> = reached.iter().map(QueueName::as_str).take(MAX_QUEUES).collect();
        let more = match reached.len() - queues.len() {
            0 => String::new(),
            more => format!(" and {} more", number(more as u64)),
        };
        let word = if reached.len() == 1 { "queue" } else { "queues" };
        let message = RoutedMessage::from(example);
        let text = format!(
            "some messages to this exchange will become unroutable; for example, messages with {message}, which currently \
             reach {word} {}{more}",
            queues.join(", ")
        );
        builder.hazard(HazardKind::RoutingLoss, &context.address(&ObjectId::Exchange(exchange)), text, None);
    }
    let cause = |cause: Cause| routing_cause(context, &before, cause);
    let changes = found.changes.into_iter().map(|it| {
        let (all, unaffected) = match it.extent {
            Extent::All => (Some(true), None),
            Extent::Except(message) => (Some(false), Some(message.into())),
            Extent::Unknown => (None, None),
        };
        RoutingChange {
            exchange: it.entry,
            cause: cause(it.cause),
            lost: it.lost,
            gained: it.gained,
            example: it.example.into(),
            before: it.before.queues,
            before_total: it.before.total,
            before_unclear: it.before.unclear.map(|unclear| unclear.to_string()),
            after: it.after.queues,
            after_total: it.after.total,
            after_unclear: it.after.unclear.map(|unclear| unclear.to_string()),
            all,
            unaffected,
        }
    });
    RoutingChanges {
        changes: changes.collect(),
        dead_letters,
        not_compared: found
            .not_compared
            .into_iter()
            .map(|((exchange, of), reason)| NotCompared { exchange, cause: cause(of), reason: reason.to_string() })
            .collect(),
    }
}

/// Returns true if the action can change the routing. This includes all policy changes, because a policy without an
/// alternate exchange can take precedence over a policy with one.
fn changes_routing(action: &Action) -> bool {
    match action {
        Action::DeclareExchange { .. }
        | Action::DeleteExchange { .. }
        | Action::Bind { .. }
        | Action::Unbind { .. }
        | Action::DeleteQueue { .. }
        | Action::PutPolicy { .. }
        | Action::DeletePolicy { .. } => true,
        Action::PutVhost { .. }
        | Action::DeclareQueue { .. }
        | Action::PutTopicPermission { .. }
        | Action::MoveMessages { .. }
        | Action::PutRecord { .. }
        | Action::DeleteRecord { .. } => false,
    }
}

/// Returns the exchanges that exist before and after the plan and receive messages directly from applications or
/// queues. Omits the default exchange, exchanges that topo generated or created for its own use, and internal exchanges
/// that are not dead-letter exchanges.
fn entries(context: &PlanContext<'_>, after: &Topology, before: &Routing<'_>) -> BTreeSet<ExchangeName> {
    let queues = before.topology().queues.keys();
    let dead_letter_targets = queues.flat_map(|queue| before.dead_lettering(queue).iter().flatten());
    let dead_letter_exchanges: BTreeSet<&ExchangeName> = dead_letter_targets.map(|it| &it.exchange).collect();
    let members: BTreeSet<&ObjectId> =
        context.desired.scope.families.iter().flat_map(|family| &family.members).collect();
    let is_entry = |name: &ExchangeName, exchange: &Exchange| {
        let is_published_to =
            |it: &Exchange| (!it.internal || dead_letter_exchanges.contains(name)) && !it.is_created_by_topo();
        is_published_to(exchange)
            && after.exchanges.get(name).is_some_and(is_published_to)
            && !members.contains(&ObjectId::Exchange(name.clone()))
    };
    let declared = before.topology().exchanges.iter().filter(|(name, exchange)| is_entry(name, exchange));
    let predeclared = predeclared_in_every_vhost().filter(|name| !name.as_str().is_empty());
    declared.map(|(name, _)| name.clone()).chain(predeclared).collect()
}

fn routing_cause(context: &PlanContext<'_>, before: &Topology, cause: Cause) -> RoutingCause {
    let (kind, id, binding) = match cause {
        Cause::Binding(binding) => {
            let is_deleted = before.bindings.contains(&binding);
            let kind = if is_deleted { CauseKind::BindingDeleted } else { CauseKind::BindingCreated };
            (kind, ObjectId::Binding(binding.clone()), Some(binding))
        }
        Cause::Alternate(exchange) => (CauseKind::AlternateExchange, ObjectId::Exchange(exchange), None),
        Cause::Type(exchange) => (CauseKind::ExchangeType, ObjectId::Exchange(exchange), None),
    };
    RoutingCause { kind, address: context.address(&id), binding, source: context.source(&id) }
}
