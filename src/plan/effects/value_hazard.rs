//! Detects message loss and blocked publishers when the effective settings of a queue change. Raising a limit is not a
//! hazard.

use crate::model::count::{count, number};
use crate::model::intervals::in_words;
use crate::model::units::with_unit;
use crate::model::{ArgumentValue, Intervals, Queue, QueueType, age};
use crate::plan::activity::QueueActivity;
use crate::plan::hazard::HazardKind;
use crate::rabbitmq::EffectiveSettings;

/// Upper bounds on the messages and bytes that a quorum queue receives in one default tick interval.
const MESSAGES_PER_TICK: i64 = 1_000_000;
const BYTES_PER_TICK: i64 = 10_000_000_000;

/// The effect on returned messages and publishes if the new queue rejects publishes while it is full.
const WAITING: &str = "messages that do not fit will wait for room, and publishes will be rejected until then";

/// A hazard that the new value of a setting causes.
#[derive(PartialEq, Eq)]
pub(super) struct ValueHazard {
    pub(super) kind: HazardKind,
    pub(super) text: String,
    pub(super) messages: Option<u64>,
}

/// Returns the hazards for the messages in a queue. An unknown count is treated as more than zero.
pub(super) fn hazards(
    queue: &Queue,
    live: Option<&QueueActivity>,
    intervals: Intervals,
    old: &EffectiveSettings,
    new: &EffectiveSettings,
) -> Vec<ValueHazard> {
    let messages = live.and_then(|live| live.messages);
    let mut change = SettingsComparison { intervals, ..SettingsComparison::new(queue, messages, old, new) };
    change.check_expires();
    change.check_dead_lettering();
    change.check_retention();
    // Treats an unknown count as nonzero. A stale count is treated the same way if the broker would remove messages
    // immediately.
    if change.has_stale_count() {
        change.check_backlog();
        // A direct query does not count messages that are waiting to be dead-lettered, so `check_backlog` always runs.
        if !live.is_some_and(|live| live.asked) {
            change.check_length();
            change.check_bytes();
        }
    } else if change.queue_type != Some(QueueType::Stream) && messages != Some(0) {
        change.check_backlog();
        change.check_requeues();
        change.check_length();
        change.check_bytes();
        change.check_message_ttl();
    }
    change.found
}

/// Returns the hazards for messages that a migration returns to `queue`, the new queue. The new settings apply to these
/// messages just as they apply to newly published messages.
pub(super) fn return_hazards(
    queue: &Queue,
    messages: Option<u64>,
    old: &EffectiveSettings,
    new: &EffectiveSettings,
) -> Vec<ValueHazard> {
    let mut change = SettingsComparison::new(queue, messages, old, new);
    change.check_expires();
    change.check_dead_lettering();
    if messages != Some(0) {
        change.check_returned_messages();
    }
    change.found
}

/// Returns the hazards for messages in holding queues that exceed a length limit. Reports only known counts, and only
/// queues that drop their oldest messages.
pub(super) fn overflow_hazards(
    queue: &Queue,
    messages: Option<u64>,
    old: &EffectiveSettings,
    new: &EffectiveSettings,
) -> Vec<ValueHazard> {
    let mut change = SettingsComparison::new(queue, messages, old, new);
    if messages.is_some() && !new.overflow_behavior().rejects() {
        change.check_returned_length();
    }
    change.found
}

struct SettingsComparison<'a> {
    queue_type: Option<QueueType>,
    messages: Option<u64>,
    /// The intervals at which the broker updates the count.
    intervals: Intervals,
    old: &'a EffectiveSettings,
    new: &'a EffectiveSettings,
    found: Vec<ValueHazard>,
}

impl<'a> SettingsComparison<'a> {
    fn new(queue: &Queue, messages: Option<u64>, old: &'a EffectiveSettings, new: &'a EffectiveSettings) -> Self {
        let intervals = Intervals::default();
        Self { queue_type: queue.queue_type(), messages, intervals, old, new, found: Vec::new() }
    }

    fn add(&mut self, kind: HazardKind, text: String, messages: Option<u64>) {
        self.found.push(ValueHazard { kind, text, messages });
    }

