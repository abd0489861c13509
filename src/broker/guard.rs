//! Deletes a queue only if its guard is satisfied according to the broker.
//!
//! A queue is empty if its total is 0. The sum of ready and unacknowledged messages is not sufficient, because it
//! excludes messages that are awaiting at-least-once dead-lettering. A missing total is not treated as 0. The broker's
//! delete flags have these effects on 3.8 to 4.3:
//!
//! | | `if-empty` | `if-unused` |
//! |---|---|---|
//! | classic | 400 if the queue has *ready* messages (`rabbit_amqqueue_process`) | 400 if the queue has a consumer |
//! | quorum | 400 "not supported" | 400 |
//! | stream | ignored; deletes the stream with its messages (`rabbit_stream_queue:delete`) | ignored |
//!
//! # Classic queues
//!
//! topo reads the total and deletes the queue with both flags, which the queue's process checks atomically. Without
//! consumers, the only unacknowledged messages are those that a client fetched with `basic.get`, and those of a
//! consumer that has since been canceled. If the queue has consumers, topo omits `if-unused`, because a guard protects
//! only messages, and the plan may allow the disruption of consumers.
//!
//! Two limitations remain. The delete also cancels consumers that the plan does not list. These consumers subscribed
//! after topo read the statistics for the plan, or up to 5 s earlier. Messages that a consumer receives between the
//! last read of the total and the delete are unacknowledged, and `if-empty` ignores unacknowledged messages.
//!
//! # Quorum queues
//!
//! The total comes from the last tick (5 s by default), and can be 0 although the queue contains messages (observed).
//! The total must therefore remain 0, or within the allowed loss, for two ticks. To prove that a queue is empty, topo
//! uses every read of the vhost's totals, including reads for other queues
//! ([`Emptiness`](super::emptiness::Emptiness)). A `get` immediately before the delete detects messages that arrived
//! after the last tick. The broker does not expose the tick interval, so topo must observe two ticks, unless a user
//! specified the interval or an earlier observation in this run confirmed it ([`Ticks`](super::ticks::Ticks)).

use super::connection::Broker;
use super::deletion::Performed;
use super::error::BrokerError;
use super::ticks::Ticks;
use super::wire::QueueTotals;
use crate::model::{QueueName, QueueType, VhostName};
use crate::plan::Guard;
use crate::plan::request::{Method, Request, path};
use serde::de::IgnoredAny;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long an unbound queue must be empty before topo treats it as drained.
const SETTLE_TIME: Duration = Duration::from_secs(1);
/// The maximum number of reads for a queue that exists but is not listed.
const UNLISTED_READS: usize = 10;

/// A callback that topo calls repeatedly while a proof waits for ticks. Its argument is the expected duration of the
/// proof.
pub type OnProof<'a> = &'a dyn Fn(Duration);

impl Broker {
    /// Deletes a queue if its guard is satisfied. `delete` is the request without flags.
    ///
    /// A retry repeats the whole check, not just the delete, because the name may now refer to a queue that another
    /// client has created.
    pub(super) async fn delete_queue(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        guard: Guard,
        delete: &Request,
        observe: OnProof<'_>,
    ) -> Result<Performed, BrokerError> {
        match guard {
            Guard::Nothing => {
                self.retrying_when(BrokerError::is_unprocessed, || self.forget_and_delete(vhost, name, delete)).await
            }
            // No message may be lost. The proof of emptiness is more reliable than a single total.
            Guard::Empty | Guard::AtMost(0) => {
                self.retrying_when(BrokerError::is_unprocessed, || self.delete_if_empty(vhost, name, delete, observe))
                    .await
            }
            Guard::Drained => {
                self.retrying_when(BrokerError::is_unprocessed, || self.delete_if_drained(vhost, name, delete, observe))
                    .await
            }
            Guard::AtMost(allowed) => {
                let check = || self.delete_if_at_most(vhost, name, allowed, delete, observe);
                self.retrying_when(BrokerError::is_unprocessed, check).await
            }
        }
    }

    /// Sends a delete. Forgets the proof of emptiness first, because it is invalid after the delete, even if the
    /// response is lost.
    async fn forget_and_delete(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        delete: &Request,
    ) -> Result<Performed, BrokerError> {
        self.emptiness().forget(vhost, name);
        self.delete_once(delete).await
    }

