//! Tracks recreations that must be completed even after a failure or an interruption. Before a recreation deletes an
//! object, checks that the object's bindings and topic permissions can be restored. Also verifies deletions and
//! declarations.

use crate::broker::{BrokerError, LockedBroker};
use crate::model::{Address, Binding, Object, ObjectId};
use crate::plan::{Action, ChangeKind, Step, VhostPlan};
use std::collections::BTreeSet;

/// The progress of recreations.
#[derive(Default)]
pub(super) struct Recreations {
    /// The recreations whose old object was deleted. topo continues these recreations even after an interruption or a
    /// failure of another step.
    started: BTreeSet<ObjectId>,
    /// The recreations whose keep exchange and old object both exist. After an interruption or a failure, the keep
    /// exchange is deleted.
    prepared: BTreeSet<ObjectId>,
    /// The recreations with a binding or a topic permission that could not be restored. The keep exchange remains,
    /// because it is the only record of the binding or permission, and the next run tries again.
    unrestored: BTreeSet<ObjectId>,
}

impl Recreations {
    /// Returns true if a step must run even after an interruption or a failure of another step.
    pub(super) fn must_run(&self, step: &Step) -> bool {
        step.recreate.as_ref().is_some_and(|id| {
            let is_keep_deletion = deletes_keep(step);
            if is_keep_deletion && self.unrestored.contains(id) {
                return false;
            }
            self.started.contains(id) || self.prepared.contains(id) && is_keep_deletion
        })
    }

    /// Returns true if a step belongs to a recreation that has started. Such a step runs even without the lock, because
    /// leaving an object undeclared is worse than declaring it twice.
    pub(super) fn has_started(&self, step: &Step) -> bool {
        step.recreate.as_ref().is_some_and(|id| self.started.contains(id))
    }

    /// Records a completed step. Returns true if the step reverted the preparation of a recreation that did not happen.
    pub(super) fn record_done(&mut self, step: &Step) -> bool {
        let Some(id) = &step.recreate else { return false };
        let is_recreated_object = *id == step.action.object();
        match &step.action {
            Action::DeclareExchange { .. } if !is_recreated_object => {
                self.prepared.insert(id.clone());
            }
            Action::DeleteQueue { .. } | Action::DeleteExchange { .. } if is_recreated_object => {
                self.prepared.remove(id);
                self.started.insert(id.clone());
            }
            // Deleting the keep exchange is the last step of a recreation.
            Action::DeleteExchange { .. } => {
                self.started.remove(id);
                return self.prepared.remove(id);
            }
            Action::PutVhost { .. }
            | Action::DeclareExchange { .. }
            | Action::PutTopicPermission { .. }
            | Action::PutPolicy { .. }
            | Action::DeclareQueue { .. }
            | Action::Bind { .. }
            | Action::Unbind { .. }
            | Action::DeleteQueue { .. }
            | Action::DeletePolicy { .. }
            | Action::MoveMessages { .. }
            | Action::PutRecord { .. }
            | Action::DeleteRecord { .. } => {}
        }
        false
    }

    /// Records a failed step.
    pub(super) fn record_failed(&mut self, step: &Step, error: &BrokerError) {
        let Some(id) = &step.recreate else { return };
        if matches!(step.action, Action::Bind { .. } | Action::PutTopicPermission { .. }) {
            self.unrestored.insert(id.clone());
        } else if !matches!(error, BrokerError::Inequivalent { .. }) {
            // Without the object, no binding can be restored. After an `Inequivalent` error, the object exists, because
            // an application has declared it.
            self.started.remove(id);
        }
        // After a guard failure or a refusal, the object certainly still exists. After any other error, the object may
        // have been deleted, and its bindings may exist only on the keep exchange.
        let is_certainly_not_deleted = error.is_guard_failure() || matches!(error, BrokerError::AccessRefused { .. });
        if *id == step.action.object() && !is_certainly_not_deleted {
            self.prepared.remove(id);
        }
    }
}

/// Returns true if an action declares this keep exchange, or creates a binding from or to it. Such a binding prevents
/// the broker from deleting an auto-delete exchange.
pub(super) fn prepares_keep(action: &Action, keep: &ObjectId) -> bool {
    match (action, keep) {
        (Action::DeclareExchange { name, .. }, ObjectId::Exchange(keep)) => name == keep,
        (Action::Bind { binding }, ObjectId::Exchange(keep)) => binding.touches_exchange(keep),
        (_, _) => false,
    }
}

/// Returns true if a step deletes a keep exchange.
fn deletes_keep(step: &Step) -> bool {
    matches!(step.action, Action::DeleteExchange { .. }) && step.recreate.as_ref() != Some(&step.action.object())
}

