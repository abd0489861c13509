//! Defines a copy of a message, with its headers and deaths.

use super::publication::Publication;
use crate::model::message_headers::{CC, RETRY_COUNT};
use crate::model::{ArgumentValue, Arguments, BrokerVersion, ExchangeName, QueueName};
use crate::rabbitmq::routing::{DeathHistory, Headers, Keys, Message, Reason, SenderSelected};

/// An entry of the `x-death` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeathEntry {
    /// The queue that dead-lettered the message.
    pub queue: QueueName,
    /// The reason.
    pub reason: Reason,
    /// The number of times that the queue dead-lettered the message for this reason.
    pub count: u64,
    /// The exchange of the message when the queue first dead-lettered it for this reason.
    pub exchange: ExchangeName,
    /// The routing keys of the message at that time, usually its routing key and the keys in the `CC` header.
    pub routing_keys: Vec<String>,
}

/// A copy of a message in a queue.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    /// The number of the published message, starting at 1.
    pub(super) message: u64,
    pub(super) exchange: ExchangeName,
    pub(super) routing_key: String,
    pub(super) more_keys: SenderSelected,
    /// The keys in the `BCC` header of the published message. Except on 3.13.0 to 3.13.2, `x-death` does not contain
    /// these keys.
    pub(super) hidden_keys: Vec<String>,
    pub(super) headers: Headers,
    pub(super) deaths: Vec<DeathEntry>,
    pub(super) history: DeathHistory,
    /// The `expiration` property, in milliseconds.
    pub(super) expiration: Option<i64>,
    /// The time at which the copy expires in its queue.
    pub(super) expires_at: Option<i64>,
    /// The number of counted deliveries. On 4.3 and later, this includes the deliveries from earlier queues.
    pub(super) delivery_count: i64,
    /// The number of retries that a worker has counted in a header.
    pub(super) retries: u32,
    /// True if a worker published the deaths in a header, and this version of the broker ignores such deaths. The next
    /// dead-lettering discards the ignored deaths.
    pub(super) has_foreign_deaths: bool,
    /// The number of deliveries of the copy and its predecessors.
    pub(super) deliveries: u32,
    /// The number of deaths of the copy and its predecessors.
    pub(super) total_deaths: u32,
}

impl Copy {
    /// Creates a copy of a published message.
    pub(super) fn published(publication: &Publication, message: u64) -> Self {
        let Message { more_keys, headers, .. } = publication.message();
        Self {
            message,
            exchange: publication.exchange.clone(),
            routing_key: publication.routing_key.clone(),
            hidden_keys: more_keys.bcc().to_vec(),
            more_keys,
            headers,
            deaths: Vec::new(),
            history: DeathHistory::default(),
            expiration: publication.expiration,
            expires_at: None,
            delivery_count: 0,
            retries: retries(publication),
            has_foreign_deaths: false,
            deliveries: 0,
            total_deaths: 0,
        }
    }

    /// Returns the message for the routing simulation.
    pub(super) fn as_message(&self) -> Message {
        let (keys, more_keys) = (Keys::One(self.routing_key.clone()), self.more_keys.clone());
        Message { keys, more_keys, headers: self.headers.clone() }
    }

    /// Sets headers.
    pub(super) fn set_headers(&mut self, headers: &Arguments) {
        for (name, value) in headers {
            self.headers.set(name, Some(value.clone()));
        }
    }

    /// Sets the additional routing keys of a copy that a worker publishes: the keys in the `CC` header.
    pub(super) fn set_republished_keys(&mut self) {
        self.more_keys = SenderSelected::of_cc(self.headers.get(CC).flatten());
        self.hidden_keys.clear();
    }

    /// Removes the deaths that a worker published.
    pub(super) fn forget_foreign_deaths(&mut self) {
        if std::mem::take(&mut self.has_foreign_deaths) {
            self.deaths.clear();
            self.history = DeathHistory::default();
            self.headers.remove_deaths();
        }
    }

    /// Returns the routing keys that the broker records in `x-death`. RabbitMQ 3.12 and earlier record the routing key
    /// and the keys in the `CC` header. RabbitMQ 3.13 and later record all keys. RabbitMQ 3.13.3 and later then remove
    /// the keys in the `BCC` header (`mc:record_death`).
    fn recorded_keys(&self, version: BrokerVersion) -> Vec<String> {
        let is_old = !version.is_at_least(3, 13);
        let more = self.more_keys.cc().iter().chain(self.more_keys.bcc().iter().filter(|_| !is_old));
        let mut keys: Vec<String> = std::iter::once(&self.routing_key).chain(more).cloned().collect();
        if version >= BrokerVersion::new(3, 13, 3) {
            for hidden in &self.hidden_keys {
                if let Some(index) = keys.iter().position(|key| key == hidden) {
                    keys.remove(index);
                }
            }
        }
        keys
    }

    /// Adds a death to the entries, as the broker does.
    pub(super) fn add_death(&mut self, queue: &QueueName, reason: Reason, version: BrokerVersion) {
        let known = self.deaths.iter().position(|death| death.queue == *queue && death.reason == reason);
        let entry = match known {
            Some(index) => {
                let mut entry = self.deaths.remove(index);
                entry.count += 1;
                entry
            }
            None => DeathEntry {
                queue: queue.clone(),
                reason,
                count: 1,
                exchange: self.exchange.clone(),
                routing_keys: self.recorded_keys(version),
            },
        };
        self.deaths.insert(0, entry);
    }
}

/// Returns the number of retries in the retry header of a published message; 0 without a valid header.
fn retries(publication: &Publication) -> u32 {
    let count = publication.headers.get(RETRY_COUNT).and_then(ArgumentValue::as_integer);
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}
