//! The errors that prevent a run on a broker.

use crate::broker::BrokerError;
use crate::model::VhostName;

/// The reason why the cases could not run on the broker.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The broker refused a request, or could not be reached.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// AMQP is not available.
    #[error("cannot connect to the broker over AMQP: {0}")]
    Amqp(String),
    /// The topology could not be declared.
    #[error("the topology could not be declared in vhost {vhost}")]
    NotDeclared {
        /// The vhost.
        vhost: VhostName,
        /// The reasons.
        reasons: Vec<String>,
    },
    /// The vhost that the user provided does not exist.
    #[error("vhost {0} does not exist, or the user has no permissions in it")]
    NoVhost(VhostName),
    /// The vhost that the user provided contains objects.
    #[error(
        "vhost {0} is not empty; --scratch-vhost requires a vhost without queues, exchanges, bindings, policies or \
         operator policies"
    )]
    NotEmpty(VhostName),
    /// Another run is using the vhost.
    #[error("another run of topo is using vhost {0}")]
    InUse(VhostName),
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
}