/// Declares each existing unmanaged binding of an object again, so that a refusal, for example because of a missing
/// permission or an exclusive queue, occurs before the object is deleted. The bindings are unchanged afterward.
pub(super) async fn rehearse_bindings(
    part: &VhostPlan,
    broker: &LockedBroker,
    id: &ObjectId,
) -> Result<(), BrokerError> {
    let restored: BTreeSet<&Binding> = created_bindings(part).collect();
    let declared = &part.desired.topology.bindings;
    let (live, keys_before) = broker.broker().bindings(broker.vhost()).await?;
    let unmanaged: Vec<&Binding> = live
        .iter()
        .filter(|binding| binding.involves(id) && restored.contains(binding) && !declared.contains(*binding))
        .collect();
    let mut refusal = None;
    for binding in &unmanaged {
        let repeated = Action::Bind { binding: (*binding).clone() };
        if let Err(error) = broker.perform(&repeated).await {
            refusal = Some(BrokerError::NotRestorable {
                object: id.to_string(),
                binding: binding.to_string(),
                reason: error.to_string(),
            });
            break;
        }
    }
    if unmanaged.is_empty() {
        return Ok(());
    }
    // The broker stores an integer from HTTP as an int64. If an AMQP client created a binding with an int32, the broker
    // has now added a second binding. The loop below deletes the second binding.
    let keys_after = broker.broker().bindings(broker.vhost()).await?.1;
    for binding in unmanaged {
        let existing = keys_before.get(binding);
        for key in keys_after.get(binding).into_iter().flatten() {
            if !existing.is_some_and(|existing| existing.contains(key)) {
                let unbind = Action::Unbind { binding: binding.clone(), properties_key: key.clone() };
                broker.perform(&unbind).await?;
            }
        }
    }
    refusal.map_or(Ok(()), Err)
}

/// Returns the bindings that the plan creates.
fn created_bindings(part: &VhostPlan) -> impl Iterator<Item = &Binding> {
    part.steps.iter().filter_map(|step| match &step.action {
        Action::Bind { binding } => Some(binding),
        Action::PutVhost { .. }
        | Action::DeclareExchange { .. }
        | Action::PutTopicPermission { .. }
        | Action::PutPolicy { .. }
        | Action::DeclareQueue { .. }
        | Action::Unbind { .. }
        | Action::DeleteQueue { .. }
        | Action::DeleteExchange { .. }
        | Action::DeletePolicy { .. }
        | Action::MoveMessages { .. }
        | Action::PutRecord { .. }
        | Action::DeleteRecord { .. } => None,
    })
}

/// Returns [`BrokerError::BoundSincePlan`] if the object has a binding that the plan neither creates nor deletes.
/// Another client added this binding after the plan was made, and deleting the object would also delete the binding.
pub(super) async fn expect_no_new_bindings(
    part: &VhostPlan,
    broker: &LockedBroker,
    id: &ObjectId,
) -> Result<(), BrokerError> {
    let created: BTreeSet<&Binding> = created_bindings(part).collect();
    let deleted: BTreeSet<&Binding> = part
        .changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Delete)
        .filter_map(|change| match &change.before {
            Some(Object::Binding(binding)) => Some(binding),
            Some(
                Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Queue(..) | Object::Record(_),
            )
            | None => None,
        })
        .collect();
    let live = broker.broker().bindings_at(broker.vhost(), id).await?;
    let new = live.into_iter().find(|binding| !created.contains(binding) && !deleted.contains(binding));
    match new {
        Some(binding) => Err(BrokerError::BoundSincePlan { object: id.to_string(), binding: binding.to_string() }),
        None => Ok(()),
    }
}

/// Verifies that a deleted queue or exchange no longer exists, or that a declared queue or exchange exists. A response
/// with status 204 proves neither. Accepts all other actions without a request.
pub(super) async fn verify(broker: &LockedBroker, action: &Action) -> Result<(), BrokerError> {
    let (client, vhost) = (broker.broker(), broker.vhost());
    let (existence, expected) = match action {
        Action::DeleteQueue { name, .. } => (client.queue_exists(vhost, name).await, false),
        Action::DeleteExchange { name } => (client.exchange_exists(vhost, name).await, false),
        Action::DeclareQueue { name, .. } => (client.queue_exists(vhost, name).await, true),
        Action::DeclareExchange { name, .. } => (client.exchange_exists(vhost, name).await, true),
        Action::PutVhost { .. }
        | Action::PutTopicPermission { .. }
        | Action::PutPolicy { .. }
        | Action::Bind { .. }
        | Action::Unbind { .. }
        | Action::DeletePolicy { .. }
        | Action::MoveMessages { .. }
        | Action::PutRecord { .. }
        | Action::DeleteRecord { .. } => return Ok(()),
    };
    let object = action.object().to_string();
    match existence {
        Ok(exists) if exists == expected => Ok(()),
        Ok(_) => Err(BrokerError::NotVerified { object, expected }),
        Err(error) => Err(BrokerError::Unverifiable { object, reason: error.to_string() }),
    }
}

/// Checks that the topic permissions on an exchange equal the topic permissions in the plan. Otherwise, the recreation
/// would lose a permission that was set after the plan was made, or restore a permission that was deleted.
///
/// Also sends the topic permissions again, which changes nothing, so that a refusal occurs before the exchange is
/// deleted.
pub(super) async fn expect_same_topic_permissions(
    part: &VhostPlan,
    broker: &LockedBroker,
    address: &Address,
    id: &ObjectId,
) -> Result<(), BrokerError> {
    let kept = part.changes.iter().find(|change| change.address == *address).and_then(|change| change.kept.as_ref());
    let (Some(kept), ObjectId::Exchange(name)) = (kept.and_then(|kept| kept.topic_permissions.as_ref()), id) else {
        return Ok(());
    };
    if broker.broker().topic_permissions_on(broker.vhost(), name).await? != *kept {
        return Err(BrokerError::TopicPermissionsChanged { object: id.to_string() });
    }
    for permission in kept {
        let repeated = Action::PutTopicPermission { permission: permission.clone() };
        if let Err(error) = broker.perform(&repeated).await {
            return Err(BrokerError::TopicPermissionNotRestorable {
                object: id.to_string(),
                permission: permission.to_string(),
                reason: error.to_string(),
            });
        }
    }
    Ok(())
}
