//! Plans against a live broker: reads the vhosts and the activity that affects their plans, and calls the pure planner.

use crate::broker::{Access, BrokerError, Snapshot};
use crate::model::VhostName;
use crate::plan::{
    Activity, Desired, Options, Plan, Target, VhostPlan, assemble, deletes_exchanges, deletes_queues,
    limits_connections, moves_messages, needs_activity, plan_vhost, queues_with_stale_counts,
};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::sync::Arc;

/// The number of vhosts whose counts are read concurrently.
const CONCURRENT_VHOSTS: usize = 4;

/// Reads the vhosts of desired topologies, and plans the changes to them.
///
/// # Errors
/// The broker could not be read.
pub async fn plan(access: &Access, desired: &[Arc<Desired>], options: &Options) -> Result<Plan, BrokerError> {
    let vhosts: Vec<VhostName> = desired.iter().map(|desired| desired.topology.vhost.clone()).collect();
    let mut snapshots = access.broker.read(&vhosts).await?;
    read_records(access, &mut snapshots, desired).await?;
    plan_snapshots(access, &snapshots, desired, options).await
}

/// Reads the records of the kinds in the scope of the desired topologies, in the order of the snapshots.
///
/// # Errors
/// A list could not be read.
async fn read_records(
    access: &Access,
    snapshots: &mut [Snapshot],
    desired: &[Arc<Desired>],
) -> Result<(), BrokerError> {
    for (snapshot, desired) in snapshots.iter_mut().zip(desired) {
        access.broker.read_records(snapshot, &desired.scope.record_kinds()).await?;
    }
    Ok(())
}

/// Plans vhosts from their snapshots, in the order of their desired topologies.
///
/// # Errors
/// The activity of a vhost could not be read.
pub async fn plan_snapshots(
    access: &Access,
    snapshots: &[Snapshot],
    desired: &[Arc<Desired>],
    options: &Options,
) -> Result<Plan, BrokerError> {
    let parts = snapshots.iter().zip(desired);
    let parts = parts.map(|(snapshot, desired)| plan_snapshot(access, snapshot, desired, options));
    let parts: Vec<VhostPlan> = stream::iter(parts).buffered(CONCURRENT_VHOSTS).try_collect().await?;
    let url = access.broker.shown_url();
    let target = match snapshots.first() {
        None => Target { url, cluster: String::new(), product: String::new(), version: String::new() },
        Some(snapshot) => Target {
            url,
            cluster: snapshot.cluster.clone(),
            product: snapshot.product.clone(),
            version: snapshot.profile.version.to_string(),
        },
    };
    Ok(assemble(target, options.clone(), parts))
}

async fn plan_snapshot(
    access: &Access,
    snapshot: &Snapshot,
    desired: &Arc<Desired>,
    options: &Options,
) -> Result<VhostPlan, BrokerError> {
    let Snapshot { topology, profile, .. } = snapshot;
    let (broker, vhost, version) = (&access.broker, &desired.topology.vhost, profile.version);
    // Reads the counts only if the plan may lose messages or disturb clients.
    let mut activity = if needs_activity(topology, desired, profile, options) {
        let mut activity = broker.activity(vhost).await?;
        if moves_messages(topology, desired, profile, options) {
            activity.transports = access.transports(vhost, version).await;
            activity.queue_limit = broker.queue_limit(vhost).await?;
            activity.unreachable = access.unreachable(topology, version).await?;
        }
        activity
    } else {
        Activity::default()
    };
    activity.applying = access.process.other_holder(topology);
    let mut part = plan_vhost(&snapshot.context(desired, &activity), options);
    if deletes_queues(&part) {
        activity.shovels = broker.shovels(vhost).await?;
        part = plan_vhost(&snapshot.context(desired, &activity), options);
    }
    if limits_connections(&part) {
        activity.connections = broker.connections(vhost).await?;
        part = plan_vhost(&snapshot.context(desired, &activity), options);
    }
    if deletes_exchanges(&part, topology) {
        activity.topic_permissions = broker.topic_permissions(vhost, version).await?;
        part = plan_vhost(&snapshot.context(desired, &activity), options);
    }
    let late = queues_with_stale_counts(&part, topology, &activity);
    if access.ask(topology, &late, &mut activity).await {
        part = plan_vhost(&snapshot.context(desired, &activity), options);
    }
    Ok(part)
}
