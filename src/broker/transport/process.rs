//! Processes the messages of a queue in their order. A handler decides for each message whether it stays in the queue,
//! is removed, or is published to an exchange first.
//!
//! No message is lost: topo acknowledges a message only after the broker has confirmed its copy, or after the handler
//! has stored it. Messages that stay are held until the end, and then returned together, so that they keep their order.
//! They keep it in all versions and queue types if they were delivered on one channel, to one consumer after another: a
//! further consumer starts when the one before holds as many messages as its prefetch. Up to 4.2, the channel is closed
//! without `basic.cancel`, which would change the order of a quorum queue from 3.10 on.
//!
//! An acknowledgement has no reply. It is known to be processed after the reply to a later `basic.qos`, which this
//! module calls a fence. Until then, the message is in doubt: after a crash, it can be both in the queue and at its
//! target.

mod acknowledge;
mod consumers;
mod fence;
mod finish;
mod order;
mod session;
mod subscription;

pub use order::{Decision, Gate, MAX_CONSUMERS, MessageHandler, ProcessCounts, ProcessEnd, ProcessOrder, Processed};

use super::amqp::AmqpTransport;
use super::temporary::Observer;
use crate::broker::error::BrokerError;
use session::Session;

impl AmqpTransport {
    /// Processes the messages of a queue. The handler also receives the messages of the observer.
    ///
    /// # Errors
    /// The broker refuses the consumer. No message was received.
    pub async fn process<H: MessageHandler>(
        &self,
        order: &ProcessOrder,
        handler: &mut H,
        observer: Option<&mut Observer>,
    ) -> Result<Processed, BrokerError> {
        let session = Session::open(&self.0, order, handler, observer).await?;
        Ok(session.run().await)
    }
}
