//! Compares the routing before and after the steps of a plan: which messages reach other queues, and which reach no queue
//! any more.
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
    // An interrupted migration routes messages to its holding queues, which return them later.
    let is_interrupted = !builder.interrupted.is_empty();
    if is_interrupted || !steps.iter().any(|step| changes_routing(context, &step.action)) {
        return RoutingChanges::default();
    }
    // A plan whose steps are not possible is blocked.
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
            "some messages to this exchange will no longer be routed to any queue; for example, those with {message}, \
             which are now routed to {word} {}",
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
            before: it.before,
            after: it.after,
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

/// Returns true if the action can change the routing.
fn changes_routing(context: &PlanContext<'_>, action: &Action) -> bool {
    let sets_alternate = |policy: &Policy| policy.definition.contains_key("alternate-exchange");
    let policy = |name: &PolicyName| context.current.policies.get(name).is_some_and(sets_alternate);
    match action {
        Action::DeclareExchange { .. }
        | Action::DeleteExchange { .. }
        | Action::Bind { .. }
        | Action::Unbind { .. }
        | Action::DeleteQueue { .. } => true,
        Action::PutPolicy { name, policy: new } => sets_alternate(new) || policy(name),
        Action::DeletePolicy { name } => policy(name),
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
