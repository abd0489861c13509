//! A policy that came after the plan, and takes what the holding queues hold.

use super::Migration;
use super::holding::eats;
use crate::behaviour::{Governed, Policies};
use crate::model::{BrokerVersion, Policy, PolicyName};
use std::collections::BTreeMap;

impl Migration {
    /// The policy that takes messages from what holds them, of those that the vhost has now, in words.
    pub fn eater(&self, policies: &BTreeMap<PolicyName, Policy>, version: BrokerVersion) -> Option<String> {
        let policies = Policies::new(policies, version);
        let beside = self.beside();
        [&beside.hold, &beside.drained].into_iter().find_map(|name| {
            let governing = policies.governing(name, Governed::from(&self.holding));
            let named = governing.likely().filter(|named| *named.name != beside.shield)?;
            eats(&named).map(|key| format!("policy {} sets {key} on {name}", named.name))
        })
    }
}
