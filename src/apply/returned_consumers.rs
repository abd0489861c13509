//! Waits until the consumers of recreated queues have subscribed again, and names the clients that have not.

use super::outcome::{Consumers, Migrated, Report, StepDone};
use super::request::{RunEvent, RunRequest};
use crate::broker::transport::AmqpTransport;
use crate::broker::{Access, Broker};
use crate::model::{Object, ObjectId, QueueName, QueueType, VhostName};
use crate::plan::{Action, Activity, ChangeKind, ClientGroup, Plan, QueueActivity, client_groups};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The maximum wait: one year, which prevents the deadline from overflowing.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The time between two counts.
const INTERVAL: Duration = Duration::from_millis(500);

/// A queue that the run recreated, or that it deleted before it rolled the migration back.
struct Recreated<'a> {
    queue: &'a QueueName,
    /// The activity of the old queue, from the plan.
    old: &'a QueueActivity,
    /// The number of consumers of the old queue.
    before: usize,
    /// The last known number of consumers of the new queue; `None` if unknown.
    after: Option<usize>,
    /// True if the broker counts all consumers of the new queue. The broker counts no consumers of a stream, and only
    /// the active consumer of a quorum queue with a single active consumer (`rabbit_stream_queue:stat/1`,
    /// `rabbit_fifo:query_stat/1`).
    is_countable: bool,
}

impl Recreated<'_> {
    fn has_all_consumers(&self) -> bool {
        self.after.is_some_and(|after| after >= self.before)
    }
}

/// The recreated queues in a vhost.
struct VhostQueues<'a> {
    /// The index of the report.
    index: usize,
    vhost: &'a VhostName,
    queues: Vec<Recreated<'a>>,
    /// The connection over which topo counts the consumers; `None` if topo cannot use AMQP, and reads the counts from
    /// the statistics instead.
    amqp: Option<AmqpTransport>,
}

/// Waits until the queues that the run recreated have as many consumers as before, and adds the consumer counts to the
/// reports. Also waits for queues that the run deleted before it rolled the migration back. Adds nothing for queues
/// that had no consumers. The wait also ends after the maximum time or an interruption.
pub(super) async fn add_returned_consumers(
    request: &RunRequest<'_>,
    plan: &Plan,
    reports: &mut [Report],
    observe: &dyn Fn(RunEvent<'_>),
) {
    let RunRequest { access, interrupt, options, .. } = request;
    let mut vhosts = Vec::new();
    for (index, report) in reports.iter().enumerate() {
        let queues = recreated(plan, report);
        if let Some(part) = plan.vhosts.iter().find(|part| part.vhost == report.vhost).filter(|_| !queues.is_empty()) {
            let amqp = access.counting_transport(&part.vhost).await.ok();
            vhosts.push(VhostQueues { index, vhost: &part.vhost, queues, amqp });
        }
    }
    if vhosts.is_empty() {
        return;
    }
    let longest = options.consumer_wait.unwrap_or_else(|| access.broker.intervals().consumers_return());
    let deadline = Instant::now() + longest.min(MAX_WAIT);
    let mut shown = None;
    loop {
        for vhost in &mut vhosts {
            vhost.count(&access.broker).await;
        }
        let queues = || vhosts.iter().flat_map(|vhost| &vhost.queues);
        let have_returned = queues().all(|queue| queue.has_all_consumers() || !queue.is_countable);
        if have_returned || Instant::now() >= deadline || interrupt.is_requested() {
            break;
        }
        let before = queues().map(|queue| queue.before).sum();
        let returned = queues().map(|queue| queue.after.unwrap_or(0).min(queue.before)).sum();
        if shown.replace(returned) != Some(returned) {
            observe(RunEvent::AwaitingConsumers { returned, before });
        }
        sleep(INTERVAL.min(deadline - Instant::now())).await;
    }
    for vhost in vhosts {
        let consumers = vhost.consumers(access).await;
        reports[vhost.index].consumers = consumers;
        if let Some(amqp) = vhost.amqp {
            amqp.close().await;
        }
    }
}

/// Returns the recreated queues that had consumers. Includes queues that topo deleted before it rolled back the
/// migration.
fn recreated<'a>(plan: &'a Plan, report: &Report) -> Vec<Recreated<'a>> {
    let part = plan.vhosts.iter().find(|part| part.vhost == report.vhost);
    let of_queue = |queue: &QueueName| report.migrated.iter().find(|it| it.queue == *queue);
    let is_done = |queue: &QueueName| {
        let is_migrated = |it: &Migrated| !it.is_interrupted && (!it.is_rolled_back || it.has_deleted_queue());
        let is_declared = |done: &StepDone| {
            matches!(&done.step.action, Action::DeclareQueue { name, .. } if name == queue)
                && done.step.recreate.as_ref() == Some(&ObjectId::Queue(queue.clone()))
        };
        of_queue(queue).is_some_and(is_migrated) || report.done.iter().any(is_declared)
    };
    let changes = part.into_iter().flat_map(|part| &part.changes);
    let queues = changes.filter(|change| change.kind == ChangeKind::Recreate).filter_map(|change| {
        let (Some(Object::Queue(queue, _)), Some(old)) = (&change.before, &change.live) else { return None };
        let before = old.consumer_count().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        let is_rolled_back = of_queue(queue).is_some_and(|it| it.is_rolled_back);
        let is_countable = match if is_rolled_back { &change.before } else { &change.after } {
            Some(Object::Queue(_, new)) => match new.queue_type() {
                Some(QueueType::Stream) => false,
                Some(QueueType::Quorum) => !new.has_single_active_consumer(),
                Some(QueueType::Classic) | None => true,
            },
            Some(_) | None => true,
        };
        Some(Recreated { queue, old, before, after: None, is_countable })
    });
    queues.filter(|it| it.before > 0 && is_done(it.queue)).collect()
}

