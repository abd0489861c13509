//! Classifies errors: whether to retry, and whether the broker may have processed the request.

use super::error::BrokerError;

impl BrokerError {
    /// Whether the error may be transient, so that a retry is useful.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { problem, .. } => problem.is_transient(),
            Self::Timeout { .. } | Self::Unavailable { .. } | Self::Alarm { .. } => true,
            Self::Certificate { .. }
            | Self::AnotherBroker { .. }
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
            | Self::BoundMeanwhile { .. }
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

    /// Whether the broker may have processed the request, because its response was lost.
    pub fn leaves_doubt(&self) -> bool {
        match self {
            Self::Connect { problem, .. } => problem.is_after_sending(),
            Self::NotVerified { .. }
            | Self::Unverifiable { .. }
            | Self::Timeout { .. }
            | Self::Unavailable { .. }
            | Self::Alarm { .. }
            | Self::NotManagementApi { .. } => true,
            Self::Certificate { .. }
            | Self::AnotherBroker { .. }
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
            | Self::BoundMeanwhile { .. }
            | Self::TopicPermissionsChanged { .. }
            | Self::TopicPermissionNotRestorable { .. }
            | Self::NotMoved { .. }
            | Self::NotRestorable { .. }
            | Self::Unlistable { .. }
            | Self::LockHeld { .. }
            | Self::LockLost { .. } => false,
        }
    }

    /// Whether the broker certainly did not do what was asked, but may do it if asked again: nothing was sent, or it was
    /// turned away at the door. The only errors after which a delete is sent again.
    pub(super) fn is_untouched(&self) -> bool {
        if let Self::Connect { problem, .. } = self {
            return problem.is_transient() && !problem.is_after_sending();
        }
        matches!(self, Self::Unavailable { status: 429 | 503, .. })
    }

    /// Whether a deletion was not tried, because its guard was not satisfied.
    pub fn is_guard(&self) -> bool {
        matches!(
            self,
            Self::NotEmpty { .. }
                | Self::MoreThanAllowed { .. }
                | Self::EmptinessUnknown { .. }
                | Self::NoMembers { .. }
                | Self::BoundMeanwhile { .. }
                | Self::TopicPermissionsChanged { .. }
                | Self::TopicPermissionNotRestorable { .. }
                | Self::NotRestorable { .. }
        )
    }

    /// Whether the error came after the broker had processed the request.
    pub fn is_after_doing(&self) -> bool {
        matches!(self, Self::NotVerified { .. } | Self::Unverifiable { .. })
    }
}
