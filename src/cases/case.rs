//! Defines the types that represent test files and their cases.

use super::stand_ins::StandIns;
use crate::model::{Arguments, BrokerVersion, QueueName};
use crate::rabbitmq::routing::Reason;
use crate::simulation::{End, Publication, PublisherResult, Worker};
use crate::spec::{Location, Sourced};
use std::collections::BTreeMap;

/// A test file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestFile {
    /// The paths of the specs, relative to the file; empty for the default.
    pub specs: Vec<String>,
    /// The vhost.
    pub vhost: Option<Sourced<String>>,
    /// The RabbitMQ versions; empty for the default.
    pub brokers: Vec<BrokerVersion>,
    /// True if `--update` may rewrite the file.
    pub is_snapshot: bool,
    /// The stand-ins for external objects.
    pub stand_ins: StandIns,
    /// The cases, in file order. A table has a case for each route.
    pub cases: Vec<Case>,
}

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The name.
    pub name: String,
    /// The name of the test. A table of routes is one test with a case for each route.
    pub test: String,
    /// The position of the name, or of the route in a table.
    pub at: Location,
    /// The versions to which the case applies.
    pub only: Option<VersionCondition>,
    /// The published messages, and the position of the exchange or queue.
    pub publication: Sourced<Publication>,
    /// The workers, and the positions of their queues.
    pub workers: BTreeMap<QueueName, (Worker, Location)>,
    /// The expected results.
    pub expected: Expected,
}

/// The expected results of a case. Each result has the position of its key, and queues have their own positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// The queues to which the message is routed when it is published.
    pub to: Option<Sourced<BTreeMap<QueueName, Location>>>,
    /// Queues that the message must reach.
    pub reaches: Option<Sourced<BTreeMap<QueueName, Location>>>,
    /// Queues that the message must never reach.
    pub never: Option<Sourced<BTreeMap<QueueName, Location>>>,
    /// The deliveries from each queue.
    pub attempts: BTreeMap<QueueName, Sourced<Attempts>>,
    /// All queues in which copies end up, with their final states.
    pub ends: Option<Sourced<BTreeMap<QueueName, Sourced<EndCount>>>>,
    /// The maximum time of the last event, in milliseconds.
    pub within: Option<Sourced<i64>>,
    /// The reply to the publisher.
    pub publisher: Option<Sourced<PublisherResult>>,
    /// The number of messages that queues refuse.
    pub refused: Option<Sourced<u64>>,
    /// The dead-lettered messages.
    pub dead_lettered: Option<Sourced<DeadLettered>>,
}

/// The expected deliveries from a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempts {
    /// The number of deliveries.
    Number(u64),
    /// The times of the deliveries, in milliseconds since the message was published.
    Times(Vec<i64>),
}

/// The expected final states of the messages in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndCount {
    /// At least one message, with any final state.
    Any,
    /// Exactly this number of messages, with any final state.
    Number(u64),
    /// At least one message, and only with this final state.
    Only(End),
    /// Exactly these numbers of messages for each final state.
    Exactly(BTreeMap<End, u64>),
}

/// The expected properties of a dead-lettered message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeadLettered {
    /// The exchange.
    pub exchange: Option<String>,
    /// The routing key.
    pub routing_key: Option<String>,
    /// Headers that the message must have.
    pub headers: Arguments,
    /// Entries that `x-death` must contain.
    pub deaths: Vec<ExpectedDeath>,
}

/// An expected entry of `x-death`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedDeath {
    /// The queue.
    pub queue: QueueName,
    /// The reason.
    pub reason: Reason,
    /// The count of the entry; `None` for any.
    pub count: Option<u64>,
    /// The exchange to which the message was published before its death; `None` for any.
    pub exchange: Option<String>,
    /// The routing keys of the message before its death; `None` for any.
    pub routing_keys: Option<Vec<String>>,
}

/// A condition on the RabbitMQ version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionCondition {
    /// This version or a later version, such as `>= 3.13`.
    AtLeast(BrokerVersion),
    /// A version before this version, such as `< 4.0`.
    Before(BrokerVersion),
}

impl VersionCondition {
    /// Parses a condition; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let (condition, version): (fn(BrokerVersion) -> Self, &str) = match text.trim().split_at_checked(1)? {
            (">", rest) => (Self::AtLeast, rest.strip_prefix('=')?),
            ("<", rest) => (Self::Before, rest),
            _ => return None,
        };
        // `3.13` includes all its patch releases.
        let version = version.trim();
        let is_minor = version.split('.').count() == 2;
        let version = if is_minor { format!("{version}.0") } else { version.to_owned() };
        version.parse().ok().map(condition)
    }

    /// Returns true if the version meets the condition.
    pub fn is_met_by(self, version: BrokerVersion) -> bool {
        match self {
            Self::AtLeast(least) => version >= least,
            Self::Before(limit) => version < limit,
        }
    }
}

impl Case {
    /// Returns the workers without their positions.
    pub fn workers(&self) -> BTreeMap<QueueName, Worker> {
        self.workers.iter().map(|(queue, (worker, _))| (queue.clone(), worker.clone())).collect()
    }
}

impl Expected {
    /// Returns true if the only expectation is `to`, which concerns only the routing when the message is published.
    pub(super) fn checks_only_routing(&self) -> bool {
        let without_to = Self { to: None, ..self.clone() };
        self.to.is_some() && without_to == Self::default()
    }

    /// Returns true if the case has an expectation other than `within`. `within` alone is not sufficient, because it
    /// also passes if no message moves.
    pub fn can_fail(&self) -> bool {
        self.to.is_some()
            || self.reaches.is_some()
            || self.never.is_some()
            || !self.attempts.is_empty()
            || self.ends.is_some()
            || self.publisher.is_some()
            || self.refused.is_some()
            || self.dead_lettered.is_some()
    }
}
