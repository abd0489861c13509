//! Classifies migration step failures by reaction: retry, roll back or stop. Converts transport faults that cannot
//! clear on their own into such failures.

use crate::broker::BrokerError;
use crate::broker::transport::Fault;
use crate::model::QueueName;

/// The reason why a migration step failed, classified by the migration's reaction.
pub(super) enum StepFailure {
    /// The broker's state may have changed, so the migration reads the state again.
    Retry(BrokerError),
    /// The step cannot be done, so the migration is rolled back if possible.
    GiveUp(BrokerError),
    /// The run was interrupted, and the migration can be rolled back.
    Interrupted,
    /// The migration ends without a rollback, because a further change is unsafe or impossible.
    Stop(BrokerError),
}

impl From<BrokerError> for StepFailure {
    fn from(error: BrokerError) -> Self {
        // A rollback over a connection to another broker is also impossible.
        let is_fatal = matches!(error, BrokerError::LockLost { .. } | BrokerError::DifferentBroker { .. });
        if is_fatal { Self::Stop(error) } else { Self::GiveUp(error) }
    }
}

impl StepFailure {
    /// Converts the failure to a retry if the error matches.
    pub(super) fn retry_if(self, is_retryable: impl Fn(&BrokerError) -> bool) -> Self {
        match self {
            Self::GiveUp(error) if is_retryable(&error) => Self::Retry(error),
            Self::Retry(_) | Self::GiveUp(_) | Self::Interrupted | Self::Stop(_) => self,
        }
    }
}

/// Returns the fault if it can clear on its own. Otherwise, returns a step failure.
pub(super) fn classify_fault(queue: &QueueName, fault: Fault) -> Result<Fault, StepFailure> {
    let reason = fault.to_string();
    let not_moved = BrokerError::NotMoved { queue: queue.clone(), reason };
    match fault {
        // An exclusive consumer may drain the queue itself. An alarm can clear without any action by topo.
        Fault::Exclusive { .. } | Fault::Blocked | Fault::Broker(BrokerError::Alarm { .. }) => Ok(fault),
        // A broker that is too busy to answer or to start a shovel may be less busy later.
        Fault::NotStarted => Ok(fault),
        Fault::Broker(ref error) if error.is_transient() || matches!(error, BrokerError::NotVerified { .. }) => {
            Ok(fault)
        }
        Fault::SourceGone { .. } | Fault::TargetGone { .. } | Fault::Unroutable { .. } => {
            Err(StepFailure::Retry(not_moved))
        }
        // The object no longer exists.
        Fault::Broker(error @ BrokerError::NotFound { .. }) => Err(StepFailure::Retry(error)),
        Fault::Broker(error) => Err(error.into()),
        Fault::ForeignUser { .. } | Fault::NotCarried { .. } | Fault::NoShovels | Fault::ShovelEnded { .. } => {
            Err(StepFailure::GiveUp(not_moved))
        }
    }
}
