//! The reason why a session of a move ended.

use super::progress::Fault;
use crate::broker::error::BrokerError;

/// Why a session is over.
pub(super) enum Over {
    /// It was stopped.
    Stopped,
    /// For good.
    Fault(Fault),
    /// The connection or the channel is gone; another session may go on.
    Lost(BrokerError),
}

impl From<Fault> for Over {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