    /// Returns the new value if it is a lower limit than the old value, or if there was no limit; `None` otherwise. A
    /// negative value is not a limit.
    fn lowered_limit(&self, key: &str) -> Option<i64> {
        let limit = |values: &EffectiveSettings| values.integer(key).filter(|limit| *limit >= 0);
        limit(self.new).filter(|new| limit(self.old).is_none_or(|old| *new < old))
    }

    /// Returns true if the count may be stale. The broker updates the count of a quorum queue on each tick, so a count
    /// of 0 may not include newer messages.
    fn has_stale_count(&self) -> bool {
        self.queue_type == Some(QueueType::Quorum) && self.messages == Some(0)
    }

    /// Returns the number of messages that a hazard reports as lost; `None` if the number is unknown or possibly a
    /// stale 0.
    fn reported_loss(&self) -> Option<u64> {
        self.messages.filter(|count| *count > 0)
    }

    /// Returns true if the queue may contain more messages than the limit.
    fn may_exceed(&self, limit: i64) -> bool {
        if self.has_stale_count() {
            return limit < MESSAGES_PER_TICK.saturating_mul(self.intervals.tick_factor());
        }
        self.messages.is_none_or(|count| i64::try_from(count).unwrap_or(i64::MAX) > limit)
    }

    fn held_messages_text(&self) -> String {
        if self.has_stale_count() {
            return format!("0 messages (a count that is up to {} old)", in_words(self.intervals.tick()));
        }
        match self.messages {
            Some(messages) => count(messages, "message"),
            None => "an unknown number of messages".to_owned(),
        }
    }

    fn check_expires(&mut self) {
        if let Some(expires) = self.lowered_limit("expires") {
            let value = with_unit("expires", &ArgumentValue::Integer(expires));
            let text = format!(
                "expires will become {value}: the queue itself will be deleted after it has been unused for that long"
            );
            self.add(HazardKind::MessageDrop, text, self.reported_loss());
        }
    }

    /// Adds the hazard of a removed dead-letter exchange. The broker drops no messages immediately, but from then on,
    /// drops every message that it would have dead-lettered.
    fn check_dead_lettering(&mut self) {
        let target = |values: &EffectiveSettings| values.text("dead-letter-exchange").map(str::to_owned);
        if let (Some(old), None) = (target(self.old), target(self.new)) {
            let text = format!(
                "its dead-letter exchange ({old}) will be unset: from then on, messages that are rejected, expire or \
                 overflow will be dropped"
            );
            self.add(HazardKind::MessageDrop, text, None);
        }
    }

    /// Adds the hazards for a stream. The broker deletes whole segments, but never the newest segment.
    fn check_retention(&mut self) {
        if self.queue_type != Some(QueueType::Stream) {
            return;
        }
        let limit = |values: &EffectiveSettings| values.text("max-age").map(str::to_owned);
        let (old, new) = (limit(self.old), limit(self.new));
        if let Some(new) = new.filter(|new| old.is_none_or(|old| is_shorter(new, &old))) {
            let text = format!("max-age will become {new}: older messages will be deleted");
            self.add(HazardKind::MessageDrop, text, None);
        }
        if let Some(bytes) = self.lowered_limit("max-length-bytes") {
            let value = with_unit("max-length-bytes", &ArgumentValue::Integer(bytes));
            let text = format!("max-length-bytes will become {value}: the oldest messages beyond it will be deleted");
            self.add(HazardKind::MessageDrop, text, None);
        }
    }

    /// Adds the hazard for messages that are waiting to be dead-lettered. With at-least-once dead-lettering, a quorum
    /// queue keeps these messages until the target confirms them. When dead-lettering is no longer at-least-once, the
    /// broker drops all waiting messages immediately (measured on 3.10.8 and 4.3.6: 5 of 5 messages).
    fn check_backlog(&mut self) {
        if self.old.is_at_least_once() && !self.new.is_at_least_once() {
            let held = self.held_messages_text();
            let text = format!(
                "its dead-lettering will no longer be at-least-once, and the queue holds {held}: messages that are \
                 waiting to be dead-lettered will be dropped immediately"
            );
            self.add(HazardKind::MessageDrop, text, self.reported_loss());
        }
    }

