//! Describes the reason why messages make no progress.

use crate::broker::transport::Fault;
use crate::broker::{LockedBroker, QueueState};
use crate::model::QueueName;
use crate::model::count::number;
use crate::model::intervals::in_words;
use crate::plan::QueueActivity;
use std::time::Duration;

/// Describes the reason why a queue does not drain. The counts of a quorum queue are up to one `tick` old.
pub(super) fn describe_stall(
    live: &QueueActivity,
    consumers: &[&str],
    fault: Option<&Fault>,
    tick: Option<Duration>,
) -> String {
    let mut text = match (live.unacknowledged, live.messages) {
        (Some(1), _) => "1 message is held unacknowledged".to_owned(),
        (Some(held), _) if held > 0 => format!("{} messages are held unacknowledged", number(held)),
        (Some(_), Some(messages)) if live.ready == Some(0) && messages > 0 => {
            format!(
                "{} messages are neither ready nor held by a consumer: they wait for a delayed retry, or are \
                 dead-lettered messages that no target has confirmed yet (at-least-once)",
                number(messages)
            )
        }
        (_, Some(messages)) => format!("{} messages are left and are not consumed", number(messages)),
        (_, None) => "the broker does not report how many are left".to_owned(),
    };
    if let Some(tick) = tick {
        text.push_str(&format!(" (counted up to {} ago)", in_words(tick)));
    }
    let peers: Vec<&str> = consumers.iter().map(|peer| if peer.is_empty() { "a consumer" } else { peer }).collect();
    if !peers.is_empty() {
        text.push_str(&format!("; consumers: {}", peers.join(", ")));
    }
    if let Some(fault) = fault {
        text.push_str(&format!("; {fault}"));
    }
    text
}

/// Describes the reason why a queue accepts no messages, if it is the state of its members.
pub(super) async fn unavailability(broker: &LockedBroker, queue: &QueueName) -> Option<String> {
    let (broker, vhost) = (broker.broker(), broker.vhost());
    let state = broker.queue_state(vhost, queue).await.ok().flatten();
    if let Some(reason) = state.and_then(|state| missing_leader(queue, &state)) {
        return Some(reason);
    }
    broker.missing_members(vhost, queue).await.map(|error| error.to_string())
}

fn missing_leader(queue: &QueueName, state: &QueueState) -> Option<String> {
    if state.members.is_empty() || state.leader.is_some() {
        return None;
    }
    let up = match state.online.as_slice() {
        [] => "none is running".to_owned(),
        some => format!("running: {}", some.join(", ")),
    };
    Some(format!("queue {queue} accepts no messages: it has no leader (members: {}; {up})", state.members.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(leader: Option<&str>, members: &[&str], online: &[&str]) -> QueueState {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        QueueState {
            leader: leader.map(str::to_owned),
            members: owned(members),
            online: owned(online),
            average_bytes: None,
            consumers: None,
        }
    }

    #[test]
    fn missing_leader_is_described_with_the_running_members() {
        let described = |state| missing_leader(&"q".into(), &state);
        assert_eq!(described(state(Some("a"), &["a", "b"], &["a"])), None);
        assert_eq!(described(state(None, &[], &[])), None, "a classic queue has no members");
        assert_eq!(
            described(state(None, &["a", "b", "c"], &["b", "c"])).unwrap(),
            "queue q accepts no messages: it has no leader (members: a, b, c; running: b, c)"
        );
        assert!(described(state(None, &["a", "b"], &[])).unwrap().ends_with("(members: a, b; none is running)"));
    }
}
