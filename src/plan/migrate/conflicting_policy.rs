//! A policy that came after the plan, and takes what the holding queues hold.

use super::Migration;
use super::names::eats;
use crate::model::{BrokerVersion, Policy, PolicyName};
use crate::rabbitmq::{Governed, Policies};
use std::collections::BTreeMap;

impl Migration {
    /// The policy that takes messages from what holds them, of the users' policies and the operator policies that the vhost
    /// has now, in words.
    pub fn conflicting_policy(
        &self,
        policies: &BTreeMap<PolicyName, Policy>,
        operator_policies: &BTreeMap<PolicyName, Policy>,
        version: BrokerVersion,
    ) -> Option<String> {
        let names = self.names();
        // An operator policy holds beside whatever a user's says, also beside the shield.
        [("policy", policies), ("operator policy", operator_policies)].into_iter().find_map(|(kind, all)| {
            let all = Policies::new(all, version);
            [&names.hold, &names.drained].into_iter().find_map(|name| {
                let governing = all.governing(name, Governed::from(&self.holding));
                let named = governing.likely().filter(|named| *named.name != names.shield)?;
                eats(&named).map(|key| format!("{kind} {} sets {key} on {name}", named.name))
            })
        })
    }
}
