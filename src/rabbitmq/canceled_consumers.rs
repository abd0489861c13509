//! Predicts what happens to the consumers of a queue that is deleted and declared again.

use crate::model::BrokerVersion;

/// Returns true if consumers are lost without a cancel when a queue is declared again immediately after it was deleted.
/// Every channel must then first notice that the queue does not exist, so clients can receive a 404.
///
/// From 3.9 to 3.13, a channel whose queue was deleted subscribes its consumers again if a queue with the same name
/// exists. The channel then forgets the new subscriptions (`rabbit_channel`: `handle_consuming_queue_down_or_eol`, then
/// `rabbit_queue_type:remove`). These consumers receive neither a cancel nor further messages. topo also waits for quorum
/// queues on 3.8.
pub fn needs_pause(version: BrokerVersion, is_quorum: bool) -> bool {
    !version.is_at_least(4, 0) && (version.is_at_least(3, 9) || is_quorum)
}

/// Returns true if the broker itself may subscribe the consumers of a deleted queue to a new queue with the same name, without
/// a cancel. This happens on 3.8 if the new queue exists before the channel notices the deletion. The consumers continue.
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
