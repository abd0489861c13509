//! Builds the snapshot of each vhost from the cluster's properties, the vhost's settings and the lists of the vhost's
//! objects.

use super::error::BrokerError;
use super::wire;
use crate::model::{
    Binding, Destination, Exchange, ExchangeName, ObjectId, Policy, PolicyName, Queue, QueueName, Records, Topology,
    Vhost, VhostName,
};
use crate::plan::{Activity, Desired, PlanContext, RecordFacts, Target};
use crate::rabbitmq::BrokerProfile;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The current state of a vhost.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The objects in the vhost that the connected user may see. Includes [untouchable](Self::untouchable) objects,
    /// because a spec may declare an object with the same name. Omits the default exchange, its bindings and the
    /// `amq.*` exchanges, because clients cannot change them. Bindings from and to `amq.*` are included. Records other
    /// than operator policies are included only after [`Broker::read_records`](super::Broker::read_records).
    pub topology: Topology,
    /// The name of the cluster.
    pub cluster: String,
    /// `RabbitMQ`, or the product name of a distribution.
    pub product: String,
    /// The profile of the node that responded, with the default queue type of this vhost. If the vhost has no default
    /// queue type, the profile contains the node's default queue type, which nodes report on 4.0 and later.
    pub profile: BrokerProfile,
    /// The properties keys of each binding, sorted. An entry has several keys if the broker has several bindings that
    /// differ only in AMQP argument types, which JSON does not distinguish. The list of keys is empty if no HTTP
    /// request can delete the binding.
    pub properties_keys: PropertiesKeys,
    /// The objects that topo must never change: exclusive, auto-delete, server-named and plugin-owned queues,
    /// auto-delete exchanges, topo's own objects, and all bindings from or to any of these objects.
    pub untouchable: BTreeSet<ObjectId>,
    /// The exchanges that the broker stores without a value for `auto_delete`. RabbitMQ before 4.2.2 creates such an
    /// exchange if an imported definitions file does not contain this field. The broker refuses every declaration of
    /// the exchange.
    pub lacks_auto_delete: BTreeSet<ExchangeName>,
    /// Additional facts about the records, which the lists of records do not contain.
    pub record_facts: RecordFacts,
    /// The names of the objects in a definitions file that are not part of `topology`, by kind, such as `shovel`.
    pub unsupported_objects: BTreeMap<String, Vec<String>>,
    /// True if the snapshot includes the vhost's exclusive and transient queues, if any. False if the snapshot was read
    /// from a definitions file, which contains neither exclusive nor transient queues.
    pub includes_transient_queues: bool,
}

/// The properties keys of each binding. The URL that deletes a binding ends with the binding's properties key
/// (`rabbit_mgmt_format:pack_binding_props`).
pub type PropertiesKeys = BTreeMap<Binding, Vec<String>>;

/// The settings of an existing vhost and the lists of its objects, as the broker or a definitions file contains them.
#[derive(Debug)]
pub(super) struct Lists {
    /// The vhost's settings; `None` if they are unknown or have not been read yet.
    pub(super) settings: Option<wire::Vhost>,
    pub(super) queues: Vec<wire::Queue>,
    pub(super) exchanges: Vec<wire::Exchange>,
    pub(super) bindings: Vec<wire::Binding>,
    pub(super) policies: Vec<wire::Policy>,
    pub(super) records: Records,
}

