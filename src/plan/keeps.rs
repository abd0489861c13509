//! Stores the unmanaged bindings and the topic permissions of an object in a *keep* while topo recreates the object, so
//! that a killed run loses nothing. A keep is an exchange whose arguments contain these bindings and permissions.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::Options;
use crate::diff::{DeleteReason, binding_reason};
use crate::model::names::MAX_NAME_BYTES;
use crate::model::{
    Address, ArgumentValue, Arguments, Binding, Exchange, ExchangeName, ObjectId, ObjectKind, TopicPermission, naming,
};

/// The argument in which a keep stores the bindings, as JSON.
const KEPT_BINDINGS: &str = "x-topo-kept-bindings";
/// The argument in which a keep stores the topic permissions, as JSON.
const KEPT_TOPIC_PERMISSIONS: &str = "x-topo-kept-topic-permissions";
/// The argument that identifies the object to which a keep belongs: `queue` or `exchange`, a space, and the name.
const KEPT_FOR: &str = "x-topo-kept-for";

/// The contents of a keep.
pub(super) struct Kept {
    /// The object that is being recreated.
    pub(super) id: ObjectId,
    /// The unmanaged bindings of the object.
    pub(super) bindings: Vec<Binding>,
    /// The topic permissions on the object, if the object is an exchange.
    pub(super) topic_permissions: Vec<TopicPermission>,
}

/// Returns the keep for an object: an exchange that stores the object's unmanaged bindings and topic permissions while
/// the object is being recreated. After a killed run, the keep still exists on the broker, and the next plan restores
/// the bindings and topic permissions. topo binds the keep to auto-delete source exchanges, so that the broker does not
/// delete these exchanges together with their last binding.
pub(super) fn keep(
    id: &ObjectId,
    bindings: &[Binding],
    topic_permissions: &[TopicPermission],
) -> (ExchangeName, Exchange) {
    let (kind, name) = match id {
        ObjectId::Queue(name) => ("queue", name.as_str()),
        ObjectId::Exchange(name) => ("exchange", name.as_str()),
        ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => ("", ""),
    };
    let mut keep_name = format!("{name}.topo.keep");
    if keep_name.len() > MAX_NAME_BYTES {
        keep_name = format!("{}.topo.keep", naming::digest(name));
    }
    let list = serde_json::to_string(bindings).expect("JSON can represent bindings");
    let mut arguments = Arguments::from([
        (KEPT_BINDINGS.to_owned(), ArgumentValue::Text(list)),
        (KEPT_FOR.to_owned(), ArgumentValue::Text(format!("{kind} {name}"))),
    ]);
    if !topic_permissions.is_empty() {
        let list = serde_json::to_string(topic_permissions).expect("JSON can represent topic permissions");
        arguments.insert(KEPT_TOPIC_PERMISSIONS.to_owned(), ArgumentValue::Text(list));
    }
    let exchange =
        Exchange { kind: "fanout".to_owned(), durable: true, auto_delete: false, internal: false, arguments };
    (ExchangeName::new(keep_name), exchange)
}

/// Returns the contents of a keep; `None` if the exchange is not a valid keep.
pub(super) fn read_keep(exchange: &Exchange) -> Option<Kept> {
    let text = |key: &str| exchange.arguments.get(key).and_then(ArgumentValue::as_text);
    let (kind, name) = text(KEPT_FOR)?.split_once(' ')?;
    let id = match kind {
        "queue" => ObjectId::Queue(name.into()),
        "exchange" => ObjectId::Exchange(name.into()),
        _ => return None,
    };
    let topic_permissions = match text(KEPT_TOPIC_PERMISSIONS) {
        Some(list) => serde_json::from_str(list).ok()?,
        None => Vec::new(),
    };
    Some(Kept { id, bindings: serde_json::from_str(text(KEPT_BINDINGS)?).ok()?, topic_permissions })
}

fn is_targeted(address: &Address, options: &Options) -> bool {
    options.targets.is_empty() || options.targets.iter().any(|target| target.matches(address.as_str()))
}

/// Reports keeps for objects that this spec does not declare. Applying the spec that declares such an object restores
/// its bindings.
pub(super) fn report_orphans(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let topology = &context.desired.topology;
    for (name, exchange) in &context.current.exchanges {
        let Some(Kept { id, bindings, .. }) = read_keep(exchange) else { continue };
        let is_declared = match &id {
            ObjectId::Queue(name) => topology.queues.contains_key(name),
            ObjectId::Exchange(name) => topology.exchanges.contains_key(name),
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => true,
        };
        if !is_declared {
            let text = format!(
                "the recreation of {id}, which this spec does not declare, was interrupted; {name} still stores {} of \
                 its bindings",
                bindings.len()
            );
            builder.info(&context.address(&id), text);
        }
    }
}

/// Returns the keeps that killed runs left on the broker for desired objects. Their contents include only the bindings
/// to restore, and the topic permissions on the object itself.
pub(super) fn leftover_keeps(context: &PlanContext<'_>, options: &Options) -> Vec<(ExchangeName, Kept)> {
    let desired = context.desired;
    let is_desired = |id: &ObjectId| match id {
        ObjectId::Queue(name) => desired.topology.queues.contains_key(name),
        ObjectId::Exchange(name) => desired.topology.exchanges.contains_key(name),
        ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => false,
    };
    // A binding that this plan would delete is not restored. An untouchable binding is never deleted, so it is
    // restored.
    let stays = |binding: &Binding| match binding_reason(binding, &desired.topology, &desired.scope) {
        Some(_) if context.is_untouchable(&ObjectId::Binding(binding.clone())) => true,
        Some(DeleteReason::Removed | DeleteReason::Unset) => false,
        Some(DeleteReason::Unmanaged) => !options.prune.contains(&ObjectKind::Binding),
        Some(DeleteReason::Retired) | None => true,
    };
    let keeps = context.current.exchanges.iter().filter_map(|(name, exchange)| {
        let mut kept = read_keep(exchange).filter(|kept| is_desired(&kept.id))?;
        let id = &kept.id;
        // Any user who may declare an exchange can forge a keep. topo trusts a keep only if it has the expected
        // name, and uses only the data about the keep's own object.
        if keep(id, &[], &[]).0 != *name || !is_targeted(&context.address(id), options) {
            return None;
        }
        kept.bindings.retain(|binding| binding.involves(id) && stays(binding));
        kept.topic_permissions.retain(|permission| ObjectId::Exchange(permission.exchange.clone()) == *id);
        Some((name.clone(), kept))
    });
    keeps.collect()
}
