//! Waits until the broker's channel has processed acknowledgements, which have no reply. After that, a lost connection
//! no longer affects the acknowledgements. However, the queue may not have stored them yet, so a broker that is killed
//! can still lose them.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lapin::Channel;
use lapin::options::BasicQosOptions;

/// A pending fence, and the number of acknowledged messages that it covers.
pub(super) type Fence = (BoxFuture<'static, lapin::Result<()>>, u64);

/// Returns a future that completes when the broker has processed all previous acknowledgements on the channel.
pub(super) fn fence(channel: &Channel, prefetch: u16) -> BoxFuture<'static, lapin::Result<()>> {
    let channel = channel.clone();
    // The prefetch applies only to new consumers, and each new consumer sets its own prefetch.
    async move { channel.basic_qos(prefetch, BasicQosOptions::default()).await }.boxed()
}

/// Waits for the reply to the fence, and returns the number of acknowledged messages that the fence covers. Returns 0
/// if no fence is pending.
pub(super) async fn wait_for_fence(
    fence: &mut Option<(BoxFuture<'static, lapin::Result<()>>, u64)>,
) -> lapin::Result<u64> {
    let Some((answer, count)) = fence else { return Ok(0) };
    let (answered, count) = (answer.await, *count);
    *fence = None;
    answered.map(|()| count)
}
