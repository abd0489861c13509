//! Reads the history of a dead-lettered message from its headers: the queues in which it failed, and the reasons.

use crate::broker::message::{HeaderValue, ReceivedMessage};
use crate::model::QueueName;
use crate::model::message_headers::{
    DEATHS, DELIVERY_COUNT, ERRORS, LAST_FAILED_AT, ORIGINAL_EXCHANGE, ORIGINAL_ROUTING_KEY, REPLAYS, SOURCE_QUEUE,
    is_delivery_count, is_removed_from_replayed,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::time::UNIX_EPOCH;

/// An entry in the `x-death` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// The queue that dead-lettered the message.
    pub queue: QueueName,
    /// The reason, such as `rejected`.
    pub reason: String,
    /// The number of times that the queue dead-lettered the message for this reason.
    pub count: u64,
    /// The exchange to which the message was published before the death.
    pub exchange: String,
    /// The routing keys with which the message was published before the death.
    pub routing_keys: Vec<String>,
    /// The time of the first of these deaths, in seconds since 1970; `None` if the header does not contain it.
    pub time: Option<u64>,
}

/// A message in a dead-letter queue.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// The position in the queue, starting at 1.
    pub position: u64,
    /// The message.
    pub message: ReceivedMessage,
    /// The entries in `x-death`, in the order of the header.
    pub deaths: Vec<Death>,
    /// The queue in which the message failed; `None` if unknown.
    pub source: Option<QueueName>,
    /// The other queues in which the message may have failed.
    pub other_sources: Vec<QueueName>,
    /// The reason for the death in the newest entry for [`Self::source`]; `None` if there is no entry.
    pub reason: Option<String>,
    /// The newest time in `x-death`, in seconds since 1970. If `x-death` contains no time, the time in the
    /// `x-last-failed-at` header. The last death can be later than the time in `x-death`, because each entry contains
    /// only the time of the first death for its queue and reason.
    pub died_at: Option<u64>,
    /// The exchange to which the message was first published; `None` if unknown.
    pub original_exchange: Option<String>,
    /// The routing key with which the message was first published; its current routing key if
    /// [`Self::is_routing_key_known`] is false.
    pub original_routing_key: String,
    /// True if the message contains its original routing key.
    pub is_routing_key_known: bool,
}

impl DeadLetter {
    /// Reads the history of a message. `is_intermediate` returns true for delayed retry queues and dead-letter queues,
    /// in which messages do not fail. `has_queue` returns true for existing queues.
    ///
    /// The source is the queue in the newest `x-death` entry. Entries for intermediate queues are ignored. Without an
    /// entry, topo assumes that a worker published the message. In that case, the source is the queue in the
    /// `x-source-queue` header, or the existing queue whose name is the routing key.
    pub fn of(
        position: u64,
        message: ReceivedMessage,
        is_intermediate: impl Fn(&QueueName) -> bool,
        has_queue: impl Fn(&QueueName) -> bool,
    ) -> Self {
        let deaths = deaths(&message);
        let mut failed: Vec<&Death> = deaths.iter().filter(|death| !is_intermediate(&death.queue)).collect();
        // The order of the entries is not reliable: RabbitMQ 3.12 and earlier reverse the older entries.
        failed.sort_by_key(|death| std::cmp::Reverse(death.time));
        let newest = failed.first().copied();
        let by_worker = || {
            let named = message.text_header(SOURCE_QUEUE).map(QueueName::new);
            let by_key =
                || Some(QueueName::new(&message.routing_key)).filter(|name| !is_intermediate(name) && has_queue(name));
            named.or_else(by_key)
        };
        let source = newest.map(|death| death.queue.clone()).or_else(by_worker);
        let others: BTreeSet<&QueueName> =
            failed.iter().map(|it| &it.queue).filter(|it| Some(*it) != source.as_ref()).collect();
        let other_sources = others.into_iter().cloned().collect();
        // A message that failed for several reasons has an entry for each of them. The oldest entry contains the
        // original exchange and routing keys.
        let first = failed.iter().rev().find(|death| Some(&death.queue) == source.as_ref()).copied();
        let text = |name: &str| message.text_header(name).map(str::to_owned);
        let original_exchange = text(ORIGINAL_EXCHANGE).or_else(|| first.map(|death| death.exchange.clone()));
        let recorded_key =
            text(ORIGINAL_ROUTING_KEY).or_else(|| first.and_then(|death| death.routing_keys.first().cloned()));
        let is_routing_key_known = recorded_key.is_some();
        let original_routing_key = recorded_key.unwrap_or_else(|| message.routing_key.clone());
        let reason = newest.map(|death| death.reason.clone());
        let by_broker = deaths.iter().filter_map(|death| death.time).max();
        let died_at = by_broker.or_else(|| message.text_header(LAST_FAILED_AT).and_then(seconds));
        Self {
            position,
            deaths,
            source,
            other_sources,
            reason,
            died_at,
            original_exchange,
            original_routing_key,
            is_routing_key_known,
            message,
        }
    }

