//! Tests the evaluation of readings, without a broker.

use super::document::{Problem, QueueStatus, State, Threshold};
use super::evaluate::queues;
use super::history::{Age, Histories, VhostReading};
use super::watched::Watched;
use crate::broker::{NodeState, QueueHistory, QueueReading, Window};
use crate::model::{Growth, Levels, QueueName, Thresholds};
use std::collections::{BTreeMap, BTreeSet};

const MINUTE: i64 = 60_000;

/// Returns the samples of a window: `row` samples with the value `messages`, then zeros.
fn samples(window: Window, row: usize, messages: u64) -> Vec<u64> {
    let all = usize::try_from(window.length / window.step).unwrap() + 1;
    (0..all).map(|index| if index < row { messages } else { 0 }).collect()
}

/// A vhost with one queue `q` on one node.
struct Case(VhostReading);

impl Case {
    fn new(messages: u64) -> Self {
        let queue = QueueReading {
            messages: Some(messages),
            ready: Some(messages),
            unacknowledged: Some(0),
            state: Some("running".to_owned()),
            node: Some("n".to_owned()),
            is_exclusive: false,
        };
        Self(VhostReading { queues: [("q".into(), queue)].into(), ..VhostReading::default() })
    }

    fn uptime(mut self, seconds: u64) -> Self {
        let state = NodeState { is_running: true, uptime: Some(seconds * 1000) };
        self.0.nodes = Some([("n".to_owned(), state)].into());
        self
    }

    /// Adds the samples of a window: `row` samples with the queue's message count, then zeros.
    fn row(self, window: usize, row: usize) -> Self {
        let messages = self.0.queues[&QueueName::from("q")].messages.unwrap();
        let window = Window::ALL[window];
        self.with(window, samples(window, row, messages))
    }

    fn with(mut self, window: Window, samples: Vec<u64>) -> Self {
        let messages = self.0.queues[&QueueName::from("q")].messages;
        let history = QueueHistory { messages, consumers: Some(0), samples };
        self.0.histories.push((window, [("q".into(), history)].into()));
        self
    }

    fn consumers(mut self, consumers: Option<u64>) -> Self {
        self.0.histories[0].1.get_mut(&"q".into()).unwrap().consumers = consumers;
        self
    }

    fn state(mut self, state: &str) -> Self {
        self.0.queues.get_mut(&"q".into()).unwrap().state = Some(state.to_owned());
        self
    }

    fn age(&self) -> Option<(u64, bool)> {
        let messages = self.0.queues[&QueueName::from("q")].messages;
        Histories::new(&self.0).age(&"q".into(), messages).map(|Age { at_least, is_open }| (at_least, is_open))
    }

    fn growth(&self, within: u64) -> Option<i64> {
        let messages = self.0.queues[&QueueName::from("q")].messages;
        Histories::new(&self.0).growth(&"q".into(), messages, within)
    }

    fn status(&self, thresholds: Thresholds) -> QueueStatus {
        let watched = Watched { dead_letter_queues: [("q".into(), thresholds)].into(), ..Watched::default() };
        queues(&watched, &self.0).dead_letter_queues.remove(0)
    }
}

fn levels<T>(warning: Option<T>, critical: Option<T>) -> Levels<T> {
    Levels { warning, critical }
}

#[test]
fn age_is_a_lower_bound() {
    assert_eq!(Case::new(0).row(0, 0).age(), None, "an empty queue");
    assert_eq!(Case::new(3).age(), None, "no statistics");
    assert_eq!(Case::new(3).with(Window::ALL[0], Vec::new()).age(), None, "a new queue");
    for (row, seconds) in [(0, 0), (1, 0), (2, 0), (3, 5), (62, 300)] {
        assert_eq!(Case::new(3).row(0, row).age(), Some((seconds, false)), "{row}");
    }
    // The whole window: the broker has no older samples.
    assert_eq!(Case::new(3).row(0, 121).age(), Some((595, true)));
}

#[test]
fn longer_windows_extend_the_age() {
    let full = || Case::new(3).row(0, 121);
    assert_eq!(full().row(1, 40).age().unwrap().0, 38 * 60);
    assert_eq!(full().row(1, 61).age(), Some((59 * 60, true)));
    // The broker returns 0 for a time without samples, so the age stays open.
    assert_eq!(full().row(1, 61).row(2, 2).age(), Some((59 * 60, true)));
    // An older sample is evidence that the broker kept samples at the time of the 0.
    let mut known = samples(Window::ALL[2], 4, 3);
    known[10] = 1;
    assert_eq!(full().row(1, 61).with(Window::ALL[2], known).age(), Some((3600, false)));
}

