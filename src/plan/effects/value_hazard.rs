//! Finds the messages that a queue loses, and the publishers that it blocks, when its effective settings change. Looser
//! limits are not a hazard.

use crate::model::count::{count, number};
use crate::model::intervals::in_words;
use crate::model::units::with_unit;
use crate::model::{ArgumentValue, Intervals, Queue, QueueType, age};
use crate::plan::{HazardKind, QueueActivity};
use crate::rabbitmq::EffectiveSettings;

/// Bounds above the messages and bytes that a quorum queue receives between two ticks of the default interval.
const MESSAGES_PER_TICK: i64 = 1_000_000;
const BYTES_PER_TICK: i64 = 10_000_000_000;

/// The effect of a full queue that rejects publishes.
const WAITING: &str = "messages that do not fit wait until consumers make room, and publishes are rejected until then";

/// A hazard of a changed setting.
#[derive(PartialEq, Eq)]
pub(super) struct ValueHazard {
    pub(super) kind: HazardKind,
    pub(super) text: String,
    pub(super) messages: Option<u64>,
}

/// Returns the hazards for the messages that a queue holds, as far as their number is known.
pub(super) fn hazards(
    queue: &Queue,
    live: Option<&QueueActivity>,
    intervals: Intervals,
    old: &EffectiveSettings,
    new: &EffectiveSettings,
) -> Vec<ValueHazard> {
    let messages = live.and_then(|live| live.messages);
    let mut change = Difference { intervals, ..Difference::new(queue, messages, old, new) };
    change.expires();
    change.dead_lettering();
    change.retention();
    // An unknown number counts as some messages. A count that may be old does, too, for messages that are removed
    // immediately.
    if change.has_stale_count() {
        change.backlog();
        // A queue does not report messages that wait to be dead-lettered.
        if !live.is_some_and(|live| live.asked) {
            change.length();
            change.bytes();
        }
    } else if change.queue_type != Some(QueueType::Stream) && messages != Some(0) {
        change.backlog();
        change.requeues();
        change.length();
        change.bytes();
        change.message_ttl();
    }
    change.found
}

/// Returns the hazards for messages that a migration returns to a queue: they arrive again, under the settings of the
/// new queue. `queue` is the new one.
pub(super) fn hazards_of_return(
    queue: &Queue,
    messages: Option<u64>,
    old: &EffectiveSettings,
    new: &EffectiveSettings,
) -> Vec<ValueHazard> {
    let mut change = Difference::new(queue, messages, old, new);
    change.expires();
    change.dead_lettering();
    if messages != Some(0) {
        change.returned_messages();
    }
    change.found
}

/// Returns the hazards for held messages that certainly do not fit: their number is known, and the queue removes the
/// oldest.
pub(super) fn hazards_of_overflow(
    queue: &Queue,
    messages: Option<u64>,
    old: &EffectiveSettings,
    new: &EffectiveSettings,
) -> Vec<ValueHazard> {
    let mut change = Difference::new(queue, messages, old, new);
    if messages.is_some() && !new.when_full().refuses() {
        change.returned_length();
    }
    change.found
}

struct Difference<'a> {
    queue_type: Option<QueueType>,
    messages: Option<u64>,
    /// The intervals at which the broker updates the count.
    intervals: Intervals,
    old: &'a EffectiveSettings,
    new: &'a EffectiveSettings,
    found: Vec<ValueHazard>,
}

impl<'a> Difference<'a> {
    fn new(queue: &Queue, messages: Option<u64>, old: &'a EffectiveSettings, new: &'a EffectiveSettings) -> Self {
        let intervals = Intervals::default();
        Self { queue_type: queue.queue_type(), messages, intervals, old, new, found: Vec::new() }
    }

    fn add(&mut self, kind: HazardKind, text: String, messages: Option<u64>) {
        self.found.push(ValueHazard { kind, text, messages });
    }

    /// Returns the new value if it is a tighter limit than the old one. A negative value is not a limit.
    fn lowered(&self, key: &str) -> Option<i64> {
        let limit = |values: &EffectiveSettings| values.integer(key).filter(|limit| *limit >= 0);
        limit(self.new).filter(|new| limit(self.old).is_none_or(|old| *new < old))
    }

    /// Returns true if the count may be stale. The broker updates the count of a quorum queue with a tick, so 0 may
    /// miss newer messages. A queue that does not exist yet has no count and no hazard.
    fn has_stale_count(&self) -> bool {
        self.queue_type == Some(QueueType::Quorum) && self.messages == Some(0)
    }

    /// Returns the number of messages that a hazard reports as lost, if it is known.
    fn bound(&self) -> Option<u64> {
        self.messages.filter(|count| *count > 0)
    }

    /// Returns true if the queue may hold more messages than the limit.
    fn may_exceed(&self, limit: i64) -> bool {
        if self.has_stale_count() {
            return limit < MESSAGES_PER_TICK.saturating_mul(self.intervals.ticks_by_default());
        }
        self.messages.is_none_or(|count| i64::try_from(count).unwrap_or(i64::MAX) > limit)
    }

