//! Moves the messages of a queue to a fanout exchange without losing any: over AMQP, or by a shovel on the broker.
//!
//! A move runs in the background until it is stopped. It does not end when the queue is empty, because messages may
//! arrive a moment later. The caller reads the totals and decides when to stop. The target is always a *fanout*
//! exchange, and each message keeps its routing key: the default exchange would evaluate the `CC` header a second time.

pub mod address;
pub mod amqp;
mod answers;
mod argument_types;
mod connection;
pub mod declare;
mod endpoints;
mod field_table;
mod frames;
mod pipeline;
pub mod progress;
mod raw_properties;
mod session;
pub mod shovel;
mod socket;

pub use address::{AmqpAddress, AmqpOptions, AmqpUrl, NotAnAmqpUrl};
pub use amqp::{AmqpMove, AmqpTransport};
pub use argument_types::Typing;
pub use declare::Binder;
pub use endpoints::Counted;
pub use progress::{Fault, Order, Progress, State};
pub use shovel::{Leftover, ShovelMove, ShovelTransport};

use super::error::BrokerError;

/// A transport of messages.
#[derive(Clone)]
pub enum Transport {
    /// topo moves messages over AMQP.
    Amqp(AmqpTransport),
    /// topo moves messages over AMQP, and a shovel moves messages that AMQP cannot carry.
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
    /// Returns the transport over AMQP, if there is one.
    pub fn amqp(&self) -> Option<&AmqpTransport> {
        match self {
            Self::Amqp(transport) | Self::AmqpOrShovel(transport, _) => Some(transport),
            Self::Shovel(_) => None,
        }
    }

    /// Starts a move, or returns the reason why not.
    pub async fn start(&self, order: Order) -> Result<Move, Fault> {
        Ok(match self {
            Self::Amqp(transport) | Self::AmqpOrShovel(transport, _) => Move::Amqp(transport.start(order).await?),
            Self::Shovel(transport) => Move::Shovel(transport.start(order).await?),
        })
    }
}

impl Move {
    /// Returns the progress of the move. For a shovel, this is a request over HTTP.
    pub async fn progress(&mut self) -> Result<Progress, BrokerError> {
        match self {
            Self::Amqp(moving) => Ok(moving.progress()),
            Self::Shovel(moving) => moving.progress().await,
        }
    }

    /// Stops the move, and returns when no message is in transit: each message is at the target, or back in the source.
    pub async fn stop(self) -> Result<Progress, BrokerError> {
        match self {
            Self::Amqp(moving) => Ok(moving.stop().await),
            Self::Shovel(moving) => moving.stop().await,
        }
    }
}
