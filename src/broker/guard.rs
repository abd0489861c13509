//! Deletes a queue only while its guard is satisfied, as far as the broker reports it.
//!
//! "Empty" is a total of 0: not ready plus unacknowledged, because a backlog of at-least-once dead letters is neither.
//! A number that is missing is not 0. What the broker's own flags are worth, on 3.8 to 4.3:
//!
//! | | `if-empty` | `if-unused` |
//! |---|---|---|
//! | classic | counts *ready* only: with two unacknowledged messages a queue is deleted (`rabbit_amqqueue_process`) | 400 with a consumer |
//! | quorum | 400 "not supported" | 400 |
//! | stream | ignored: deleted with all that is in it (`rabbit_stream_queue:delete`) | ignored |
//!
//! So a classic queue is asked for its total and deleted with both flags, which one process checks at once: with no
//! consumer, nothing is unacknowledged but what a `basic.get` took. With consumers it goes without `if-unused`: a guard is
//! about messages, and the plan may have leave to disrupt consumers. So a consumer that came after the plan read the
//! consumers (or up to 5 s before: they come from statistics) is cancelled without leave, and what it takes between the
//! last look at the total and the delete is unacknowledged, which `if-empty` does not see. A quorum
//! queue's total comes from a tick (5 s by default) and was seen at 0 with messages inside, so it must stay 0 (or within what may be lost) for two ticks; every
//! look at the totals of its vhost counts, also those for other queues ([`Emptiness`](super::emptiness::Emptiness)). What
//! came after the last tick is found by asking the queue for a message right before the delete. The broker does not show
//! how long its tick is: where no user specified it, two ticks must be observed ([`Ticks`](super::ticks::Ticks)).

use super::connection::Broker;
use super::error::BrokerError;
use super::perform::Performed;
use super::ticks::Ticks;
use super::wire::QueueTotals;
use crate::model::{QueueName, QueueType, VhostName};
use crate::plan::Guard;
use crate::plan::request::{Method, Request, path};
use serde::de::IgnoredAny;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The time without new messages after which an unused queue counts as drained.
const SETTLED: Duration = Duration::from_secs(1);

/// Receives the duration of a proof by ticks, again and again while the proof waits.
pub type OnProof<'a> = &'a dyn Fn(Duration);