#[test]
fn growth_requires_evidence() {
    // 5 minutes ago, the queue contained messages.
    let mut past = samples(Window::ALL[0], 30, 60);
    past[60..].fill(12);
    assert_eq!(Case::new(60).with(Window::ALL[0], past).growth(300), Some(48));
    // 0 messages 5 minutes ago: the broker may have been restarted since then.
    assert_eq!(Case::new(60).row(0, 30).growth(300), None);
    assert_eq!(Case::new(60).row(0, 30).uptime(599).growth(300), None);
    assert_eq!(Case::new(60).row(0, 30).uptime(600).growth(300), Some(60));
    let mut older = samples(Window::ALL[0], 30, 60);
    older[100] = 1;
    assert_eq!(Case::new(60).with(Window::ALL[0], older).growth(300), Some(60));
    assert_eq!(Case::new(60).growth(300), None, "no statistics");
    assert_eq!(Case::new(5).with(Window::ALL[0], vec![9; 121]).growth(300), Some(-4));
    // For the longer windows, the uptime is not evidence, because the broker may keep fewer samples.
    let long = Case::new(60).row(0, 30).row(1, 3).uptime(86_400);
    assert_eq!((long.growth(600), long.growth(1800)), (Some(60), None));
}

#[test]
fn message_in_another_queue_is_evidence() {
    let mut case = Case::new(60).row(0, 30);
    let other = QueueHistory { messages: Some(1), consumers: Some(0), samples: vec![1; 121] };
    case.0.histories[0].1.insert("other".into(), other);
    assert_eq!(case.growth(300), None, "its node is unknown");
    let queue = QueueReading { node: Some("n".to_owned()), ..QueueReading::default() };
    case.0.queues.insert("other".into(), queue);
    assert_eq!(case.growth(300), Some(60));
}

#[test]
fn depth_threshold_is_crossed_at_its_value() {
    let state = |messages| Case::new(messages).status(Thresholds::DEAD_LETTER_QUEUE).state;
    assert_eq!([49, 50, 199, 200].map(state), [State::Fine, State::Warning, State::Warning, State::Critical]);
    let status = Case::new(200).status(Thresholds::DEAD_LETTER_QUEUE);
    assert_eq!(status.problems, [Problem::Depth { state: State::Critical, limit: 200 }]);
    assert_eq!((status.growth_in_5_minutes, status.not_empty_for_seconds, status.consumers), (None, None, None));
}

#[test]
fn unknown_values_are_not_checked() {
    let everything = Thresholds {
        depth: levels(Some(1), None),
        growth: levels(Some(Growth { messages: 1, within: 5 * MINUTE }), None),
        age: levels(Some(MINUTE), None),
        no_consumers: Some(MINUTE),
    };
    let mut case = Case::new(3);
    case.0.queues.get_mut(&"q".into()).unwrap().messages = None;
    let all = [Threshold::Depth, Threshold::Growth, Threshold::Age, Threshold::NoConsumers];
    let status = case.status(everything);
    assert_eq!((status.state, status.unchecked.as_slice()), (State::Fine, all.as_slice()));
    // An empty queue has no age, and requires no consumer.
    assert_eq!(Case::new(0).status(everything).unchecked, [Threshold::Growth]);
    // Depth and age are known. The growth is unknown, because the 0 may be a missing sample.
    let known = Case::new(3).row(0, 5).consumers(Some(1)).status(everything);
    assert_eq!(known.unchecked, [Threshold::Growth]);
}

#[test]
fn age_threshold_above_the_known_age_is_not_checked() {
    let thresholds = |limit| Thresholds { age: levels(Some(limit), None), ..Thresholds::default() };
    let full = || Case::new(3).row(0, 121).row(1, 61).row(2, 2);
    assert_eq!(full().status(thresholds(59 * MINUTE)).state, State::Warning);
    let day = full().status(thresholds(24 * 60 * MINUTE));
    assert_eq!((day.state, day.unchecked.as_slice()), (State::Fine, [Threshold::Age].as_slice()));
    let young = Case::new(3).row(0, 20).status(thresholds(24 * 60 * MINUTE));
    assert_eq!((young.state, young.unchecked.len()), (State::Fine, 0));
    // A warning does not hide a critical threshold that cannot be checked.
    let both = Thresholds { age: levels(Some(MINUTE), Some(24 * 60 * MINUTE)), ..Thresholds::default() };
    let status = full().status(both);
    assert_eq!((status.state, status.unchecked.as_slice()), (State::Warning, [Threshold::Age].as_slice()));
}

