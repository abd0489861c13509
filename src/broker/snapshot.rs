//! Turns the lists of one vhost into a snapshot. Pure.

use super::survey::Cluster;
use super::wire;
use crate::model::{
    Binding, Destination, Exchange, ExchangeName, ObjectId, Policy, PolicyName, Queue, QueueName, Records, Topology,
    Vhost, VhostName,
};
use crate::plan::{Activity, Desired, PlanContext};
use crate::rabbitmq::BrokerProfile;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One vhost as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// All that is visible in it, but for the default exchange with its bindings, and the exchanges `amq.*`, which nobody
    /// can change; bindings from and to `amq.*` are in it. What is [untouchable](Self::untouchable) is in it, too: a spec
    /// that wants such a name must see what is there.
    pub topology: Topology,
    /// The cluster's name.
    pub cluster: String,
    /// `RabbitMQ`, or what a distribution calls itself.
    pub product: String,
    /// How the node that answered behaves towards this vhost; the node's own default queue type is shown from 4.0 on.
    pub profile: BrokerProfile,
    /// The broker's keys of each binding, sorted. More than one where AMQP tells types apart that JSON does not; none
    /// where no request deletes it.
    pub properties_keys: PropertiesKeys,
    /// What topo must never change: exclusive, auto-delete, server-named and plugin-owned queues, auto-delete exchanges,
    /// topo's own objects, and every binding that starts or ends at one of these.
    pub untouchable: BTreeSet<ObjectId>,
    /// Exchanges that the broker stores without `auto_delete`, after an import up to 4.2. It refuses every declare of them.
    pub lacks_auto_delete: BTreeSet<ExchangeName>,
    /// What a definitions file has beside all this, by what it is (`shovel`), with the names.
    pub beside: BTreeMap<String, Vec<String>>,
    /// Whether it holds all queues: no definitions file has exclusive and transient ones.
    pub has_passing: bool,
}

/// By binding, the keys that delete it; see `rabbit_mgmt_format:pack_binding_props`.
pub type PropertiesKeys = BTreeMap<Binding, Vec<String>>;

/// The lists of a vhost that exists.
#[derive(Debug)]
pub(super) struct Lists {
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
            profile: &self.profile,
        }
    }

    /// Of a vhost that is not there.
    pub(super) fn missing(vhost: VhostName, cluster: &Cluster) -> Self {
        Self {
            topology: Topology::missing(vhost),
            cluster: cluster.name.clone(),
            product: cluster.product.clone(),
            profile: cluster.profile.clone(),
            properties_keys: PropertiesKeys::new(),
            untouchable: BTreeSet::new(),
            lacks_auto_delete: BTreeSet::new(),
            beside: BTreeMap::new(),
            has_passing: true,
        }
    }

    /// Of one that is.
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
            if exchange.auto_delete || exchange.is_topos_own() {
                snapshot.untouchable.insert(ObjectId::Exchange(name.clone()));
            }
            snapshot.topology.exchanges.insert(name, exchange);
        }
        for listed in lists.queues {
            let internal = listed.internal.unwrap_or(false);
            let (name, queue) = listed.into_model();
            if queue.exclusive || queue.auto_delete || internal || queue.is_topos_own() || name.is_server_named() {
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
        Vhost { description, tags: self.tags, default_queue_type }
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

/// All but those of the default exchange, which every queue has and nobody can remove.
///
/// The keys `null` and `undefined` are taken for atoms by the handler that would delete (`rabbit_mgmt_wm_binding`, all
/// versions): to a binding whose routing key is that text it answers 404 for ever, so it has no key here.
pub(super) fn bindings(listed: Vec<wire::Binding>) -> (BTreeSet<Binding>, PropertiesKeys) {
    let mut keys = PropertiesKeys::new();
    for listed in listed.into_iter().filter(|listed| !listed.source.is_empty()) {
        let binding = Binding {
            source: ExchangeName::new(listed.source),
            destination: match listed.destination_type {
                wire::DestinationType::Queue => Destination::Queue(listed.destination.as_str().into()),
                wire::DestinationType::Exchange => Destination::Exchange(listed.destination.as_str().into()),
            },
            // The atom `null`, which matches like the text (`rabbit_mgmt_format` shows it as JSON null).
            routing_key: listed.routing_key.clone().unwrap_or_else(|| "null".to_owned()),
            arguments: listed.arguments,
        };
        let keys = keys.entry(binding).or_default();
        if !matches!(listed.routing_key.as_deref(), Some("null" | "undefined")) {
            keys.push(listed.properties_key);
        }
    }
    for list in keys.values_mut() {
        list.sort();
    }
    (keys.keys().cloned().collect(), keys)
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
    fn what_is_untouchable_is_known_by_name() {
        let queue = |name: &str, rest: &str| {
            format!(r#"{{"name":"{name}","durable":true,"auto_delete":false,"arguments":{{}}{rest}}}"#)
        };
        let queues = [
            queue("plain", ""),
            queue("mine", r#","exclusive":true"#),
            queue("amq.gen-x", ""),
            queue("plugins", r#","internal":true"#),
            r#"{"name":"gone-soon","durable":true,"auto_delete":true,"arguments":{}}"#.to_owned(),
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
                "queue gone-soon",
                "queue mine",
                "queue plugins",
                "queue topo.lock",
                "binding long ─ k → mine",
                "binding short ─ k → plain"
            ]
        );
        assert_eq!(snapshot.profile.default_queue_type.as_deref(), Some("classic"));
        assert_eq!(snapshot.topology.settings, Some(Vhost::default()));
    }

    #[test]
    fn one_binding_may_have_two_keys() {
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
