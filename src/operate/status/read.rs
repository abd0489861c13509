//! Reads the status of vhosts. If the connected user cannot read a value, the status reports it as unknown.

use super::document::{
    ClusterStatus, Drift, FORMAT_VERSION, InterruptedStatus, LockStatus, State, Status, Unknown, VhostStatus,
};
use super::evaluate;
use super::history::VhostReading;
use super::watched::{Subject, Watched};
use crate::apply;
use crate::broker::{Access, Broker, BrokerError, NodeState, Snapshot, Window};
use crate::model::names::is_reserved;
use crate::model::naming::TierName;
use crate::model::{Address, ObjectId, QueueName, Thresholds, VhostName};
use crate::plan::{ChangeKind, Desired, Options, Plan, VhostPlan, interrupted_migrations};
use crate::rabbitmq::Routing;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::try_join;

/// The maximum number of vhosts that topo reads concurrently.
const CONCURRENT_VHOSTS: usize = 4;

/// The parameters of [`status`].
pub struct StatusRequest<'a> {
    /// The broker.
    pub access: &'a Access,
    /// The desired topology of the cluster; `None` if no spec describes the cluster.
    pub cluster: Option<Arc<Desired>>,
    /// The vhosts.
    pub subjects: &'a [Subject],
    /// The name of the lock queue.
    pub lock_queue: &'a QueueName,
}

/// Reads the status of all vhosts.
///
/// # Errors
/// topo cannot read from the broker, or the connected user is not allowed to read the queues in a vhost.
pub async fn status(request: &StatusRequest<'_>) -> Result<Status, BrokerError> {
    let broker = &request.access.broker;
    let (survey, nodes) = try_join!(broker.survey(), broker.node_states())?;
    let target = survey.target(broker.shown_url());
    let parts = parts(request).await?;
    let cluster = request.cluster.as_ref().map(|_| {
        let (drift, unknown) = match parts.get(&VhostName::cluster()) {
            Some(Ok(part)) => (Some(drift_of(part)), None),
            Some(Err(error)) => (None, Some(unknown("drift", error))),
            None => (None, None),
        };
        ClusterStatus { drift, unknown: unknown.into_iter().collect() }
    });
    let vhosts = stream::iter(request.subjects).map(|subject| {
        let exists = survey.has_vhost(subject.vhost());
        vhost_status(request, subject, exists, parts.get(subject.vhost()), nodes.as_ref())
    });
    let vhosts: Vec<VhostStatus> = vhosts.buffered(CONCURRENT_VHOSTS).try_collect().await?;
    let state = vhosts.iter().map(|vhost| vhost.state).max().unwrap_or_default();
    Ok(Status { format_version: FORMAT_VERSION, target, state, cluster, vhosts })
}

/// The plan for each vhost with a spec and for the cluster, or the error if the connected user is not allowed to read
/// it.
type Parts = BTreeMap<VhostName, Result<VhostPlan, BrokerError>>;

/// Plans the changes to the cluster and to all vhosts with a spec together. If the connected user is not allowed to
/// read one of them, plans each of them separately.
async fn parts(request: &StatusRequest<'_>) -> Result<Parts, BrokerError> {
    let of_vhosts = request.subjects.iter().filter_map(|subject| match subject {
        Subject::Spec { desired, .. } => Some(Arc::clone(desired)),
        Subject::Vhost(_) => None,
    });
    let desired: Vec<Arc<Desired>> = request.cluster.iter().cloned().chain(of_vhosts).collect();
    if desired.is_empty() {
        return Ok(Parts::new());
    }
    let options = Options::default();
    let vhost_plans = |plan: Plan| -> Vec<VhostPlan> { plan.parts().cloned().collect() };
    match apply::plan(request.access, &desired, &options).await {
        Ok(plan) => Ok(vhost_plans(plan).into_iter().map(|part| (part.vhost.clone(), Ok(part))).collect()),
        Err(error) if is_unreadable(&error) => {
            let mut parts = Parts::new();
            for one in &desired {
                let name = one.topology.vhost.clone();
                match apply::plan(request.access, std::slice::from_ref(one), &options).await {
                    Ok(plan) => parts.extend(vhost_plans(plan).into_iter().map(|part| (part.vhost.clone(), Ok(part)))),
                    Err(error) if is_unreadable(&error) => drop(parts.insert(name, Err(error))),
                    Err(error) => return Err(error),
                }
            }
            Ok(parts)
        }
        Err(error) => Err(error),
    }
}

