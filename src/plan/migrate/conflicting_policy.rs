//! Finds a policy that was created after the plan and removes messages from the holding queues.

use super::Migration;
use super::names::removing_key;
use crate::model::{BrokerVersion, Policy, PolicyName};
use crate::rabbitmq::{Governed, Policies};
use std::collections::BTreeMap;

impl Migration {
    /// Describes the policy that removes messages from the holding queues, of the current policies and operator
    /// policies of the vhost.
    pub fn conflicting_policy(
        &self,
        policies: &BTreeMap<PolicyName, Policy>,
        operator_policies: &BTreeMap<PolicyName, Policy>,
        version: BrokerVersion,
    ) -> Option<String> {
        let names = self.names();
        // An operator policy applies in addition to a user policy, also in addition to the shield.
        [("policy", policies), ("operator policy", operator_policies)].into_iter().find_map(|(kind, all)| {
            let all = Policies::new(all, version);
            [&names.hold, &names.drained].into_iter().find_map(|name| {
                let governing = all.governing(name, Governed::from(&self.holding));
                let named = governing.likely().filter(|named| *named.name != names.shield)?;
                removing_key(&named).map(|key| format!("{kind} {} sets {key} on {name}", named.name))
            })
        })
    }
}
