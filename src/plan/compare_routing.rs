//! Compares the routing before and after the steps of a plan: which messages reach different queues, and which become
//! unroutable.
//!
//! The comparison covers messages that publishers send to an exchange that exists before and after. It does not cover
//! dead-lettered messages, the headers `CC` and `BCC`, and permissions.

use super::action::Action;
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::Step;
use super::hazard::HazardKind;
use super::routing_changes::{CauseKind, NotCompared, RoutedMessage, RoutingCause, RoutingChange, RoutingChanges};
use super::simulate;
use crate::model::{Exchange, ExchangeName, ObjectId, Policy, PolicyName, QueueName, Topology};
use crate::rabbitmq::profile::predeclared_in_every_vhost;
use crate::rabbitmq::routing::Routing;
use crate::rabbitmq::routing::difference::{self, Cause, Extent};
use std::collections::BTreeSet;

/// Compares the routing before and after the steps, and adds a hazard for each exchange with messages that reach a queue
/// before, and no queue after the plan.
pub(super) fn compare(builder: &mut PlanBuilder, context: &PlanContext<'_>, steps: &[Step]) -> RoutingChanges {
    if !steps.iter().any(|step| changes_routing(&step.action)) {
        return RoutingChanges::default();
    }
    // While a migration is interrupted, messages are routed to its holding queues. The resumed apply moves them back.
    if !builder.interrupted.is_empty() {
        let text =
            "while a migration is interrupted, topo does not compare the routing; plan again after its completion";
        builder.info(&context.address(&ObjectId::Vhost), text.to_owned());
        return RoutingChanges::default();
    }
    // If the steps cannot be simulated, the plan is blocked anyway.
    let Ok(after) = simulate::run(context.current, steps) else { return RoutingChanges::default() };
    let none = BTreeSet::new();
    let no_operator: [(&PolicyName, &Policy); 0] = [];
    let before_routing = Routing::new(context.current, no_operator, &none, context.profile).complete();
    let after_routing = Routing::new(&after, no_operator, &none, context.profile).complete();
    let found = difference::routing_changes(&before_routing, &after_routing, &entries(context, &after));
    for (exchange, example) in found.losses {
        let reached = before_routing.route(&exchange, &example.message()).certain_queues;
        let queues: Vec<&str> = reached.iter().map(QueueName::as_str).collect();
        let word = if queues.len() == 1 { "queue" } else { "queues" };
        let message = RoutedMessage::from(example);
        let text = format!(
            "some messages to this exchange will become unroutable; for example, messages with {message}, which currently \
             reach {word} {}",
            queues.join(", ")
        );
        builder.hazard(HazardKind::RoutingLoss, &context.address(&ObjectId::Exchange(exchange)), text, None);
    }
    let cause = |cause: Cause| of_cause(context, cause);
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
            after: it.after.queues,
            after_total: it.after.total,
            all,
            unaffected,
        }
    });
    RoutingChanges {
        changes: changes.collect(),
        not_compared: found
            .not_compared
            .into_iter()
            .map(|((exchange, of), reason)| NotCompared { exchange, cause: cause(of), reason: reason.to_string() })
            .collect(),
    }
}

/// Returns true if the action can change the routing. A policy without an alternate exchange can have precedence over a
/// policy with one.
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

/// Returns the exchanges to which applications publish, before and after the plan: all exchanges except internal exchanges
/// and exchanges for retries.
fn entries(context: &PlanContext<'_>, after: &Topology) -> BTreeSet<ExchangeName> {
    let members: BTreeSet<&ObjectId> =
        context.desired.scope.families.iter().flat_map(|family| &family.members).collect();
    let is_entry = |name: &ExchangeName, exchange: &Exchange| {
        let is_published = |it: &Exchange| !it.internal && !it.is_created_by_topo();
        is_published(exchange)
            && after.exchanges.get(name).is_some_and(is_published)
            && !members.contains(&ObjectId::Exchange(name.clone()))
    };
    let declared = context.current.exchanges.iter().filter(|(name, exchange)| is_entry(name, exchange));
    let predeclared = predeclared_in_every_vhost().filter(|name| !name.as_str().is_empty());
    declared.map(|(name, _)| name.clone()).chain(predeclared).collect()
}

fn of_cause(context: &PlanContext<'_>, cause: Cause) -> RoutingCause {
    let (kind, id, binding) = match cause {
        Cause::Binding(binding) => {
            let is_deleted = context.current.bindings.contains(&binding);
            let kind = if is_deleted { CauseKind::BindingDeleted } else { CauseKind::BindingCreated };
            (kind, ObjectId::Binding(binding.clone()), Some(binding))
        }
        Cause::Alternate(exchange) => (CauseKind::AlternateExchange, ObjectId::Exchange(exchange), None),
        Cause::Type(exchange) => (CauseKind::ExchangeType, ObjectId::Exchange(exchange), None),
    };
    RoutingCause { kind, address: context.address(&id), binding, source: context.source(&id) }
}
