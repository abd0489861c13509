//! Decides how a migration reacts to a fault of its transport.

use super::StepFailure;
use crate::broker::BrokerError;
use crate::broker::transport::Fault;
use crate::model::QueueName;

/// Returns the fault if it can end by itself, and a step failure otherwise.
pub(super) fn classify_fault(queue: &QueueName, fault: Fault) -> Result<Fault, StepFailure> {
    let reason = fault.to_string();
    let not_moved = BrokerError::NotMoved { queue: queue.clone(), reason };
    match fault {
        // An exclusive consumer may drain the queue, and no other client can. An alarm ends without an action of topo.
        Fault::Exclusive { .. } | Fault::Blocked | Fault::Broker(BrokerError::Alarm { .. }) => Ok(fault),
        // A broker that is too busy to answer or to start a shovel may be less busy later.
        Fault::NotStarted => Ok(fault),
        Fault::Broker(ref error) if error.is_transient() || matches!(error, BrokerError::NotVerified { .. }) => {
            Ok(fault)
        }
        Fault::SourceGone { .. } | Fault::TargetGone { .. } | Fault::Unroutable { .. } => {
            Err(StepFailure::Retry(not_moved))
        }
        // The object was deleted meanwhile.
        Fault::Broker(error @ BrokerError::NotFound { .. }) => Err(StepFailure::Retry(error)),
        Fault::Broker(error) => Err(error.into()),
        Fault::ForeignUser { .. } | Fault::NotCarried { .. } | Fault::NoShovels | Fault::ShovelEnded { .. } => {
            Err(StepFailure::GiveUp(not_moved))
        }
    }
}
