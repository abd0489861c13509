//! Plans without a connection (`--against`): against an empty broker, a definitions file, or another spec.

use super::failure::Failure;
use super::input::{self, Loaded};
use super::plan_arguments::PlanArguments;
use super::planning::Planned;
use super::sources::Sources;
use super::{files, findings, secrets};
use crate::broker::definitions::{self, DefinitionsError};
use crate::broker::{ClusterSnapshot, Secrets, Snapshot};
use crate::expand::Expansion;
use crate::model::{Arguments, BrokerVersion, Exchange, ObjectId, Queue, Topology, VhostName};
use crate::plan::{Activity, Desired, Options, Target, assemble, plan_cluster, plan_vhost};
use crate::rabbitmq::BrokerProfile;
use crate::spec::Environment;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Plans against an empty broker, a definitions file or a spec.
pub(super) fn plan(
    source: &str,
    arguments: &PlanArguments,
    mut loaded: Loaded,
    options: &Options,
) -> Result<Planned, Failure> {
    let version = arguments.broker_version;
    let default_profile = BrokerProfile::of(version.unwrap_or(BrokerVersion::NEWEST_KNOWN));
    let baseline = Baseline::read(source, version, arguments, loaded.environment.as_ref())?;
    let mut snapshots: Vec<Snapshot> = Vec::new();
    for (index, vhost) in loaded.vhosts().into_iter().enumerate() {
        let expansion = loaded.expanded.get(index).map(|(_, expansion)| expansion);
        snapshots.push(baseline.vhost(vhost, expansion)?);
    }
    let cluster = match &loaded.cluster {
        Some((_, expansion)) => Some(baseline.cluster(&expansion.topology)?),
        None => None,
    };
    loaded.expand_for(|index| snapshots.get(index).map_or(&default_profile, |snapshot| &snapshot.profile))?;
    // The message counts are unknown. The planner assumes that a queue with an unknown count can contain messages.
    let unknown_activity = Activity::default();
    let levels = findings::levels(&arguments.lint);
    let found = findings::for_profiles(&loaded, snapshots.iter().map(|snapshot| &snapshot.profile), &levels);
    let found = found.with_live_objects(&loaded, &snapshots, (&levels, &options.prune));
    let of_cluster = loaded.take_cluster().map(Arc::new);
    let cluster_plan = of_cluster.iter().zip(&cluster).next().map(|(desired, cluster)| {
        plan_cluster(&cluster.snapshot.context(desired, &unknown_activity), &cluster.facts, options)
    });
    let of_vhosts: Vec<Arc<Desired>> = loaded.take_desired().into_iter().map(Arc::new).collect();
    let parts = snapshots.iter().zip(&of_vhosts);
    let parts =
        parts.map(|(snapshot, desired)| plan_vhost(&snapshot.context(desired, &unknown_activity), options)).collect();
    let snapshot = snapshots.last().or(cluster.as_ref().map(|cluster| &cluster.snapshot));
    let version = snapshot.map_or(default_profile.version, |snapshot| snapshot.profile.version).to_string();
    let target = Target { url: source.to_owned(), cluster: String::new(), product: "RabbitMQ".to_owned(), version };
    let plan = assemble(target, options.clone(), cluster_plan, parts);
    Ok(Planned { loaded, plan, desired: of_cluster.into_iter().chain(of_vhosts).collect(), found })
}

/// The topology that the specs are compared with.
struct Baseline<'a> {
    source: &'a str,
    /// The version to assume. If `None`, topo assumes the version in the definitions file or, without a definitions
    /// file, the newest known version.
    version: Option<BrokerVersion>,
    content: Content,
}

enum Content {
    Empty,
    /// The text of a definitions file.
    Definitions(String),
    /// The expanded specs of the cluster and of the vhosts.
    Specs(Option<Box<Desired>>, BTreeMap<VhostName, Desired>),
}

