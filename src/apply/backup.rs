//! Reads the objects that a plan deletes, changes or recreates, before the first change. The caller writes the backup.

use crate::broker::{Broker, BrokerError, SecretDefinitions, Snapshot};
use crate::model::{BrokerVersion, ObjectId, TopicPermission, Topology, VhostName};
use crate::plan::{Plan, TopicPermissions, VhostPlan, affected_users, deletes_exchanges};

/// The first version that can import exchanges and their topic permissions from the same file.
const SINGLE_FILE_SINCE: BrokerVersion = BrokerVersion::new(4, 3, 0);

/// The current definitions of the objects that a plan deletes, changes or recreates. A backup contains neither messages
/// nor global parameters.
#[derive(Clone, Debug)]
pub struct Backup {
    /// The objects, as one topology for each affected vhost.
    pub objects: Vec<Topology>,
    /// The users, shovels and upstreams, with their passwords or hashes.
    pub secret: SecretDefinitions,
    /// The topic permissions that the plan changes or deletes, or that the broker deletes together with an exchange or
    /// a user. If topo's own user cannot read the permissions on deleted exchanges, the backup does not contain them.
    pub topic_permissions: Vec<(VhostName, TopicPermission)>,
    /// The broker's version.
    pub version: String,
    /// True if the exchanges must be imported from one file, and then their topic permissions from a second file.
    pub is_split: bool,
    /// The objects that the backup does not contain, because one of their arguments is too large to read.
    pub left_out: Vec<ObjectId>,
}

/// An error while writing a backup.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the backup could not be written to {file}; nothing was changed")]
pub struct BackupError {
    /// The path of the file.
    pub file: String,
    /// The reason.
    pub reason: String,
}

impl Backup {
    /// Reads the objects. Returns `None` if no vhost's plan is destructive ([`VhostPlan::is_destructive`]) and the plan
    /// affects no existing user.
    pub(super) async fn read(broker: &Broker, plan: &Plan) -> Result<Option<Self>, BrokerError> {
        let parts: Vec<&VhostPlan> = plan.vhosts.iter().filter(|part| part.is_destructive()).collect();
        let mut secret = match &plan.cluster {
            Some(cluster) => broker.user_definitions(&affected_users(cluster.part())).await?,
            None => SecretDefinitions::default(),
        };
        if parts.is_empty() && secret.users.is_empty() {
            return Ok(None);
        }
        let vhosts: Vec<VhostName> = parts.iter().map(|part| part.vhost.clone()).collect();
        let mut snapshots = broker.read(&vhosts).await?;
        for (part, snapshot) in parts.iter().zip(&mut snapshots) {
            broker.read_records(snapshot, &part.desired.scope.record_kinds()).await?;
        }
        let mut objects: Vec<Topology> =
            parts.iter().zip(&snapshots).map(|(part, snapshot)| part.affected_objects(&snapshot.topology)).collect();
        for topology in &objects {
            secret.parameters.extend(broker.link_definitions(topology).await?);
        }
        let left_out = objects.iter_mut().flat_map(Topology::remove_truncated).collect();
        let mut topic_permissions = topic_permissions(broker, &parts, &snapshots).await?;
        for topology in &mut objects {
            let of_records = topology.take_topic_permissions();
            topic_permissions.extend(of_records.into_iter().map(|permission| (topology.vhost.clone(), permission)));
        }
        topic_permissions.extend(secret.topic_permissions.iter().cloned());
        topic_permissions.sort();
        topic_permissions.dedup();
        let is_old = snapshots.iter().any(|snapshot| snapshot.profile.version < SINGLE_FILE_SINCE);
        let is_split = is_old && !topic_permissions.is_empty();
        Ok(Some(Self { objects, secret, topic_permissions, version: plan.target.version.clone(), is_split, left_out }))
    }
}

/// Reads the topic permissions on exchanges that the plan deletes or recreates. Skips a vhost if the broker keeps topic
/// permissions when an exchange is deleted, or if the connected user cannot read the topic permissions.
async fn topic_permissions(
    broker: &Broker,
    parts: &[&VhostPlan],
    snapshots: &[Snapshot],
) -> Result<Vec<(VhostName, TopicPermission)>, BrokerError> {
    let mut permissions = Vec::new();
    for (part, Snapshot { topology, profile, .. }) in parts.iter().zip(snapshots) {
        if !deletes_exchanges(part, topology) {
            continue;
        }
        if let TopicPermissions::Known(all) = broker.topic_permissions(&part.vhost, profile.version).await? {
            let affected = part.affected_objects(topology).exchanges;
            let of_affected = all.into_iter().filter(|permission| affected.contains_key(&permission.exchange));
            permissions.extend(of_affected.map(|permission| (part.vhost.clone(), permission)));
        }
    }
    Ok(permissions)
}
