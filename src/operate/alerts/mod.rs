//! Creates Prometheus alert rules for a spec, from the thresholds and the retries of its queues.
//!
//! The rules use metrics from the `rabbitmq_prometheus` plugin. topo creates the rules without a broker. The rules also
//! count messages that a consumer or `topo dlq list` holds, because the message metric includes unacknowledged
//! messages.

mod expression;
mod names;
#[cfg(test)]
mod tests;

pub use expression::{Comparison, Matcher, Metric, Metrics, Series, time};
pub use names::{UnusableName, unusable_name};

use crate::expand::{Expansion, Retry};
use crate::model::{Growth, Queue, QueueName, Severity, Thresholds, VhostName};
use crate::rabbitmq::{ActivePolicies, BrokerProfile, Policies};
use crate::spec::Spec;
use expression::largest;

/// How long a dead-letter queue must be at or above its depth threshold before the alert fires, in milliseconds.
const DEPTH_PERSISTS: i64 = 60_000;
/// How long a work queue must be at or above its depth threshold. Workers can process a short burst.
const BACKLOG_PERSISTS: i64 = 300_000;
/// How long any other state must persist.
const STATE_PERSISTS: i64 = 600_000;
/// How much longer than its delay a tier can contain messages before the alert fires.
const TIER_MARGIN: i64 = 300_000;

/// The role of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A dead-letter queue.
    DeadLetterQueue,
    /// A work queue or a stream.
    Work,
    /// A delayed retry queue.
    Tier {
        /// The queue whose messages wait in the tier.
        of: QueueName,
        /// The delay, in milliseconds.
        delay: i64,
    },
}

/// The condition of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The queue contains at least this number of messages.
    Depth(i64),
    /// The queue has grown by at least this number of messages within this time.
    Growth(Growth),
    /// The queue is not empty.
    Age,
    /// The queue contains messages and has no consumers.
    NoConsumers,
    /// The queue contains messages that it cannot dead-letter. Only a queue with at-least-once dead-lettering keeps
    /// them.
    Stuck,
    /// The queue contains messages, and their number does not fall.
    Unmoved,
    /// There are no metrics for the queue.
    NotSeen,
}

/// An alert rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// The vhost.
    pub vhost: VhostName,
    /// The queue.
    pub queue: QueueName,
    /// The role of the queue.
    pub role: Role,
    /// The condition.
    pub condition: Condition,
    /// The severity.
    pub severity: Severity,
    /// How long the condition must be met before the alert fires, in milliseconds. With 0, the alert fires immediately.
    pub persists: i64,
    /// The expression in PromQL.
    pub expression: String,
    /// The series of the queue.
    pub series: Series,
}

/// A queue with its thresholds, for a dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedQueue {
    /// The queue.
    pub queue: QueueName,
    /// True for a dead-letter queue.
    pub is_dead_letter_queue: bool,
    /// The effective thresholds.
    pub thresholds: Thresholds,
    /// The series of the queue.
    pub series: Series,
    /// The tiers, with their series.
    pub tiers: Vec<(QueueName, Series)>,
}

/// The alerts and the queues of a vhost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostAlerts {
    /// The vhost.
    pub vhost: VhostName,
    /// The alerts, sorted by queue: first dead-letter queues, then other queues with their tiers.
    pub alerts: Vec<Alert>,
    /// The queues: first dead-letter queues, then other queues.
    pub queues: Vec<WatchedQueue>,
}

/// The source of the metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertOptions {
    /// The endpoint.
    pub metrics: Metrics,
    /// The additional matchers for each series.
    pub matchers: Vec<Matcher>,
}

impl Alert {
    /// Returns the name of the alert.
    pub fn name(&self) -> &'static str {
        let is_dead_letter_queue = self.role == Role::DeadLetterQueue;
        match self.condition {
            Condition::Depth(_) if is_dead_letter_queue => "TopoDeadLetters",
            Condition::Growth(_) if is_dead_letter_queue => "TopoDeadLettersGrow",
            Condition::Age if is_dead_letter_queue => "TopoDeadLettersWait",
            Condition::Depth(_) => "TopoBacklog",
            Condition::Growth(_) => "TopoBacklogGrows",
            Condition::Age => "TopoBacklogWaits",
            Condition::NoConsumers => "TopoNoConsumers",
            Condition::Stuck if !matches!(self.role, Role::Tier { .. }) => "TopoDeadLettersStuck",
            Condition::Stuck | Condition::Unmoved => "TopoTierStuck",
            Condition::NotSeen => "TopoQueueNotSeen",
        }
    }
}