impl<'a> Baseline<'a> {
    /// Reads the baseline.
    fn read(
        source: &'a str,
        version: Option<BrokerVersion>,
        arguments: &PlanArguments,
        environment: Option<&Environment>,
    ) -> Result<Self, Failure> {
        let path = Path::new(source);
        let content = if source == "empty" {
            Content::Empty
        } else if files::is_spec_path(path) {
            let sources = Sources::read_other(&arguments.spec, path, environment)?;
            let profile = BrokerProfile::of(version.unwrap_or(BrokerVersion::NEWEST_KNOWN));
            let mut loaded = input::load_for_known(sources, |_| Some(profile.clone()))?;
            let cluster = loaded.take_cluster().map(Box::new);
            Content::Specs(cluster, loaded.vhosts().into_iter().zip(loaded.take_desired()).collect())
        } else {
            Content::Definitions(files::definitions_text(path)?)
        };
        Ok(Self { source, version, content })
    }

    /// Returns the current topology of a vhost. Assumes that a baseline spec has been applied, and that external
    /// objects exist as the planned spec declares them.
    fn vhost(&self, vhost: VhostName, planned: Option<&Expansion>) -> Result<Snapshot, Failure> {
        let assumed = self.version.unwrap_or(BrokerVersion::NEWEST_KNOWN);
        match &self.content {
            Content::Empty => Ok(definitions::empty(vhost, assumed)),
            Content::Definitions(text) => {
                let secrets = Secrets::new(secrets::read);
                let read = match planned {
                    Some(planned) => {
                        definitions::read_for_plan(text, &vhost, self.version, &planned.topology, &secrets)
                    }
                    None => definitions::read(text, &vhost, self.version),
                };
                read.map_err(|error| self.failure(text, &error))
            }
            Content::Specs(_, vhosts) => {
                let desired = vhosts.get(&vhost);
                let mut snapshot = definitions::empty(vhost, assumed);
                if let Some(desired) = desired {
                    snapshot.topology = desired.topology.clone();
                }
                let of_baseline = desired.into_iter().flat_map(|desired| &desired.scope.external);
                let all = of_baseline.chain(planned.into_iter().flat_map(|planned| &planned.scope.external));
                let declared = planned.map(|planned| &planned.topology);
                all.for_each(|id| add_external(&mut snapshot.topology, id, declared));
                Ok(snapshot)
            }
        }
    }

    fn cluster(&self, desired: &Topology) -> Result<ClusterSnapshot, Failure> {
        let mut empty = definitions::empty_cluster(self.version.unwrap_or(BrokerVersion::NEWEST_KNOWN));
        match &self.content {
            Content::Empty | Content::Specs(None, _) => Ok(empty),
            Content::Definitions(text) => {
                let secrets = Secrets::new(secrets::read);
                let read = definitions::read_cluster(text, self.version, desired, &secrets);
                read.map_err(|error| self.failure(text, &error))
            }
            Content::Specs(Some(desired), _) => {
                empty.snapshot.topology = desired.topology.clone();
                Ok(empty)
            }
        }
    }

    fn failure(&self, text: &str, error: &DefinitionsError) -> Failure {
        files::definitions_failure(Path::new(self.source), text, error)
    }
}

/// The type of an external exchange, which is unknown.
const UNKNOWN_TYPE: &str = "unknown";

/// Adds an external object to the topology, unless the object already exists there. Uses the settings in `declared` if
/// it contains the object, and assumed settings otherwise.
fn add_external(topology: &mut Topology, id: &ObjectId, declared: Option<&Topology>) {
    match id {
        ObjectId::Exchange(name) if name.is_predeclared() => {}
        ObjectId::Exchange(name) => {
            let declared = declared.and_then(|it| it.exchanges.get(name)).cloned();
            topology.exchanges.entry(name.clone()).or_insert_with(|| {
                declared.unwrap_or_else(|| Exchange {
                    kind: UNKNOWN_TYPE.to_owned(),
                    durable: true,
                    auto_delete: false,
                    internal: false,
                    arguments: Arguments::new(),
                })
            });
        }
        ObjectId::Queue(name) => {
            let declared = declared.and_then(|it| it.queues.get(name)).cloned();
            topology.queues.entry(name.clone()).or_insert_with(|| {
                declared.unwrap_or_else(|| Queue {
                    durable: true,
                    exclusive: false,
                    auto_delete: false,
                    arguments: Arguments::new(),
                })
            });
        }
        ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => {}
    }
}
