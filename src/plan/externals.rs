//! Reports external objects that do not exist. Such an object cannot be bound, and the broker drops messages that other
//! objects route to it.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use crate::model::{ArgumentValue, Arguments, Object, ObjectId};

/// Blocks the plan if an external object does not exist, because the spec depends on it. Adds only a note in two cases:
/// the spec marks the object as optional and does not bind it, or existing objects already reference the missing
/// exchange and no change adds a reference.
pub(super) fn check(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    for id in &context.desired.scope.external {
        let exists = match id {
            ObjectId::Exchange(name) => name.is_predeclared() || context.current.exchanges.contains_key(name),
            ObjectId::Queue(name) => context.current.queues.contains_key(name),
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => true,
        };
        if exists {
            continue;
        }
        let address = context.address(id);
        if context.desired.scope.optional_externals.contains(id) {
            let is_bound = context.desired.topology.bindings.iter().any(|binding| binding.involves(id));
            let text = format!("{id} does not exist (the spec marks it as optional)");
            if is_bound {
                let remedy = "remove its bindings from the spec, or ask its owner to create it first".to_owned();
                builder.block(&address, format!("{text}, but the spec binds it"), Some(remedy));
            } else {
                builder.info(&address, format!("{text}; the broker drops messages that would be routed to it"));
            }
            continue;
        }
        match existing_reference(builder, context, id) {
            Some(by) => builder
                .info(&address, format!("{id} does not exist: the broker drops the messages that {by} routes to it")),
            None => builder.block(
                &address,
                format!("{id} is marked `external: true`, but does not exist"),
                Some("ask its owner to create it first, or declare it here without `external`".to_owned()),
            ),
        }
    }
}

/// Returns the first object that references the exchange both in the current and in the desired topology. Returns
/// `None` if `id` is not an exchange, or if a change adds a reference to the exchange.
fn existing_reference(builder: &PlanBuilder, context: &PlanContext<'_>, id: &ObjectId) -> Option<ObjectId> {
    let ObjectId::Exchange(exchange) = id else { return None };
    let exchange = exchange.as_str();
    let is_new = |before: Option<&Object>, after: Option<&Object>| {
        after.is_some_and(|it| references(it, exchange)) && !before.is_some_and(|it| references(it, exchange))
    };
    if builder.changes.iter().any(|change| is_new(change.before.as_ref(), change.after.as_ref())) {
        return None;
    }
    let desired = &context.desired.topology;
    let queues = desired.queues.keys().cloned().map(ObjectId::Queue);
    let exchanges = desired.exchanges.keys().cloned().map(ObjectId::Exchange);
    let policies = desired.policies.keys().cloned().map(ObjectId::Policy);
    let is_reference = |id: &ObjectId| {
        let references = |object: Option<Object>| object.is_some_and(|it| references(&it, exchange));
        references(desired.object(id)) && references(context.current.object(id))
    };
    queues.chain(exchanges).chain(policies).find(is_reference)
}

/// Returns true if the object references the exchange as a dead-letter exchange, as an alternate exchange, or as the
/// source or destination of a binding.
fn references(object: &Object, exchange: &str) -> bool {
    let sets =
        |arguments: &Arguments, name: &str| arguments.get(name).and_then(ArgumentValue::as_text) == Some(exchange);
    match object {
        Object::Queue(_, queue) => sets(&queue.arguments, "x-dead-letter-exchange"),
        Object::Exchange(_, it) => it.alternate_exchange() == Some(exchange),
        Object::Policy(_, policy) => {
            sets(&policy.definition, "dead-letter-exchange") || sets(&policy.definition, "alternate-exchange")
        }
        Object::Binding(binding) => binding.touches_exchange(&exchange.into()),
        Object::Vhost(_) | Object::Record(_) => false,
    }
}
