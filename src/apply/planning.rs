//! Plans against a live broker: reads the cluster, the vhosts and the activity that affects their plans, and calls the
//! pure planner.

use crate::broker::{Access, BrokerError, ClusterSnapshot, Snapshot};
use crate::model::VhostName;
use crate::plan::{
    Activity, ClusterPlan, Desired, Options, Plan, Target, VhostPlan, assemble, changes_permissions, changes_users,
    deleted_queues, deletes_exchanges, deletes_queues, limits_connections, moves_messages, needs_activity,
    plan_cluster, plan_vhost, queues_with_stale_counts,
};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::sync::Arc;
use tokio::join;

/// The maximum number of vhosts whose activity is read concurrently.
const CONCURRENT_VHOSTS: usize = 4;

/// Reads the vhosts of the desired topologies, and plans the changes. If one of the topologies describes the cluster,
/// also reads the cluster.
///
/// # Errors
/// The broker could not be read.
pub async fn plan(access: &Access, desired: &[Arc<Desired>], options: &Options) -> Result<Plan, BrokerError> {
    let broker = &access.broker;
    let (of_cluster, of_vhosts) = split(desired);
    let vhosts: Vec<VhostName> = of_vhosts.iter().map(|desired| desired.topology.vhost.clone()).collect();
    let (survey, listed) = join!(broker.survey(), broker.lists(&vhosts));
    let survey = survey?;
    let cluster = match of_cluster {
        Some(desired) => Some(broker.read_cluster_for_plan(&survey, &desired.topology, &desired.scope).await?),
        None => None,
    };
    let mut snapshots = listed.snapshots(survey)?;
    read_records(access, &mut snapshots, &of_vhosts).await?;
    plan_snapshots(access, cluster.as_ref(), &snapshots, desired, options).await
}

/// Splits desired topologies into the topology of the cluster, if any, and the topologies of vhosts.
fn split(desired: &[Arc<Desired>]) -> (Option<&Arc<Desired>>, Vec<&Arc<Desired>>) {
    let (of_cluster, of_vhosts): (Vec<_>, Vec<_>) =
        desired.iter().partition(|desired| desired.topology.vhost.is_cluster());
    (of_cluster.first().copied(), of_vhosts)
}

/// Reads the records that the plans compare, and adds them to the snapshots. `snapshots` and `desired` must be in the
/// same order.
///
/// # Errors
/// The records could not be read.
async fn read_records(
    access: &Access,
    snapshots: &mut [Snapshot],
    desired: &[&Arc<Desired>],
) -> Result<(), BrokerError> {
    for (snapshot, desired) in snapshots.iter_mut().zip(desired) {
        access.broker.read_records_for_plan(snapshot, &desired.topology, &desired.scope).await?;
    }
    Ok(())
}

/// Plans the changes to the cluster and the vhosts from their snapshots. `snapshots` must be in the order of the vhosts
/// in `desired`.
///
/// # Errors
/// The activity of a vhost or of the cluster could not be read.
pub async fn plan_snapshots(
    access: &Access,
    cluster: Option<&ClusterSnapshot>,
    snapshots: &[Snapshot],
    desired: &[Arc<Desired>],
    options: &Options,
) -> Result<Plan, BrokerError> {
    let (of_cluster, of_vhosts) = split(desired);
    let cluster_plan = match of_cluster.zip(cluster) {
        Some((desired, cluster)) => Some(plan_part_of_cluster(access, cluster, desired, options).await?),
        None => None,
    };
    let parts = snapshots.iter().zip(of_vhosts);
    let parts = parts.map(|(snapshot, desired)| plan_snapshot(access, snapshot, desired, options));
    let parts: Vec<VhostPlan> = stream::iter(parts).buffered(CONCURRENT_VHOSTS).try_collect().await?;
    let url = access.broker.shown_url();
    let target = match cluster.map(|cluster| &cluster.snapshot).or(snapshots.first()) {
        None => Target { url, cluster: String::new(), product: String::new(), version: String::new() },
        Some(snapshot) => Target {
            url,
            cluster: snapshot.cluster.clone(),
            product: snapshot.product.clone(),
            version: snapshot.profile.version.to_string(),
        },
    };
    Ok(assemble(target, options.clone(), cluster_plan, parts))
}

async fn plan_part_of_cluster(
    access: &Access,
    cluster: &ClusterSnapshot,
    desired: &Arc<Desired>,
    options: &Options,
) -> Result<ClusterPlan, BrokerError> {
    let mut activity = Activity::default();
    let plan = plan_cluster(&cluster.snapshot.context(desired, &activity), &cluster.facts, options);
    let changes_users = changes_users(plan.part());
    if !changes_users && !limits_connections(plan.part()) {
        return Ok(plan);
    }
    activity.connections = access.broker.connections(&VhostName::cluster()).await?;
    if changes_users {
        activity.links = access.broker.links().await?;
    }
    Ok(plan_cluster(&cluster.snapshot.context(desired, &activity), &cluster.facts, options))
}

async fn plan_snapshot(
    access: &Access,
    snapshot: &Snapshot,
    desired: &Arc<Desired>,
    options: &Options,
) -> Result<VhostPlan, BrokerError> {
    let Snapshot { topology, profile, .. } = snapshot;
    let (broker, vhost, version) = (&access.broker, &desired.topology.vhost, profile.version);
    // Reads the activity only if the plan may lose messages or disrupt clients.
    let mut activity = if needs_activity(topology, desired, profile, options) {
        let mut activity = broker.activity_of(topology).await?;
        if moves_messages(topology, desired, profile, options) {
            activity.transports = access.transports(vhost, version).await;
            activity.queue_limit = broker.queue_limit(vhost).await?;
            activity.unreachable = access.queues_with_inaccessible_shovels(topology, version).await?;
        }
        activity
    } else {
        Activity::default()
    };
    activity.applying = access.process.other_holder(topology);
    activity.lock_queue = Some(access.lock_queue.clone());
    let mut part = plan_vhost(&snapshot.context(desired, &activity), options);
    if deletes_queues(&part) {
        activity.shovels = broker.shovels(vhost).await?;
        broker.add_clients(topology, &deleted_queues(&part), &mut activity).await?;
        part = plan_vhost(&snapshot.context(desired, &activity), options);
    }
    if limits_connections(&part) || changes_permissions(&part) {
        activity.connections = broker.connections(vhost).await?;
        part = plan_vhost(&snapshot.context(desired, &activity), options);
    }
    if deletes_exchanges(&part, topology) {
        activity.topic_permissions = broker.topic_permissions(vhost, version).await?;
        part = plan_vhost(&snapshot.context(desired, &activity), options);
    }
    let stale = queues_with_stale_counts(&part, topology, &activity);
    if access.query_queues(topology, &stale, &mut activity).await {
        part = plan_vhost(&snapshot.context(desired, &activity), options);
    }
    Ok(part)
}
