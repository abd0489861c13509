//! Reads a vhost for the `topo dlq` commands: its topology, its counts and its dead-letter queues.

use super::super::counts::current_counts;
use super::error::DlqError;
use crate::broker::{Access, BrokerError, Snapshot};
use crate::model::naming::TierName;
use crate::model::{Binding, Destination, Policy, PolicyName, QueueName, QueueType, VhostName};
use crate::plan::Activity;
use crate::rabbitmq::{ActivePolicies, EffectiveSettings, Policies, Routing};
use std::collections::{BTreeMap, BTreeSet};

/// The state of a vhost.
pub struct VhostState {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The counts.
    pub activity: Activity,
    /// The dead-letter queues, each with the queues from which it receives messages.
    pub dead_letter_queues: BTreeMap<QueueName, BTreeSet<QueueName>>,
    operator_policies: BTreeMap<PolicyName, Policy>,
    /// The name of the queue that an apply holds as its lock.
    lock_queue: QueueName,
}

/// An entry in the list of dead-letter queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterQueue {
    /// The name.
    pub name: QueueName,
    /// The type; `None` for a type from a plugin.
    pub kind: Option<QueueType>,
    /// The number of messages; `None` if unknown.
    pub messages: Option<u64>,
    /// The number of consumers; `None` if unknown.
    pub consumers: Option<u64>,
    /// The queues from which the dead-letter queue receives messages.
    pub sources: BTreeSet<QueueName>,
}

impl VhostState {
    /// Reads a vhost.
    ///
    /// # Errors
    /// The vhost does not exist, or topo cannot read from the broker.
    pub async fn read(access: &Access, vhost: &VhostName, lock_queue: QueueName) -> Result<Self, DlqError> {
        let read = access.broker.read(std::slice::from_ref(vhost)).await?;
        let snapshot = read.into_iter().next().filter(|it| it.topology.settings.is_some());
        let Some(snapshot) = snapshot else {
            return Err(DlqError::NoVhost { vhost: vhost.clone(), known: access.broker.vhosts().await? });
        };
        let operator_policies = snapshot.topology.operator_policies();
        let none = BTreeSet::new();
        let routing = Routing::new(&snapshot.topology, &operator_policies, &none, &snapshot.profile);
        let dead_letter_queues = routing.dead_letter_queues();
        let activity = current_counts(access, &snapshot.topology, dead_letter_queues.keys()).await?;
        Ok(Self { activity, dead_letter_queues, operator_policies, snapshot, lock_queue })
    }

    /// Checks that no apply is running. An apply could delete or recreate a queue while `topo dlq` holds its messages.
    ///
    /// # Errors
    /// [`BrokerError::LockHeld`] if an apply holds the lock of the vhost.
    pub(super) async fn refuse_during_apply(&self, access: &Access) -> Result<(), BrokerError> {
        let vhost = &self.snapshot.topology.vhost;
        let Some(held) = access.broker.held_lock(vhost, &self.lock_queue).await? else { return Ok(()) };
        let down = held.node.filter(|_| held.node_is_up == Some(false));
        Err(BrokerError::LockHeld { vhost: vhost.clone(), queue: self.lock_queue.clone(), holder: held.holder, down })
    }

    /// Returns the dead-letter queues with their counts.
    pub fn list(&self) -> Vec<DeadLetterQueue> {
        let entry = |(name, sources): (&QueueName, &BTreeSet<QueueName>)| DeadLetterQueue {
            name: name.clone(),
            kind: self.kind(name),
            messages: self.messages(name),
            consumers: self.consumers(name),
            sources: sources.clone(),
        };
        self.dead_letter_queues.iter().map(entry).collect()
    }

    /// Checks that a queue exists.
    ///
    /// # Errors
    /// The queue does not exist.
    pub fn expect_queue(&self, name: &QueueName) -> Result<(), DlqError> {
        if self.has_queue(name) {
            return Ok(());
        }
        let known = self.dead_letter_queues.keys().cloned().collect();
        Err(DlqError::NoQueue { queue: name.clone(), dead_letter_queues: known })
    }

    /// Returns true if the queue exists.
    pub fn has_queue(&self, name: &QueueName) -> bool {
        self.snapshot.topology.queues.contains_key(name)
    }

    /// Returns true if the queue is a delayed retry queue or a dead-letter queue. topo never treats such a queue as the
    /// queue in which a message failed.
    pub fn is_intermediate(&self, name: &QueueName) -> bool {
        TierName::parse(name).is_some() || self.dead_letter_queues.contains_key(name)
    }

    /// Returns the type of a queue; `None` for a type from a plugin, or if the queue does not exist.
    pub fn kind(&self, name: &QueueName) -> Option<QueueType> {
        self.snapshot.topology.queues.get(name)?.queue_type()
    }

    /// Returns the number of messages in a queue; `None` if unknown.
    pub fn messages(&self, name: &QueueName) -> Option<u64> {
        self.activity.queues.get(name)?.messages
    }

    /// Returns the number of ready messages in a queue; `None` if unknown. The queue's length limit applies to this
    /// number.
    pub fn ready(&self, name: &QueueName) -> Option<u64> {
        self.activity.queues.get(name)?.ready
    }

    /// Returns the number of application consumers of a queue; `None` if unknown.
    pub fn consumers(&self, name: &QueueName) -> Option<u64> {
        self.activity.queues.get(name)?.consumers.as_ref().map(|it| it.len() as u64)
    }

    /// Returns the effective settings of a queue; `None` if the queue does not exist.
    pub fn settings(&self, name: &QueueName) -> Option<EffectiveSettings> {
        let queue = self.snapshot.topology.queues.get(name)?;
        let version = self.snapshot.profile.version;
        let policies = Policies::new(&self.snapshot.topology.policies, version);
        let operators = Policies::new(&self.operator_policies, version);
        Some(ActivePolicies::of(&policies, &self.snapshot.profile).with_operators(&operators).likely(name, queue))
    }

    /// Returns the bindings to a queue from exchanges other than the default exchange.
    pub fn bindings_of<'a>(&'a self, name: &QueueName) -> impl Iterator<Item = &'a Binding> {
        let destination = Destination::Queue(name.clone());
        self.snapshot.topology.bindings.iter().filter(move |binding| binding.destination == destination)
    }

    /// Returns the sum of a queue's retry delays, in milliseconds.
    pub fn retry_delays(&self, name: &QueueName) -> i64 {
        let tiers = self.snapshot.topology.queues.keys().filter_map(TierName::parse).filter(|tier| tier.queue == *name);
        let by_number: BTreeMap<u32, i64> = tiers.map(|tier| (tier.number, tier.delay)).collect();
        let redeliveries = self.settings(name).map(|it| it.redelivery_delays()).unwrap_or_default();
        by_number.into_values().chain(redeliveries).fold(0, i64::saturating_add)
    }
}
