//! Tracks acknowledgements that are not sent yet: waiting for each one would delay the next messages.

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use lapin::Channel;
use lapin::options::BasicAckOptions;
use lapin::types::DeliveryTag;

/// What was acknowledged and is not written yet.
#[derive(Default)]
pub(super) struct Acknowledging {
    acknowledgements: FuturesOrdered<BoxFuture<'static, (u64, lapin::Result<()>)>>,
    messages: u64,
}

impl Acknowledging {
    /// Acknowledges so many messages: one, or all up to that tag. The first poll writes to the library's queue.
    pub(super) fn push(&mut self, channel: &Channel, tag: DeliveryTag, multiple: bool, count: u64) {
        let channel = channel.clone();
        let mut acknowledgement =
            async move { (count, channel.basic_ack(tag, BasicAckOptions { multiple }).await) }.boxed();
        self.messages += count;
        self.acknowledgements.push_back(match (&mut acknowledgement).now_or_never() {
            Some(at_once) => std::future::ready(at_once).boxed(),
            None => acknowledgement,
        });
    }

    /// How many messages it is about.
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    /// Waits for the next that is written: of how many messages. `None` where all are.
    pub(super) async fn next(&mut self) -> Option<lapin::Result<u64>> {
        let (count, written) = self.acknowledgements.next().await?;
        if written.is_ok() {
            self.messages -= count;
        }
        Some(written.map(|()| count))
    }
}
