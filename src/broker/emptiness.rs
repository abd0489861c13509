//! Records how long queues have been observed to be empty.
//!
//! Every read of a vhost's totals extends the observations of all empty queues in the vhost. Several deletions in an
//! apply can therefore wait for the same ticks.
//!
//! An observation ends with a read that shows messages in the queue, shows no total, or does not list the queue. An
//! observation also ends if topo declares or deletes the queue, or after a long pause between two reads. In these
//! cases, the queue may have received messages, or the name may refer to a new queue.

use super::wire::QueueTotals;
use crate::model::{QueueName, VhostName};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// The observations of empty queues, by vhost and queue.
#[derive(Debug)]
pub(super) struct Emptiness {
    spans: BTreeMap<VhostName, BTreeMap<QueueName, Span>>,
    /// The maximum pause between two reads in the same observation.
    longest_pause: Duration,
}

/// An uninterrupted observation of a total of 0.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// The time of the first response with a total of 0.
    first: Instant,
    /// The time at which the last request was sent. The total in the response may be as old as the request.
    last_sent: Instant,
    /// The time of the last response. A slow response is not a pause.
    last_received: Instant,
}

impl Emptiness {
    /// Creates an empty set of observations.
    pub(super) fn new(longest_pause: Duration) -> Self {
        Self { spans: BTreeMap::new(), longest_pause }
    }

    /// Records the totals of all queues in a vhost, with the times of the request and the response.
    pub(super) fn record(&mut self, vhost: &VhostName, totals: &[QueueTotals], sent: Instant, received: Instant) {
        let before = self.spans.remove(vhost).unwrap_or_default();
        let empty = totals.iter().filter(|totals| totals.messages == Some(0));
        let spans = empty.map(|totals| {
            let name = QueueName::new(totals.name.as_str());
            let continued = before
                .get(&name)
                .filter(|span| sent.saturating_duration_since(span.last_received) <= self.longest_pause);
            let first = continued.map_or(received, |span| span.first);
            (name, Span { first, last_sent: sent, last_received: received })
        });
        self.spans.insert(vhost.clone(), spans.collect());
    }

    /// Ends the observation of a queue.
    pub(super) fn forget(&mut self, vhost: &VhostName, queue: &QueueName) {
        if let Some(spans) = self.spans.get_mut(vhost) {
            spans.remove(queue);
        }
    }

    /// Returns how long a queue has been observed to be empty, up to the last read; 0 without an observation.
    pub(super) fn empty_for(&self, vhost: &VhostName, queue: &QueueName) -> Duration {
        let span = self.spans.get(vhost).and_then(|spans| spans.get(queue));
        span.map_or(Duration::ZERO, |span| span.last_sent.saturating_duration_since(span.first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Intervals;

    /// Returns the number of seconds for which `q` was observed to be empty. Each read is a time in seconds and the
    /// list at that time.
    fn empty_seconds(reads: &[(u64, &str)]) -> u64 {
        let start = Instant::now();
        let mut emptiness = Emptiness::new(Intervals::default().longest_pause());
        for (second, list) in reads {
            let at = start + Duration::from_secs(*second);
            let totals: Vec<QueueTotals> = serde_json::from_str(list).unwrap();
            emptiness.record(&"v".into(), &totals, at, at);
        }
        emptiness.empty_for(&"v".into(), &"q".into()).as_secs()
    }

    const ZERO: &str = r#"[{"name":"q","messages":0},{"name":"other","messages":5}]"#;

    #[test]
    fn reads_extend_an_observation() {
        assert_eq!(empty_seconds(&[]), 0);
        assert_eq!(empty_seconds(&[(0, ZERO)]), 0);
        assert_eq!(empty_seconds(&[(0, ZERO), (4, ZERO), (8, ZERO), (12, ZERO)]), 12);
    }

    #[test]
    fn interruption_starts_a_new_observation() {
        for interruption in [r#"[{"name":"q","messages":1}]"#, r#"[{"name":"q"}]"#, "[]"] {
            assert_eq!(empty_seconds(&[(0, ZERO), (4, interruption)]), 0);
            assert_eq!(empty_seconds(&[(0, ZERO), (4, interruption), (6, ZERO), (9, ZERO)]), 3, "{interruption}");
        }
        assert_eq!(empty_seconds(&[(0, ZERO), (4, ZERO), (60, ZERO)]), 0, "a long pause");
        assert_eq!(empty_seconds(&[(0, ZERO), (4, ZERO), (60, ZERO), (62, ZERO)]), 2);
    }

    #[test]
    fn forgotten_queue_has_no_observation() {
        let (vhost, queue, now) = (VhostName::from("v"), QueueName::from("q"), Instant::now());
        let totals: Vec<QueueTotals> = serde_json::from_str(ZERO).unwrap();
        let mut emptiness = Emptiness::new(Intervals::default().longest_pause());
        let later = now + Duration::from_secs(3);
        emptiness.record(&vhost, &totals, now, now);
        emptiness.record(&vhost, &totals, later, later);
        assert_eq!(emptiness.empty_for(&vhost, &queue).as_secs(), 3);
        assert_eq!(emptiness.empty_for(&"w".into(), &queue).as_secs(), 0);
        emptiness.forget(&vhost, &queue);
        assert_eq!(emptiness.empty_for(&vhost, &queue).as_secs(), 0);
    }

    #[test]
    fn duration_of_a_slow_response_is_not_counted() {
        let totals: Vec<QueueTotals> = serde_json::from_str(ZERO).unwrap();
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let mut emptiness = Emptiness::new(Intervals::default().longest_pause());
        emptiness.record(&"v".into(), &totals, at(0), at(3));
        emptiness.record(&"v".into(), &totals, at(4), at(9));
        assert_eq!(emptiness.empty_for(&"v".into(), &"q".into()).as_secs(), 1);
        emptiness.record(&"v".into(), &totals, at(12), at(19));
        assert_eq!(emptiness.empty_for(&"v".into(), &"q".into()).as_secs(), 9, "a slow response is not a pause");
    }
}
