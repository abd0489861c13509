//! What follows from an error: whether to try again, and whether the broker may have done what was asked.

use super::error::BrokerError;

impl BrokerError {
    /// Whether it may go away by itself, so that the request is worth sending again.
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

    /// Whether the broker may have done what was asked all the same, because its answer never came.
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

    /// Whether a deletion was not even tried, because what must hold for it did not.
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

    /// Whether the broker had done what was asked when it came.
    pub fn is_after_doing(&self) -> bool {
        matches!(self, Self::NotVerified { .. } | Self::Unverifiable { .. })
    }
}
