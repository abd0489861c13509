//! Stops a replay if too many of its messages are dead-lettered again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The number of messages that must come back before the breaker stops a replay, except while the replay waits for its
/// canary messages. The share is not significant if fewer messages come back.
const MIN_RETURNED: u64 = 5;

/// The maximum time to wait for the outcome of the last messages.
pub const MAX_WAIT: Duration = Duration::from_secs(10 * 60);

/// The settings of the circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Breaker {
    /// The share of messages that may come back, from 0 to 1.
    pub share: f64,
    /// The number of canary messages, which are replayed first. The other messages follow when the outcome of the
    /// canary messages is known. 0 replays all messages without a pause.
    pub canary: u64,
    /// A replayed message counts as successful if it does not come back within this time after its last retry.
    pub settle: Duration,
}

/// The state of the circuit breaker. Each replayed message has a number, starting at 0, in the order of the replay.
pub(super) struct BreakerState {
    settings: Breaker,
    /// The time after which the outcome of a replayed message is known.
    outcome_time: Duration,
    /// True if topo detects returned messages as soon as they arrive.
    is_observing: bool,
    started: Instant,
    /// The time at which each message was replayed, in milliseconds since the start.
    sent: Vec<u32>,
    came_back: BTreeSet<u64>,
}

/// The breaker's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The replay can continue.
    Continue,
    /// The replay waits for the outcome of the canary messages.
    Wait,
    /// Too many messages came back.
    Stop {
        /// The number of messages from which the share was calculated.
        judged: u64,
    },
}

impl BreakerState {
    pub(super) fn new(settings: Breaker, outcome_time: Duration, is_observing: bool, now: Instant) -> Self {
        Self { settings, outcome_time, is_observing, started: now, sent: Vec::new(), came_back: BTreeSet::new() }
    }

    /// Returns the number of the next message.
    pub(super) fn next_number(&self) -> u64 {
        self.sent.len() as u64
    }