    /// Deletes a queue if it contains at most `allowed` messages. For a quorum queue, observes the total for two ticks.
    async fn delete_if_at_most(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        allowed: u64,
        delete: &Request,
        observe: OnProof<'_>,
    ) -> Result<Performed, BrokerError> {
        let mut first = None;
        let mut ticks = Ticks::new(self, vhost, name);
        loop {
            let sent = Instant::now();
            let Some(totals) = self.totals_of(vhost, name, delete).await? else { return Ok(Performed::AlreadyGone) };
            check_at_most(allowed, name, &totals)?;
            if queue_type(&totals) != Some(QueueType::Quorum) {
                break;
            }
            // The total of a quorum queue comes from its last tick. topo cannot detect messages that arrive after that
            // tick without a `get` of all messages, which would increase the delivery count of each message.
            let first = *first.get_or_insert_with(Instant::now);
            if ticks.have_passed(sent.saturating_duration_since(first)).await? {
                break;
            }
            self.wait_for_tick(observe).await;
        }
        self.forget_and_delete(vhost, name, delete).await
    }

    /// Deletes an unbound queue after the queue has been empty for [`SETTLE_TIME`]. Returns an error immediately if the
    /// queue contains messages. Messages that were routed to the queue before the unbind can arrive later, for example
    /// from another node.
    async fn delete_if_drained(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        delete: &Request,
        observe: OnProof<'_>,
    ) -> Result<Performed, BrokerError> {
        loop {
            let Some(totals) = self.totals_of(vhost, name, delete).await? else { return Ok(Performed::AlreadyGone) };
            check_empty(name, &totals)?;
            let missing = SETTLE_TIME.saturating_sub(self.emptiness().empty_for(vhost, name));
            if missing.is_zero() {
                return self.delete_if_empty(vhost, name, delete, observe).await;
            }
            // After a longer sleep, the next read could be too late to continue the same observation.
            sleep(missing.min(self.intervals().poll_interval())).await;
        }
    }

    /// Proves that a queue is empty according to the broker. Returns false if the queue does not exist.
    ///
    /// Messages may arrive after the proof. An immediate delete with a guard reuses the proof. If a caller deletes the
    /// queue without [`Self::perform`], it must first [forget](Self::forget_emptiness) the proof.
    ///
    /// # Errors
    /// The queue is not empty, or topo cannot prove that the queue is empty. For streams and for queue types from
    /// plugins, a proof is never possible.
    pub async fn prove_empty(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        observe: OnProof<'_>,
    ) -> Result<bool, BrokerError> {
        let delete = Request::delete(path("queues", &[vhost.as_str(), name.as_str()]));
        let prove = || self.prove_empty_once(vhost, name, &delete, observe);
        Ok(self.retrying_when(BrokerError::is_unprocessed, prove).await?.is_some())
    }

    /// Discards the proof that a queue is empty. Must be called before any change that may make the name refer to a new
    /// queue.
    pub fn forget_emptiness(&self, vhost: &VhostName, name: &QueueName) {
        self.emptiness().forget(vhost, name);
    }

    /// Proves that a queue is empty, and deletes the queue.
    async fn delete_if_empty(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        delete: &Request,
        observe: OnProof<'_>,
    ) -> Result<Performed, BrokerError> {
        match self.prove_empty_once(vhost, name, delete, observe).await? {
            None => Ok(Performed::AlreadyGone),
            Some(QueueType::Classic) => {
                let unused = delete.clone().with_query("if-empty=true&if-unused=true");
                match self.forget_and_delete(vhost, name, &unused).await {
                    Err(BrokerError::Refused { reason, .. }) if reason.ends_with("in use") => {}
                    answer => return refusal_as_not_empty(name, answer),
                }
                let Some(totals) = self.totals_of(vhost, name, delete).await? else {
                    return Ok(Performed::AlreadyGone);
                };
                check_empty(name, &totals)?;
                let used = delete.clone().with_query("if-empty=true");
                refusal_as_not_empty(name, self.forget_and_delete(vhost, name, &used).await)
            }
            Some(QueueType::Quorum | QueueType::Stream) => match self.forget_and_delete(vhost, name, delete).await {
                // The delete was incomplete. The broker deleted the members, and then the metadata store had no leader,
                // because the leader's node stopped (4.3.6). topo has proven that the queue was empty, so no messages
                // are lost.
                Err(_) if self.missing_members(vhost, name).await.is_some() => {
                    self.forget_and_delete(vhost, name, delete).await
                }
                answer => answer,
            },
        }
    }

