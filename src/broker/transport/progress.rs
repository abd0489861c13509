//! What is to be moved, how far it is, and why it ended.

use crate::broker::error::BrokerError;
use crate::model::{ExchangeName, QueueName};
use std::time::Instant;

/// What to move where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The queue whose messages are taken.
    pub source: QueueName,
    /// The fanout exchange that they go to.
    pub target: ExchangeName,
    /// How many messages are on their way at most. As many are held in memory, and as many may come twice if topo is
    /// killed.
    pub prefetch: u16,
}

impl Order {
    /// What most moves take: more makes them hardly faster (benches/transport.rs), and as many more may come twice.
    pub const PREFETCH: u16 = 1000;

    /// With the usual prefetch.
    pub fn new(source: &QueueName, target: &ExchangeName) -> Self {
        Self { source: source.clone(), target: target.clone(), prefetch: Self::PREFETCH }
    }
}

/// How far a move is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How many messages are safely at their target, and acknowledged at their source; one that was at both counts twice.
    /// `None` where the broker does not count them: a shovel before 4.2.
    pub moved: Option<u64>,
    /// When the last of them was.
    pub last_moved: Option<Instant>,
    /// How many are taken and not acknowledged yet.
    pub in_flight: usize,
    /// How many may be at their target and at their source, because a connection was lost before they were acknowledged.
    pub possible_duplicates: u64,
    /// What it is doing.
    pub state: State,
}

/// What a move is doing.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// It moves, or waits for messages.
    Moving,
    /// A queue behind the target takes no more (it is full, and rejects): tried again with growing pauses.
    Rejected,
    /// The broker takes no messages from anybody: an alarm of memory or disk.
    Blocked,
    /// The connection was lost; it is made again.
    Reconnecting,
    /// It was stopped.
    Stopped,
    /// It stopped by itself.
    Failed(Fault),
}

impl State {
    /// Whether nothing is moved any more.
    pub fn is_over(&self) -> bool {
        match self {
            Self::Stopped | Self::Failed(_) => true,
            Self::Moving | Self::Rejected | Self::Blocked | Self::Reconnecting => false,
        }
    }
}

/// Why a move stopped by itself. No message is lost by any of these: what was not acknowledged is in the source.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// The source was deleted, or is not there: `basic.cancel`, or 404.
    #[error("the source queue is gone: {reason}")]
    SourceGone {
        /// The broker's words.
        reason: String,
    },
    /// A consumer has the source for itself.
    #[error("another consumer uses the source queue exclusively: {reason}")]
    Exclusive {
        /// The broker's words.
        reason: String,
    },
    /// The target is not there.
    #[error("the target exchange is gone: {reason}")]
    TargetGone {
        /// The broker's words.
        reason: String,
    },
    /// A message came back: nothing is bound to the target.
    #[error("exchange {target} routes to no queue ({reason}): its messages stay in the source queue")]
    Unroutable {
        /// The target.
        target: ExchangeName,
        /// The broker's words: `NO_ROUTE`.
        reason: String,
    },
    /// A message says that it is of a user, and the broker takes it from nobody else (without the tag `impersonator`).
    #[error("a message with the property user_id `{user_id}` can be published only by that user: {reason}")]
    ForeignUser {
        /// The property.
        user_id: String,
        /// The broker's words.
        reason: String,
    },
    /// A message that does not fit a frame, or that the AMQP library cannot read. It stays in the source.
    #[error("AMQP cannot carry a message: {reason}")]
    NotCarried {
        /// Why, in words.
        reason: String,
    },
    /// An alarm: what is on its way waits, and goes on after it.
    #[error("the broker accepts no messages now: memory or disk alarm")]
    Blocked,
    /// There is no plugin for shovels on the node.
    #[error("the broker does not support shovels: enable the plugins rabbitmq_shovel and rabbitmq_shovel_management")]
    NoShovels,
    /// The broker took the definition of a shovel, and starts none: it may be busy, or its plugin has stopped for good, as
    /// it does when its one supervisor dies (`rabbit_shovel_sup` allows no restart; seen on 4.0.5).
    #[error(
        "the broker starts no shovel, although it took its definition; if it starts no other, the plugin has stopped: \
         `rabbitmq-plugins disable rabbitmq_shovel_management rabbitmq_shovel`, then enable both"
    )]
    NotStarted,
    /// A shovel ended. The broker starts it again and again, until it is removed.
    #[error("the shovel ended: {reason}")]
    ShovelEnded {
        /// The broker's words.
        reason: String,
    },
    /// Anything else.
    #[error(transparent)]
    Broker(#[from] BrokerError),
}
