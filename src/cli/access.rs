//! A broker, and what can move messages there.

use super::arguments::{ConnectionArguments, MoverKind};
use super::connection;
use super::failure::Failure;
use crate::broker::mover::{AmqpMover, AmqpOptions, AmqpUrl, Mover, ShovelMover};
use crate::broker::{Broker, ConnectionOptions, Retries};
use crate::model::{BrokerVersion, VhostName};
use crate::plan::{Movers, Plan};
use std::time::Duration;

/// A port that is open answers at once; one that a firewall drops never does.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A broker, and what can move messages there.
pub(super) struct Access {
    pub(super) broker: Broker,
    options: ConnectionOptions,
    amqp_url: Option<AmqpUrl>,
    kind: MoverKind,
}

impl Access {
    /// Nothing is sent yet.
    pub(super) fn new(arguments: &ConnectionArguments) -> Result<Self, Failure> {
        let (broker, options) = connection::connect(arguments)?;
        Ok(Self { broker, options, amqp_url: arguments.amqp_url.clone(), kind: arguments.mover })
    }

    /// What moves the messages of this vhost, or why nothing can.
    pub(super) async fn mover(&self, vhost: &VhostName, version: BrokerVersion) -> Result<Mover, Vec<String>> {
        let mut reasons = Vec::new();
        if self.kind != MoverKind::Shovel {
            match self.amqp(vhost).await {
                Ok(mover) => return Ok(Mover::Amqp(mover)),
                Err(reason) => reasons.push(format!("over AMQP, {reason}")),
            }
        }
        if self.kind != MoverKind::Amqp {
            let mover = ShovelMover::new(self.broker.clone(), vhost, version);
            match mover.check().await {
                Ok(()) => return Ok(Mover::Shovel(mover)),
                Err(fault) => reasons.push(format!("by shovel, {fault}")),
            }
        }
        Err(reasons)
    }

    /// The same for a plan, which keeps no connection.
    pub(super) async fn movers(&self, vhost: &VhostName, version: BrokerVersion) -> Movers {
        match self.mover(vhost, version).await {
            Ok(Mover::Amqp(mover)) => {
                mover.close().await;
                Movers::Amqp
            }
            Ok(Mover::Shovel(_)) => Movers::Shovel,
            Err(reasons) => Movers::None { reasons },
        }
    }

    /// The movers of all vhosts in which a plan moves messages.
    pub(super) async fn movers_of(&self, plan: &Plan) -> Result<Vec<(VhostName, Mover)>, Failure> {
        let mut movers = Vec::new();
        for part in plan.vhosts.iter().filter(|part| !part.migrations.is_empty()) {
            let version = plan.target.version.parse().unwrap_or(BrokerVersion::NEWEST_KNOWN);
            let mover = self.mover(&part.vhost, version).await.map_err(|reasons| {
                let failure = Failure::failed("nothing can move the messages; nothing was changed");
                reasons.into_iter().fold(failure, Failure::because)
            })?;
            movers.push((part.vhost.clone(), mover));
        }
        Ok(movers)
    }

    async fn amqp(&self, vhost: &VhostName) -> Result<AmqpMover, String> {
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
        AmqpMover::connect(options).await.map_err(|error| error.to_string())
    }
}
