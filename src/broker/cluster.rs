//! Reads cluster records, which belong to no vhost, and the names of the objects that own these records.

use super::connection::Broker;
use super::error::BrokerError;
use super::permissions::Named;
use super::records;
use super::snapshot::{Snapshot, Survey};
use crate::model::record_kinds::RecordScope;
use crate::model::{RecordId, RecordKind, Records, Scope, Topology, VhostName};
use crate::plan::ClusterFacts;
use crate::plan::request::path;
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
                Err(BrokerError::WrongTag { .. } | BrokerError::AccessRefused { .. }) => {
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
                Err(BrokerError::WrongTag { .. } | BrokerError::AccessRefused { .. }) => {
                    cluster.facts.owners.insert(kind, None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(cluster)
    }
}

/// Returns the record names of a kind.
fn of_kind<'a>(ids: impl Iterator<Item = &'a RecordId>, kind: RecordKind) -> impl Iterator<Item = &'a str> {
    ids.filter(move |id| id.kind == kind).filter_map(RecordId::name)
}
