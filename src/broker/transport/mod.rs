//! Moves a queue's messages to a fanout exchange without message loss, either over AMQP or with a shovel on the broker.
//! Also processes messages one by one ([`process`]), and publishes and consumes messages like an application.
//!
//! A move runs in the background until it is stopped. It does not end when the queue is empty, because more messages
//! may arrive. The caller reads the totals and decides when to stop. The target is always a *fanout* exchange, so each
//! message keeps its routing key. The default exchange would evaluate the `CC` header a second time.

pub mod address;
pub mod amqp;
mod answers;
mod application;
mod argument_types;
mod connection;
pub mod declare;
mod decode;
mod edit;
mod endpoints;
mod field_table;
mod frames;
mod pipeline;
pub mod process;
pub mod progress;
mod publish;
mod raw_properties;
mod session;
pub mod shovel;
mod socket;
mod temporary;

pub use address::{AmqpAddress, AmqpOptions, AmqpUrl, NotAnAmqpUrl};
pub use amqp::{AmqpMove, AmqpTransport};
pub use application::{ApplicationChannel, Delivered, Published, Subscription, WorkerReply};
pub use argument_types::Typing;
pub use declare::Binder;
pub use decode::properties as decode_properties;
pub use edit::{PropertyEdit, edited, encoded};
pub use endpoints::QueueCounts;
pub use process::{Decision, Gate, MAX_CONSUMERS, MessageHandler, ProcessCounts, ProcessEnd, ProcessOrder, Processed};
pub use progress::{Fault, Order, Progress, State};
pub use publish::{OutgoingMessage, PublishFault, Publisher};
pub use raw_properties::user_id;
pub use shovel::{Leftover, ShovelMove, ShovelTransport};
pub use temporary::{Observer, RunLock};

use super::error::BrokerError;

/// The transport that moves messages.
#[derive(Clone)]
pub enum Transport {
    /// topo moves messages over AMQP.
    Amqp(AmqpTransport),
    /// topo moves messages over AMQP. If AMQP cannot carry a message, the caller switches to the shovel for all
    /// remaining messages.
    AmqpOrShovel(AmqpTransport, ShovelTransport),
    /// A shovel on the broker moves messages.
    Shovel(ShovelTransport),
}

/// A move that runs in the background.
pub enum Move {
    /// A move over AMQP.
    Amqp(AmqpMove),
    /// A move by a shovel.
    Shovel(ShovelMove),
}

impl Transport {
    /// Returns the AMQP transport; `None` if only shovels move messages.
    pub fn amqp(&self) -> Option<&AmqpTransport> {
        match self {
            Self::Amqp(transport) | Self::AmqpOrShovel(transport, _) => Some(transport),
            Self::Shovel(_) => None,
        }
    }

    /// Starts a move.
    ///
    /// # Errors
    /// The reason why the move cannot start.
    pub async fn start(&self, order: Order) -> Result<Move, Fault> {
        Ok(match self {
            Self::Amqp(transport) | Self::AmqpOrShovel(transport, _) => Move::Amqp(transport.start(order).await?),
            Self::Shovel(transport) => Move::Shovel(transport.start(order).await?),
        })
    }
}

impl Move {
    /// Returns the progress of the move. For a shovel, sends an HTTP request.
    pub async fn progress(&mut self) -> Result<Progress, BrokerError> {
        match self {
            Self::Amqp(moving) => Ok(moving.progress()),
            Self::Shovel(moving) => moving.progress().await,
        }
    }

    /// Stops the move, and waits until no message is in transit. Each message is then at the target, in the source, or
    /// in both.
    pub async fn stop(self) -> Result<Progress, BrokerError> {
        match self {
            Self::Amqp(moving) => Ok(moving.stop().await),
            Self::Shovel(moving) => moving.stop().await,
        }
    }
}