impl VhostQueues<'_> {
    /// Counts the consumers over AMQP. Without AMQP, reads the counts from the statistics. Does not use the consumer
    /// list, which still contains consumers of a deleted quorum queue (3.10.8, 4.0.5).
    async fn count(&mut self, broker: &Broker) {
        for recreated in self.queues.iter_mut().filter(|it| it.is_countable) {
            let counted = match &self.amqp {
                Some(amqp) => amqp.queue_counts(recreated.queue).await.ok().flatten().map(|it| u64::from(it.consumers)),
                None => {
                    broker.queue_state(self.vhost, recreated.queue).await.ok().flatten().and_then(|it| it.consumers)
                }
            };
            recreated.after = counted.and_then(|count| usize::try_from(count).ok());
        }
    }

    /// Returns the consumer counts of the queues, and the clients that have not returned.
    async fn consumers(&self, access: &Access) -> Vec<Consumers> {
        let activity = match self.queues.iter().all(Recreated::has_all_consumers) {
            true => Activity::default(),
            false => self.activity(&access.broker).await,
        };
        let consumers = self.queues.iter().map(|Recreated { queue, old, before, after, .. }| {
            let exists = |name: &str| activity.queues.contains_key(&QueueName::from(name));
            let new = activity.queues.get(*queue);
            let missing = missing_clients(old, new, *before, *after);
            let missing = missing.iter().map(|group| group.text(&group.known(queue, exists))).collect();
            Consumers { queue: (*queue).clone(), before: *before, after: *after, missing }
        });
        consumers.collect()
    }

    /// Returns the activity of the vhost, with the clients of the recreated queues. Omits the information that topo
    /// cannot read.
    async fn activity(&self, broker: &Broker) -> Activity {
        let Ok(mut activity) = broker.activity(self.vhost).await else { return Activity::default() };
        let queues: Vec<QueueName> = self.queues.iter().map(|it| it.queue.clone()).collect();
        // Without the clients, the report contains only the consumer counts.
        let _ = broker.add_consumer_clients(self.vhost, &queues, &mut activity).await;
        activity
    }
}

/// Returns the clients that have not returned. Returns an empty list if all consumers have returned or the count is
/// unknown. Also returns an empty list if the consumer list does not match the count, or if other clients consume from
/// the new queue. In these cases, topo cannot determine the clients with certainty.
fn missing_clients(
    old: &QueueActivity,
    new: Option<&QueueActivity>,
    before: usize,
    after: Option<usize>,
) -> Vec<ClientGroup> {
    let Some(after) = after.filter(|after| *after < before) else { return Vec::new() };
    let new = match (after, new) {
        (0, _) => Vec::new(),
        (_, Some(new)) if new.consumers.as_ref().map(Vec::len) == Some(after) => client_groups(new),
        (_, Some(_) | None) => return Vec::new(),
    };
    let returned = |group: &ClientGroup| {
        let same = new.iter().find(|it| (&it.product, &it.version) == (&group.product, &group.version));
        same.map_or((0, &[][..]), |same| (same.consumers, &same.hosts[..]))
    };
    let groups = client_groups(old).into_iter().filter_map(|group| {
        let (returned, hosts) = returned(&group);
        let consumers = group.consumers.checked_sub(returned).filter(|missing| *missing > 0)?;
        // If some consumers of the client have returned, topo cannot determine the hosts of the missing consumers.
        let hosts = if hosts.is_empty() { group.hosts.clone() } else { Vec::new() };
        Some(ClientGroup { consumers, hosts, ..group })
    });
    let missing: Vec<ClientGroup> = groups.collect();
    match missing.iter().map(|group| group.consumers).sum::<u64>() == (before - after) as u64 {
        true => missing,
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::QueueClient;

    fn live(consumers: &[(&str, &str)]) -> QueueActivity {
        let client = |(product, _): &(&str, &str)| QueueClient {
            product: Some((*product).to_owned()),
            version: None,
            has_global_prefetch: false,
        };
        QueueActivity {
            consumers: Some(consumers.iter().map(|(_, host)| format!("{host}:5000")).collect()),
            clients: Some(consumers.iter().map(client).collect()),
            ..QueueActivity::default()
        }
    }

    #[test]
    fn clients_that_have_not_returned_are_named() {
        let old = live(&[("a", "h1"), ("a", "h2"), ("b", "h1")]);
        let missing = |new: &[(&str, &str)], after: Option<usize>| -> Vec<String> {
            let groups = missing_clients(&old, Some(&live(new)), 3, after);
            groups
                .iter()
                .map(|it| format!("{} {} {}", it.consumers, it.product.as_deref().unwrap(), it.hosts.join(",")))
                .collect()
        };
        assert_eq!(missing(&[], Some(0)), ["2 a h1,h2", "1 b h1"]);
        // A stale list of consumers.
        assert_eq!(missing(&[("a", "h1"), ("b", "h1")], Some(0)), ["2 a h1,h2", "1 b h1"]);
        assert_eq!(missing(&[("a", "h2")], Some(1)), ["1 a ", "1 b h1"]);
        assert_eq!(missing(&[("a", "h1"), ("b", "h1")], Some(2)), ["1 a "]);
        assert_eq!(missing(&[("a", "h1"), ("a", "h2")], Some(2)), ["1 b h1"]);
        assert!(missing(&[("a", "h1"), ("c", "h3")], Some(2)).is_empty(), "another client consumes");
        assert!(missing(&[("a", "h1"), ("b", "h1")], Some(1)).is_empty(), "the list differs from the count");
        assert!(missing(&[], Some(3)).is_empty() && missing(&[], None).is_empty());
    }
}
