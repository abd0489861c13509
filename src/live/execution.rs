//! Runs a case on the broker: starts its workers, publishes its messages, waits until the messages reach their final
//! queues, and reads the messages that remain.

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

/// How long topo waits for unexpected messages after the last simulated event.
const SETTLE_TIME: Duration = Duration::from_millis(250);
/// The maximum time that topo waits for late messages that the simulation expects: for the next delivery, and for the
/// messages in the queues.
const MAX_DELAY: Duration = Duration::from_secs(10);
/// The maximum time to wait for a queue to requeue the unacknowledged messages of a closed connection.
const MAX_REQUEUE_TIME: Duration = Duration::from_secs(5);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(10);
/// The maximum number of queues that are queried at the same time.
const CONCURRENT_QUERIES: usize = 32;

/// The observed result of a case.
#[derive(Default)]
pub(super) struct Observed {
    pub(super) observation: Observation,
    /// The time from the first publish to the last reply.
    pub(super) publishing: Duration,
}

/// A case to execute, with the contracts and the queues of its vhost.
pub(super) struct Execution<'c> {
    pub(super) case: &'c RunnableCase,
    pub(super) contracts: &'c BTreeMap<QueueName, Contract>,
    pub(super) queues: &'c BTreeMap<QueueName, Queue>,
}

impl Execution<'_> {
    /// Runs the case. Afterwards, all queues except streams are empty.
    ///
    /// # Errors
    /// The broker refused a request, or the connection failed.
    pub(super) async fn run(&self, amqp: &AmqpTransport) -> Result<Observed, BrokerError> {
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
                Ok(_) => Ok(Observed::default()),
                Err(error) => Err(error),
            },
            observed = self.observe(amqp, &id, &log) => observed,
        };
        for worker in &workers {
            worker.close().await;
        }
        let observed = observation?;
        self.purge_queues(amqp, &observed.observation).await?;
        Ok(observed)
    }

    /// Publishes the messages, and observes the result.
    async fn observe(&self, amqp: &AmqpTransport, id: &str, log: &Log) -> Result<Observed, BrokerError> {
        while log.subscriptions() < self.case.workers.len() {
            sleep(PAUSE).await;
        }
        let channel = amqp.application_channel().await?;
        let published = Instant::now();
        let mut observation = Observation { publisher: self.publish(&channel, id).await?, ..Observation::default() };
        let publishing = published.elapsed();
        self.wait(&channel, log).await?;
        let expected = self.case.simulated.ready();
        for (queue, ready) in self.counts(amqp).await? {
            let is_stream = self.is_stream(&queue);
            let messages = match is_stream {
                true => read_stream(&channel, &queue, id, expected.get(&queue).copied().unwrap_or(0)).await?,
                false if ready == 0 => continue,
                false => get_all(&channel, &queue).await?,
            };
            for message in &messages {
                if let Some(number) = number_of(message, id) {
                    observation.add_message(&queue, (number, message), &self.case.compared);
                }
            }
        }
        observation.attempts = log.attempts_since(published);
        channel.close().await;
        Ok(Observed { observation, publishing })
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

    /// Waits until the last simulated event is due, and a little longer in case unexpected messages arrive. Then waits
    /// for expected messages that are late.
    async fn wait(&self, channel: &ApplicationChannel, log: &Log) -> Result<(), BrokerError> {
        let simulated = &self.case.simulated;
        let due = Duration::from_millis(self.case.ended_at.try_into().unwrap_or(0)) + SETTLE_TIME;
        let published = Instant::now();
        let (mut progress, mut last_progress) = (0, published);
        while published.elapsed() < due || last_progress.elapsed() < MAX_DELAY {
            let delivered = simulated.attempts.keys().map(|queue| log.deliveries(queue)).sum::<usize>();
            let is_delivered = simulated.attempts.iter().all(|(queue, times)| log.deliveries(queue) >= times.len());
            if is_delivered && published.elapsed() >= due {
                break;
            }
            if delivered > progress || published.elapsed() < due {
                (progress, last_progress) = (delivered, Instant::now());
            }
            sleep(PAUSE).await;
        }
        // topo waits for a slow broker. Otherwise, topo could get a message that the broker was about to dead-letter.
        let started = Instant::now();
        for (queue, expected) in simulated.ready().iter().filter(|(queue, _)| !self.is_stream(queue)) {
            while started.elapsed() < MAX_DELAY {
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

    /// Returns the number of ready messages in each queue.
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

    /// Purges the queues that have workers, because the broker requeues the workers' unacknowledged messages. If the
    /// results differ, purges all queues. Does not purge streams.
    async fn purge_queues(&self, amqp: &AmqpTransport, observation: &Observation) -> Result<(), BrokerError> {
        let agrees = observation.differences(&self.case.simulated).is_empty();
        let needs_purge = |queue: &&QueueName| self.case.workers.contains_key(*queue) || !agrees;
        let channel = amqp.application_channel().await?;
        for queue in self.queues.keys().filter(needs_purge).filter(|queue| !self.is_stream(queue)) {
            let started = Instant::now();
            // A queue counts a closed consumer until the queue has requeued the consumer's messages.
            while channel.counts(queue).await?.is_none_or(|counted| counted.consumers > 0)
                && started.elapsed() < MAX_REQUEUE_TIME
            {
                sleep(PAUSE).await;
            }
            channel.purge(queue).await?;
        }
        channel.close().await;
        Ok(())
    }
}

/// Reads a stream repeatedly until the stream contains the expected number of messages from the case, for at most
/// [`MAX_DELAY`].
async fn read_stream(
    channel: &ApplicationChannel,
    stream: &QueueName,
    case: &str,
    expected: u64,
) -> Result<Vec<ReceivedMessage>, BrokerError> {
    let started = Instant::now();
    loop {
        let messages = channel.read_stream(stream).await?;
        let found = messages.iter().filter(|message| number_of(message, case).is_some()).count() as u64;
        if found >= expected || started.elapsed() >= MAX_DELAY {
            return Ok(messages);
        }
    }
}

/// Gets all ready messages from a queue.
async fn get_all(channel: &ApplicationChannel, queue: &QueueName) -> Result<Vec<ReceivedMessage>, BrokerError> {
    let mut messages = Vec::new();
    while let Some(message) = channel.get(queue).await? {
        messages.push(message);
    }
    Ok(messages)
}