    fn check_requeues(&mut self) {
        let Some(limit) = self.new.delivery_limit() else { return };
        if self.old.delivery_limit().is_some_and(|old| old <= limit) {
            return;
        }
        let fate = if self.new.has("dead-letter-exchange") { "dead-lettered" } else { "dropped" };
        let text = format!(
            "delivery-limit will become {limit}: a message that has already been delivered more times than that will \
             be {fate} when it is requeued"
        );
        self.add(HazardKind::MessageDrop, text, self.messages);
    }

    fn check_length(&mut self) {
        let limit = self.new.integer("max-length");
        let (rejected_before, rejects_now) =
            (self.old.overflow_behavior().rejects(), self.new.overflow_behavior().rejects());
        let lowered = self.lowered_limit("max-length");
        if let Some(limit) = limit {
            let over = self.may_exceed(limit);
            let held = self.held_messages_text();
            let mut is_reported = false;
            if over && (lowered.is_some() || rejected_before && !rejects_now) {
                // A classic queue applies `max-length` before `overflow`
                // (`rabbit_amqqueue_process:process_args_policy`). If the queue did not reject publishes before, it
                // first drops messages and then starts to reject publishes (measured: with limit 2, 2 of 4 messages
                // remained).
                if !rejects_now || !rejected_before && self.queue_type != Some(QueueType::Quorum) {
                    let dropped =
                        self.reported_loss().map(|count| count.saturating_sub(u64::try_from(limit).unwrap_or(0)));
                    let why = match lowered {
                        Some(_) => format!("max-length will become {limit}, and the queue holds {held}"),
                        None => {
                            format!("the queue will stop rejecting publishes, and holds {held} with max-length {limit}")
                        }
                    };

                    let text = format!("{why}: the oldest will be removed immediately");
                    self.add(HazardKind::MessageDrop, text, dropped);
                }
                if rejects_now {
                    let be = if self.has_stale_count() { "can be" } else { "will be" };
                    let text =
                        format!("max-length will become {limit}, and the queue holds {held}: publishes {be} rejected");
                    self.add(HazardKind::PublisherBlock, text, None);
                    is_reported = true;
                }
            }
            if is_reported {
                return;
            }
        }
        let limited = limit.is_some() || self.new.has("max-length-bytes");
        if !rejected_before && rejects_now && limited {
            let held = self.held_messages_text();
            let text = format!(
                "overflow will become reject-publish, and the queue holds {held}: when it is full, publishes will be \
                 rejected"
            );
            self.add(HazardKind::PublisherBlock, text, None);
        }
    }

    fn check_bytes(&mut self) {
        let (rejected_before, rejects_now) =
            (self.old.overflow_behavior().rejects(), self.new.overflow_behavior().rejects());
        let limit = self.new.integer("max-length-bytes");
        let Some(bytes) = self.lowered_limit("max-length-bytes").or(limit.filter(|_| rejected_before && !rejects_now))
        else {
            return;
        };
        if self.has_stale_count() && bytes >= BYTES_PER_TICK.saturating_mul(self.intervals.tick_factor()) {
            return;
        }
        let value = with_unit("max-length-bytes", &ArgumentValue::Integer(bytes));
        let held = self.held_messages_text();
        if self.lowered_limit("max-length-bytes").is_none() {
            let text = format!(
                "the queue will stop rejecting publishes, and holds {held} with max-length-bytes {value}: some can be \
                 removed"
            );
            self.add(HazardKind::MessageDrop, text, self.reported_loss());
            return;
        }
        if !rejects_now || !rejected_before && self.queue_type != Some(QueueType::Quorum) {
            let text = format!("max-length-bytes will become {value}, and the queue holds {held}: some can be removed");
            self.add(HazardKind::MessageDrop, text, self.reported_loss());
        } else {
            let text =
                format!("max-length-bytes will become {value}, and the queue holds {held}: publishes can be rejected");
            self.add(HazardKind::PublisherBlock, text, None);
        }
    }

