//! Moves the messages of a queue to a fanout exchange, without losing one: over AMQP, or by a shovel on the broker.
//!
//! A move runs in the background until it is stopped: it never ends because a queue is empty, since an empty queue may be
//! filled a moment later. When enough was moved is decided by who reads the totals. Always to a *fanout* exchange with the
//! message's own key: the default exchange would route the `CC` header a second time.

mod ack_settled;
mod acknowledging;
pub mod address;
pub mod amqp;
mod answers;
mod argument_types;
mod broker_identity;
mod connection;
pub mod declare;
mod field_table;
mod frames;
mod greeting;
mod orphan_shovels;
mod pipeline;
pub mod progress;
mod publish_permission;
mod raw_properties;
mod session;
mod session_end;
pub mod shovel;
mod socket;
mod subscription;
mod table;
mod tls;

pub use address::{AmqpAddress, AmqpOptions, AmqpUrl, NotAnAmqpUrl};
pub use amqp::{AmqpMove, AmqpTransport};
pub use argument_types::Typing;
pub use declare::{Binder, Counted};
pub use progress::{Fault, Order, Progress, State};
pub use shovel::{Leftover, ShovelMove, ShovelTransport};

use super::error::BrokerError;

/// What can move messages.
#[derive(Clone)]
pub enum Transport {
    /// topo itself.
    Amqp(AmqpTransport),
    /// topo itself, and the broker for messages that AMQP cannot carry.
    AmqpOrShovel(AmqpTransport, ShovelTransport),
    /// The broker.
    Shovel(ShovelTransport),
}

/// A move that goes on in the background.
pub enum Move {
    /// By topo itself.
    Amqp(AmqpMove),
    /// By the broker.
    Shovel(ShovelMove),
}

impl Transport {
    /// The connection over AMQP, where there is one.
    pub fn amqp(&self) -> Option<&AmqpTransport> {
        match self {
            Self::Amqp(transport) | Self::AmqpOrShovel(transport, _) => Some(transport),
            Self::Shovel(_) => None,
        }
    }

    /// Starts to move, or says why that cannot be.
    pub async fn start(&self, order: Order) -> Result<Move, Fault> {
        Ok(match self {
            Self::Amqp(transport) | Self::AmqpOrShovel(transport, _) => Move::Amqp(transport.start(order).await?),
            Self::Shovel(transport) => Move::Shovel(transport.start(order).await?),
        })
    }
}

impl Move {
    /// The progress of the move. A shovel is asked over HTTP.
    pub async fn progress(&mut self) -> Result<Progress, BrokerError> {
        match self {
            Self::Amqp(moving) => Ok(moving.progress()),
            Self::Shovel(moving) => moving.progress().await,
        }
    }

    /// Stops it, and returns when nothing is moved any more: what was on its way is at its target, or back in its source.
    pub async fn stop(self) -> Result<Progress, BrokerError> {
        match self {
            Self::Amqp(moving) => Ok(moving.stop().await),
            Self::Shovel(moving) => moving.stop().await,
        }
    }
}
