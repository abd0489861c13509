//! Processes the messages in a queue, in order. For each message, a handler decides whether the message stays in the
//! queue, is removed, or is published to an exchange and then removed.
//!
//! topo loses no messages, because it acknowledges a message only after the broker has confirmed the copy, or after the
//! handler has stored the message. Until the end of the run, topo holds the messages that stay in the queue. It then
//! returns them together, so that they keep their order.
//!
//! A classic queue restores the order itself. A quorum queue keeps the order on all versions only if its messages were
//! delivered on one channel, to one consumer after another. topo therefore adds a consumer when the previous consumer
//! holds as many messages as its prefetch. On 4.2 and earlier, topo closes the channel without `basic.cancel`, because
//! a cancel would change the order of a quorum queue on 3.10 and later.
//!
//! An acknowledgement has no reply. The reply to a later `basic.qos` proves that the broker has processed the
//! acknowledgement. This module calls such a `basic.qos` a fence. Until the reply to the fence arrives, the message is
//! in doubt. After a crash, a message in doubt can be both in the queue and at its target.

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
    /// Processes the messages in a queue. The handler also receives the messages from the observer.
    ///
    /// # Errors
    /// A channel cannot be opened, or the broker refuses the consumer. No message was processed.
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
