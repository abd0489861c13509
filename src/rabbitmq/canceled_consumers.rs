//! Predicts what happens to the consumers of a queue that is deleted and declared again.

use crate::model::BrokerVersion;

/// Returns true if topo must pause between deleting a queue and declaring it again. During the pause, every channel
/// detects the deletion, and clients that use the queue can receive a 404. Without the pause, consumers can stop
/// receiving messages without a `basic.cancel`.
///
/// On 3.9 to 3.13, a channel whose queue was deleted resubscribes its consumers if a queue with the same name exists.
/// The channel then forgets the new subscriptions (`rabbit_channel`: `handle_consuming_queue_down_or_eol`, then
/// `rabbit_queue_type:remove`). These consumers receive neither a `basic.cancel` nor further messages. topo also pauses
/// for quorum queues on 3.8.
pub fn needs_pause(version: BrokerVersion, is_quorum: bool) -> bool {
    !version.is_at_least(4, 0) && (version.is_at_least(3, 9) || is_quorum)
}

/// Returns true if the broker can move the consumers of a deleted queue to a new queue with the same name, without a
/// `basic.cancel`. This happens for classic queues on 3.8 if the new queue exists before the channel detects the
/// deletion. The consumers then receive messages from the new queue.
pub fn may_subscribe_again(version: BrokerVersion, is_quorum: bool) -> bool {
    !version.is_at_least(3, 9) && !is_quorum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_depends_on_version_and_type() {
        let version = |text: &str| text.parse::<BrokerVersion>().unwrap();
        for (text, classic, quorum) in [("3.8.9", false, true), ("3.10.8", true, true), ("4.0.5", false, false)] {
            assert_eq!(
                [false, true].map(|is_quorum| needs_pause(version(text), is_quorum)),
                [classic, quorum],
                "{text}"
            );
            assert_eq!(may_subscribe_again(version(text), false), text == "3.8.9");
            assert!(!may_subscribe_again(version(text), true));
        }
    }
}
