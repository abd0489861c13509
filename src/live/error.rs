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
    #[error("topo publishes and consumes over AMQP, which is not available: {0}")]
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
    #[error("vhost {0} does not exist, or this user may not see it")]
    NoVhost(VhostName),
    /// The vhost that the user provided is in use.
    #[error("vhost {0} is not empty; topo tests only in a vhost without queues, exchanges, bindings and policies")]
    NotEmpty(VhostName),
}