impl Snapshot {
    /// Returns the context in which the planner compares this vhost with the desired topology.
    pub fn context<'a>(&'a self, desired: &'a Arc<Desired>, activity: &'a Activity) -> PlanContext<'a> {
        PlanContext {
            current: &self.topology,
            desired,
            activity,
            properties_keys: &self.properties_keys,
            untouchable: &self.untouchable,
            lacks_auto_delete: &self.lacks_auto_delete,
            records: &self.record_facts,
            profile: &self.profile,
        }
    }

    /// Returns the snapshot of a missing vhost.
    pub(super) fn missing(vhost: VhostName, cluster: &Cluster) -> Self {
        Self {
            topology: Topology::missing(vhost),
            cluster: cluster.name.clone(),
            product: cluster.product.clone(),
            profile: cluster.profile.clone(),
            properties_keys: PropertiesKeys::new(),
            untouchable: BTreeSet::new(),
            lacks_auto_delete: BTreeSet::new(),
            record_facts: RecordFacts::default(),
            unsupported_objects: BTreeMap::new(),
            includes_transient_queues: true,
        }
    }

    /// Returns the snapshot of an existing vhost.
    pub(super) fn of(vhost: VhostName, cluster: &Cluster, lists: Lists) -> Self {
        let mut snapshot = Self::missing(vhost, cluster);
        let settings = lists.settings.map_or_else(Vhost::default, wire::Vhost::into_model);
        snapshot.profile = cluster.profile_of(settings.default_queue_type.as_deref());
        snapshot.topology.settings = Some(settings);
        for listed in lists.exchanges {
            let lacks_auto_delete = listed.auto_delete.is_none();
            let (name, exchange) = listed.into_model();
            if name.is_predeclared() {
                continue;
            }
            if lacks_auto_delete {
                snapshot.lacks_auto_delete.insert(name.clone());
            }
            if exchange.auto_delete || exchange.is_created_by_topo() {
                snapshot.untouchable.insert(ObjectId::Exchange(name.clone()));
            }
            snapshot.topology.exchanges.insert(name, exchange);
        }
        for listed in lists.queues {
            let internal = listed.internal.unwrap_or(false);
            let (name, queue) = listed.into_model();
            if queue.exclusive || queue.auto_delete || internal || queue.is_created_by_topo() || name.is_server_named()
            {
                snapshot.untouchable.insert(ObjectId::Queue(name.clone()));
            }
            snapshot.topology.queues.insert(name, queue);
        }
        let (bindings, keys) = bindings(lists.bindings);
        for binding in &bindings {
            let destination = binding.destination.id();
            if snapshot.untouchable.contains(&destination)
                || snapshot.untouchable.contains(&ObjectId::Exchange(binding.source.clone()))
            {
                snapshot.untouchable.insert(ObjectId::Binding(binding.clone()));
            }
        }
        snapshot.topology.bindings = bindings;
        snapshot.properties_keys = keys;
        snapshot.topology.policies = policies(lists.policies);
        snapshot.topology.records = lists.records;
        snapshot
    }
}

impl wire::Vhost {
    fn into_model(self) -> Vhost {
        let default_queue_type = self.default_queue_type().map(str::to_owned);
        let description = self.description.filter(|text| text != "undefined");
        Vhost { description, tags: Some(self.tags.into_iter().collect()), default_queue_type }
    }
}

impl wire::Queue {
    fn into_model(self) -> (QueueName, Queue) {
        let Self { name, durable, auto_delete, exclusive, arguments, internal: _ } = self;
        let exclusive = exclusive.unwrap_or(false);
        (QueueName::new(name), Queue { durable, auto_delete, exclusive, arguments })
    }
}

impl wire::Exchange {
    fn into_model(self) -> (ExchangeName, Exchange) {
        let Self { name, kind, durable, auto_delete, internal, arguments } = self;
        let auto_delete = auto_delete.unwrap_or(false);
        (ExchangeName::new(name), Exchange { kind, durable, auto_delete, internal, arguments })
    }
}

impl wire::Policy {
    fn into_model(self) -> (PolicyName, Policy) {
        let Self { name, pattern, apply_to, priority, definition } = self;
        (PolicyName::new(name), Policy { pattern, apply_to, priority, definition })
    }
}

pub(super) fn policies(listed: Vec<wire::Policy>) -> BTreeMap<PolicyName, Policy> {
    listed.into_iter().map(wire::Policy::into_model).collect()
}

