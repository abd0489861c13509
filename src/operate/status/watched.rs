//! Selects the queues for a status, with their thresholds, from a spec or from a current topology.

use crate::model::naming::TierName;
use crate::model::{QueueName, Thresholds, VhostName};
use crate::plan::Desired;
use crate::spec::Spec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A vhost whose status is read, with the source of its list of queues.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The queues that a spec declares.
    Spec {
        /// The queues.
        watched: Watched,
        /// The desired topology.
        desired: Arc<Desired>,
    },
    /// All queues in a vhost.
    Vhost(VhostName),
}

impl Subject {
    /// Returns the vhost.
    pub fn vhost(&self) -> &VhostName {
        match self {
            Self::Spec { desired, .. } => &desired.topology.vhost,
            Self::Vhost(vhost) => vhost,
        }
    }
}

/// The queues in a status, each with its thresholds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// The dead-letter queues.
    pub dead_letter_queues: BTreeMap<QueueName, Thresholds>,
    /// The other queues, except retry tiers and topo's own queues.
    pub queues: BTreeMap<QueueName, Thresholds>,
    /// True if the vhost has no spec. In that case, queues that are not watched count as temporary queues, except tiers
    /// and topo's own queues.
    pub is_whole_vhost: bool,
}

impl Watched {
    /// Returns the queues that a spec declares, including external queues, with their thresholds.
    pub fn of_spec(spec: &Spec) -> Self {
        let thresholds = spec.thresholds();
        let of = |name: &QueueName| (name.clone(), thresholds.get(name).copied().unwrap_or_default());
        Self {
            dead_letter_queues: spec.dead_letter_queues.keys().map(of).collect(),
            queues: spec.queues.keys().map(of).collect(),
            is_whole_vhost: false,
        }
    }

    /// Returns `queues` as the watched queues in a vhost without a spec. The dead-letter queues have the default
    /// thresholds.
    pub fn of_vhost<'a>(
        queues: impl IntoIterator<Item = &'a QueueName>,
        dead_letter_queues: &BTreeSet<QueueName>,
    ) -> Self {
        let mut watched = Self { is_whole_vhost: true, ..Self::default() };
        for name in queues {
            if dead_letter_queues.contains(name) {
                watched.dead_letter_queues.insert(name.clone(), Thresholds::DEAD_LETTER_QUEUE);
            } else {
                watched.queues.insert(name.clone(), Thresholds::default());
            }
        }
        watched
    }

    /// Returns true if the queue is watched.
    pub fn contains(&self, queue: &QueueName) -> bool {
        self.dead_letter_queues.contains_key(queue) || self.queues.contains_key(queue)
    }

    /// Parses the name of a watched queue's retry tier. Returns `None` for other names, and for a queue that is itself
    /// watched.
    pub fn tier(&self, queue: &QueueName) -> Option<TierName> {
        TierName::parse(queue).filter(|tier| !self.contains(queue) && self.contains(&tier.queue))
    }

    /// Returns the thresholds of all watched queues.
    pub fn thresholds(&self) -> impl Iterator<Item = (&QueueName, &Thresholds)> {
        self.dead_letter_queues.iter().chain(&self.queues)
    }
}