#[test]
fn growth_within_a_shorter_time_crosses_a_longer_threshold() {
    let growth = |messages| Growth { messages, within: 60 * MINUTE };
    let thresholds = |messages| Thresholds { growth: levels(None, Some(growth(messages))), ..Thresholds::default() };
    let case = || Case::new(60).row(0, 30).row(1, 3).uptime(86_400);
    let status = case().status(thresholds(60));
    assert_eq!(
        status.problems,
        [Problem::Growth { state: State::Critical, limit: 60, growth: 60, within_seconds: 600 }]
    );
    assert_eq!(case().status(thresholds(61)).unchecked, [Threshold::Growth]);
}

#[test]
fn missing_consumers_are_a_warning_after_the_threshold_time() {
    let thresholds = Thresholds { no_consumers: Some(5 * MINUTE), ..Thresholds::default() };
    let state = |case: Case| case.status(thresholds).state;
    assert_eq!(state(Case::new(3).row(0, 62)), State::Warning);
    assert_eq!(state(Case::new(3).row(0, 61)), State::Fine);
    assert_eq!(state(Case::new(3).row(0, 62).consumers(Some(1))), State::Fine);
    assert_eq!(state(Case::new(0).row(0, 0)), State::Fine);
    let unknown = Case::new(3).row(0, 62).consumers(None).status(thresholds);
    assert_eq!((unknown.state, unknown.unchecked.as_slice()), (State::Fine, [Threshold::NoConsumers].as_slice()));
}

#[test]
fn unavailable_queue_is_critical() {
    for state in ["down", "crashed", "stopped", "minority"] {
        let status = Case::new(3).row(0, 62).state(state).status(Thresholds::default());
        let node = Some("n".to_owned());
        let problem = Problem::Unavailable { state: State::Critical, queue_state: state.to_owned(), node };
        assert_eq!((status.state, status.problems.as_slice()), (State::Critical, [problem].as_slice()));
        assert_eq!((status.growth_in_5_minutes, status.not_empty_for_seconds), (None, None), "stale statistics");
    }
    for state in ["running", "flow", "idle"] {
        assert_eq!(Case::new(3).state(state).status(Thresholds::default()).state, State::Fine);
    }
    let mut case = Case::new(3);
    case.0.nodes = Some([("n".to_owned(), NodeState { is_running: false, uptime: None })].into());
    assert_eq!(case.status(Thresholds::default()).state, State::Critical, "its node is down");
}

#[test]
fn missing_queue_is_a_warning() {
    let status = Case(VhostReading::default()).status(Thresholds::DEAD_LETTER_QUEUE);
    assert_eq!(
        (status.exists, status.state, status.problems),
        (false, State::Warning, vec![Problem::Missing { state: State::Warning }])
    );
}

#[test]
fn tiers_are_counted_by_queue() {
    let mut reading = Case::new(3).0;
    for (name, messages) in [
        ("q.retry.2.5m", 12),
        ("q.retry.1.1m", 5),
        ("q.retry.1.1m~2", 1),
        ("q.retry.3.10m", 0),
        ("other.retry.1.5s", 7),
        ("topo.lock", 0),
        ("reply", 2),
    ] {
        reading.queues.insert(name.into(), QueueReading { messages: Some(messages), ..QueueReading::default() });
    }
    let watched = Watched::of_vhost([&QueueName::from("q")], &BTreeSet::new());
    let found = queues(&watched, &reading);
    let tiers: Vec<_> = found.retries[0].tiers.iter().map(|tier| (tier.tier.as_str(), tier.messages)).collect();
    assert_eq!(tiers, [("q.retry.1.1m", 5), ("q.retry.1.1m~2", 1), ("q.retry.2.5m", 12)]);
    assert_eq!((found.retries.len(), found.retries[0].messages), (1, 18));
    assert_eq!(found.temporary_queues, 2, "other.retry.1.5s and reply");
    // A declared queue is not a tier.
    let names: Vec<QueueName> = ["q", "q.retry.1.1m"].map(QueueName::from).into();
    assert_eq!(queues(&Watched::of_vhost(&names, &BTreeSet::new()), &reading).queues.len(), 2);
    let spec = Watched { queues: BTreeMap::from([("q".into(), Thresholds::default())]), ..Watched::default() };
    assert_eq!(queues(&spec, &reading).temporary_queues, 0);
}
