//! Tracks recreations that must be completed even after a failure or an interruption. Before a recreation deletes an
//! object, checks that the object's bindings and topic permissions can be restored. Also verifies deletions and
//! declarations.

use crate::broker::{BrokerError, LockedBroker};
use crate::model::{Address, Binding, Object, ObjectId};
use crate::plan::{Action, ChangeKind, Step, VhostPlan};
use std::collections::BTreeSet;

/// The progress of recreations.
#[derive(Default)]
pub(super) struct Recreates {
    /// The recreations whose old object is deleted. These recreations are always completed.
    started: BTreeSet<ObjectId>,
    /// The recreations whose keep exchange and old object both exist. After an interruption, the keep exchange is
    /// deleted.
    prepared: BTreeSet<ObjectId>,
    /// The recreations with a binding or a topic permission that could not be restored. The keep exchange remains,
    /// because it is the only record of the binding or permission, and the next run tries again.
    unrestored: BTreeSet<ObjectId>,
}

impl Recreates {
    /// Returns true if a step must run even after an interruption.
    pub(super) fn must_run(&self, step: &Step) -> bool {
        step.recreate.as_ref().is_some_and(|id| {
            let is_keep_deletion = deletes_keep(step);
            if is_keep_deletion && self.unrestored.contains(id) {
                return false;
            }
            self.started.contains(id) || self.prepared.contains(id) && is_keep_deletion
        })
    }

    /// Records a completed step. Returns true if the step reverted the preparation of a recreation that did not happen.
    pub(super) fn record_done(&mut self, step: &Step) -> bool {
        let Some(id) = &step.recreate else { return false };
        let is_own = *id == step.action.object();
        match &step.action {
            Action::DeclareExchange { .. } if !is_own => {
                self.prepared.insert(id.clone());
            }
            Action::DeleteQueue { .. } | Action::DeleteExchange { .. } if is_own => {
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
            // Without the object, no binding can be restored. After an `Inequivalent` error, an object exists that an
            // application has declared.
            self.started.remove(id);
        }
        // If only the response was lost, the object is deleted, and only the keep exchange has its bindings.
        let is_undeleted = error.is_guard_failure() || matches!(error, BrokerError::AccessRefused { .. });
        if *id == step.action.object() && !is_undeleted {
            self.prepared.remove(id);
        }
    }
}

/// Returns true if an action creates a keep exchange, or binds an auto-delete exchange to it.
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

/// Creates each existing unmanaged binding of an object again, which changes nothing. A refusal, for example because of
/// a missing permission or an exclusive queue, therefore occurs before the object is deleted.
pub(super) async fn rehearse_bindings(
    part: &VhostPlan,
    broker: &LockedBroker,
    id: &ObjectId,
) -> Result<(), BrokerError> {
    let restored: BTreeSet<&Binding> = bindings_of(part).collect();
    let declared = &part.desired.topology.bindings;
    let (live, keys) = broker.broker().bindings(broker.vhost()).await?;
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
    // A number that an AMQP client sent as int32 is an int64 over HTTP. In this case, the broker has added a second
    // binding, which is deleted.
    let after = broker.broker().bindings(broker.vhost()).await?.1;
    for binding in unmanaged {
        let known = keys.get(binding);
        for key in after.get(binding).into_iter().flatten() {
            if !known.is_some_and(|known| known.contains(key)) {
                let unbind = Action::Unbind { binding: binding.clone(), properties_key: key.clone() };
                broker.perform(&unbind).await?;
            }
        }
    }
    refusal.map_or(Ok(()), Err)
}

/// Returns the bindings that the plan creates.
fn bindings_of(part: &VhostPlan) -> impl Iterator<Item = &Binding> {
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

/// Returns [`BrokerError::BoundMeanwhile`] if a binding was added after the plan was made. The deletion of the object
/// would delete this binding.
pub(super) async fn expect_no_new_bindings(
    part: &VhostPlan,
    broker: &LockedBroker,
    id: &ObjectId,
) -> Result<(), BrokerError> {
    let known: BTreeSet<&Binding> = bindings_of(part).collect();
    let undesired: BTreeSet<&Binding> = part
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
    let new = live.into_iter().find(|binding| !known.contains(binding) && !undesired.contains(binding));
    match new {
        Some(binding) => Err(BrokerError::BoundMeanwhile { object: id.to_string(), binding: binding.to_string() }),
        None => Ok(()),
    }
}

/// Verifies that a deleted object no longer exists, or that a declared object exists. A response with status 204 proves
/// neither.
pub(super) async fn verify(broker: &LockedBroker, action: &Action) -> Result<(), BrokerError> {
    let (id, expected) = match action {
        Action::DeleteQueue { .. } | Action::DeleteExchange { .. } => (action.object(), false),
        Action::DeclareQueue { .. } | Action::DeclareExchange { .. } => (action.object(), true),
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
    let object = id.to_string();
    match broker.broker().exists(broker.vhost(), &id).await {
        Ok(exists) if exists == expected => Ok(()),
        Ok(_) => Err(BrokerError::NotVerified { object, expected }),
        Err(error) => Err(BrokerError::Unverifiable { object, reason: error.to_string() }),
    }
}

/// Checks that the topic permissions of an exchange equal the topic permissions in the plan. If they differed, the
/// recreation would lose a permission that was set after the plan was made, or restore a permission that was deleted.
///
/// Also sends the topic permissions again, which changes nothing. A refusal therefore occurs before the exchange is
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