    fn holds(&self) -> String {
        if self.has_stale_count() {
            return format!("0 messages (a count that is up to {} old)", in_words(self.intervals.tick()));
        }
        match self.messages {
            Some(messages) => count(messages, "message"),
            None => "an unknown number of messages".to_owned(),
        }
    }

    fn expires(&mut self) {
        if let Some(expires) = self.lowered("expires") {
            let value = with_unit("expires", &ArgumentValue::Integer(expires));
            let text = format!("expires becomes {value}: the queue itself is deleted when it is unused for that long");
            self.add(HazardKind::MessageDrop, text, self.bound());
        }
    }

    /// Adds the hazard of a removed dead-letter exchange. It affects no current message, but all messages that are
    /// rejected from then on: they were kept so far.
    fn dead_lettering(&mut self) {
        let target = |values: &EffectiveSettings| values.text("dead-letter-exchange").map(str::to_owned);
        if let (Some(old), None) = (target(self.old), target(self.new)) {
            let text = format!(
                "its dead-letter exchange {old} is removed: messages that are rejected, expire or overflow are \
                 dropped from then on"
            );
            self.add(HazardKind::MessageDrop, text, None);
        }
    }

    /// Adds the hazards of a stream. The broker deletes whole segments, all but the newest one.
    fn retention(&mut self) {
        if self.queue_type != Some(QueueType::Stream) {
            return;
        }
        let limit = |values: &EffectiveSettings| values.text("max-age").map(str::to_owned);
        let (old, new) = (limit(self.old), limit(self.new));
        if let Some(new) = new.filter(|new| old.is_none_or(|old| is_shorter(new, &old))) {
            self.add(HazardKind::MessageDrop, format!("max-age becomes {new}: older messages are deleted"), None);
        }
        if let Some(bytes) = self.lowered("max-length-bytes") {
            let value = with_unit("max-length-bytes", &ArgumentValue::Integer(bytes));
            let text = format!("max-length-bytes becomes {value}: the oldest messages beyond this size are deleted");
            self.add(HazardKind::MessageDrop, text, None);
        }
    }

    /// Adds the hazard of messages that wait to be dead-lettered. They stay in a quorum queue until they have arrived,
    /// as long as its dead-lettering is at-least-once. When it no longer is, the broker drops all of them immediately
    /// (measured on 3.10.8 and 4.3.6: 5 of 5).
    fn backlog(&mut self) {
        if self.old.is_at_least_once() && !self.new.is_at_least_once() {
            let holds = self.holds();
            let text = format!(
                "its dead-lettering is no longer at-least-once, and the queue holds {holds}: messages that wait to be \
                 dead-lettered are dropped immediately"
            );
            self.add(HazardKind::MessageDrop, text, self.bound());
        }
    }

    fn requeues(&mut self) {
        let Some(limit) = self.new.delivery_limit() else { return };
        if self.old.delivery_limit().is_some_and(|old| old <= limit) {
            return;
        }
        let fate = if self.new.has("dead-letter-exchange") { "dead-lettered" } else { "dropped" };
        let text = format!(
            "delivery-limit becomes {limit}: a message that was delivered more often is {fate} when it is requeued"
        );
        self.add(HazardKind::MessageDrop, text, self.messages);
    }

    fn length(&mut self) {
        let limit = self.new.integer("max-length");
        let (rejected, rejects) = (self.old.when_full().refuses(), self.new.when_full().refuses());
        let lowered = self.lowered("max-length");
        if let Some(limit) = limit {
            let over = self.may_exceed(limit);
            let holds = self.holds();
            let mut is_reported = false;
            if over && (lowered.is_some() || rejected && !rejects) {
                // A classic queue applies `max-length` before `overflow`
                // (`rabbit_amqqueue_process:process_args_policy`). A queue that did not reject publishes before first
                // drops messages and then rejects publishes. (Measured: of 4 messages with limit 2, 2 remained.)
                if !rejects || !rejected && self.queue_type != Some(QueueType::Quorum) {
                    let dropped = self.bound().map(|count| count.saturating_sub(u64::try_from(limit).unwrap_or(0)));
                    let why = match lowered {
                        Some(_) => format!("max-length becomes {limit}, and the queue holds {holds}"),
                        None => {
                            format!("the queue no longer rejects publishes, and holds {holds} with max-length {limit}")
                        }
                    };
                    self.add(HazardKind::MessageDrop, format!("{why}: the oldest are removed immediately"), dropped);
                }
                if rejects {
                    let are = if self.has_stale_count() { "can be" } else { "are" };
                    let text =
                        format!("max-length becomes {limit}, and the queue holds {holds}: publishes {are} rejected");
                    self.add(HazardKind::PublisherBlock, text, None);
                    is_reported = true;
                }
            }
            if is_reported {
                return;
            }
        }
        let limited = limit.is_some() || self.new.has("max-length-bytes");
        if !rejected && rejects && limited {
            let holds = self.holds();
            let text = format!(
                "overflow becomes reject-publish, and the queue holds {holds}: when it is full, publishes are \
                 rejected"
            );
            self.add(HazardKind::PublisherBlock, text, None);
        }
    }

