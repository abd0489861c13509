//! Checks external objects that do not exist: nothing can be bound to them, and messages published to them are dropped.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use crate::model::{ArgumentValue, Arguments, Object, ObjectId};

/// Blocks the plan if an external object is missing, because the spec depends on it. An exchange that is only named,
/// such as a dead-letter exchange, may be missing in two cases: it is missing already, or the spec marks it as
/// optional. Both cases are notes.
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
            let text = format!("{id} does not exist; the spec marks it as optional");
            if is_bound {
                let remedy = "remove its bindings from the spec, or ask its owner to create it first".to_owned();
                builder.block(&address, format!("{text}, but the spec binds it"), Some(remedy));
            } else {
                builder.info(&address, format!("{text}: the broker drops the messages that are sent to it"));
            }
            continue;
        }
        match named_already(builder, context, id) {
            Some(by) => builder.info(
                &address,
                format!(
                    "{id} does not exist: the broker drops the messages that {by} \
                                                        sends there"
                ),
            ),
            None => builder.block(
                &address,
                format!("{id} is marked `external: true`, and it does not exist"),
                Some("ask its owner to create it first, or declare it here without `external`".to_owned()),
            ),
        }
    }
}

/// Returns the first existing object that names the exchange and stays unchanged. Returns `None` if a change adds
/// another such object.
fn named_already(builder: &PlanBuilder, context: &PlanContext<'_>, id: &ObjectId) -> Option<ObjectId> {
    let ObjectId::Exchange(exchange) = id else { return None };
    let exchange = exchange.as_str();
    let is_new = |before: Option<&Object>, after: Option<&Object>| {
        after.is_some_and(|it| names(it, exchange)) && !before.is_some_and(|it| names(it, exchange))
    };
    if builder.changes.iter().any(|change| is_new(change.before.as_ref(), change.after.as_ref())) {
        return None;
    }
    let desired = &context.desired.topology;
    let queues = desired.queues.keys().cloned().map(ObjectId::Queue);
    let exchanges = desired.exchanges.keys().cloned().map(ObjectId::Exchange);
    let policies = desired.policies.keys().cloned().map(ObjectId::Policy);
    let names_it = |id: &ObjectId| {
        let names = |object: Option<Object>| object.is_some_and(|it| names(&it, exchange));
        names(desired.object(id)) && names(context.current.object(id))
    };
    queues.chain(exchanges).chain(policies).find(names_it)
}

/// Returns true if an object sends messages to that exchange.
fn names(object: &Object, exchange: &str) -> bool {
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
