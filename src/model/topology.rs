//! The topology of one vhost, including the settings of the vhost, or the topology of the cluster.

use super::arguments::{Arguments, has_truncated_value};
use super::binding::Binding;
use super::names::{ExchangeName, PolicyName, QueueName, VhostName};
use super::object::Vhost;
use super::object::{Object, ObjectId};
use super::policy::Policy;
use super::queue::{Exchange, Queue, TopicPermission};
use super::record::as_list;
use super::record::{Record, Records};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The objects of one vhost or of the cluster, in the current or the desired state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// The name of the vhost; empty for the cluster.
    pub vhost: VhostName,
    /// The settings of the vhost; `None` if the vhost does not exist on the broker, or is not visible to the connected
    /// user.
    pub settings: Option<Vhost>,
    /// All exchanges except the predeclared exchanges.
    pub exchanges: BTreeMap<ExchangeName, Exchange>,
    /// All queues.
    pub queues: BTreeMap<QueueName, Queue>,
    /// All bindings except the bindings of the default exchange.
    pub bindings: BTreeSet<Binding>,
    /// All policies except operator policies.
    pub policies: BTreeMap<PolicyName, Policy>,
    /// Operator policies, and the records of all other kinds that topo read.
    #[serde(default, skip_serializing_if = "Records::is_empty", with = "as_list")]
    #[schemars(with = "Vec<Record>")]
    pub records: Records,
}

impl Topology {
    /// Creates the topology of a vhost that does not exist.
    pub fn missing(vhost: VhostName) -> Self {
        Self {
            vhost,
            settings: None,
            exchanges: BTreeMap::new(),
            queues: BTreeMap::new(),
            bindings: BTreeSet::new(),
            policies: BTreeMap::new(),
            records: Records::new(),
        }
    }

    /// Creates the topology of the cluster, which contains only records.
    pub fn of_cluster(records: Records) -> Self {
        Self { settings: Some(Vhost::default()), records, ..Self::missing(VhostName::cluster()) }
    }

    /// Removes the objects with a value that topo did not read completely, and all bindings of these objects. Returns
    /// the removed objects and bindings.
    pub fn remove_truncated(&mut self) -> BTreeSet<ObjectId> {
        let mut truncated = BTreeSet::new();
        let mut record_if_truncated =
            |arguments: &Arguments, id: ObjectId| has_truncated_value(arguments) && truncated.insert(id);
        self.queues.retain(|name, it| !record_if_truncated(&it.arguments, ObjectId::Queue(name.clone())));
        self.exchanges.retain(|name, it| !record_if_truncated(&it.arguments, ObjectId::Exchange(name.clone())));
        self.policies.retain(|name, it| !record_if_truncated(&it.definition, ObjectId::Policy(name.clone())));
        self.records.retain(|id, it| !record_if_truncated(&it.fields, ObjectId::Record(id.clone())));
        let involves = |it: &&Binding| has_truncated_value(&it.arguments) || truncated.iter().any(|id| it.involves(id));
        let bindings: Vec<Binding> = self.bindings.iter().filter(involves).cloned().collect();
        self.bindings.retain(|it| !bindings.contains(it));
        truncated.extend(bindings.into_iter().map(ObjectId::Binding));
        truncated
    }

    /// Removes the topic permissions from the records, and returns them.
    pub fn take_topic_permissions(&mut self) -> Vec<TopicPermission> {
        let found: Vec<TopicPermission> = self.records.values().filter_map(Record::topic_permission).collect();
        self.records.retain(|_, record| record.topic_permission().is_none());
        found
    }

    /// Returns the object with this identity, if it exists.
    pub fn object(&self, id: &ObjectId) -> Option<Object> {
        match id {
            ObjectId::Vhost => self.settings.clone().map(Object::Vhost),
            ObjectId::Exchange(name) => self.exchanges.get(name).map(|it| Object::Exchange(name.clone(), it.clone())),
            ObjectId::Policy(name) => self.policies.get(name).map(|it| Object::Policy(name.clone(), it.clone())),
            ObjectId::Queue(name) => self.queues.get(name).map(|it| Object::Queue(name.clone(), it.clone())),
            ObjectId::Binding(binding) => self.bindings.get(binding).map(|it| Object::Binding(it.clone())),
            ObjectId::Record(id) => self.records.get(id).cloned().map(Object::Record),
        }
    }

    /// Returns the operator policies, by name.
    pub fn operator_policies(&self) -> BTreeMap<PolicyName, Policy> {
        self.records.values().filter_map(Record::operator_policy).collect()
    }
}
