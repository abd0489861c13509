//! Reads who the user is, and what it may do in a vhost. Every user may read its tags; permissions are shown to
//! administrators alone (401 "Not administrator user", 3.8 to 4.3). For a plan, what
//! cannot be read counts as unknown.

use super::connection::Broker;
use super::error::BrokerError;
use crate::model::VhostName;
use crate::plan::request::path;
use crate::plan::{Permission, User};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use tokio::join;

/// `GET /api/whoami`.
#[derive(Deserialize)]
struct WhoAmI {
    name: String,
    tags: Tags,
    is_internal_user: Option<bool>,
}

/// Joined by commas on 3.8, a list from 3.9 on.
#[derive(Deserialize)]
#[serde(untagged)]
enum Tags {
    List(Vec<String>),
    Joined(String),
}

/// `GET /api/permissions/VHOST/USER`.
#[derive(Deserialize)]
struct Listed {
    configure: String,
    write: String,
    read: String,
}

/// An entry of `GET /api/users` or `/api/global-parameters`. Nothing else is kept: users have hashes of passwords.
#[derive(Deserialize)]
struct Named {
    name: String,
}

/// An entry of `GET /api/vhosts/VHOST/permissions` or `/topic-permissions`.
#[derive(Deserialize)]
struct OfUser {
    user: String,
}

/// Global parameters that the broker sets by itself: an ID, a hash, and tags from its configuration.
const OF_THE_BROKER: [&str; 3] = ["cluster_tags", "imported_definition_hash_value", "internal_cluster_id"];

/// Whether a global parameter is set by users.
pub(super) fn is_of_users(parameter: &str) -> bool {
    !OF_THE_BROKER.contains(&parameter)
}

/// Objects that no spec declares, by what they are (`user`), with their names.
pub type NamesByKind = BTreeMap<String, Vec<String>>;

impl Broker {
    /// The users and global parameters of the cluster, which only an administrator may read.
    pub async fn cluster_wide(&self) -> Result<NamesByKind, BrokerError> {
        let (users, parameters) = join!(
            self.get::<Vec<Named>>("/api/users?columns=name"),
            self.get::<Vec<Named>>("/api/global-parameters?columns=name"),
        );
        let names = |named: Vec<Named>| named.into_iter().map(|it| it.name).collect();
        let of_users =
            |named: Vec<Named>| named.into_iter().map(|it| it.name).filter(|name| is_of_users(name)).collect();
        Ok(by_kind([("user", names(users?)), ("global parameter", of_users(parameters?))]))
    }

    /// The users that have permissions in a vhost, which only an administrator may read.
    pub async fn permissions_in(&self, vhost: &VhostName) -> Result<NamesByKind, BrokerError> {
        let (permissions, topics) = join!(
            self.get::<Vec<OfUser>>(path("vhosts", &[vhost.as_str(), "permissions"])),
            self.get::<Vec<OfUser>>(path("vhosts", &[vhost.as_str(), "topic-permissions"])),
        );
        let users = |listed: Vec<OfUser>| listed.into_iter().map(|it| it.user).collect();
        Ok(by_kind([("permission", users(permissions?)), ("topic permission", users(topics?))]))
    }

    /// The user of this connection, if the broker reports it.
    pub async fn user(&self) -> Option<User> {
        let WhoAmI { name, tags, is_internal_user } = self.get("/api/whoami").await.ok()?;
        let tags = match tags {
            Tags::List(tags) => tags.into_iter().collect(),
            Tags::Joined(tags) => {
                tags.split(',').map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect()
            }
        };
        Some(User { name, tags, is_internal: is_internal_user })
    }

    /// The permissions of a user in a vhost that exists; `None` where they cannot be read, or are kept elsewhere (LDAP, OAuth).
    pub async fn permission(&self, vhost: &VhostName, user: &User) -> Option<Permission> {
        if !user.is_administrator() || user.is_internal == Some(false) {
            return None;
        }
        match self.get::<Listed>(path("permissions", &[vhost.as_str(), &user.name])).await {
            Ok(Listed { configure, write, read }) => Some(Permission { configure, write, read }),
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
    let listed = lists.into_iter().map(|(thing, names)| (thing.to_owned(), names));
    listed.filter(|(_, names)| !names.is_empty()).collect()
}