/// Converts bindings and their properties keys. Omits the bindings of the default exchange, which every queue has and
/// no client can remove.
///
/// A binding with the routing key `null` or `undefined` has no properties key in the result. The broker's delete
/// handler treats these strings as atoms and always returns 404 (`rabbit_mgmt_wm_binding`, all versions).
pub(super) fn bindings(listed: Vec<wire::Binding>) -> (BTreeSet<Binding>, PropertiesKeys) {
    let mut keys_by_binding = PropertiesKeys::new();
    for listed in listed.into_iter().filter(|listed| !listed.source.is_empty()) {
        let binding = Binding {
            source: ExchangeName::new(listed.source),
            destination: match listed.destination_type {
                wire::DestinationType::Queue => Destination::Queue(listed.destination.as_str().into()),
                wire::DestinationType::Exchange => Destination::Exchange(listed.destination.as_str().into()),
            },
            // JSON null represents the atom `null`, which routes like the string `null` (`rabbit_mgmt_format`).
            routing_key: listed.routing_key.clone().unwrap_or_else(|| "null".to_owned()),
            arguments: listed.arguments,
        };
        let keys = keys_by_binding.entry(binding).or_default();
        if !matches!(listed.routing_key.as_deref(), Some("null" | "undefined")) {
            keys.push(listed.properties_key);
        }
    }
    for keys in keys_by_binding.values_mut() {
        keys.sort();
    }
    (keys_by_binding.keys().cloned().collect(), keys_by_binding)
}

/// The cluster's properties, which are the same for all vhosts.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) product: String,
    /// The profile with the default queue type of the node.
    pub(super) profile: BrokerProfile,
}

/// The properties of the cluster, and the settings of each vhost that the connected user may see.
#[derive(Clone, Debug)]
pub struct Survey {
    pub(super) cluster: Cluster,
    pub(super) settings: BTreeMap<String, wire::Vhost>,
}

impl Survey {
    /// Returns true if the survey contains this vhost. A survey does not contain vhosts that the connected user is not
    /// allowed to see.
    pub fn has_vhost(&self, vhost: &VhostName) -> bool {
        self.settings.contains_key(vhost.as_str())
    }

    /// Returns the description of the broker at `url` for plan documents.
    pub fn target(&self, url: String) -> Target {
        let Cluster { name, product, profile } = &self.cluster;
        Target { url, cluster: name.clone(), product: product.clone(), version: profile.version.to_string() }
    }

    /// Returns the broker's profile for a vhost. A missing vhost has the profile of a vhost without settings.
    pub fn profile(&self, vhost: &VhostName) -> BrokerProfile {
        let settings = self.settings.get(vhost.as_str());
        self.cluster.profile_of(settings.and_then(wire::Vhost::default_queue_type))
    }
}

impl Cluster {
    /// Returns the profile with a vhost's default queue type, or with the node's default queue type for `None`.
    pub(super) fn profile_of(&self, default_queue_type: Option<&str>) -> BrokerProfile {
        let mut profile = self.profile.clone();
        if let Some(queue_type) = default_queue_type {
            profile.default_queue_type = Some(queue_type.to_owned());
        }
        profile
    }
}

/// The lists for each vhost, or the error that prevented reading them.
#[derive(Debug)]
pub struct VhostLists(pub(super) Vec<(VhostName, Result<Lists, BrokerError>)>);

