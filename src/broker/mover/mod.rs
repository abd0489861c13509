//! Moves the messages of a queue to a fanout exchange, without losing one: over AMQP, or by a shovel on the broker.
//!
//! A move runs in the background until it is stopped: it never ends because a queue is empty, since an empty queue may be
//! filled a moment later. When enough was moved is decided by who reads the totals. Always to a *fanout* exchange with the
//! message's own key: the default exchange would route the `CC` header a second time.

mod acknowledging;
pub mod address;
pub mod amqp;
mod answers;
mod connection;
pub mod declare;
mod field_table;
mod frames;
mod greeting;
mod out_of_reach;
mod over;
mod passed_on;
mod permitted;
mod pipeline;
pub mod progress;
mod raw_properties;
mod session;
pub mod shovel;
mod socket;
mod subscription;
mod table;
mod tls;
mod typing;
mod witness;

pub use address::{AmqpAddress, AmqpOptions, AmqpUrl, NotAnAmqpUrl};
pub use amqp::{AmqpMove, AmqpMover};
pub use declare::{Binder, Counted};
pub use progress::{Fault, Order, Progress, State};
pub use shovel::{Leftover, ShovelMove, ShovelMover};
pub use typing::Typing;

use super::error::BrokerError;

/// What can move messages.
#[derive(Clone)]
pub enum Mover {
    /// topo itself.
    Amqp(AmqpMover),
    /// topo itself, and the broker for messages that AMQP cannot carry.
    AmqpOrShovel(AmqpMover, ShovelMover),
    /// The broker.
    Shovel(ShovelMover),
}

/// A move that goes on in the background.
pub enum Move {
    /// By topo itself.
    Amqp(AmqpMove),
    /// By the broker.
    Shovel(ShovelMove),
}

impl Mover {
    /// The connection over AMQP, where there is one.
    pub fn amqp(&self) -> Option<&AmqpMover> {
        match self {
            Self::Amqp(mover) | Self::AmqpOrShovel(mover, _) => Some(mover),
            Self::Shovel(_) => None,
        }
    }

    /// Starts to move, or says why that cannot be.
    pub async fn start(&self, order: Order) -> Result<Move, Fault> {
        Ok(match self {
            Self::Amqp(mover) | Self::AmqpOrShovel(mover, _) => Move::Amqp(mover.start(order).await?),
            Self::Shovel(mover) => Move::Shovel(mover.start(order).await?),
        })
    }
}

impl Move {
    /// How far it is. A shovel is asked over HTTP.
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