    fn bytes(&mut self) {
        let (rejected, rejects) = (self.old.when_full().refuses(), self.new.when_full().refuses());
        let limit = self.new.integer("max-length-bytes");
        let Some(bytes) = self.lowered("max-length-bytes").or(limit.filter(|_| rejected && !rejects)) else { return };
        if self.has_stale_count() && bytes >= BYTES_PER_TICK.saturating_mul(self.intervals.ticks_by_default()) {
            return;
        }
        let value = with_unit("max-length-bytes", &ArgumentValue::Integer(bytes));
        let holds = self.holds();
        if self.lowered("max-length-bytes").is_none() {
            let text = format!(
                "the queue no longer rejects publishes, and holds {holds} with max-length-bytes {value}: some \
                         can be removed"
            );
            self.add(HazardKind::MessageDrop, text, self.bound());
            return;
        }
        if !rejects || !rejected && self.queue_type != Some(QueueType::Quorum) {
            let text =
                format!("max-length-bytes becomes {value}, and the queue holds {holds}: some of them can be removed");
            self.add(HazardKind::MessageDrop, text, self.bound());
        } else {
            let text =
                format!("max-length-bytes becomes {value}, and the queue holds {holds}: publishes can be rejected");
            self.add(HazardKind::PublisherBlock, text, None);
        }
    }

    /// Adds the hazards of returned messages that do not fit, or that expire before they are consumed.
    fn returned_messages(&mut self) {
        self.returned_length();
        let (rejects, returning) = (self.new.when_full().refuses(), self.returning());
        if let Some(bytes) = self.lowered("max-length-bytes") {
            let value = with_unit("max-length-bytes", &ArgumentValue::Integer(bytes));
            let text = format!("max-length-bytes becomes {value}, and {returning}");
            if rejects {
                self.add(HazardKind::PublisherBlock, format!("{text}: {WAITING}"), None);
            } else {
                self.add(HazardKind::MessageDrop, format!("{text}: some of them can be removed"), self.bound());
            }
        }
        if let Some(ttl) = self.lowered("message-ttl") {
            let value = with_unit("message-ttl", &ArgumentValue::Integer(ttl));
            let fate = if self.new.has("dead-letter-exchange") { "dead-lettered" } else { "dropped" };
            let text = format!(
                "message-ttl becomes {value}, and {returning}: messages that are not consumed by then are {fate}"
            );
            self.add(HazardKind::MessageDrop, text, self.messages);
        }
    }

    /// Adds the hazard of more returned messages than the queue may hold.
    fn returned_length(&mut self) {
        let Some(limit) = self.lowered("max-length") else { return };
        if self.messages.is_some_and(|count| i64::try_from(count).unwrap_or(i64::MAX) <= limit) {
            return;
        }
        let text = format!("max-length becomes {limit}, and {}", self.returning());
        if self.new.when_full().refuses() {
            self.add(HazardKind::PublisherBlock, format!("{text}: {WAITING}"), None);
        } else {
            let dropped = self.bound().map(|count| count.saturating_sub(u64::try_from(limit).unwrap_or(0)));
            self.add(HazardKind::MessageDrop, format!("{text}: the oldest are removed immediately"), dropped);
        }
    }

    fn returning(&self) -> String {
        match self.messages {
            Some(1) => "1 message returns".to_owned(),
            Some(messages) => format!("{} messages return", number(messages)),
            None => "an unknown number of messages return".to_owned(),
        }
    }

    /// Adds the hazard of a shorter TTL. For every queue type, a message gets its expiry when it arrives.
    fn message_ttl(&mut self) {
        let Some(ttl) = self.lowered("message-ttl") else { return };
        let value = with_unit("message-ttl", &ArgumentValue::Integer(ttl));
        let fate = if self.new.has("dead-letter-exchange") { "dead-lettered" } else { "dropped" };
        let holds = self.holds();
        let text = format!(
            "message-ttl becomes {value}: new messages are {fate} after that time; the {holds} in the queue keep \
             their TTL"
        );
        self.add(HazardKind::MessageDrop, text, self.messages);
    }
}

/// Returns true if an age, such as `7D`, is shorter than another, or if they cannot be compared.
fn is_shorter(new: &str, old: &str) -> bool {
    match (age(new), age(old)) {
        (Some(new), Some(old)) => new < old,
        (None, _) | (_, None) => new != old,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_compared_by_length() {
        assert!(is_shorter("6D", "168h"));
        assert!(!is_shorter("7D", "168h"));
        assert!(!is_shorter("1Y", "11M"));
        assert!(is_shorter("many", "7D"));
    }
}
