//! A broker and the transports that can move its messages.

use super::lock::Process;
use super::transport::{AmqpOptions, AmqpTransport, AmqpUrl, ShovelTransport, Transport};
use super::{Broker, BrokerError, ConnectionOptions, Retries};
use crate::model::{BrokerVersion, QueueName, QueueType, Topology, VhostName};
use crate::plan::{Activity, Transports, left_behind};
use std::collections::BTreeSet;
use std::time::Duration;

/// An open port answers at once; one behind a firewall may never answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of queues that are asked one by one. For more queues, the statistics have to suffice.
const MOST_ASKED: usize = 200;

/// The transport of a migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransportKind {
    /// AMQP; a shovel if AMQP is not available or cannot carry a message.
    #[default]
    Auto,
    /// topo moves messages over AMQP.
    Amqp,
    /// A shovel on the broker.
    Shovel,
}

impl TransportKind {
    /// Its name on the command line.
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
    /// This process, as the holder of a lock.
    pub process: Process,
    options: ConnectionOptions,
    amqp_url: Option<AmqpUrl>,
    kind: TransportKind,
}

impl Access {
    /// Creates the client; nothing is sent yet. The transport is [`TransportKind::Auto`], at the AMQP address that the broker
    /// reports.
    ///
    /// # Errors
    /// [`BrokerError::Certificate`] if a certificate or key cannot be used.
    pub fn new(options: ConnectionOptions, process: Process) -> Result<Self, BrokerError> {
        let broker = Broker::connect(options.clone())?;
        Ok(Self { broker, process, options, amqp_url: None, kind: TransportKind::Auto })
    }

    /// Sets the AMQP address; `None` is the one that the broker reports.
    #[must_use]
    pub fn with_amqp_url(self, amqp_url: Option<AmqpUrl>) -> Self {
        Self { amqp_url, ..self }
    }

    /// Sets the transport.
    #[must_use]
    pub fn with_transport(self, kind: TransportKind) -> Self {
        Self { kind, ..self }
    }

    /// Returns the transport for the messages of a vhost.
    ///
    /// # Errors
    /// The reason of each transport.
    pub async fn transport(&self, vhost: &VhostName, version: BrokerVersion) -> Result<Transport, Vec<String>> {
        let mut reasons = Vec::new();
        if self.kind != TransportKind::Shovel {
            match self.amqp(vhost).await {
                Ok(transport) if self.kind == TransportKind::Amqp => return Ok(Transport::Amqp(transport)),
                Ok(transport) => {
                    let shovel = ShovelTransport::new(self.broker.clone(), vhost, version);
                    return Ok(Transport::AmqpOrShovel(transport, shovel));
                }
                Err(reason) => reasons.push(format!("over AMQP, {reason}")),
            }
        }
        if self.kind != TransportKind::Amqp {
            let transport = ShovelTransport::new(self.broker.clone(), vhost, version);
            match transport.check().await {
                Ok(()) => return Ok(Transport::Shovel(transport)),
                Err(fault) => reasons.push(format!("by shovel, {fault}")),
            }
        }
        Err(reasons)
    }

    /// Returns the transport that a plan would use, without keeping a connection.
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

    /// Asks queues over AMQP for their messages and consumers, to replace stale counts by current ones. Returns whether that
    /// changed anything.
    ///
    /// A passive declare needs no permission on the queue, and does not change it. It does not count unacknowledged messages, so
    /// only a quorum queue without consumers counts as asked. If AMQP is not reachable, unknown counts stay unknown.
    pub async fn ask(&self, live: &Topology, queues: &[QueueName], activity: &mut Activity) -> bool {
        if self.kind == TransportKind::Shovel || queues.is_empty() || queues.len() > MOST_ASKED {
            return false;
        }
        let Ok(transport) = self.amqp(&live.vhost).await else { return false };
        // If a proxy hides the identity of the cluster, its counts cannot be trusted.
        if transport.cluster().is_none() {
            transport.close().await;
            return false;
        }
        let is_quorum = |name| live.queues.get(name).is_some_and(|it| it.queue_type() == Some(QueueType::Quorum));
        let mut is_better = false;
        if let Ok(binder) = transport.binder().await {
            for name in queues {
                // A missing queue closes the channel.
                let Ok(counted) = binder.counted(name).await else { break };
                let (Some(counted), Some(known)) = (counted, activity.queues.get_mut(name)) else { continue };
                if counted.consumers > 0 {
                    let listed = known.consumers.as_ref().map_or(0, Vec::len) as u64;
                    known.unlisted_consumers = u64::from(counted.consumers).checked_sub(listed).filter(|it| *it > 0);
                    is_better |= known.unlisted_consumers.is_some();
                } else if known.messages == Some(0) && is_quorum(name) {
                    known.messages = Some(u64::from(counted.ready));
                    known.ready = known.messages;
                    known.asked = true;
                    is_better = true;
                }
            }
        }
        transport.close().await;
        is_better
    }

    /// The queues of interrupted migrations from which a shovel moves messages that this user may not delete.
    ///
    /// # Errors
    /// The shovels could not be read.
    pub async fn out_of_reach(
        &self,
        live: &Topology,
        version: BrokerVersion,
    ) -> Result<BTreeSet<QueueName>, BrokerError> {
        match left_behind(live) {
            none if none.is_empty() => Ok(BTreeSet::new()),
            queues => ShovelTransport::new(self.broker.clone(), &live.vhost, version).out_of_reach(&queues).await,
        }
    }

    async fn amqp(&self, vhost: &VhostName) -> Result<AmqpTransport, String> {
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
        let (there, here) = (transport.cluster(), self.broker.cluster_name().await.unwrap_or_default());
        match (there, here) {
            (Some(there), Some(here)) if there != here => {
                transport.close().await;
                Err(format!(
                    "{address} is cluster {there}, but the management API belongs to {here}: set the right address with --amqp-url"
                ))
            }
            (_, _) => Ok(transport),
        }
    }
}