    /// Proves that a queue is empty, and returns its type; `None` if the queue does not exist. The type is never
    /// stream.
    ///
    /// # Errors
    /// The queue is not empty, or topo cannot prove that the queue is empty. For streams and for queue types from
    /// plugins, a proof is never possible.
    async fn prove_empty_once(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        delete: &Request,
        observe: OnProof<'_>,
    ) -> Result<Option<QueueType>, BrokerError> {
        let Some(totals) = self.totals_of(vhost, name, delete).await? else { return Ok(None) };
        match queue_type(&totals) {
            Some(QueueType::Classic) => {
                check_empty(name, &totals)?;
                Ok(Some(QueueType::Classic))
            }
            Some(QueueType::Quorum) => {
                check_empty(name, &totals)?;
                let mut ticks = Ticks::new(self, vhost, name);
                loop {
                    let seen = self.emptiness().empty_for(vhost, name);
                    if ticks.have_passed(seen).await? {
                        break;
                    }
                    self.wait_for_tick(observe).await;
                    let Some(totals) = self.totals_of(vhost, name, delete).await? else { return Ok(None) };
                    check_empty(name, &totals)?;
                }
                self.check_nothing_ready(name, delete).await?;
                Ok(Some(QueueType::Quorum))
            }
            Some(QueueType::Stream) => Err(emptiness_unknown(
                name,
                "it is a stream, which keeps messages after they are read, and the broker does not report how many",
            )),
            None => Err(emptiness_unknown(name, "a plugin defines its type, so topo cannot prove that it is empty")),
        }
    }

    /// Calls `observe`, and waits until the next read of the totals.
    async fn wait_for_tick(&self, observe: OnProof<'_>) {
        observe(self.intervals().two_ticks());
        sleep(self.intervals().poll_interval()).await;
    }

