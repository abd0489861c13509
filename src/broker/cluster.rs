//! Reads cluster records, which belong to no vhost, and the cluster properties that a spec can require.

use super::connection::Broker;
use super::error::BrokerError;
use super::permissions::is_hidden;
use super::snapshot::{Snapshot, Survey};
use crate::model::{BrokerVersion, RecordKind, Records, Scope, Topology, VhostName};
use crate::plan::{ClusterFacts, Enabled};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// The current records of a cluster, and other facts about the cluster.
#[derive(Clone, Debug)]
pub struct ClusterSnapshot {
    /// A snapshot that belongs to no vhost and contains only the records.
    pub snapshot: Snapshot,
    /// The cluster's name, and the properties that the spec requires.
    pub facts: ClusterFacts,
}

impl Survey {
    /// Returns a cluster snapshot that contains no records yet.
    pub fn cluster(&self) -> ClusterSnapshot {
        let mut snapshot = Snapshot::missing(VhostName::cluster(), &self.cluster);
        snapshot.topology = Topology::of_cluster(Records::new());
        ClusterSnapshot { snapshot, facts: ClusterFacts { name: self.cluster.name.clone(), ..ClusterFacts::default() } }
    }
}

impl Broker {
    /// Reads the cluster records of the given kinds, as [`read_records`](Self::read_records) does.
    pub async fn read_cluster(
        &self,
        survey: &Survey,
        kinds: &BTreeSet<RecordKind>,
    ) -> Result<ClusterSnapshot, BrokerError> {
        let mut cluster = survey.cluster();
        self.read_records(&mut cluster.snapshot, kinds).await?;
        Ok(cluster)
    }

    /// Reads the cluster records that a plan compares, the facts about them, and the cluster properties that the spec
    /// requires.
    pub async fn read_cluster_for_plan(
        &self,
        survey: &Survey,
        desired: &Topology,
        scope: &Scope,
    ) -> Result<ClusterSnapshot, BrokerError> {
        let mut cluster = survey.cluster();
        self.read_records_for_plan(&mut cluster.snapshot, desired, scope).await?;
        let version = cluster.snapshot.profile.version;
        if !scope.requires.plugins.is_empty() {
            cluster.facts.plugins = self.enabled_plugins().await?;
        }
        if !scope.requires.feature_flags.is_empty() {
            cluster.facts.feature_flags = self.enabled_feature_flags(version).await?;
        }
        Ok(cluster)
    }

    /// Returns the plugins that are enabled on every running node. Only a user with the `monitoring` tag may read them.
    /// A node lists its plugins only after its first statistics interval, so topo waits for a node that has just
    /// started. Returns [`Enabled::NotRead`] if the node does not list its plugins in time.
    pub(super) async fn enabled_plugins(&self) -> Result<Enabled, BrokerError> {
        for _ in 0..PLUGIN_READS {
            let nodes =
                self.get::<Vec<NodePlugins>>("/api/nodes?columns=name,running,enabled_plugins".to_owned()).await;
            let nodes = match nodes {
                Ok(nodes) => nodes,
                Err(error) if is_hidden(&error) => return Ok(Enabled::NotReadable("monitoring")),
                Err(error) => return Err(error),
            };
            let running = nodes.into_iter().filter(|node| node.running).map(|node| node.enabled_plugins);
            if let Some(listed) = running.collect::<Option<Vec<_>>>() {
                let common = listed.into_iter().reduce(|common, plugins| &common & &plugins);
                return Ok(Enabled::Names(common.unwrap_or_default()));
            }
            sleep(PLUGIN_INTERVAL).await;
        }
        Ok(Enabled::NotRead)
    }

    /// Returns the enabled feature flags. On 3.13 and earlier, only an administrator may read them.
    async fn enabled_feature_flags(&self, version: BrokerVersion) -> Result<Enabled, BrokerError> {
        match self.get::<Vec<FeatureFlag>>("/api/feature-flags".to_owned()).await {
            Ok(flags) => {
                let enabled = flags.into_iter().filter(|flag| flag.state == "enabled").map(|flag| flag.name);
                Ok(Enabled::Names(enabled.collect()))
            }
            Err(error) if is_hidden(&error) => {
                Ok(Enabled::NotReadable(if version.is_at_least(4, 0) { "management" } else { "administrator" }))
            }
            Err(error) => Err(error),
        }
    }
}

/// The maximum number of reads of the enabled plugins. With a pause of [`PLUGIN_INTERVAL`] after each read, the reads
/// together take longer than the default statistics interval of 5 s.
const PLUGIN_READS: usize = 14;
/// The time between two reads of the enabled plugins.
const PLUGIN_INTERVAL: Duration = Duration::from_millis(500);

/// An entry of `GET /api/nodes`. A node that is down, or that started within the last few seconds, lists no plugins.
#[derive(Deserialize)]
struct NodePlugins {
    running: bool,
    enabled_plugins: Option<BTreeSet<String>>,
}

/// An entry of `GET /api/feature-flags`.
#[derive(Deserialize)]
struct FeatureFlag {
    name: String,
    state: String,
}
