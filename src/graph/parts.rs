//! The parts of a graph.

use crate::model::{QueueName, Reach, VhostName};
use crate::rabbitmq::routing::Fate;
use serde::Serialize;
use std::collections::BTreeSet;

/// Everything that is drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    /// One a vhost, by name.
    pub vhosts: Vec<VhostGraph>,
    /// Whether it is of a plan: what has no mark stays as it is then.
    pub is_plan: bool,
}

/// One vhost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VhostGraph {
    /// Its name.
    pub vhost: VhostName,
    /// What a plan does with it.
    pub mark: Option<Mark>,
    /// The boxes, exchanges first, by name.
    pub nodes: Vec<Node>,
    /// The arrows between them, by the places of nodes.
    pub arrows: Vec<Arrow>,
}

/// A box.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// As the broker knows it, in full; of several that are alike, the first.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The same in words: `topic exchange`, `quorum dead-letter queue`.
    pub words: String,
    /// More in few words: `2 immediate retries`, `ttl 30s`.
    pub notes: Vec<String>,
    /// Where it stands in the spec: `topology.yaml:12`.
    pub at: Option<String>,
    /// What a plan does with it.
    pub mark: Option<Mark>,
    /// The tiers in which its failed messages wait, where they are not drawn as what they are.
    pub retries: Option<Retries>,
    /// Where the dead-lettered messages of a queue arrive; `None` where it has no dead-letter exchange.
    pub dead_letters: Option<DeadLetters>,
    /// The names of all for which it stands, itself among them; empty where it is one.
    pub alike: Vec<String>,
    /// Whether it is drawn elsewhere, too.
    pub is_copy: bool,
}

/// Where dead-lettered messages arrive, as the routing simulation says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetters {
    /// Whether they arrive in any queue.
    pub reach: Reach,
    /// The queues that get all of them.
    pub queues: BTreeSet<QueueName>,
    /// Other queues, which get some of them, or of which the spec does not say enough.
    pub possible_queues: BTreeSet<QueueName>,
}

impl From<Fate> for DeadLetters {
    fn from(fate: Fate) -> Self {
        Self { reach: fate.reach, queues: fate.queues, possible_queues: fate.possible }
    }
}

/// What a box stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// An exchange of the spec.
    Exchange,
    /// An exchange of somebody else: marked so, made by the broker, or only referred to.
    ForeignExchange,
    /// A queue that is worked off.
    Queue,
    /// A stream.
    Stream,
    /// A queue that keeps dead letters.
    DeadLetterQueue,
    /// A queue in which messages wait before they are tried again.
    Tier,
    /// A queue of somebody else.
    ForeignQueue,
}

impl Kind {
    /// Whether it is an exchange.
    pub fn is_exchange(self) -> bool {
        match self {
            Self::Exchange | Self::ForeignExchange => true,
            Self::Queue | Self::Stream | Self::DeadLetterQueue | Self::Tier | Self::ForeignQueue => false,
        }
    }

    /// Whether it is somebody else's.
    pub fn is_foreign(self) -> bool {
        match self {
            Self::ForeignExchange | Self::ForeignQueue => true,
            Self::Exchange | Self::Queue | Self::Stream | Self::DeadLetterQueue | Self::Tier => false,
        }
    }
}

/// What a plan does with something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Mark {
    /// It is made.
    Created,
    /// It is changed in place, or some of what it stands for is.
    Changed,
    /// It is deleted and made again.
    Recreated,
    /// It is deleted.
    Deleted,
    /// It cannot be changed as things are.
    Conflict,
}

impl Mark {
    /// All of them, in the order in which they are listed to people.
    pub const ALL: [Self; 5] = [Self::Created, Self::Changed, Self::Recreated, Self::Deleted, Self::Conflict];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Recreated => "recreated",
            Self::Deleted => "deleted",
            Self::Conflict => "conflict",
        }
    }

    /// The sign that stands before a name; the same as in a plan's text.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Created => "+",
            Self::Changed => "~",
            Self::Recreated => "-/+",
            Self::Deleted => "-",
            Self::Conflict => "!",
        }
    }

    /// One mark for several things: their own where all have the same.
    pub(super) fn joined(marks: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let mut marks = marks.into_iter();
        let first = marks.next()?;
        marks.fold(first, |joined, mark| match (joined, mark) {
            (joined, mark) if joined == mark => joined,
            (Some(Self::Conflict), _) | (_, Some(Self::Conflict)) => Some(Self::Conflict),
            (_, _) => Some(Self::Changed),
        })
    }
}

/// The tiers of a queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Retries {
    /// What leads into them: `rejected`, `republished`.
    pub out: String,
    /// What a plan does with what is made for them.
    pub mark: Option<Mark>,
    /// In the order in which a message that fails comes by.
    pub tiers: Vec<Tier>,
}

/// One tier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tier {
    /// For which failure it is: 1 for the first.
    pub number: u32,
    /// The queue's name.
    pub name: String,
    /// How long a message waits there: `30s`.
    pub delay: String,
    /// What a plan does with it.
    pub mark: Option<Mark>,
}

/// An arrow. Of one kind there is one between two boxes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Arrow {
    /// The place of the node where it begins.
    pub from: usize,
    /// The place of the node where it ends; never the same.
    pub to: usize,
    /// Which way that is.
    pub kind: ArrowKind,
    /// What a plan does with it.
    pub mark: Option<Mark>,
    /// What is said beside it.
    pub labels: Vec<Label>,
}

/// The ways that messages take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ArrowKind {
    /// A binding.
    Binding,
    /// What an exchange cannot route.
    Alternate,
    /// Out to a tier, and back.
    Retry,
    /// Dead letters.
    DeadLetter,
}

impl ArrowKind {
    /// All of them, in the order in which they are listed to people.
    pub const ALL: [Self; 4] = [Self::Binding, Self::Alternate, Self::Retry, Self::DeadLetter];

    /// The words for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Binding => "binding",
            Self::Alternate => "alternate exchange",
            Self::Retry => "retry, out and back",
            Self::DeadLetter => "dead letters",
        }
    }
}

/// What is said beside an arrow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Label {
    /// A routing key, or what headers must be.
    pub text: String,
    /// What a plan does with the binding that it is of.
    pub mark: Option<Mark>,
}
