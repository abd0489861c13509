//! Waits until the channel of the broker has processed acknowledgements, which have no reply. They can no longer be lost
//! with the connection, but the queue may not have stored them yet: a broker that is killed can forget them.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lapin::Channel;
use lapin::options::BasicQosOptions;

/// A request whose reply follows the acknowledgements of a number of messages.
pub(super) type Fence = (BoxFuture<'static, lapin::Result<()>>, u64);

/// Returns a future that completes when the broker has processed all previous acknowledgements of the channel; see the module.
pub(super) fn fence(channel: &Channel, prefetch: u16) -> BoxFuture<'static, lapin::Result<()>> {
    let channel = channel.clone();
    // The prefetch concerns only new consumers, which set their own.
    async move { channel.basic_qos(prefetch, BasicQosOptions::default()).await }.boxed()
}

/// Waits for the reply, and returns the number of messages.
pub(super) async fn wait_for_fence(
    fence: &mut Option<(BoxFuture<'static, lapin::Result<()>>, u64)>,
) -> lapin::Result<u64> {
    let Some((answer, count)) = fence else { return Ok(0) };
    let (answered, count) = (answer.await, *count);
    *fence = None;
    answered.map(|()| count)
}