    /// Returns [`BrokerError::NotEmpty`] if a quorum queue contains a ready message, and [`BrokerError::NoMembers`] if
    /// no member of the queue is running. Gets a message and requeues it immediately before the delete, because the
    /// totals do not include messages that arrived after the last tick.
    ///
    /// The request does not change an empty queue. A requeued message returns to its position and is marked as
    /// redelivered, and its delivery count increases by one (except on 4.3). At the delivery limit, the broker
    /// dead-letters or drops the message, which is acceptable compared with the loss of all messages. The request does
    /// not detect messages that a consumer has received since the last tick.
    async fn check_nothing_ready(&self, name: &QueueName, delete: &Request) -> Result<(), BrokerError> {
        let get = Request {
            method: Method::Post,
            path: format!("{}/get", delete.path),
            body: Some(json!({"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 0})),
        };
        let answer = match self.send_once(&get).await {
            // The user may have permission to delete the queue, but not to read it. A queue with a single active
            // consumer refuses every `get`. In both cases, topo accepts the two ticks as proof. Otherwise, topo would
            // never be able to delete the queue.
            Err(BrokerError::AccessRefused { .. }) => return Ok(()),
            Err(BrokerError::Refused { reason, .. }) if reason.contains("single active consumer") => return Ok(()),
            Err(BrokerError::Refused { reason, .. }) if reason.contains("noproc") => {
                return Err(BrokerError::NoMembers { queue: name.clone(), reason });
            }
            // The queue no longer exists. The delete reports this.
            Err(BrokerError::NotFound { .. }) => return Ok(()),
            answer => answer?,
        };
        match answer.json::<Vec<IgnoredAny>>(&get)?.is_empty() {
            true => Ok(()),
            false => Err(BrokerError::NotEmpty { queue: name.clone(), messages: None }),
        }
    }

    /// Returns [`BrokerError::NoMembers`] if the broker lists a quorum queue that has no running members. RabbitMQ
    /// 4.3.6 lists such a queue as running, with a leader, and rejects all messages that are published to the queue.
    /// topo checks only queues with a total of 0, because the check would mark a message as redelivered. Returns `None`
    /// for all other queues, and if the check is not possible.
    pub async fn missing_members(&self, vhost: &VhostName, name: &QueueName) -> Option<BrokerError> {
        let delete = Request::delete(path("queues", &[vhost.as_str(), name.as_str()]));
        let totals = self.totals_of(vhost, name, &delete).await.ok().flatten()?;
        check_empty(name, &totals).ok()?;
        self.check_nothing_ready(name, &delete).await.err().filter(|it| matches!(it, BrokerError::NoMembers { .. }))
    }

    /// Returns the totals of a queue; `None` if the queue does not exist. If the list omits the queue, because a node
    /// is lagging or the queue is expiring, requests the queue itself. Repeats both requests if the queue exists.
    async fn totals_of(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        delete: &Request,
    ) -> Result<Option<QueueTotals>, BrokerError> {
        for _ in 0..UNLISTED_READS {
            let totals = match self.totals(vhost).await {
                Err(BrokerError::NotFound { .. }) => return Ok(None),
                other => other?,
            };
            if let Some(of_queue) = totals.into_iter().find(|totals| totals.name == name.as_str()) {
                return Ok(Some(of_queue));
            }
            match self.send(&Request::get(delete.path.clone()).with_query("disable_stats=true")).await {
                Err(BrokerError::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(error),
                Ok(_) => sleep(self.intervals().poll_interval()).await,
            }
        }
        Err(emptiness_unknown(name, "it exists, but the broker does not list it"))
    }
}

/// Returns an error if a queue contains more messages than allowed, or if the total is unknown.
fn check_at_most(allowed: u64, name: &QueueName, totals: &QueueTotals) -> Result<(), BrokerError> {
    match totals.messages {
        Some(messages) if messages <= allowed => Ok(()),
        Some(messages) => Err(BrokerError::MoreThanAllowed { queue: name.clone(), messages, allowed }),
        None => Err(emptiness_unknown(name, "the broker does not report how many messages it contains")),
    }
}

/// Returns an error if the total of a queue is not 0, or is unknown.
fn check_empty(name: &QueueName, totals: &QueueTotals) -> Result<(), BrokerError> {
    match totals.messages {
        Some(0) => Ok(()),
        Some(messages) => Err(BrokerError::NotEmpty { queue: name.clone(), messages: Some(messages) }),
        None => Err(emptiness_unknown(name, "the broker does not report whether it contains messages")),
    }
}

/// Converts the refusal `queue 'q' in vhost 'v' not empty` into [`BrokerError::NotEmpty`]. The broker refuses the
/// delete if a message arrived after the read.
fn refusal_as_not_empty<T>(name: &QueueName, answer: Result<T, BrokerError>) -> Result<T, BrokerError> {
    match answer {
        Err(BrokerError::Refused { reason, .. }) if reason.ends_with("not empty") => {
            Err(BrokerError::NotEmpty { queue: name.clone(), messages: None })
        }
        other => other,
    }
}

/// Returns the type of a queue; `None` for a queue type from a plugin. On every version, the `x-queue-type` argument
/// contains the type of queues that are not classic. The `type` field distinguishes classic queues from plugin queues.
fn queue_type(totals: &QueueTotals) -> Option<QueueType> {
    match totals.arguments.get("x-queue-type").and_then(|value| value.as_text()) {
        Some(word) => QueueType::named(word),
        None => match totals.kind.as_deref() {
            None | Some("rabbit_classic_queue") => Some(QueueType::Classic),
            Some(word) => QueueType::named(word),
        },
    }
}

/// Builds the error for a queue whose number of messages is unknown.
fn emptiness_unknown(name: &QueueName, reason: &str) -> BrokerError {
    BrokerError::EmptinessUnknown { queue: name.clone(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(text: &str) -> QueueTotals {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn type_is_read_from_argument_or_field() {
        let of = |text| queue_type(&totals(text));
        assert_eq!(of(r#"{"name":"q","type":"classic","arguments":{}}"#), Some(QueueType::Classic));
        assert_eq!(of(r#"{"name":"q","arguments":{}}"#), Some(QueueType::Classic));
        assert_eq!(of(r#"{"name":"q","arguments":{"x-queue-type":"quorum"}}"#), Some(QueueType::Quorum));
        assert_eq!(of(r#"{"name":"q","type":"stream","arguments":{}}"#), Some(QueueType::Stream));
        assert_eq!(of(r#"{"name":"q","type":"rabbit_mqtt_qos0_queue","arguments":{}}"#), None);
    }

    #[test]
    fn missing_total_is_not_zero() {
        let check = |text| check_empty(&"q".into(), &totals(text));
        assert_eq!(check(r#"{"name":"q","messages":0}"#), Ok(()));
        assert!(matches!(check(r#"{"name":"q","messages":3}"#), Err(BrokerError::NotEmpty { messages: Some(3), .. })));
        assert!(matches!(check(r#"{"name":"q","messages_ready":0}"#), Err(BrokerError::EmptinessUnknown { .. })));
    }
}
