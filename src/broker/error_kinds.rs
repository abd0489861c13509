//! Classifies errors: whether to retry, and whether the broker may have processed the request.

use super::error::BrokerError;

impl BrokerError {
    /// Returns true if the error may be transient, in which case a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { problem, .. } => problem.is_transient(),
            Self::Timeout { .. } | Self::Unavailable { .. } | Self::Alarm { .. } => true,
            Self::Certificate { .. }
            | Self::Secret { .. }
            | Self::DifferentBroker { .. }
            | Self::Unauthorized { .. }
            | Self::AccessRefused { .. }
            | Self::WrongTag { .. }
            | Self::NotManagementApi { .. }
            | Self::Redirected { .. }
            | Self::Refused { .. }
            | Self::Inequivalent { .. }
            | Self::NotFound { .. }
            | Self::HomeNodeDown { .. }
            | Self::Malformed { .. }
            | Self::Unaddressable { .. }
            | Self::VersionUnknown { .. }
            | Self::VersionTooOld { .. }
            | Self::NotEmpty { .. }
            | Self::MoreThanAllowed { .. }
            | Self::EmptinessUnknown { .. }
            | Self::NoMembers { .. }
            | Self::Undeletable { .. }
            | Self::BoundSincePlan { .. }
            | Self::TopicPermissionsChanged { .. }
            | Self::TopicPermissionNotRestorable { .. }
            | Self::NotMoved { .. }
            | Self::NotVerified { .. }
            | Self::Unverifiable { .. }
            | Self::NotRestorable { .. }
            | Self::Unlistable { .. }
            | Self::LockHeld { .. }
            | Self::LockLost { .. } => false,
        }
    }

    /// Returns true if the broker may have processed the request, for example because its response was lost.
    pub fn may_have_been_processed(&self) -> bool {
        match self {
            Self::Connect { problem, .. } => problem.is_after_sending(),
            Self::NotVerified { .. }
            | Self::Unverifiable { .. }
            | Self::Timeout { .. }
            | Self::Unavailable { .. }
            | Self::Alarm { .. }
            | Self::NotManagementApi { .. } => true,
            Self::Certificate { .. }
            | Self::Secret { .. }
            | Self::DifferentBroker { .. }
            | Self::Unauthorized { .. }
            | Self::AccessRefused { .. }
            | Self::WrongTag { .. }
            | Self::Redirected { .. }
            | Self::Refused { .. }
            | Self::Inequivalent { .. }
            | Self::NotFound { .. }
            | Self::HomeNodeDown { .. }
            | Self::Malformed { .. }
            | Self::Unaddressable { .. }
            | Self::VersionUnknown { .. }
            | Self::VersionTooOld { .. }
            | Self::NotEmpty { .. }
            | Self::MoreThanAllowed { .. }
            | Self::EmptinessUnknown { .. }
            | Self::NoMembers { .. }
            | Self::Undeletable { .. }
            | Self::BoundSincePlan { .. }
            | Self::TopicPermissionsChanged { .. }
            | Self::TopicPermissionNotRestorable { .. }
            | Self::NotMoved { .. }
            | Self::NotRestorable { .. }
            | Self::Unlistable { .. }
            | Self::LockHeld { .. }
            | Self::LockLost { .. } => false,
        }
    }

    /// Returns true if the broker definitely did not process the request, and a retry may succeed. Either topo did not
    /// send the request, or the broker rejected it before processing. topo retries a delete only after these errors.
    pub(super) fn is_unprocessed(&self) -> bool {
        if let Self::Connect { problem, .. } = self {
            return problem.is_transient() && !problem.is_after_sending();
        }
        matches!(self, Self::Unavailable { status: 429 | 503, .. })
    }

    /// Returns true if nothing was deleted, because a check before the deletion failed.
    pub fn is_guard_failure(&self) -> bool {
        matches!(
            self,
            Self::NotEmpty { .. }
                | Self::MoreThanAllowed { .. }
                | Self::EmptinessUnknown { .. }
                | Self::NoMembers { .. }
                | Self::BoundSincePlan { .. }
                | Self::TopicPermissionsChanged { .. }
                | Self::TopicPermissionNotRestorable { .. }
                | Self::NotRestorable { .. }
        )
    }

    /// Returns true if the error occurred after the broker had processed the request.
    pub fn is_after_processing(&self) -> bool {
        matches!(self, Self::NotVerified { .. } | Self::Unverifiable { .. })
    }
}
