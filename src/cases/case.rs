//! Defines test files and their cases.

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
    /// The stand-ins of external objects.
    pub stand_ins: StandIns,
    /// The cases, in the order of the file. A table has a case for each route.
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

/// The expected results of a case. Each has the position of its key; queues have their own positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// The queues to which the message is routed when it is published.
    pub to: Option<Sourced<BTreeMap<QueueName, Location>>>,
    /// Queues that the message reaches.
    pub reaches: Option<Sourced<BTreeMap<QueueName, Location>>>,
    /// Queues that the message never reaches.
    pub never: Option<Sourced<BTreeMap<QueueName, Location>>>,
    /// The deliveries of queues.
    pub attempts: BTreeMap<QueueName, Sourced<Attempts>>,
    /// All queues in which copies end.
    pub ends: Option<Sourced<BTreeMap<QueueName, Sourced<EndCount>>>>,
    /// The maximum time of the last event, in milliseconds.
    pub within: Option<Sourced<i64>>,
    /// The reply to the publisher.
    pub publisher: Option<Sourced<PublisherResult>>,
    /// The number of refused messages.
    pub refused: Option<Sourced<u64>>,
    /// The dead-lettered messages.
    pub dead_lettered: Option<Sourced<DeadLettered>>,
}

/// The expected deliveries of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempts {
    /// The number of deliveries.
    Number(u64),
    /// The times of the deliveries, in milliseconds since the publish.
    Times(Vec<i64>),
}

/// The expected ends in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndCount {
    /// Any end, of at least one message.
    Any,
    /// Any end, of exactly this number of messages.
    Number(u64),
    /// This end, of at least one message, and no other.
    Only(End),
    /// Exactly these numbers of messages.
    Exactly(BTreeMap<End, u64>),
}

/// The expected properties of a dead-lettered message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeadLettered {
    /// The exchange.
    pub exchange: Option<String>,
    /// The routing key.
    pub routing_key: Option<String>,
    /// Headers.
    pub headers: Arguments,
    /// Entries of `x-death`.
    pub deaths: Vec<ExpectedDeath>,
}

/// An expected entry of `x-death`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedDeath {
    /// The queue.
    pub queue: QueueName,
    /// The reason.
    pub reason: Reason,
    /// The number of times; `None` for any.
    pub count: Option<u64>,
    /// The exchange to which the message was published before its death; `None` for any.
    pub exchange: Option<String>,
    /// The routing keys of the message before its death; `None` for any.
    pub routing_keys: Option<Vec<String>>,
}

/// A condition on the RabbitMQ version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionCondition {
    /// This version or a later one: `>= 3.13`.
    AtLeast(BrokerVersion),
    /// An earlier version: `< 4.0`.
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
        // `3.13` means all of its patches.
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
    /// Returns true if there are expectations only of the queues to which the message is published.
    pub(super) fn concerns_only_the_publish(&self) -> bool {
        let others = Self { to: None, ..self.clone() };
        self.to.is_some() && others == Self::default()
    }

    /// Returns true if there is a result that can differ. `within` alone is not sufficient: it holds if no message moves.
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