impl Broker {
    /// `delete` is the plain request. What is tried again is the whole check, never the delete alone: when an answer was
    /// lost, the queue of that name may already be somebody's new one.
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
                self.retrying_when(BrokerError::is_untouched, || self.try_to_delete(vhost, name, delete)).await
            }
            // No message may be lost: that is what "empty" proves better than one number does.
            Guard::Empty | Guard::AtMost(0) => {
                self.retrying_when(BrokerError::is_untouched, || self.delete_if_empty(vhost, name, delete, observe))
                    .await
            }
            Guard::Drained => {
                self.retrying_when(BrokerError::is_untouched, || self.delete_if_drained(vhost, name, delete, observe))
                    .await
            }
            Guard::AtMost(allowed) => {
                let check = || self.delete_if_at_most(vhost, name, allowed, delete, observe);
                self.retrying_when(BrokerError::is_untouched, check).await
            }
        }
    }

    /// What was seen of the queue before says nothing about what is there after this, even if the answer is lost.
    async fn try_to_delete(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        delete: &Request,
    ) -> Result<Performed, BrokerError> {
        self.emptiness().forget(vhost, name);
        self.delete_once(delete).await
    }

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
            let asked = Instant::now();
            let Some(totals) = self.totals_of(vhost, name, delete).await? else { return Ok(Performed::AlreadyGone) };
            must_be_at_most(allowed, name, &totals)?;
            if queue_type(&totals) != Some(QueueType::Quorum) {
                break;
            }
            // One number of a quorum queue is that of its last tick. What comes after the last look is not seen: a `get`
            // of so many messages would count as a delivery of each.
            let first = *first.get_or_insert_with(Instant::now);
            if ticks.are_over(asked.saturating_duration_since(first)).await? {
                break;
            }
            self.wait_for_tick(observe).await;
        }
        self.try_to_delete(vhost, name, delete).await
    }

    /// What was routed to the queue right before it was unbound may still be under way to it, from another node, say.
    async fn delete_if_drained(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        delete: &Request,
        observe: OnProof<'_>,
    ) -> Result<Performed, BrokerError> {
        loop {
            let Some(totals) = self.totals_of(vhost, name, delete).await? else { return Ok(Performed::AlreadyGone) };
            must_be_empty(name, &totals)?;
            let missing = SETTLED.saturating_sub(self.emptiness().seen_for(vhost, name));
            if missing.is_zero() {
                return self.delete_if_empty(vhost, name, delete, observe).await;
            }
            // In one sleep, two looks could be too far apart to be one observation.
            sleep(missing.min(self.intervals().between_looks())).await;
        }
    }

    /// Proves that a queue is empty, as well as a broker lets anybody; false if it is not there. What may come after that,
    /// nobody knows but who deletes it in the same breath: a delete with that guard need not prove it a second time. Who
    /// deletes it in another way than by [`Self::perform`] has to [forget](Self::forget_emptiness) the proof first.
    pub async fn prove_empty(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        observe: OnProof<'_>,
    ) -> Result<bool, BrokerError> {
        let delete = Request::delete(path("queues", &[vhost.as_str(), name.as_str()]));
        let prove = || self.proven_empty(vhost, name, &delete, observe);
        Ok(self.retrying_when(BrokerError::is_untouched, prove).await?.is_some())
    }

    /// Forgets the proof of emptiness: from now on, the name refers to another queue.
    pub fn forget_emptiness(&self, vhost: &VhostName, name: &QueueName) {
        self.emptiness().forget(vhost, name);
    }

    async fn delete_if_empty(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        delete: &Request,
        observe: OnProof<'_>,
    ) -> Result<Performed, BrokerError> {
        match self.proven_empty(vhost, name, delete, observe).await? {
            None => Ok(Performed::AlreadyGone),
            Some(QueueType::Classic) => {
                let unused = delete.clone().with_query("if-empty=true&if-unused=true");
                match self.try_to_delete(vhost, name, &unused).await {
                    Err(BrokerError::Refused { reason, .. }) if reason.ends_with("in use") => {}
                    answer => return full_is_not_empty(name, answer),
                }
                let Some(totals) = self.totals_of(vhost, name, delete).await? else {
                    return Ok(Performed::AlreadyGone);
                };
                must_be_empty(name, &totals)?;
                let used = delete.clone().with_query("if-empty=true");
                full_is_not_empty(name, self.try_to_delete(vhost, name, &used).await)
            }
            Some(QueueType::Quorum | QueueType::Stream) => match self.try_to_delete(vhost, name, delete).await {
                // Done by halves: the members are deleted first, and then the metadata store had no leader, because its
                // node died (4.3.6). Of its messages nothing is left that was not proven to be nothing.
                Err(_) if self.members_are_gone(vhost, name).await.is_some() => {
                    self.try_to_delete(vhost, name, delete).await
                }
                answer => answer,
            },
        }
    }

    /// The type of an empty queue; `None` if it does not exist. Never a stream.
    async fn proven_empty(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        delete: &Request,
        observe: OnProof<'_>,
    ) -> Result<Option<QueueType>, BrokerError> {
        let Some(totals) = self.totals_of(vhost, name, delete).await? else { return Ok(None) };
        match queue_type(&totals) {
            Some(QueueType::Classic) => {
                must_be_empty(name, &totals)?;
                Ok(Some(QueueType::Classic))
            }
            Some(QueueType::Quorum) => {
                must_be_empty(name, &totals)?;
                let mut ticks = Ticks::new(self, vhost, name);
                loop {
                    let seen = self.emptiness().seen_for(vhost, name);
                    if ticks.are_over(seen).await? {
                        break;
                    }
                    self.wait_for_tick(observe).await;
                    let Some(totals) = self.totals_of(vhost, name, delete).await? else { return Ok(None) };
                    must_be_empty(name, &totals)?;
                }
                self.must_have_nothing_ready(name, delete).await?;
                Ok(Some(QueueType::Quorum))
            }
            Some(QueueType::Stream) => Err(unknown(
                name,
                "it is a stream: it keeps messages after they are read, and the broker does not report how many",
            )),
            None => Err(unknown(name, "a plugin defines its type, so topo cannot prove that it is empty")),
        }
    }

    /// Waits for the next look at the totals.
    async fn wait_for_tick(&self, observe: OnProof<'_>) {
        observe(self.intervals().two_ticks());
        sleep(self.intervals().between_looks()).await;
    }

    /// Asks a quorum queue itself, right before it goes: totals do not show what came after its last tick.
    ///
    /// An empty queue is not changed by it. A message that is there goes back to its place, marked as redelivered, and its
    /// delivery count goes up by one (not on 4.3), so that one at its delivery limit is dead-lettered: a rejection more,
    /// against all that is in the queue. What a consumer took since the last tick is not seen.
    async fn must_have_nothing_ready(&self, name: &QueueName, delete: &Request) -> Result<(), BrokerError> {
        let get = Request {
            method: Method::Post,
            path: format!("{}/get", delete.path),
            body: Some(json!({"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 0})),
        };
        let answer = match self.send_once(&get).await {
            // Who may delete a queue need not be one who may read it, and a queue with a single active consumer answers
            // nobody. Both had their two ticks, and would otherwise never be deleted.
            Err(BrokerError::AccessRefused { .. }) => return Ok(()),
            Err(BrokerError::Refused { reason, .. }) if reason.contains("single active consumer") => return Ok(()),
            Err(BrokerError::Refused { reason, .. }) if reason.contains("noproc") => {
                return Err(BrokerError::NoMembers { queue: name.clone(), reason });
            }
            // It was deleted meanwhile, which the delete reports.
            Err(BrokerError::NotFound { .. }) => return Ok(()),
            answer => answer?,
        };
        match answer.json::<Vec<IgnoredAny>>(&get)?.is_empty() {
            true => Ok(()),
            false => Err(BrokerError::NotEmpty { queue: name.clone(), messages: None }),
        }
    }

    /// What is the matter when a quorum queue is listed and none of its members runs ([`BrokerError::NoMembers`]): 4.3.6
    /// shows it as running, with a leader, and rejects what is published to it. Only asked where nothing is shown to be in
    /// it: a message would be marked as redelivered.
    pub async fn members_are_gone(&self, vhost: &VhostName, name: &QueueName) -> Option<BrokerError> {
        let delete = Request::delete(path("queues", &[vhost.as_str(), name.as_str()]));
        let totals = self.totals_of(vhost, name, &delete).await.ok().flatten()?;
        must_be_empty(name, &totals).ok()?;
        self.must_have_nothing_ready(name, &delete).await.err().filter(|it| matches!(it, BrokerError::NoMembers { .. }))
    }

    /// `None` if the queue is gone: not listed, and the broker says so of the one queue, too. A list from a node that is
    /// behind may lack a queue that is there.
    async fn totals_of(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        delete: &Request,
    ) -> Result<Option<QueueTotals>, BrokerError> {
        let totals = match self.totals(vhost).await {
            Err(BrokerError::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        if let Some(own) = totals.into_iter().find(|totals| totals.name == name.as_str()) {
            return Ok(Some(own));
        }
        match self.send(&Request::get(delete.path.clone()).with_query("disable_stats=true")).await {
            Err(BrokerError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
            Ok(_) => Err(unknown(name, "it exists, but the broker does not list it")),
        }
    }
}

fn must_be_at_most(allowed: u64, name: &QueueName, totals: &QueueTotals) -> Result<(), BrokerError> {
    match totals.messages {
        Some(messages) if messages <= allowed => Ok(()),
        Some(messages) => Err(BrokerError::MoreThanAllowed { queue: name.clone(), messages, allowed }),
        None => Err(unknown(name, "the broker does not report how many messages it contains")),
    }
}

fn must_be_empty(name: &QueueName, totals: &QueueTotals) -> Result<(), BrokerError> {
    match totals.messages {
        Some(0) => Ok(()),
        Some(messages) => Err(BrokerError::NotEmpty { queue: name.clone(), messages: Some(messages) }),
        None => Err(unknown(name, "the broker does not report whether it contains messages")),
    }
}

/// `queue 'q' in vhost 'v' not empty`: a message came between the look and the delete.
fn full_is_not_empty<T>(name: &QueueName, answer: Result<T, BrokerError>) -> Result<T, BrokerError> {
    match answer {
        Err(BrokerError::Refused { reason, .. }) if reason.ends_with("not empty") => {
            Err(BrokerError::NotEmpty { queue: name.clone(), messages: None })
        }
        other => other,
    }
}

/// The type that decides what the flags mean. The argument says it on every version but for classic queues; the field is
/// what tells a plugin's type from them.
fn queue_type(totals: &QueueTotals) -> Option<QueueType> {
    match totals.arguments.get("x-queue-type").and_then(|value| value.as_text()) {
        Some(word) => QueueType::named(word),
        None => match totals.kind.as_deref() {
            None | Some("rabbit_classic_queue") => Some(QueueType::Classic),
            Some(word) => QueueType::named(word),
        },
    }
}

fn unknown(name: &QueueName, reason: &str) -> BrokerError {
    BrokerError::EmptinessUnknown { queue: name.clone(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(text: &str) -> QueueTotals {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_type_decides() {
        let of = |text| queue_type(&totals(text));
        assert_eq!(of(r#"{"name":"q","type":"classic","arguments":{}}"#), Some(QueueType::Classic));
        assert_eq!(of(r#"{"name":"q","arguments":{}}"#), Some(QueueType::Classic));
        assert_eq!(of(r#"{"name":"q","arguments":{"x-queue-type":"quorum"}}"#), Some(QueueType::Quorum));
        assert_eq!(of(r#"{"name":"q","type":"stream","arguments":{}}"#), Some(QueueType::Stream));
        assert_eq!(of(r#"{"name":"q","type":"rabbit_mqtt_qos0_queue","arguments":{}}"#), None);
    }

    #[test]
    fn a_missing_number_is_not_zero() {
        let check = |text| must_be_empty(&"q".into(), &totals(text));
        assert_eq!(check(r#"{"name":"q","messages":0}"#), Ok(()));
        assert!(matches!(check(r#"{"name":"q","messages":3}"#), Err(BrokerError::NotEmpty { messages: Some(3), .. })));
        assert!(matches!(check(r#"{"name":"q","messages_ready":0}"#), Err(BrokerError::EmptinessUnknown { .. })));
    }
}
