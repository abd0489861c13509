//! Tracks recreates that must not be interrupted: without the object, or without its bindings.

use crate::broker::BrokerError;
use crate::model::ObjectId;
use crate::plan::{Action, Step};
use std::collections::BTreeSet;

/// The progress of recreates that must not be interrupted.
#[derive(Default)]
pub(super) struct Recreates {
    /// The old object is deleted: these recreates are completed in any case.
    begun: BTreeSet<ObjectId>,
    /// Both the keep and the old object exist: after an interruption, the keep is deleted.
    prepared: BTreeSet<ObjectId>,
    /// A binding or a topic permission could not be restored: the keep stays, because it alone knows of it, and the next run
    /// tries again.
    owing: BTreeSet<ObjectId>,
}

impl Recreates {
    /// Whether a step is done even after an interruption.
    pub(super) fn must_run(&self, step: &Step) -> bool {
        step.recreate.as_ref().is_some_and(|id| {
            let keep = deletes_keep(step);
            if keep && self.owing.contains(id) {
                return false;
            }
            self.begun.contains(id) || self.prepared.contains(id) && keep
        })
    }

    /// Whether this step reverted the preparation of a recreate that did not happen.
    pub(super) fn done(&mut self, step: &Step) -> bool {
        let Some(id) = &step.recreate else { return false };
        let own = *id == step.action.object();
        match &step.action {
            Action::DeclareExchange { .. } if !own => {
                self.prepared.insert(id.clone());
            }
            Action::DeleteQueue { .. } | Action::DeleteExchange { .. } if own => {
                self.prepared.remove(id);
                self.begun.insert(id.clone());
            }
            // Deleting the keep is the last step of a recreate.
            Action::DeleteExchange { .. } => {
                self.begun.remove(id);
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

    pub(super) fn failed(&mut self, step: &Step, error: &BrokerError) {
        let Some(id) = &step.recreate else { return };
        if matches!(step.action, Action::Bind { .. } | Action::PutTopicPermission { .. }) {
            self.owing.insert(id.clone());
        } else if !matches!(error, BrokerError::Inequivalent { .. }) {
            // Without the object there is nothing to bind. (Unless an application has declared it.)
            self.begun.remove(id);
        }
        // Perhaps only the response was lost: then the bindings are only in the keep.
        let spared = error.is_guard() || matches!(error, BrokerError::AccessRefused { .. });
        if *id == step.action.object() && !spared {
            self.prepared.remove(id);
        }
    }
}

/// Whether an action creates a keep, or binds an auto-delete exchange to it.
pub(super) fn prepares(action: &Action, keep: &ObjectId) -> bool {
    match (action, keep) {
        (Action::DeclareExchange { name, .. }, ObjectId::Exchange(keep)) => name == keep,
        (Action::Bind { binding }, ObjectId::Exchange(keep)) => binding.touches_exchange(keep),
        (_, _) => false,
    }
}

fn deletes_keep(step: &Step) -> bool {
    matches!(step.action, Action::DeleteExchange { .. }) && step.recreate.as_ref() != Some(&step.action.object())
}
