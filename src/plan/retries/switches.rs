//! Switches routing keys to another tier atomically, so that no message goes into both tiers or into none.
//!
//! A bind and an unbind are two requests. Between them, a rejected message would go to both tiers, or start again at
//! the first one. So topo first binds the new tier to the switch. The switch is the alternate of the exchange, and
//! receives only messages whose key the exchange does not match. Unbinding the old tier is then the atomic switch.
//! Afterwards, topo binds the new tier to the exchange itself, and unbinds it from the switch. Both lead to the same
//! queue, so no message is delivered twice.

use super::super::builder::PlanBuilder;
use super::super::document::ChangeKind;
use super::leftovers::is_tier;
use crate::model::{Binding, Object, naming};
use std::collections::BTreeMap;

/// A routing key, or the binding of all keys, that leads to another tier than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Switch {
    /// The current binding.
    pub(in super::super) old: Binding,
    /// The desired binding.
    pub(in super::super) new: Binding,
    /// The binding of the switch in between.
    pub(in super::super) temporary: Binding,
}

/// Returns the switches of a plan.
pub(in super::super) fn switches(builder: &PlanBuilder) -> Vec<Switch> {
    let mut retired: BTreeMap<(_, _), &Binding> = BTreeMap::new();
    let mut created: Vec<&Binding> = Vec::new();
    for change in &builder.changes {
        match (change.kind, &change.before, &change.after, &change.retires) {
            (ChangeKind::Delete, Some(Object::Binding(old)), _, Some(queue)) if is_tier(queue, &old.destination) => {
                retired.insert((&old.source, &old.routing_key), old);
            }
            (ChangeKind::Create, _, Some(Object::Binding(new)), _) => created.push(new),
            (_, _, _, _) => {}
        }
    }
    let switch = |new: &Binding| {
        let old = (*retired.get(&(&new.source, &new.routing_key))?).clone();
        let temporary = Binding { source: naming::switch_of(&new.source), ..new.clone() };
        Some(Switch { old, new: new.clone(), temporary })
    };
    created.into_iter().filter_map(switch).collect()
}
