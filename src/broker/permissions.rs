//! Reads the user of a connection and the user's permissions in a vhost. Also reads the topic permissions in a vhost,
//! and restores topic permissions that the broker deleted with an exchange.
//!
//! Every user may read their own tags. Only administrators may read permissions (401 "Not administrator user", 3.8 to
//! 4.3). A plan treats permissions that cannot be read as unknown.

use super::connection::Broker;
use super::deletion::Performed;
use super::error::BrokerError;
use crate::model::{BrokerVersion, ExchangeName, RecordKind, TopicPermission, VhostName};
use crate::plan::request::{Request, path};
use crate::plan::{Permission, TopicPermissions, User};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use tokio::join;

/// The response to `GET /api/whoami`.
#[derive(Deserialize)]
struct WhoAmI {
    name: String,
    tags: Tags,
    is_internal_user: Option<bool>,
}

/// A user's tags: a comma-separated string on 3.8, and a list on 3.9 and later.
#[derive(Deserialize)]
#[serde(untagged)]
enum Tags {
    List(Vec<String>),
    Joined(String),
}

/// The response to `GET /api/permissions/VHOST/USER`.
#[derive(Deserialize)]
struct UserPermission {
    configure: String,
    write: String,
    read: String,
}

/// An entry in the response to `GET /api/users` or `/api/global-parameters`. Other fields, such as password hashes, are
/// not stored.
#[derive(Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
}

/// An entry in the response to `GET /api/vhosts/VHOST/permissions` or `/topic-permissions`.
#[derive(Deserialize)]
struct UserEntry {
    user: String,
}

/// Returns false if the broker itself sets the global parameter with this name. A spec cannot set `cluster_name`, but
/// clients can.
pub(super) fn is_user_parameter(name: &str) -> bool {
    name == "cluster_name" || !RecordKind::GlobalParameter.row().reserved.contains(&name)
}

/// The names of objects by kind, such as `user`.
pub type NamesByKind = BTreeMap<String, Vec<String>>;

impl Broker {
    /// Returns the names of the cluster's users, and of the global parameters that the broker does not set itself. Only
    /// an administrator may read these names.
    pub async fn cluster_wide(&self) -> Result<NamesByKind, BrokerError> {
        let (users, parameters) = join!(
            self.get::<Vec<Named>>("/api/users?columns=name"),
            self.get::<Vec<Named>>("/api/global-parameters?columns=name"),
        );
        let names = |named: Vec<Named>| named.into_iter().map(|it| it.name).collect();
        let user_parameters =
            |named: Vec<Named>| named.into_iter().map(|it| it.name).filter(|name| is_user_parameter(name)).collect();
        Ok(by_kind([("user", names(users?)), ("global parameter", user_parameters(parameters?))]))
    }

    /// Returns the names of the users who have permissions or topic permissions in a vhost, by kind of permission. Only
    /// an administrator may read these names.
    pub async fn permissions_in(&self, vhost: &VhostName) -> Result<NamesByKind, BrokerError> {
        let (permissions, topics) = join!(
            self.get::<Vec<UserEntry>>(path("vhosts", &[vhost.as_str(), "permissions"])),
            self.get::<Vec<UserEntry>>(path("vhosts", &[vhost.as_str(), "topic-permissions"])),
        );
        let users = |listed: Vec<UserEntry>| listed.into_iter().map(|it| it.user).collect();
        Ok(by_kind([("permission", users(permissions?)), ("topic permission", users(topics?))]))
    }

    /// Returns the user of this connection; `None` if the broker does not report the user, or if the request fails.
    pub async fn user(&self) -> Option<User> {
        self.read_user().await.ok().flatten()
    }