    /// Adds the hazards for returned messages that exceed a limit, or that expire before they are consumed.
    fn check_returned_messages(&mut self) {
        self.check_returned_length();
        let (rejects_now, returning) = (self.new.overflow_behavior().rejects(), self.returning_messages_text());
        if let Some(bytes) = self.lowered_limit("max-length-bytes") {
            let value = with_unit("max-length-bytes", &ArgumentValue::Integer(bytes));
            let text = format!("max-length-bytes will become {value}, and {returning}");
            if rejects_now {
                self.add(HazardKind::PublisherBlock, format!("{text}: {WAITING}"), None);
            } else {
                self.add(HazardKind::MessageDrop, format!("{text}: some can be removed"), self.reported_loss());
            }
        }
        if let Some(ttl) = self.lowered_limit("message-ttl") {
            let value = with_unit("message-ttl", &ArgumentValue::Integer(ttl));
            let fate = if self.new.has("dead-letter-exchange") { "dead-lettered" } else { "dropped" };
            let text = format!(
                "message-ttl will become {value}, and {returning}: messages that are not consumed within this time of \
                 their return will be {fate}"
            );
            self.add(HazardKind::MessageDrop, text, self.messages);
        }
    }

    /// Adds the hazard for returned messages that exceed `max-length`.
    fn check_returned_length(&mut self) {
        let Some(limit) = self.lowered_limit("max-length") else { return };
        if self.messages.is_some_and(|count| i64::try_from(count).unwrap_or(i64::MAX) <= limit) {
            return;
        }
        let text = format!("max-length will become {limit}, and {}", self.returning_messages_text());
        if self.new.overflow_behavior().rejects() {
            self.add(HazardKind::PublisherBlock, format!("{text}: {WAITING}"), None);
        } else {
            let dropped = self.reported_loss().map(|count| count.saturating_sub(u64::try_from(limit).unwrap_or(0)));
            self.add(HazardKind::MessageDrop, format!("{text}: the oldest will be removed immediately"), dropped);
        }
    }

    fn returning_messages_text(&self) -> String {
        match self.messages {
            Some(1) => "1 message will return".to_owned(),
            Some(messages) => format!("{} messages will return", number(messages)),
            None => "an unknown number of messages will return".to_owned(),
        }
    }

    /// Adds the hazard of a shorter TTL. Every queue type sets the expiry of a message on arrival, so queued messages
    /// keep the old TTL.
    fn check_message_ttl(&mut self) {
        let Some(ttl) = self.lowered_limit("message-ttl") else { return };
        let value = with_unit("message-ttl", &ArgumentValue::Integer(ttl));
        let fate = if self.new.has("dead-letter-exchange") { "dead-lettered" } else { "dropped" };
        let held = self.held_messages_text();
        let text = format!(
            "message-ttl will become {value}: new messages will be {fate} after that time; messages already in the \
             queue ({held}) will keep their old TTL"
        );
        self.add(HazardKind::MessageDrop, text, self.messages);
    }
}

/// Returns true if the new age, such as `7D`, is shorter than the old age. If either age cannot be parsed, returns true
/// if the strings differ.
fn is_shorter(new: &str, old: &str) -> bool {
    match (age(new), age(old)) {
        (Some(new), Some(old)) => new < old,
        (None, _) | (_, None) => new != old,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rabbitmq::BrokerProfile;

    #[test]
    fn shorter_ttl_hazard_contains_the_message_count() {
        let profile = BrokerProfile::of("4.3.6".parse().unwrap());
        let queue = |ttl: i64| {
            let arguments = [("x-queue-type".to_owned(), "classic".into()), ("x-message-ttl".to_owned(), ttl.into())];
            Queue { durable: true, auto_delete: false, exclusive: false, arguments: arguments.into() }
        };
        let [old, new] = [5000, 1000].map(|ttl| EffectiveSettings::of(&queue(ttl), None, None, &profile));
        for (messages, held) in [(None, "an unknown number of messages"), (Some(1), "1 message")] {
            let live = QueueActivity { messages, ..QueueActivity::default() };
            let found = hazards(&queue(1000), Some(&live), Intervals::default(), &old, &new);
            let texts: Vec<&str> = found.iter().map(|hazard| hazard.text.as_str()).collect();
            let end = format!("; messages already in the queue ({held}) will keep their old TTL");
            assert!(matches!(texts.as_slice(), [text] if text.ends_with(&end)), "{texts:?}");
        }
    }

    #[test]
    fn ages_are_compared_by_duration() {
        assert!(is_shorter("6D", "168h"));
        assert!(!is_shorter("7D", "168h"));
        assert!(!is_shorter("1Y", "11M"));
        assert!(is_shorter("many", "7D"));
    }
}