/// Returns true if the error means that the connected user is not allowed to read a value, or that the broker does not
/// provide the value.
fn is_unreadable(error: &BrokerError) -> bool {
    matches!(
        error,
        BrokerError::AccessRefused { .. }
            | BrokerError::WrongTag { .. }
            | BrokerError::Refused { .. }
            | BrokerError::NotFound { .. }
    )
}

/// Converts a 404 from the first request to an existing vhost into a permission error. RabbitMQ 4.2.9, 4.3.3 and later
/// respond with 404 if the connected user has no permissions in the vhost.
fn to_permission_error(broker: &Broker, error: BrokerError) -> BrokerError {
    let BrokerError::NotFound { request, .. } = error else { return error };
    let reason = "the vhost exists, but this user has no permissions in it".to_owned();
    BrokerError::AccessRefused { username: broker.username().to_owned(), request, reason }
}

fn unknown(what: &str, error: &BrokerError) -> Unknown {
    Unknown { what: what.to_owned(), reason: error.to_string() }
}

fn drift_of(part: &VhostPlan) -> Drift {
    let conflicts = part.changes.iter().filter(|change| change.kind == ChangeKind::Conflict).count();
    Drift { changes: part.changes.len(), conflicts, unmanaged: part.unmanaged.len() }
}

async fn vhost_status(
    request: &StatusRequest<'_>,
    subject: &Subject,
    exists: bool,
    part: Option<&Result<VhostPlan, BrokerError>>,
    nodes: Option<&BTreeMap<String, NodeState>>,
) -> Result<VhostStatus, BrokerError> {
    let (broker, vhost) = (&request.access.broker, subject.vhost());
    let mut unknowns = Vec::new();
    let (watched, interrupted) = match subject {
        Subject::Spec { watched, .. } => {
            let interrupted = part.and_then(|part| part.as_ref().ok()).map(interrupted_in_plan).unwrap_or_default();
            (watched.clone(), interrupted)
        }
        Subject::Vhost(_) => {
            let snapshots = broker.read(std::slice::from_ref(vhost)).await;
            let snapshots = snapshots.map_err(|error| to_permission_error(broker, error))?;
            let snapshot = snapshots.first();
            let applying = snapshot.and_then(|it| request.access.process.other_holder(&it.topology));
            let interrupted = snapshot.map(|it| interrupted_in_vhost(it, applying.as_deref())).unwrap_or_default();
            (snapshot.map(watched_of).unwrap_or_default(), interrupted)
        }
    };
    let reading = if exists { read(broker, vhost, &watched, nodes).await? } else { VhostReading::default() };
    if exists && !has_statistics(&reading) {
        let reason = "the broker returned no statistics: they are disabled, or all queues are new".to_owned();
        unknowns.push(Unknown { what: "growth, age and consumers".to_owned(), reason });
    }
    if exists && nodes.is_none() {
        let reason = format!("user `{}` lacks the `monitoring` tag", broker.username());
        unknowns.push(Unknown { what: "nodes".to_owned(), reason });
    }
    let lock = match if exists { broker.held_lock(vhost, request.lock_queue).await } else { Ok(None) } {
        Ok(held) => held.map(|held| LockStatus {
            is_lock: held.is_created_by_topo(),
            holder: held.holder,
            node_is_up: held.node_is_up,
        }),
        Err(error) if is_unreadable(&error) => {
            unknowns.push(unknown("lock", &error));
            None
        }
        Err(error) => return Err(error),
    };
    let drift = match part {
        Some(Ok(part)) => Some(drift_of(part)),
        Some(Err(error)) => {
            unknowns.push(unknown("drift and migrations", error));
            None
        }
        None => None,
    };
    let evaluate::Queues { dead_letter_queues, queues, retries, temporary_queues } =
        evaluate::queues(&watched, &reading);
    let of_vhost = if exists { State::Fine } else { State::Warning };
    let of_migrations =
        if interrupted.iter().any(|migration| !migration.in_progress) { State::Warning } else { State::Fine };
    let of_queues = dead_letter_queues.iter().chain(&queues).map(|queue| queue.state).max().unwrap_or_default();
    Ok(VhostStatus {
        vhost: vhost.clone(),
        exists,
        state: of_vhost.max(of_migrations).max(of_queues),
        dead_letter_queues,
        queues,
        retries,
        temporary_queues,
        drift,
        lock,
        interrupted_migrations: interrupted,
        unknown: unknowns,
    })
}

