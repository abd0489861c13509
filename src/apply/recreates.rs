//! Tracks recreates that must be completed even after a failure or an interruption.

use crate::broker::BrokerError;
use crate::model::ObjectId;
use crate::plan::{Action, Step};
use std::collections::BTreeSet;

/// The progress of recreates.
#[derive(Default)]
pub(super) struct Recreates {
    /// Recreates whose old object is deleted: they are always completed.
    started: BTreeSet<ObjectId>,
    /// Recreates whose keep exchange and old object both exist: an interruption deletes the keep exchange.
    prepared: BTreeSet<ObjectId>,
    /// Recreates with a binding or a topic permission that could not be restored. The keep exchange remains, because
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

    /// Records a completed step. Returns true if the step reverted the preparation of a recreate that did not happen.
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
            // Deleting the keep exchange is the last step of a recreate.
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
