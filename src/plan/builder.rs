//! Collects the parts of a plan before its steps are ordered.

use super::document::{Block, ChangeKind, Info, InterruptedMigration, PlannedChange, Unmanaged};
use super::hazard::{Hazard, HazardKind};
use super::migrate::Migration;
use crate::model::{Address, Binding, Object};
use std::collections::BTreeSet;

/// The parts of a plan before its steps are ordered.
#[derive(Default)]
pub(super) struct PlanBuilder {
    pub(super) changes: Vec<PlannedChange>,
    pub(super) unmanaged: Vec<Unmanaged>,
    pub(super) infos: Vec<Info>,
    pub(super) blocks: Vec<Block>,
    pub(super) hazards: Vec<Hazard>,
    pub(super) migrations: Vec<Migration>,
    pub(super) interrupted: Vec<InterruptedMigration>,
}

impl PlanBuilder {
    pub(super) fn hazard(&mut self, kind: HazardKind, address: &Address, text: String, messages: Option<u64>) {
        let must_be_allowed = kind != HazardKind::PolicyShift;
        self.hazards.push(Hazard { kind, address: address.clone(), text, messages, must_be_allowed });
    }

    pub(super) fn block(&mut self, address: &Address, text: String, remedy: Option<String>) {
        self.blocks.push(Block { address: address.clone(), text, remedy, flag: None });
    }

    pub(super) fn info(&mut self, address: &Address, text: String) {
        self.infos.push(Info { address: address.clone(), text });
    }

    /// Returns the bindings that the plan deletes on their own, not together with their source or destination.
    pub(super) fn undesired_bindings(&self) -> BTreeSet<Binding> {
        self.changes
            .iter()
            .filter(|change| change.kind == ChangeKind::Delete)
            .filter_map(|change| match &change.before {
                Some(Object::Binding(binding)) => Some(binding.clone()),
                Some(
                    Object::Vhost(_)
                    | Object::Exchange(..)
                    | Object::Policy(..)
                    | Object::Queue(..)
                    | Object::Record(_),
                )
                | None => None,
            })
            .collect()
    }
}