/// Returns the alerts and the queues for a spec.
pub fn alerts(spec: &Spec, expansion: &Expansion, profile: &BrokerProfile, options: &AlertOptions) -> VhostAlerts {
    let vhost = &spec.vhost.value;
    let topology = &expansion.topology;
    let policies = Policies::new(&topology.policies, profile.version);
    let operator_policies = topology.operator_policies();
    let operators = Policies::new(&operator_policies, profile.version);
    let active = ActivePolicies::of(&policies, profile).with_operators(&operators);
    let thresholds = spec.thresholds();
    let series = |queue: &QueueName| Series::of(options.metrics, vhost, queue, &options.matchers);
    let mut found = VhostAlerts { vhost: vhost.clone(), alerts: Vec::new(), queues: Vec::new() };
    let dead_letter_queues = spec.dead_letter_queues.keys().map(|name| (name, Role::DeadLetterQueue));
    let queues = spec.queues.keys().map(|name| (name, Role::Work));
    for (name, role) in dead_letter_queues.chain(queues) {
        let thresholds = thresholds.get(name).copied().unwrap_or_default();
        let of_queue = Builder { vhost, queue: name, role: &role, series: series(name) };
        let declared = topology.queues.get(name);
        let is_at_least_once = |queue: &Queue| active.likely(name, queue).is_at_least_once();
        let can_disappear =
            |queue: &Queue| queue.auto_delete || queue.exclusive || active.likely(name, queue).get("expires").is_some();
        found.alerts.extend(of_queue.crossed(&thresholds));
        if declared.is_some_and(is_at_least_once) {
            found.alerts.push(of_queue.stuck());
        }
        // Missing metrics are no cause for an alert if the broker can delete the queue on its own.
        if !thresholds.is_empty() && !declared.is_some_and(can_disappear) {
            found.alerts.push(of_queue.alert(Condition::NotSeen, Severity::Warning, STATE_PERSISTS));
        }
        let mut tiers = Vec::new();
        for (tier, delay) in expansion.retries.get(name).map_or_else(Vec::new, tiers_of) {
            let role = Role::Tier { of: name.clone(), delay };
            let of_tier = Builder { vhost, queue: &tier, role: &role, series: series(&tier) };
            let is_at_least_once =
                topology.queues.get(&tier).is_some_and(|queue| active.likely(&tier, queue).is_at_least_once());
            let unmoved = || of_tier.alert(Condition::Unmoved, Severity::Warning, delay.saturating_add(TIER_MARGIN));
            found.alerts.push(if is_at_least_once { of_tier.stuck() } else { unmoved() });
            tiers.push((tier.clone(), series(&tier)));
        }
        let is_dead_letter_queue = role == Role::DeadLetterQueue;
        let series = series(name);
        found.queues.push(WatchedQueue { queue: name.clone(), is_dead_letter_queue, thresholds, series, tiers });
    }
    found
}

/// Returns the retry tiers of a queue, with their delays in milliseconds.
fn tiers_of(retry: &Retry) -> Vec<(QueueName, i64)> {
    let tiers = match retry {
        Retry::Ladder(it) => Some(&it.tiers),
        Retry::Republish(it) => it.tiers.as_ref(),
        Retry::Redeliver(_) | Retry::Delayed(_) => None,
    };
    let named = |tiers: &crate::expand::Tiers| {
        tiers.names().zip(&tiers.delays).map(|((_, name), delay)| (name, *delay)).collect()
    };
    tiers.map_or_else(Vec::new, named)
}

/// Creates the alerts of one queue.
struct Builder<'a> {
    vhost: &'a VhostName,
    queue: &'a QueueName,
    role: &'a Role,
    series: Series,
}

impl Builder<'_> {
    /// Returns the alerts for the thresholds, warnings first.
    fn crossed(&self, thresholds: &Thresholds) -> Vec<Alert> {
        let mut alerts = Vec::new();
        for severity in Severity::ALL {
            let depth = thresholds.depth.of(severity);
            alerts.extend(depth.map(|count| self.alert(Condition::Depth(count), severity, self.depth_persists(count))));
            let growth = thresholds.growth.of(severity);
            alerts.extend(growth.map(|growth| self.alert(Condition::Growth(growth), severity, 0)));
            let age = thresholds.age.of(severity);
            alerts.extend(age.map(|age| self.alert(Condition::Age, severity, age)));
        }
        let no_consumers = thresholds.no_consumers;
        alerts.extend(no_consumers.map(|time| self.alert(Condition::NoConsumers, Severity::Warning, time)));
        alerts
    }

    /// Returns how long the queue must be at or above the depth threshold. A threshold of one message means that
    /// the queue must remain empty, so the alert fires immediately.
    fn depth_persists(&self, count: i64) -> i64 {
        match self.role {
            _ if count == 1 => 0,
            Role::DeadLetterQueue => DEPTH_PERSISTS,
            Role::Work | Role::Tier { .. } => BACKLOG_PERSISTS,
        }
    }

    fn stuck(&self) -> Alert {
        self.alert(Condition::Stuck, Severity::Warning, STATE_PERSISTS)
    }

    fn alert(&self, condition: Condition, severity: Severity, persists: i64) -> Alert {
        Alert {
            vhost: self.vhost.clone(),
            queue: self.queue.clone(),
            role: self.role.clone(),
            condition,
            severity,
            persists,
            expression: self.expression(condition),
            series: self.series.clone(),
        }
    }

    fn expression(&self, condition: Condition) -> String {
        let series = &self.series;
        let messages = series.of_metric(Metric::Messages);
        match condition {
            Condition::Depth(count) => format!("{} >= {count}", largest(&messages)),
            // `delta` would extrapolate to the ends of the window and return more than the actual growth.
            Condition::Growth(Growth { messages: count, within }) => {
                let grown = format!("{messages} - min_over_time({messages}[{}])", time(within));
                format!("{} >= {count}", largest(&grown))
            }
            Condition::Age => format!("{} > 0", largest(&messages)),
            Condition::NoConsumers => {
                format!("{} > 0 and {} == 0", largest(&messages), series.max(Metric::Consumers))
            }
            Condition::Stuck => {
                let held = [Metric::Ready, Metric::Unacknowledged].map(|metric| series.of_metric(metric));
                format!("{} > 0", largest(&format!("{messages} - {}", held.join(" - "))))
            }
            // `resets` counts the samples that are lower than the previous sample.
            Condition::Unmoved => {
                let falls = format!("resets({messages}[{}])", time(TIER_MARGIN));
                format!("{} > 0 unless {} > 0", largest(&messages), largest(&falls))
            }
            Condition::NotSeen => format!("absent({messages})"),
        }
    }
}
