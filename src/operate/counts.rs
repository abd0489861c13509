//! Reads the current counts for queues, with fresh counts for quorum queues that the broker lists as empty.

use crate::broker::{Access, BrokerError};
use crate::model::{QueueName, QueueType, Topology};
use crate::plan::Activity;

/// Reads the counts for all queues in a vhost. The broker can list a quorum queue as empty for up to one tick after
/// messages arrive. topo therefore queries the quorum queues in `queues` over AMQP if the broker lists them as empty.
/// `topology` provides the queue types. If AMQP is not available, the function returns the listed counts.
///
/// # Errors
/// topo cannot read from the broker, or the vhost does not exist.
pub async fn current_counts<'a>(
    access: &Access,
    topology: &Topology,
    queues: impl IntoIterator<Item = &'a QueueName>,
) -> Result<Activity, BrokerError> {
    let mut activity = access.broker.activity(&topology.vhost).await?;
    let is_empty_quorum = |name: &&QueueName| {
        let queue = topology.queues.get(*name);
        let is_quorum = queue.is_some_and(|queue| queue.queue_type() == Some(QueueType::Quorum));
        is_quorum && activity.queues.get(*name).is_some_and(|it| it.messages == Some(0))
    };
    let stale: Vec<QueueName> = queues.into_iter().filter(is_empty_quorum).cloned().collect();
    access.query_queues(topology, &stale, &mut activity).await;
    Ok(activity)
}
