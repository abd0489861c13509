//! Keys that change their tier: bound to another one at one moment, so that no message goes into both or into none.
//!
//! A bind and an unbind are two requests, and between them a rejected message would be in both tiers, or climb from the
//! first again. So the new tier is first bound to the switch, which is the alternate of the exchange and gets only what
//! that does not know. Unbinding the old tier then is the moment. Then the new tier is bound to the exchange itself, and
//! taken off the switch: as both lead to the same queue, nothing is in it twice.

use super::super::builder::PlanBuilder;
use super::super::document::ChangeKind;
use super::leftovers::is_tier;
use crate::model::{Binding, Object, naming};
use std::collections::BTreeMap;

/// A key, or the way of all keys, that leads to another tier than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Switch {
    /// As it is.
    pub(in super::super) old: Binding,
    /// As it shall be.
    pub(in super::super) new: Binding,
    /// In between.
    pub(in super::super) standing_in: Binding,
}

/// Those of a plan.
pub(in super::super) fn switches(builder: &PlanBuilder) -> Vec<Switch> {
    let mut retired: BTreeMap<(_, _), &Binding> = BTreeMap::new();
    let mut made: Vec<&Binding> = Vec::new();
    for change in &builder.changes {
        match (change.kind, &change.before, &change.after, &change.retires) {
            (ChangeKind::Delete, Some(Object::Binding(old)), _, Some(queue)) if is_tier(queue, &old.destination) => {
                retired.insert((&old.source, &old.routing_key), old);
            }
            (ChangeKind::Create, _, Some(Object::Binding(new)), _) => made.push(new),
            (_, _, _, _) => {}
        }
    }
    let switch = |new: &Binding| {
        let old = (*retired.get(&(&new.source, &new.routing_key))?).clone();
        let standing_in = Binding { source: naming::switch_of(&new.source), ..new.clone() };
        Some(Switch { old, new: new.clone(), standing_in })
    };
    made.into_iter().filter_map(switch).collect()
}
