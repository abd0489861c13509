//! Since when queues have been seen empty: what every look at the totals of a vhost adds to, so that the deletions of one
//! apply wait for the ticks of quorum queues together and not one after another.
//!
//! A look that shows a message, or no number, or no such queue, ends what was seen before; so does a declare or a delete
//! of our own, and a pause in which nobody looked: a queue may have been filled, or be another one by now.

use super::wire::QueueTotals;
use crate::model::{QueueName, VhostName};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// By vhost and queue, for how long it was seen at a total of 0 without a break.
#[derive(Debug)]
pub(super) struct Emptiness {
    spans: BTreeMap<VhostName, BTreeMap<QueueName, Span>>,
    /// Looks that are further apart are two, not one.
    longest_pause: Duration,
}

/// A look without a break since an earlier one.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// When the first look that showed 0 was answered.
    first: Instant,
    /// When the last one was asked: what it showed may be as old as that.
    asked: Instant,
    /// When it was answered. A slow answer is no pause.
    answered: Instant,
}

impl Emptiness {
    /// Nothing was seen yet.
    pub(super) fn new(longest_pause: Duration) -> Self {
        Self { spans: BTreeMap::new(), longest_pause }
    }

    /// Takes in the totals of all queues of a vhost, asked for at one moment and answered at a later one.
    pub(super) fn saw(&mut self, vhost: &VhostName, totals: &[QueueTotals], asked: Instant, answered: Instant) {
        let before = self.spans.remove(vhost).unwrap_or_default();
        let empty = totals.iter().filter(|totals| totals.messages == Some(0));
        let spans = empty.map(|totals| {
            let name = QueueName::new(totals.name.as_str());
            let unbroken =
                before.get(&name).filter(|span| asked.saturating_duration_since(span.answered) <= self.longest_pause);
            let first = unbroken.map_or(answered, |span| span.first);
            (name, Span { first, asked, answered })
        });
        self.spans.insert(vhost.clone(), spans.collect());
    }

    /// What was known of this queue is of no use any more.
    pub(super) fn forget(&mut self, vhost: &VhostName, queue: &QueueName) {
        if let Some(spans) = self.spans.get_mut(vhost) {
            spans.remove(queue);
        }
    }

    /// For how long it was seen empty, up to the last look.
    pub(super) fn seen_for(&self, vhost: &VhostName, queue: &QueueName) -> Duration {
        let span = self.spans.get(vhost).and_then(|spans| spans.get(queue));
        span.map_or(Duration::ZERO, |span| span.asked.saturating_duration_since(span.first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Intervals;

    /// The seconds for which `q` was seen empty, after looks at these seconds that show these lists.
    fn after(looks: &[(u64, &str)]) -> u64 {
        let start = Instant::now();
        let mut emptiness = Emptiness::new(Intervals::default().longest_pause());
        for (second, list) in looks {
            let at = start + Duration::from_secs(*second);
            let totals: Vec<QueueTotals> = serde_json::from_str(list).unwrap();
            emptiness.saw(&"v".into(), &totals, at, at);
        }
        emptiness.seen_for(&"v".into(), &"q".into()).as_secs()
    }

    const ZERO: &str = r#"[{"name":"q","messages":0},{"name":"other","messages":5}]"#;

    #[test]
    fn looks_add_up() {
        assert_eq!(after(&[]), 0);
        assert_eq!(after(&[(0, ZERO)]), 0);
        assert_eq!(after(&[(0, ZERO), (4, ZERO), (8, ZERO), (12, ZERO)]), 12);
    }

    #[test]
    fn every_break_starts_anew() {
        for broken in [r#"[{"name":"q","messages":1}]"#, r#"[{"name":"q"}]"#, "[]"] {
            assert_eq!(after(&[(0, ZERO), (4, broken)]), 0);
            assert_eq!(after(&[(0, ZERO), (4, broken), (6, ZERO), (9, ZERO)]), 3, "{broken}");
        }
        assert_eq!(after(&[(0, ZERO), (4, ZERO), (60, ZERO)]), 0, "nobody looked for long");
        assert_eq!(after(&[(0, ZERO), (4, ZERO), (60, ZERO), (62, ZERO)]), 2);
    }

    #[test]
    fn what_is_declared_or_deleted_is_another_queue() {
        let (vhost, queue, now) = (VhostName::from("v"), QueueName::from("q"), Instant::now());
        let totals: Vec<QueueTotals> = serde_json::from_str(ZERO).unwrap();
        let mut emptiness = Emptiness::new(Intervals::default().longest_pause());
        let later = now + Duration::from_secs(3);
        emptiness.saw(&vhost, &totals, now, now);
        emptiness.saw(&vhost, &totals, later, later);
        assert_eq!(emptiness.seen_for(&vhost, &queue).as_secs(), 3);
        assert_eq!(emptiness.seen_for(&"w".into(), &queue).as_secs(), 0);
        emptiness.forget(&vhost, &queue);
        assert_eq!(emptiness.seen_for(&vhost, &queue).as_secs(), 0);
    }

    #[test]
    fn the_time_of_a_slow_answer_is_not_counted() {
        let totals: Vec<QueueTotals> = serde_json::from_str(ZERO).unwrap();
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let mut emptiness = Emptiness::new(Intervals::default().longest_pause());
        emptiness.saw(&"v".into(), &totals, at(0), at(3));
        emptiness.saw(&"v".into(), &totals, at(4), at(9));
        assert_eq!(emptiness.seen_for(&"v".into(), &"q".into()).as_secs(), 1);
        emptiness.saw(&"v".into(), &totals, at(12), at(19));
        assert_eq!(emptiness.seen_for(&"v".into(), &"q".into()).as_secs(), 9, "and is no pause either");
    }
}