    /// Records that a message was replayed.
    pub(super) fn record_replay(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.started).as_millis();
        self.sent.push(u32::try_from(since).unwrap_or(u32::MAX));
    }

    /// Records a message that came back. Returns true if it had not been recorded before.
    pub(super) fn record_return(&mut self, number: u64) -> bool {
        number < self.next_number() && self.came_back.insert(number)
    }

    /// Returns the number of messages that came back.
    pub(super) fn returned(&self) -> u64 {
        self.came_back.len() as u64
    }

    /// Returns true if the breaker can judge the replay. A run that does not observe returned messages can still
    /// receive some of them.
    fn can_judge(&self) -> bool {
        self.is_observing || !self.came_back.is_empty()
    }

    /// Returns the number of messages that were replayed long enough ago that their outcome is known.
    fn due(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.started).saturating_sub(self.outcome_time).as_millis();
        let is_known = |sent: &u32| u128::from(*sent) < since;
        self.sent.partition_point(is_known) as u64
    }

    /// Returns true if `returned` out of `of` messages exceed the permitted share.
    fn is_above(&self, returned: u64, of: u64) -> bool {
        returned as f64 > self.settings.share * of as f64
    }

    /// Judges a replay that has processed all messages. Returns the number of replayed messages if too many came back;
    /// `None` otherwise.
    pub(super) fn final_verdict(&self) -> Option<u64> {
        let (sent, returned) = (self.next_number(), self.returned());
        let required = if sent <= self.settings.canary { 1 } else { MIN_RETURNED.min(sent) };
        (returned >= required && self.is_above(returned, sent)).then_some(sent)
    }

    /// Returns the number of messages that can still come back, because their outcome is not known yet. Returns 0 if
    /// returned messages are not observed.
    pub(super) fn pending(&self, now: Instant) -> u64 {
        if !self.is_observing {
            return 0;
        }
        let due = self.due(now);
        self.next_number() - due - self.came_back.range(due..).count() as u64
    }

    /// Judges the replay.
    pub(super) fn verdict(&self, now: Instant) -> Verdict {
        if !self.can_judge() {
            return Verdict::Continue;
        }
        let (sent, due, returned) = (self.next_number(), self.due(now), self.returned());
        let canary = self.settings.canary;
        let is_canary_sent = canary > 0 && sent >= canary;
        // If only the canary messages have been replayed, their share alone determines the verdict.
        let required = if is_canary_sent && sent == canary { 1 } else { MIN_RETURNED };
        // The share is too high even if all messages without a known outcome succeed.
        if returned >= required && self.is_above(returned, sent) {
            return Verdict::Stop { judged: sent };
        }
        let returned_due = self.came_back.range(..due).count() as u64;
        if returned_due >= MIN_RETURNED && self.is_above(returned_due, due) {
            return Verdict::Stop { judged: due.max(returned) };
        }
        if is_canary_sent && due < canary { Verdict::Wait } else { Verdict::Continue }
    }

    /// Returns true if the replay need not wait for further returned messages. After the canary messages, topo waits
    /// only for the settle time, because retries can take hours.
    pub(super) fn is_done(&self, now: Instant) -> bool {
        let Some(last) = self.sent.last().filter(|_| self.is_observing) else { return true };
        // The broker closes a channel that holds messages for too long.
        let wait = if self.next_number() <= self.settings.canary { self.outcome_time } else { self.settings.settle };
        let since = now.saturating_duration_since(self.started).as_millis();
        since > u128::from(*last) + wait.min(MAX_WAIT).as_millis() || self.returned() == self.next_number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn state(share: f64, canary: u64) -> (BreakerState, Instant) {
        let now = Instant::now();
        let settings = Breaker { share, canary, settle: SECOND };
        (BreakerState::new(settings, SECOND * 10, true, now), now)
    }

    #[test]
    fn replay_waits_for_canary_messages() {
        let (mut it, now) = state(0.1, 5);
        for number in 0..5 {
            assert_eq!(it.verdict(now), Verdict::Continue, "{number}");
            it.record_replay(now);
        }
        assert_eq!(it.verdict(now + SECOND), Verdict::Wait);
        assert!(!it.is_done(now + SECOND));
        assert_eq!(it.verdict(now + SECOND * 11), Verdict::Continue);
        assert!(it.is_done(now + SECOND * 11));
        assert_eq!((it.pending(now + SECOND), it.pending(now + SECOND * 11)), (5, 0));
        (0..5).for_each(|number| assert!(it.record_return(number)));
        assert_eq!(it.verdict(now + SECOND), Verdict::Stop { judged: 5 });
        assert!(it.is_done(now + SECOND));
        assert_eq!(it.pending(now + SECOND), 0);
    }

    #[test]
    fn share_of_canary_messages_decides() {
        let (mut it, now) = state(0.1, 5);
        (0..5).for_each(|_| it.record_replay(now));
        it.record_return(3);
        assert_eq!(it.verdict(now + SECOND), Verdict::Stop { judged: 5 }, "20% of 5");
        assert_eq!(it.final_verdict(), Some(5));
        // The replay waits for the outcome of the other canary messages.
        let (mut it, now) = state(0.1, 20);
        (0..5).for_each(|_| it.record_replay(now));
        (0..15).for_each(|_| it.record_replay(now + SECOND));
        it.record_return(0);
        assert_eq!(it.verdict(now + SECOND * 10 + SECOND / 2), Verdict::Wait, "1 of 5 known, 1 of 20 sent");
        // After the canary messages, a few returned messages are not significant.
        let (mut it, now) = state(0.1, 5);
        (0..5).for_each(|_| it.record_replay(now));
        assert_eq!(it.verdict(now + SECOND * 11), Verdict::Continue);
        it.record_replay(now + SECOND * 11);
        it.record_return(5);
        assert_eq!((it.verdict(now + SECOND * 12), it.final_verdict()), (Verdict::Continue, None));
        (0..4).for_each(|number| assert!(it.record_return(number)));
        assert_eq!(it.verdict(now + SECOND * 12), Verdict::Stop { judged: 6 });
    }

    #[test]
    fn share_counts_only_known_outcomes() {
        let (mut it, now) = state(0.1, 5);
        (0..100).for_each(|_| it.record_replay(now));
        (0..100).for_each(|_| it.record_replay(now + SECOND * 20));
        (0..10).for_each(|number| assert!(it.record_return(number * 2)));
        assert_eq!(it.verdict(now + SECOND * 15), Verdict::Continue, "exactly the share");
        it.record_return(99);
        assert_eq!(it.verdict(now + SECOND * 15), Verdict::Stop { judged: 100 });
        it.record_return(500);
        assert_eq!(it.returned(), 11, "a number from another run");
    }

    #[test]
    fn nothing_is_judged_without_observation() {
        let settings = Breaker { share: 0.0, canary: 1, settle: SECOND };
        let now = Instant::now();
        let mut it = BreakerState::new(settings, SECOND, false, now);
        it.record_replay(now);
        assert_eq!(it.verdict(now), Verdict::Continue);
        assert!(it.is_done(now));
        assert_eq!(it.pending(now), 0);
        assert!(it.record_return(0) && !it.record_return(0));
        assert_eq!(it.verdict(now), Verdict::Stop { judged: 1 });
    }
}
