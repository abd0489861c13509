//! Runs a case on the broker: starts its workers, publishes its messages, waits until nothing moves, and reads the messages
//! that stay in queues.

use super::log::{Log, number_of};
use super::observation::Observation;
use super::preparation::RunnableCase;
use super::worker::{LiveWorker, header};
use crate::broker::BrokerError;
use crate::broker::message::{HeaderValue, ReceivedMessage};
use crate::broker::transport::{AmqpTransport, ApplicationChannel, Published, encoded};
use crate::contract::Contract;
use crate::model::run_id;
use crate::model::{Queue, QueueName, QueueType};
use crate::simulation::PublisherResult;
use futures_util::future::{join_all, try_join_all};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The time after the last simulated event in which further messages can arrive.
const SETTLE_TIME: Duration = Duration::from_millis(250);
/// The maximum time to wait for messages that the simulation expects.
const MAX_DELAY: Duration = Duration::from_secs(10);
/// The time in which a queue returns the unacknowledged messages of a closed connection.
const RETURN_TIME: Duration = Duration::from_millis(100);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(10);
/// The maximum number of queues that are queried at the same time.
const CONCURRENT_QUERIES: usize = 32;

/// A case, and the queues of its vhost.
pub(super) struct Execution<'c> {
    pub(super) case: &'c RunnableCase,
    pub(super) contracts: &'c BTreeMap<QueueName, Contract>,
    pub(super) queues: &'c BTreeMap<QueueName, Queue>,
}

impl Execution<'_> {
    /// Runs the case. Afterwards, the queues are empty, except streams.
    ///
    /// # Errors
    /// The broker refused a request, or the connection failed.
    pub(super) async fn run(&self, amqp: &AmqpTransport) -> Result<Observation, BrokerError> {
        let id = format!("topo-test/{}", run_id());
        let log = Log::default();
        let workers: Vec<LiveWorker<'_>> = self
            .case
            .workers
            .iter()
            .map(|(queue, worker)| LiveWorker::new(queue, worker, self.contracts.get(queue), &id))
            .collect();
        let working = async {
            match workers.is_empty() {
                true => std::future::pending().await,
                false => try_join_all(workers.iter().map(|worker| worker.work(amqp, &log))).await,
            }
        };
        let observation = tokio::select! {
            // Workers never end without an error.
            ended = working => match ended {
                Ok(_) => Ok(Observation::default()),
                Err(error) => Err(error),
            },
            observed = self.observe(amqp, &id, &log) => observed,
        };
        for worker in &workers {
            worker.close().await;
        }
        let observation = observation?;
        self.empty(amqp, &observation).await?;
        Ok(observation)
    }

    /// Publishes the messages, and observes the result.
    async fn observe(&self, amqp: &AmqpTransport, id: &str, log: &Log) -> Result<Observation, BrokerError> {
        while log.subscriptions() < self.case.workers.len() {
            sleep(PAUSE).await;
        }
        let channel = amqp.application_channel().await?;
        let published = Instant::now();
        let mut observation = Observation { publisher: self.publish(&channel, id).await?, ..Observation::default() };
        self.wait(&channel, log).await?;
        for (queue, ready) in self.counts(amqp).await? {
            let is_stream = self.is_stream(&queue);
            let messages = match is_stream {
                true => channel.read_stream(&queue).await?,
                false if ready == 0 => continue,
                false => take_all(&channel, &queue).await?,
            };
            for message in messages.iter().filter(|message| number_of(message, id).is_some()) {
                observation.add_message(&queue, message);
            }
        }
        observation.attempts = log.attempts_since(published);
        channel.close().await;
        Ok(observation)
    }

    async fn publish(
        &self,
        channel: &ApplicationChannel,
        id: &str,
    ) -> Result<BTreeMap<PublisherResult, u64>, BrokerError> {
        let publication = &self.case.publication;
        let headers: Vec<(&str, HeaderValue)> =
            publication.headers.iter().filter_map(|(name, value)| Some((name.as_str(), header(value)?))).collect();
        let expiration = publication.expiration.map(|it| it.to_string());
        let mut replies = BTreeMap::new();
        for number in 1..=publication.count {
            let properties = encoded(&headers, expiration.as_deref(), Some(&format!("{id}/{number}")));
            let (exchange, key) = (&publication.exchange, &publication.routing_key);
            let reply = channel.publish(exchange, key, properties.unwrap_or_default(), b"topo test").await?;
            let reply = match reply {
                Published::Confirmed => PublisherResult::Confirmed,
                Published::Returned => PublisherResult::Returned,
                Published::Rejected => PublisherResult::Refused,
            };
            *replies.entry(reply).or_default() += 1;
        }
        Ok(replies)
    }

    /// Waits until the simulated events have happened, and a further time in which unexpected messages can arrive.
    async fn wait(&self, channel: &ApplicationChannel, log: &Log) -> Result<(), BrokerError> {
        let simulated = &self.case.simulated;
        let due = Duration::from_millis(self.case.ended_at.try_into().unwrap_or(0)) + SETTLE_TIME;
        let published = Instant::now();
        let is_late = || published.elapsed() >= due + MAX_DELAY;
        let is_delivered = || simulated.attempts.iter().all(|(queue, times)| log.deliveries(queue) >= times.len());
        while published.elapsed() < due || !is_delivered() && !is_late() {
            sleep(PAUSE).await;
        }
        // The broker can be late, and topo must not take messages that would move later.
        for (queue, expected) in simulated.ready().iter().filter(|(queue, _)| !self.is_stream(queue)) {
            while !is_late() {
                let counted = channel.counts(queue).await?;
                if counted.is_some_and(|counted| u64::from(counted.ready) == *expected) {
                    break;
                }
                sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    fn is_stream(&self, queue: &QueueName) -> bool {
        self.queues.get(queue).is_some_and(|queue| queue.queue_type() == Some(QueueType::Stream))
    }

    /// Returns the number of ready messages of each queue.
    async fn counts(&self, amqp: &AmqpTransport) -> Result<Vec<(QueueName, u32)>, BrokerError> {
        let names: Vec<&QueueName> = self.queues.keys().collect();
        let mut counts = Vec::new();
        let channel = amqp.application_channel().await?;
        for chunk in names.chunks(CONCURRENT_QUERIES) {
            let counted = join_all(chunk.iter().map(|name| channel.counts(name))).await;
            for (name, counted) in chunk.iter().zip(counted) {
                counts.push(((*name).clone(), counted?.map_or(0, |counted| counted.ready)));
            }
        }
        channel.close().await;
        Ok(counts)
    }

    /// Removes the messages that workers have returned to their queues.
    async fn empty(&self, amqp: &AmqpTransport, observation: &Observation) -> Result<(), BrokerError> {
        let has_agreed = observation.differences(&self.case.simulated).is_empty();
        let is_held = |queue: &&QueueName| self.case.workers.contains_key(*queue) || !has_agreed;
        if !self.case.workers.is_empty() {
            // A queue returns messages in the background.
            sleep(RETURN_TIME).await;
        }
        let channel = amqp.application_channel().await?;
        for queue in self.queues.keys().filter(is_held).filter(|queue| !self.is_stream(queue)) {
            channel.purge(queue).await?;
        }
        channel.close().await;
        Ok(())
    }
}

/// Takes all ready messages of a queue.
async fn take_all(channel: &ApplicationChannel, queue: &QueueName) -> Result<Vec<ReceivedMessage>, BrokerError> {
    let mut taken = Vec::new();
    while let Some(message) = channel.take(queue).await? {
        taken.push(message);
    }
    Ok(taken)
}