impl VhostLists {
    /// Returns a snapshot of each vhost, in the order in which the lists were requested.
    ///
    /// # Errors
    /// The error for the first vhost whose lists could not be read.
    pub fn snapshots(self, survey: Survey) -> Result<Vec<Snapshot>, BrokerError> {
        let Survey { cluster, mut settings } = survey;
        let snapshots = self.0.into_iter().map(|(vhost, lists)| {
            match (lists, settings.remove(vhost.as_str())) {
                // topo plans to create all objects of a missing vhost, so a 404 for a list is not sufficient. The 404
                // can also come from a proxy, or concern a vhost that is being created or deleted. The vhost is missing
                // only if the survey does not contain the vhost either.
                (Err(BrokerError::NotFound { .. }), None) => Ok(Snapshot::missing(vhost, &cluster)),
                (lists, settings) => Ok(Snapshot::of(vhost, &cluster, Lists { settings, ..lists? })),
            }
        });
        snapshots.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::BrokerVersion;

    fn cluster() -> Cluster {
        Cluster {
            name: "c".into(),
            product: "RabbitMQ".into(),
            profile: BrokerProfile {
                default_queue_type: Some("classic".into()),
                ..BrokerProfile::of(BrokerVersion::new(4, 0, 5))
            },
        }
    }

    fn lists(queues: &str, exchanges: &str, bindings: &str) -> Lists {
        Lists {
            settings: serde_json::from_str(r#"{"name":"v","default_queue_type":"undefined","tags":[]}"#).unwrap(),
            queues: serde_json::from_str(queues).unwrap(),
            exchanges: serde_json::from_str(exchanges).unwrap(),
            bindings: serde_json::from_str(bindings).unwrap(),
            policies: Vec::new(),
            records: Records::new(),
        }
    }

    #[test]
    fn untouchable_objects_and_their_bindings_are_recognized() {
        let queue = |name: &str, rest: &str| {
            format!(r#"{{"name":"{name}","durable":true,"auto_delete":false,"arguments":{{}}{rest}}}"#)
        };
        let queues = [
            queue("plain", ""),
            queue("mine", r#","exclusive":true"#),
            queue("amq.gen-x", ""),
            queue("plugins", r#","internal":true"#),
            r#"{"name":"temporary","durable":true,"auto_delete":true,"arguments":{}}"#.to_owned(),
            r#"{"name":"topo.lock","durable":true,"auto_delete":false,"arguments":{"x-topo-holder":"me"}}"#.to_owned(),
        ];
        let exchanges = r#"[
            {"name":"","type":"direct","durable":true,"auto_delete":false,"internal":false,"arguments":{}},
            {"name":"amq.topic","type":"topic","durable":true,"auto_delete":false,"internal":false,"arguments":{}},
            {"name":"short","type":"topic","durable":true,"auto_delete":true,"internal":false,"arguments":{}},
            {"name":"long","type":"topic","durable":true,"auto_delete":false,"internal":false,"arguments":{}}]"#;
        let binding = |source: &str, queue: &str| {
            format!(
                r#"{{"source":"{source}","destination":"{queue}","destination_type":"queue","routing_key":"k",
                    "arguments":{{}},"properties_key":"k"}}"#
            )
        };
        let bindings =
            [binding("", "plain"), binding("amq.topic", "plain"), binding("long", "mine"), binding("short", "plain")];
        let lists = lists(&format!("[{}]", queues.join(",")), exchanges, &format!("[{}]", bindings.join(",")));
        let snapshot = Snapshot::of("v".into(), &cluster(), lists);
        assert_eq!(snapshot.topology.queues.len(), 6);
        let names: Vec<_> = snapshot.topology.exchanges.keys().map(ExchangeName::as_str).collect();
        assert_eq!(names, ["long", "short"]);
        assert_eq!(snapshot.topology.bindings.len(), 3);
        let untouchable: Vec<_> = snapshot.untouchable.iter().map(ToString::to_string).collect();
        assert_eq!(
            untouchable,
            [
                "exchange short",
                "queue amq.gen-x",
                "queue mine",
                "queue plugins",
                "queue temporary",
                "queue topo.lock",
                "binding long ─ k → mine",
                "binding short ─ k → plain"
            ]
        );
        assert_eq!(snapshot.profile.default_queue_type.as_deref(), Some("classic"));
        assert_eq!(snapshot.topology.settings, Some(Vhost { tags: Some(BTreeSet::new()), ..Vhost::default() }));
    }

    #[test]
    fn keys_of_equal_bindings_are_collected() {
        let binding = |key: &str| {
            format!(
                r#"{{"source":"e","destination":"q","destination_type":"queue","routing_key":"",
                    "arguments":{{"n":1}},"properties_key":"{key}"}}"#
            )
        };
        let lists = lists("[]", "[]", &format!("[{},{}]", binding("~b"), binding("~a")));
        let snapshot = Snapshot::of("v".into(), &cluster(), lists);
        assert_eq!(snapshot.topology.bindings.len(), 1);
        assert_eq!(snapshot.properties_keys.values().collect::<Vec<_>>(), [&["~a", "~b"]]);
    }
}