    /// Returns the error from the last attempt, taken from the headers that common frameworks set; `None` if the
    /// message has no such header.
    pub fn error(&self) -> Option<&str> {
        ERRORS.iter().find_map(|name| self.message.text_header(name))
    }

    /// Returns the number of times that topo has replayed the message.
    pub fn replays(&self) -> u64 {
        let count = self.message.header(REPLAYS).and_then(HeaderValue::as_integer);
        count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
    }

    /// Returns the number of previous deliveries that the quorum queue counted. Returns 0 if the header is missing.
    pub fn delivery_count(&self) -> u64 {
        let count = self.message.header(DELIVERY_COUNT).and_then(HeaderValue::as_integer);
        count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
    }

    /// Returns the number of deaths in the source queue.
    pub fn attempts(&self) -> u64 {
        self.deaths.iter().filter(|death| Some(&death.queue) == self.source.as_ref()).map(|death| death.count).sum()
    }

    /// Returns 12 hexadecimal digits that identify the content of the message. A later inspection or death does not
    /// change them. Messages with the same content have the same digits.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for (name, value) in &self.message.properties.texts {
            hash.update(format!("{name}={value}\n"));
        }
        let headers = &self.message.properties.headers;
        let is_set_by_topo = |name: &str| [ORIGINAL_EXCHANGE, ORIGINAL_ROUTING_KEY].contains(&name);
        let is_hashed =
            |name: &str| !is_delivery_count(name) && !is_removed_from_replayed(name) && !is_set_by_topo(name);
        for (name, value) in headers.iter().filter(|(name, _)| is_hashed(name)) {
            hash.update(format!("{name}={value:?}\n"));
        }
        hash.update(format!("{}\n", self.original_routing_key));
        hash.update(&self.message.body);
        hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Parses an RFC 3339 time into seconds since 1970. Returns `None` if `text` is not an RFC 3339 time in UTC, or if the
/// time is before 1970.
fn seconds(text: &str) -> Option<u64> {
    let utc = text.strip_suffix("+00:00").map(|text| format!("{text}Z"));
    let time = humantime::parse_rfc3339_weak(utc.as_deref().unwrap_or(text)).ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

fn deaths(message: &ReceivedMessage) -> Vec<Death> {
    let entries = message.header(DEATHS).map_or(&[][..], HeaderValue::items);
    let death = |entry: &HeaderValue| {
        let text = |name: &str| entry.entry(name).and_then(HeaderValue::as_text).map(str::to_owned);
        let keys = entry.entry("routing-keys").map_or(&[][..], HeaderValue::items);
        Some(Death {
            queue: QueueName::new(text("queue")?),
            reason: text("reason").unwrap_or_default(),
            count: entry
                .entry("count")
                .and_then(HeaderValue::as_integer)
                .and_then(|it| it.try_into().ok())
                .unwrap_or(1),
            exchange: text("exchange").unwrap_or_default(),
            routing_keys: keys.iter().filter_map(HeaderValue::as_text).map(str::to_owned).collect(),
            time: entry.entry("time").and_then(HeaderValue::as_timestamp),
        })
    };
    entries.iter().filter_map(death).collect()
}
