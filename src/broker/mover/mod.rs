//! Moves the messages of a queue to a fanout exchange, without losing one: over AMQP, or by a shovel on the broker.
//!
//! A move runs in the background until it is stopped: it never ends because a queue is empty, since an empty queue may be
//! filled a moment later. When enough was moved is decided by who reads the totals. Always to a *fanout* exchange with the
//! message's own key: the default exchange would route the `CC` header a second time.

pub mod address;
pub mod amqp;
mod connection;
pub mod declare;
mod permitted;
mod pipeline;
pub mod progress;
mod session;
mod table;
mod tls;

pub use address::{AmqpAddress, AmqpOptions, AmqpUrl, NotAnAmqpUrl};
pub use amqp::{AmqpMove, AmqpMover};
pub use progress::{Fault, Order, Progress, State};
