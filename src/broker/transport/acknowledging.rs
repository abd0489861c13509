//! Tracks acknowledgements that are not written yet. Waiting for each one would delay the next messages.

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use lapin::Channel;
use lapin::options::BasicAckOptions;
use lapin::types::DeliveryTag;

/// The acknowledgements that are not written yet.
#[derive(Default)]
pub(super) struct Acknowledging {
    acknowledgements: FuturesOrdered<BoxFuture<'static, (u64, lapin::Result<()>)>>,
    messages: u64,
}

impl Acknowledging {
    /// Acknowledges `count` messages: one message, or all messages up to the tag. The first poll writes to the queue of
    /// the library.
    pub(super) fn push(&mut self, channel: &Channel, tag: DeliveryTag, multiple: bool, count: u64) {
        let channel = channel.clone();
        let mut acknowledgement =
            async move { (count, channel.basic_ack(tag, BasicAckOptions { multiple }).await) }.boxed();
        self.messages += count;
        self.acknowledgements.push_back(match (&mut acknowledgement).now_or_never() {
            Some(written) => std::future::ready(written).boxed(),
            None => acknowledgement,
        });
    }

    /// Returns the number of messages of the pending acknowledgements.
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    /// Waits for the next acknowledgement that is written, and returns its number of messages. Returns `None` if all
    /// are written.
    pub(super) async fn next(&mut self) -> Option<lapin::Result<u64>> {
        let (count, written) = self.acknowledgements.next().await?;
        if written.is_ok() {
            self.messages -= count;
        }
        Some(written.map(|()| count))
    }
}
