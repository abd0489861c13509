//! Defines the reasons why a session of a move ends.

use super::progress::Fault;
use crate::broker::error::BrokerError;

/// The reason why a session ended.
pub(super) enum SessionEnd {
    /// The move was stopped.
    Stopped,
    /// A fault ends the move.
    Fault(Fault),
    /// The connection or the channel was lost; another session may continue the move.
    Lost(BrokerError),
}

impl From<Fault> for SessionEnd {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
