//! Combines a management API client with the transports that can move the broker's messages.

use super::connection::Broker;
use super::error::BrokerError;
use super::lock::Process;
use super::options::{ConnectionOptions, Retries};
use super::transport::{AmqpOptions, AmqpTransport, AmqpUrl, QueueCounts, ShovelTransport, Transport};
use crate::model::names::LOCK_QUEUE;
use crate::model::{BrokerVersion, QueueName, QueueType, Topology, VhostName};
use crate::plan::{Activity, Transports, UnqueriedQueues, interrupted_queues};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::time::Duration;

/// The timeout for an AMQP connection attempt and for each request. The broker resolves its host name before it sends
/// its greeting. If a DNS server does not respond, this takes 5 s (measured on 3.8.9 and 4.3.6).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of queues that topo queries concurrently. The broker reports a quorum queue as empty if the queue
/// does not respond within 250 ms. Concurrent queries must not delay one another by that much.
const CONCURRENT_QUERIES: usize = 32;

/// The kind of transport that moves messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransportKind {
    /// AMQP, or a shovel if AMQP is not available or cannot carry a message.
    #[default]
    Auto,
    /// AMQP only: topo itself moves the messages.
    Amqp,
    /// Shovels only: the broker moves the messages.
    Shovel,
}

impl TransportKind {
    /// Returns the name that the `--transport` flag uses for the transport.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Amqp => "amqp",
            Self::Shovel => "shovel",
        }
    }
}

/// A broker, the transports that can move its messages, and the process that uses them.
pub struct Access {
    /// The client of the management API.
    pub broker: Broker,
    /// The current process, as a lock holder.
    pub process: Process,
    /// The name of the queue that serves as the lock on a vhost.
    pub lock_queue: QueueName,
    options: ConnectionOptions,
    amqp_url: Option<AmqpUrl>,
    kind: TransportKind,
}

impl Access {
    /// Creates the management API client, without sending a request. The transport is [`TransportKind::Auto`], with the
    /// AMQP address that the broker reports.
    ///
    /// # Errors
    /// [`BrokerError::Certificate`] if a certificate or key cannot be used.
    pub fn new(options: ConnectionOptions, process: Process) -> Result<Self, BrokerError> {
        let broker = Broker::connect(options.clone())?;
        let lock_queue = QueueName::new(LOCK_QUEUE);
        Ok(Self { broker, process, lock_queue, options, amqp_url: None, kind: TransportKind::Auto })
    }

    /// Sets the AMQP address; `None` for the address that the broker reports.
    #[must_use]
    pub fn with_amqp_url(self, amqp_url: Option<AmqpUrl>) -> Self {
        Self { amqp_url, ..self }
    }

    /// Sets the transport.
    #[must_use]
    pub fn with_transport(self, kind: TransportKind) -> Self {
        Self { kind, ..self }
    }

    /// Returns the transport that moves messages in a vhost.
    ///
    /// # Errors
    /// For each permitted transport, the reason why the transport is not available.
    pub async fn transport(&self, vhost: &VhostName, version: BrokerVersion) -> Result<Transport, Vec<String>> {
        let mut reasons = Vec::new();
        if self.kind != TransportKind::Shovel {
            match self.amqp(vhost).await {
                Ok(transport) if self.kind == TransportKind::Amqp => return Ok(Transport::Amqp(transport)),
                Ok(transport) => {
                    let shovel = ShovelTransport::new(self.broker.clone(), vhost, version);
                    return Ok(Transport::AmqpOrShovel(transport, shovel));
                }
                Err(reason) => reasons.push(format!("AMQP: {reason}")),
            }
        }
        if self.kind != TransportKind::Amqp {
            let transport = ShovelTransport::new(self.broker.clone(), vhost, version);
            match transport.check().await {
                Ok(()) => return Ok(Transport::Shovel(transport)),
                Err(fault) => reasons.push(format!("shovel: {fault}")),
            }
        }
        Err(reasons)
    }

    /// Returns the transport that a migration in this vhost would use. Closes the connection that was used for the
    /// check.
    pub async fn transports(&self, vhost: &VhostName, version: BrokerVersion) -> Transports {
        match self.transport(vhost, version).await {
            Ok(Transport::Amqp(transport) | Transport::AmqpOrShovel(transport, _)) => {
                transport.close().await;
                Transports::Amqp
            }
            Ok(Transport::Shovel(_)) => Transports::Shovel,
            Err(reasons) => Transports::None { reasons },
        }
    }