    /// Returns the user of this connection; `None` if the broker does not report the user.
    pub(super) async fn read_user(&self) -> Result<Option<User>, BrokerError> {
        let WhoAmI { name, tags, is_internal_user } = match self.get("/api/whoami").await {
            Ok(user) => user,
            Err(error) if is_hidden(&error) || matches!(error, BrokerError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let tags = match tags {
            Tags::List(tags) => tags.into_iter().collect(),
            Tags::Joined(tags) => {
                tags.split(',').map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect()
            }
        };
        Ok(Some(User { name, tags, is_internal: is_internal_user }))
    }

    /// Returns the permissions of `user` in an existing vhost. Returns `None` if `user` is not an administrator, or if
    /// an external backend such as LDAP or OAuth stores the permissions. Also returns `None` if the permissions cannot
    /// be read.
    pub async fn permission(&self, vhost: &VhostName, user: &User) -> Option<Permission> {
        if !user.is_administrator() || user.is_internal == Some(false) {
            return None;
        }
        match self.get::<UserPermission>(path("permissions", &[vhost.as_str(), &user.name])).await {
            Ok(UserPermission { configure, write, read }) => Some(Permission { configure, write, read }),
            Err(BrokerError::NotFound { .. }) => {
                let is_known = user.is_internal == Some(true)
                    || self.get::<IgnoredAny>(path("users", &[&user.name])).await.is_ok();
                is_known.then(Permission::default)
            }
            Err(_) => None,
        }
    }
}

fn by_kind(lists: [(&str, Vec<String>); 2]) -> NamesByKind {
    let listed = lists.into_iter().map(|(kind, names)| (kind.to_owned(), names));
    listed.filter(|(_, names)| !names.is_empty()).collect()
}

/// The first version that fully supports Khepri. On 3.13, Khepri is experimental.
const KHEPRI: BrokerVersion = BrokerVersion::new(4, 0, 0);
/// The first version that always stores metadata in Khepri.
const ONLY_KHEPRI: BrokerVersion = BrokerVersion::new(4, 3, 0);
/// The substring that the broker's reason contains if the user no longer exists.
const NO_SUCH_USER: &str = "vhost_or_user_not_found";

/// An entry in the response to `GET /api/feature-flags`.
#[derive(Deserialize)]
struct FeatureFlag {
    name: String,
    state: String,
}

impl Broker {
    /// Returns the topic permissions in a vhost if the broker would delete them with their exchange, and
    /// [`TopicPermissions::Kept`] otherwise. Only an administrator may read topic permissions. For other users, returns
    /// [`TopicPermissions::Hidden`].
    pub async fn topic_permissions(
        &self,
        vhost: &VhostName,
        version: BrokerVersion,
    ) -> Result<TopicPermissions, BrokerError> {
        if version < KHEPRI || version < ONLY_KHEPRI && self.stores_in_mnesia().await? {
            return Ok(TopicPermissions::Kept);
        }
        match self.list_topic_permissions(vhost).await {
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
        let mut listed = self.list_topic_permissions(vhost).await?;
        listed.retain(|permission| permission.exchange == *exchange);
        Ok(listed)
    }

    /// Returns all topic permissions in a vhost, sorted.
    async fn list_topic_permissions(&self, vhost: &VhostName) -> Result<Vec<TopicPermission>, BrokerError> {
        let list = format!("{}/topic-permissions", path("vhosts", &[vhost.as_str()]));
        let mut listed: Vec<TopicPermission> = self.get(list).await?;
        listed.sort();
        Ok(listed)
    }

    /// Returns true if the `khepri_db` feature flag is disabled. A flag that is missing or cannot be read is treated as
    /// enabled.
    async fn stores_in_mnesia(&self) -> Result<bool, BrokerError> {
        match self.get::<Vec<FeatureFlag>>("/api/feature-flags").await {
            Ok(flags) => Ok(flags.iter().any(|flag| flag.name == "khepri_db" && flag.state == "disabled")),
            Err(error) if is_hidden(&error) || matches!(error, BrokerError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Restores a topic permission and verifies the result. Succeeds with [`Performed::AlreadyGone`] if the user no
    /// longer exists.
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

/// Returns true if the error means that the connected user cannot read a list.
pub(super) fn is_hidden(error: &BrokerError) -> bool {
    matches!(error, BrokerError::WrongTag { .. } | BrokerError::AccessRefused { .. })
}
