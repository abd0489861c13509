//! Reads topic permissions, and restores those that the broker deleted with an exchange.

use super::connection::Broker;
use super::deletion::Performed;
use super::error::BrokerError;
use crate::model::{BrokerVersion, ExchangeName, TopicPermission, VhostName};
use crate::plan::TopicPermissions;
use crate::plan::request::{Request, path};
use serde::Deserialize;

/// The first version that can store its metadata in Khepri.
const KHEPRI: BrokerVersion = BrokerVersion::new(4, 0, 0);
/// The first version that always stores its metadata in Khepri.
const ONLY_KHEPRI: BrokerVersion = BrokerVersion::new(4, 3, 0);
/// The reason for a refusal if the user no longer exists.
const NO_SUCH_USER: &str = "vhost_or_user_not_found";

/// An entry of `GET /api/feature-flags`.
#[derive(Deserialize)]
struct FeatureFlag {
    name: String,
    state: String,
}

impl Broker {
    /// Returns the topic permissions of a vhost that the broker deletes with their exchange. Only an administrator may
    /// read them.
    pub async fn topic_permissions(
        &self,
        vhost: &VhostName,
        version: BrokerVersion,
    ) -> Result<TopicPermissions, BrokerError> {
        if version < KHEPRI || version < ONLY_KHEPRI && self.stores_in_mnesia().await? {
            return Ok(TopicPermissions::Kept);
        }
        match self.listed_topic_permissions(vhost).await {
            Ok(listed) => Ok(TopicPermissions::Known(listed)),
            Err(error) if is_hidden(&error) => Ok(TopicPermissions::Hidden),
            // The vhost does not exist.
            Err(BrokerError::NotFound { .. }) => Ok(TopicPermissions::Known(Vec::new())),
            Err(error) => Err(error),
        }
    }

    /// Returns the topic permissions on one exchange, sorted.
    pub async fn topic_permissions_on(
        &self,
        vhost: &VhostName,
        exchange: &ExchangeName,
    ) -> Result<Vec<TopicPermission>, BrokerError> {
        let mut listed = self.listed_topic_permissions(vhost).await?;
        listed.retain(|permission| permission.exchange == *exchange);
        Ok(listed)
    }

    async fn listed_topic_permissions(&self, vhost: &VhostName) -> Result<Vec<TopicPermission>, BrokerError> {
        let list = format!("{}/topic-permissions", path("vhosts", &[vhost.as_str()]));
        let mut listed: Vec<TopicPermission> = self.get(list).await?;
        listed.sort();
        Ok(listed)
    }

    /// Returns true if the feature flag `khepri_db` is disabled. A flag that cannot be read counts as enabled.
    async fn stores_in_mnesia(&self) -> Result<bool, BrokerError> {
        match self.get::<Vec<FeatureFlag>>("/api/feature-flags").await {
            Ok(flags) => Ok(flags.iter().any(|flag| flag.name == "khepri_db" && flag.state == "disabled")),
            Err(error) if is_hidden(&error) || matches!(error, BrokerError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Restores a topic permission and verifies it. The restore for a user that was deleted meanwhile succeeds.
    pub(super) async fn put_topic_permission(
        &self,
        vhost: &VhostName,
        permission: &TopicPermission,
        sent: &Request,
    ) -> Result<Performed, BrokerError> {
        match self.send(sent).await {
            Ok(_) => {}
            Err(BrokerError::Refused { reason, .. }) if reason.contains(NO_SUCH_USER) => {
                return Ok(Performed::AlreadyGone);
            }
            Err(error) => return Err(error),
        }
        let object = || permission.to_string();
        match self.topic_permissions_on(vhost, &permission.exchange).await {
            Ok(listed) if listed.contains(permission) => Ok(Performed::Done),
            Ok(_) => Err(BrokerError::NotVerified { object: object(), expected: true }),
            Err(error) => Err(BrokerError::Unverifiable { object: object(), reason: error.to_string() }),
        }
    }
}

fn is_hidden(error: &BrokerError) -> bool {
    matches!(error, BrokerError::WrongTag { .. } | BrokerError::AccessRefused { .. })
}
