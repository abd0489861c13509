//! Decides how a migration reacts to a fault of the transport.

use super::StepFailure;
use crate::broker::BrokerError;
use crate::broker::transport::Fault;
use crate::model::QueueName;

/// Returns a fault to wait out, or a setback.
pub(super) fn setback(queue: &QueueName, fault: Fault) -> Result<Fault, StepFailure> {
    let reason = fault.to_string();
    let not_moved = BrokerError::NotMoved { queue: queue.clone(), reason };
    match fault {
        // Its own consumer may drain it, and is the only one who can. An alarm is over when it is over.
        Fault::Exclusive { .. } | Fault::Blocked | Fault::Broker(BrokerError::Alarm { .. }) => Ok(fault),
        // A broker that is too busy to answer, or to start a shovel, may be less so in a moment.
        Fault::NotStarted => Ok(fault),
        Fault::Broker(ref error) if error.is_transient() || matches!(error, BrokerError::NotVerified { .. }) => {
            Ok(fault)
        }
        Fault::SourceGone { .. } | Fault::TargetGone { .. } | Fault::Unroutable { .. } => {
            Err(StepFailure::Again(not_moved))
        }
        // It was deleted meanwhile.
        Fault::Broker(error @ BrokerError::NotFound { .. }) => Err(StepFailure::Again(error)),
        Fault::Broker(error) => Err(error.into()),
        Fault::ForeignUser { .. } | Fault::NotCarried { .. } | Fault::NoShovels | Fault::ShovelEnded { .. } => {
            Err(StepFailure::GiveUp(not_moved))
        }
    }
}