    /// Queries queues over AMQP to replace stale message and consumer counts in `activity`. Returns true if `activity`
    /// changed.
    ///
    /// The query is a passive declaration, which requires no permission on the queue and does not change the queue. The
    /// response does not include unacknowledged messages, so topo replaces the message count only for quorum queues
    /// with a count of 0 and no consumers. [`Activity::unqueried`] contains the reason why queues were not queried.
    pub async fn query_queues(&self, current: &Topology, queues: &[QueueName], activity: &mut Activity) -> bool {
        if queues.is_empty() {
            return false;
        }
        let answers = match self.query_counts(&current.vhost, queues).await {
            Ok(answers) => answers,
            Err(reason) => {
                activity.unqueried = Some(UnqueriedQueues { queues: queues.len() as u64, reason });
                return true;
            }
        };
        let is_quorum = |name| current.queues.get(name).is_some_and(|it| it.queue_type() == Some(QueueType::Quorum));
        let mut has_changed = false;
        for (name, answer) in queues.iter().zip(answers) {
            let counted = match answer {
                Ok(counted) => counted,
                // The queue was deleted. The apply detects that the plan is stale.
                Err(BrokerError::NotFound { .. }) => continue,
                Err(error) => {
                    let unqueried = activity.unqueried.take().map_or(0, |unqueried| unqueried.queues);
                    activity.unqueried = Some(UnqueriedQueues { queues: unqueried + 1, reason: error.to_string() });
                    has_changed = true;
                    continue;
                }
            };
            let (Some(counted), Some(queue)) = (counted, activity.queues.get_mut(name)) else { continue };
            if counted.consumers > 0 {
                let listed = queue.consumers.as_ref().map_or(0, Vec::len) as u64;
                queue.unlisted_consumers = u64::from(counted.consumers).checked_sub(listed).filter(|it| *it > 0);
                has_changed |= queue.unlisted_consumers.is_some();
            } else if queue.messages == Some(0) && is_quorum(name) {
                queue.messages = Some(u64::from(counted.ready));
                queue.ready = queue.messages;
                queue.asked = true;
                has_changed = true;
            }
        }
        has_changed
    }

    /// Queries the counts of `queues`, several queues at a time. The results are in the order of `queues`. A count is
    /// `None` if the queue might not have responded to the broker.
    ///
    /// # Errors
    /// The reason why topo could query none of the queues.
    async fn query_counts(
        &self,
        vhost: &VhostName,
        queues: &[QueueName],
    ) -> Result<Vec<Result<Option<QueueCounts>, BrokerError>>, String> {
        let transport = self.counting_transport(vhost).await?;
        let mut answers = Vec::with_capacity(queues.len());
        let mut binder = None;
        for chunk in queues.chunks(CONCURRENT_QUERIES) {
            let channel = match binder.take() {
                Some(channel) => channel,
                None => match transport.binder().await {
                    Ok(channel) => channel,
                    Err(error) => {
                        answers.resize_with(queues.len(), || Err(error.clone()));
                        break;
                    }
                },
            };
            let counted = join_all(chunk.iter().map(|name| channel.queue_counts(name))).await;
            let is_open = counted.iter().all(Result::is_ok);
            for (name, counted) in chunk.iter().zip(counted) {
                answers.push(match counted {
                    Ok(Some(counted)) => Ok(Some(counted)),
                    // A refused request closes the channel for all other requests, and a late response proves nothing.
                    // Repeats the query on a separate channel.
                    Ok(None) | Err(_) => transport.queue_counts(name).await,
                });
            }
            binder = Some(channel).filter(|_| is_open);
        }
        transport.close().await;
        Ok(answers)
    }

    /// Connects over AMQP to query the counts of queues.
    ///
    /// # Errors
    /// The reason why topo cannot or must not use AMQP.
    pub async fn counting_transport(&self, vhost: &VhostName) -> Result<AmqpTransport, String> {
        if self.kind == TransportKind::Shovel {
            return Err("the transport is `shovel`".to_owned());
        }
        let transport = self.amqp(vhost).await?;
        if transport.cluster().is_none() {
            transport.close().await;
            return Err("the broker at the AMQP address does not report its cluster name".to_owned());
        }
        Ok(transport)
    }

    /// Returns the queues whose interrupted migration left behind a shovel that the connected user cannot delete.
    ///
    /// # Errors
    /// The shovels or the queues could not be read.
    pub async fn queues_with_inaccessible_shovels(
        &self,
        current: &Topology,
        version: BrokerVersion,
    ) -> Result<BTreeSet<QueueName>, BrokerError> {
        match interrupted_queues(current) {
            none if none.is_empty() => Ok(BTreeSet::new()),
            queues => {
                ShovelTransport::new(self.broker.clone(), &current.vhost, version)
                    .queues_with_inaccessible_shovels(&queues)
                    .await
            }
        }
    }

    /// Connects over AMQP, and checks that the AMQP address and the management API do not belong to different clusters.
    ///
    /// # Errors
    /// The reason why the connection failed, or a message with the names of both clusters.
    pub async fn amqp(&self, vhost: &VhostName) -> Result<AmqpTransport, String> {
        let mut options = match &self.amqp_url {
            Some(url) => AmqpOptions::at(url.clone(), vhost, &self.options),
            None => {
                let address = self.broker.amqp_address().await.map_err(|error| error.to_string())?;
                AmqpOptions::new(address, vhost, &self.options)
            }
        };
        let (timeout, retries) = (options.timeout, options.retries);
        options.timeout = CONNECT_TIMEOUT.min(timeout);
        options.retries = Retries { attempts: 2, ..retries };
        let address = options.address.to_string();
        let transport = AmqpTransport::connect(options).await.map_err(|error| error.to_string())?;
        let (amqp, http) = (transport.cluster(), self.broker.cluster_name().await.unwrap_or_default());
        match (amqp, http) {
            (Some(amqp), Some(http)) if amqp != http => {
                transport.close().await;
                Err(format!(
                    "{address} belongs to cluster {amqp}, but the management API belongs to {http}; set the correct \
                     address with --amqp-url"
                ))
            }
            (_, _) => Ok(transport),
        }
    }
}