/// Reads the queues in a vhost, and the samples for as many windows as the watched queues require.
async fn read(
    broker: &Broker,
    vhost: &VhostName,
    watched: &Watched,
    nodes: Option<&BTreeMap<String, NodeState>>,
) -> Result<VhostReading, BrokerError> {
    let [first, longer @ ..] = Window::ALL;
    let (queues, histories) = try_join!(broker.queue_readings(vhost), broker.queue_histories(vhost, first))
        .map_err(|error| to_permission_error(broker, error))?;
    let mut reading = VhostReading { queues, nodes: nodes.cloned(), histories: Vec::new() };
    let Some(histories) = histories else { return Ok(reading) };
    reading.histories.push((first, histories));
    for window in longer {
        let Some((last, histories)) = reading.histories.last() else { break };
        let is_required = watched.thresholds().any(|(name, thresholds)| {
            let is_full = histories.get(name).is_some_and(|history| {
                !history.samples.is_empty() && history.samples.iter().all(|messages| *messages > 0)
            });
            is_full || longest_growth(thresholds) > last.length
        });
        if !is_required {
            break;
        }
        let Some(histories) = broker.queue_histories(vhost, window).await? else { break };
        reading.histories.push((window, histories));
    }
    Ok(reading)
}

/// Returns true if the broker returned statistics for any queue, or if there are no queues.
fn has_statistics(reading: &VhostReading) -> bool {
    let of_queues = reading.histories.first().map(|(_, histories)| histories);
    reading.queues.is_empty()
        || of_queues.is_some_and(|histories| histories.values().any(|history| history.consumers.is_some()))
}

/// Returns the longest period of the growth thresholds, in seconds.
fn longest_growth(thresholds: &Thresholds) -> u64 {
    let levels = [thresholds.growth.warning, thresholds.growth.critical].into_iter().flatten();
    levels.map(|growth| growth.within.unsigned_abs() / 1000).max().unwrap_or_default()
}

/// Returns the watched queues in a vhost that has no spec. Excludes exclusive and server-named queues, retry tiers and
/// topo's own queues.
fn watched_of(snapshot: &Snapshot) -> Watched {
    let Snapshot { topology, profile, .. } = snapshot;
    let operator_policies = topology.operator_policies();
    let none = BTreeSet::new();
    let dead_letter_queues =
        Routing::new(topology, &operator_policies, &none, profile).dead_letter_queues().into_keys().collect();
    let is_tier =
        |name: &QueueName| TierName::parse(name).is_some_and(|tier| topology.queues.contains_key(&tier.queue));
    let listed = topology.queues.iter().filter(|(name, queue)| {
        !queue.exclusive && !name.is_server_named() && !is_reserved(name.as_str()) && !is_tier(name)
    });
    Watched::of_vhost(listed.map(|(name, _)| name), &dead_letter_queues)
}

fn interrupted_in_plan(part: &VhostPlan) -> Vec<InterruptedStatus> {
    let status = |migration: &crate::plan::document::InterruptedMigration| InterruptedStatus {
        address: migration.address.clone(),
        text: migration.text.clone(),
        in_progress: migration.applying.is_some(),
    };
    part.interrupted.iter().map(status).collect()
}

fn interrupted_in_vhost(snapshot: &Snapshot, applying: Option<&str>) -> Vec<InterruptedStatus> {
    let topology = &snapshot.topology;
    let status = |queue: QueueName| {
        let id = ObjectId::Queue(queue);
        let text = match applying {
            Some(holder) => format!("a migration of {id} is in progress: {holder} holds the lock of the vhost"),
            None => format!("a migration of {id} was interrupted; to resume it, apply the spec that started it"),
        };
        let address = Address::of(&topology.vhost, &id);
        InterruptedStatus { address, text, in_progress: applying.is_some() }
    };
    interrupted_migrations(topology).map(|(queue, _)| status(queue)).collect()
}
