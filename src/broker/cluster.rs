//! Reads cluster records, which belong to no vhost, and the names of the objects that own these records.

use super::connection::Broker;
use super::error::BrokerError;
use super::permissions::{Named, is_hidden};
use super::records;
use super::snapshot::{Snapshot, Survey};
use crate::model::record_kinds::RecordScope;
use crate::model::{BrokerVersion, RecordId, RecordKind, Records, Scope, Topology, VhostName};
use crate::plan::request::path;
use crate::plan::{ClusterFacts, Enabled};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The current records of a cluster, and other facts about the cluster.
#[derive(Clone, Debug)]
pub struct ClusterSnapshot {
    /// A snapshot without a vhost that contains only the records.
    pub snapshot: Snapshot,
    /// The cluster's name, the names of the objects that can own records, and the kinds whose records this user may not
    /// read.
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
    /// Reads the cluster records of these kinds, with one request per kind. Skips kinds that belong to a vhost, and
    /// kinds that the broker's version does not support. Adds kinds that this user may not read to
    /// [`ClusterFacts::unreadable`].
    pub async fn read_cluster(
        &self,
        survey: &Survey,
        kinds: &BTreeSet<RecordKind>,
    ) -> Result<ClusterSnapshot, BrokerError> {
        let mut cluster = survey.cluster();
        let version = cluster.snapshot.profile.version;
        for kind in kinds {
            let row = kind.row();
            if row.scope != RecordScope::Cluster || row.since.is_some_and(|since| version < since) {
                continue;
            }
            match self.get(path(row.path, &[])).await {
                Ok(listed) => cluster.snapshot.topology.records.extend(records::from_list(*kind, listed)),
                Err(error) if is_hidden(&error) => {
                    cluster.facts.unreadable.insert(*kind);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(cluster)
    }

    /// Reads the cluster records that a plan compares, and the names of the objects that can own new records. If this
    /// user may not read the names, [`ClusterFacts::owners`] contains `None` for the kind.
    pub async fn read_cluster_for_plan(
        &self,
        survey: &Survey,
        desired: &Topology,
        scope: &Scope,
    ) -> Result<ClusterSnapshot, BrokerError> {
        let mut cluster = self.read_cluster(survey, &scope.record_kinds()).await?;
        let version = cluster.snapshot.profile.version;
        for kind in scope.record_kinds() {
            let row = kind.row();
            let existing: BTreeSet<&str> = of_kind(cluster.snapshot.topology.records.keys(), kind).collect();
            let has_new = of_kind(desired.records.keys(), kind).any(|name| !existing.contains(name));
            let is_readable = !cluster.facts.unreadable.contains(&kind);
            let Some(owners) = row.owners.filter(|_| has_new && is_readable) else { continue };
            if row.since.is_some_and(|since| version < since) {
                continue;
            }
            match self.get::<Vec<Named>>(path(owners.path, &[]) + "?columns=name").await {
                Ok(named) => {
                    let names = named.into_iter().map(|it| it.name).collect();
                    cluster.facts.owners.insert(kind, Some(names));
                }
                Err(error) if is_hidden(&error) => {
                    cluster.facts.owners.insert(kind, None);
                }
                Err(error) => return Err(error),
            }
        }
        if !scope.requires.plugins.is_empty() {
            cluster.facts.plugins = self.enabled_plugins().await?;
        }
        if !scope.requires.feature_flags.is_empty() {
            cluster.facts.feature_flags = self.enabled_feature_flags(version).await?;
        }
        Ok(cluster)
    }

    /// Returns the plugins that are enabled on every running node, which only a user with the tag `monitoring` may read.
    async fn enabled_plugins(&self) -> Result<Enabled, BrokerError> {
        match self.get::<Vec<NodePlugins>>("/api/nodes?columns=name,running,enabled_plugins".to_owned()).await {
            Ok(nodes) => {
                let running = nodes.into_iter().filter(|node| node.running).map(|node| node.enabled_plugins);
                Ok(Enabled::Names(running.reduce(|all, of_node| &all & &of_node).unwrap_or_default()))
            }
            Err(error) if is_hidden(&error) => Ok(Enabled::NotReadable("monitoring")),
            Err(error) => Err(error),
        }
    }

    /// Returns the enabled feature flags. Up to 3.13, only an administrator may read them.
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

/// An entry of `GET /api/nodes`. A node that is down has no plugins.
#[derive(Deserialize)]
struct NodePlugins {
    running: bool,
    #[serde(default)]
    enabled_plugins: BTreeSet<String>,
}

/// An entry of `GET /api/feature-flags`.
#[derive(Deserialize)]
struct FeatureFlag {
    name: String,
    state: String,
}

/// Returns the record names of a kind.
fn of_kind<'a>(ids: impl Iterator<Item = &'a RecordId>, kind: RecordKind) -> impl Iterator<Item = &'a str> {
    ids.filter(move |id| id.kind == kind).filter_map(RecordId::name)
}
