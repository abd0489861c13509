//! How far the recreates are that a stop must not leave as they are: without the object, or without its bindings.

use crate::broker::BrokerError;
use crate::model::ObjectId;
use crate::plan::{Action, Step};
use std::collections::BTreeSet;

/// How far the recreates are that a stop must not leave as they are.
#[derive(Default)]
pub(super) struct Recreates {
    /// The old one is deleted: these are finished, whatever happens.
    begun: BTreeSet<ObjectId>,
    /// The keep is there and the old one, too: after a stop, the keep goes again.
    prepared: BTreeSet<ObjectId>,
    /// A binding or a topic permission could not be restored: the keep stays, because it alone knows of it, and the next run
    /// tries again.
    owing: BTreeSet<ObjectId>,
}

impl Recreates {
    /// Whether a step is done also after a stop.
    pub(super) fn must_run(&self, step: &Step) -> bool {
        step.recreate.as_ref().is_some_and(|id| {
            let keep = deletes_keep(step);
            if keep && self.owing.contains(id) {
                return false;
            }
            self.begun.contains(id) || self.prepared.contains(id) && keep
        })
    }

    /// Whether this step took back what was prepared for a recreate that did not come.
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
            // That of the keep, the last step, closes a recreate.
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
            | Action::MoveMessages { .. } => {}
        }
        false
    }

    pub(super) fn failed(&mut self, step: &Step, error: &BrokerError) {
        let Some(id) = &step.recreate else { return };
        if matches!(step.action, Action::Bind { .. } | Action::PutTopicPermission { .. }) {
            self.owing.insert(id.clone());
        } else if !matches!(error, BrokerError::Inequivalent { .. }) {
            // Without the object there is nothing to bind. (An application that was faster has made one.)
            self.begun.remove(id);
        }
        // The answer may be all that was lost: then only the keep knows of the bindings.
        let spared = error.is_guard() || matches!(error, BrokerError::AccessRefused { .. });
        if *id == step.action.object() && !spared {
            self.prepared.remove(id);
        }
    }
}

/// Whether an action makes a keep, or binds an auto-delete exchange to it.
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
