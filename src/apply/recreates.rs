//! Tracks recreations that must be completed even after a failure or an interruption. Checks, around each deletion of a
//! recreation, that bindings and topic permissions can be restored.

use crate::broker::{BrokerError, LockedBroker};
use crate::model::{Address, Binding, Object, ObjectId};
use crate::plan::{Action, ChangeKind, Step, VhostPlan};
use std::collections::BTreeSet;

/// The progress of recreations.
#[derive(Default)]
pub(super) struct Recreates {
    /// Recreations whose old object is deleted: they are always completed.
    started: BTreeSet<ObjectId>,
    /// Recreations whose keep exchange and old object both exist: an interruption deletes the keep exchange.
    prepared: BTreeSet<ObjectId>,
    /// Recreations with a binding or a topic permission that could not be restored. The keep exchange remains, because
    /// only it records them, and the next run tries again.
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
            // Without the object, no binding can be restored. After an `Inequivalent` error, an object of an
            // application exists.
            self.started.remove(id);
        }
        // Perhaps only the response was lost. Then only the keep exchange has the bindings.
        let is_undeleted = error.is_guard() || matches!(error, BrokerError::AccessRefused { .. });
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

fn deletes_keep(step: &Step) -> bool {
    matches!(step.action, Action::DeleteExchange { .. }) && step.recreate.as_ref() != Some(&step.action.object())
}

/// Repeats each existing binding that the spec does not declare. This changes nothing. A refusal (no permission on the
/// other exchange, an exclusive queue) occurs before the object is deleted.
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
    // The int32 of an AMQP client and the int64 of HTTP are two bindings: the second one is deleted.
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

/// Fails if a binding was added after the plan was made: it would be lost with the object.
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

/// Verifies a step before the next one: a deleted object no longer exists, a declared one does. A response of 204
/// proves neither.
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

/// Sends the topic permissions of an exchange again. This changes nothing, and a refusal occurs before the exchange is
/// deleted. The permissions must equal those of the plan. Otherwise the recreation would lose a permission that an
/// administrator has set since, or restore one that was deleted since.
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
