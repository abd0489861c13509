//! Defines the order for a move, the progress of a move, and the faults that end a move.

use crate::broker::error::BrokerError;
use crate::model::{ExchangeName, QueueName};
use std::time::Instant;

/// The parameters of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The queue from which messages are moved.
    pub source: QueueName,
    /// The fanout exchange to which messages are published.
    pub target: ExchangeName,
    /// The maximum number of messages in transit. These messages are in memory, and may be duplicated if topo is
    /// killed.
    pub prefetch: u16,
    /// True if the move reports whether the source is empty. If so, the move queries the source's counts while no
    /// message is in transit. Shovels ignore this value.
    pub reports_empty: bool,
}

impl Order {
    /// The default prefetch. A higher prefetch barely speeds up a move (benches/transport.rs), and may duplicate more
    /// messages.
    pub const PREFETCH: u16 = 1000;

    /// Creates an order with the default prefetch.
    pub fn new(source: &QueueName, target: &ExchangeName) -> Self {
        Self { source: source.clone(), target: target.clone(), prefetch: Self::PREFETCH, reports_empty: false }
    }
}

/// The progress of a move.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The number of messages that are at the target and acknowledged at the source. A message that was moved twice is
    /// counted twice. `None` if the broker does not report the number. Before 4.1, brokers do not report it for
    /// shovels.
    pub moved: Option<u64>,
    /// The time at which the last message was moved; `None` if no message has been moved, and for shovels.
    pub last_moved: Option<Instant>,
    /// The time at which the first message was moved over the current connection; `None` if no message has been moved
    /// over it, and for shovels.
    pub first_moved: Option<Instant>,
    /// The number of received messages that have not been acknowledged yet; always 0 for shovels.
    pub in_flight: usize,
    /// True if the source is empty and no message is in transit. Always false for shovels, and without
    /// [`Order::reports_empty`].
    pub is_source_empty: bool,
    /// The number of messages that may be both in the source and at the target. The source might not have processed
    /// their acknowledgements before a connection was lost or the move ended. Always 0 for shovels.
    pub possible_duplicates: u64,
    /// The state of the move.
    pub state: State,
}

/// The state of a move.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// The move is running, or is waiting for messages.
    Moving,
    /// A queue that is bound to the target is full and rejects messages. The move tries again with growing pauses.
    Rejected,
    /// A memory or disk alarm blocks all publishers.
    Blocked,
    /// The connection was lost, and is being restored.
    Reconnecting,
    /// The move was stopped.
    Stopped,
    /// A fault ended the move.
    Failed(Fault),
}

impl Progress {
    /// Returns the progress of a new move.
    pub(super) fn start(state: State) -> Self {
        Self {
            moved: None,
            last_moved: None,
            first_moved: None,
            in_flight: 0,
            is_source_empty: false,
            possible_duplicates: 0,
            state,
        }
    }
}

impl State {
    /// Returns true if the move has ended.
    pub fn is_over(&self) -> bool {
        match self {
            Self::Stopped | Self::Failed(_) => true,
            Self::Moving | Self::Rejected | Self::Blocked | Self::Reconnecting => false,
        }
    }
}

/// The reason why a move failed. No fault loses messages, because unacknowledged messages stay in the source.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// The source was deleted or does not exist (`basic.cancel` or 404), or the broker canceled the consumer.
    #[error("cannot consume from the source queue: {reason}")]
    SourceGone {
        /// The broker's error message.
        reason: String,
    },
    /// Another consumer uses the source exclusively.
    #[error("another consumer uses the source queue exclusively: {reason}")]
    Exclusive {
        /// The broker's error message.
        reason: String,
    },
    /// The target does not exist.
    #[error("the target exchange does not exist: {reason}")]
    TargetGone {
        /// The broker's error message.
        reason: String,
    },
    /// The target routes messages to no queue. Over AMQP, the broker has returned a message.
    #[error("exchange {target} routes to no queue ({reason}); the messages stay in the source queue")]
    Unroutable {
        /// The target.
        target: ExchangeName,
        /// The broker's error message, such as `NO_ROUTE`.
        reason: String,
    },
    /// A message has the `user_id` of another user. The broker accepts the message only from that user, or from a user
    /// with the `impersonator` tag.
    #[error("a message with the user_id `{user_id}` can be published only by that user: {reason}")]
    ForeignUser {
        /// The value of the property.
        user_id: String,
        /// The broker's error message.
        reason: String,
    },
    /// A message does not fit into a frame, or the AMQP library cannot parse the message. The message remains in the
    /// source.
    #[error("AMQP cannot carry a message: {reason}")]
    NotCarried {
        /// The reason.
        reason: String,
    },
    /// A memory or disk alarm blocks publishers. Messages in transit wait until the alarm ends.
    #[error("the broker is blocking publishers because of a memory or disk alarm")]
    Blocked,
    /// The shovel plugins are not enabled.
    #[error("the broker does not support shovels; enable the plugins rabbitmq_shovel and rabbitmq_shovel_management")]
    NoShovels,
    /// The broker accepted a shovel's definition, but did not start the shovel. The broker may be busy, or the plugin
    /// may have stopped. The plugin stops when its only supervisor ends, because `rabbit_shovel_sup` allows no restarts
    /// (observed on 4.0.5).
    #[error(
        "the broker accepted the shovel's definition, but did not start the shovel; if other shovels do not start \
         either, the plugin has stopped: run `rabbitmq-plugins disable rabbitmq_shovel_management rabbitmq_shovel`, \
         then enable both plugins"
    )]
    NotStarted,
    /// The shovel ended. The broker restarts an ended shovel until its definition is deleted.
    #[error("the shovel ended: {reason}")]
    ShovelEnded {
        /// The broker's error message.
        reason: String,
    },
    /// Another error.
    #[error(transparent)]
    Broker(#[from] BrokerError),
}
