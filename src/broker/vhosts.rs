//! Lists vhosts with their descriptions and tags, and deletes a vhost.

use super::connection::Broker;
use super::deletion::Performed;
use super::error::BrokerError;
use super::read::VHOSTS;
use super::wire;
use crate::model::VhostName;
use crate::plan::request::{Request, path};

/// A vhost in the broker's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedVhost {
    /// The name.
    pub name: VhostName,
    /// The description; empty if there is none.
    pub description: String,
    /// The tags.
    pub tags: Vec<String>,
}

impl Broker {
    /// Returns the vhosts that the connected user may see, with their descriptions and tags.
    ///
    /// # Errors
    /// The list could not be read.
    pub async fn listed_vhosts(&self) -> Result<Vec<ListedVhost>, BrokerError> {
        let listed: wire::Vhosts = self.get(VHOSTS).await?;
        let vhost = |it: wire::Vhost| ListedVhost {
            name: VhostName::new(it.name),
            description: it.description.unwrap_or_default(),
            tags: it.tags,
        };
        Ok(listed.0.into_iter().map(vhost).collect())
    }

    /// Deletes a vhost with all its objects and messages.
    ///
    /// # Errors
    /// The user is not an administrator, or the broker could not be reached.
    pub async fn delete_vhost(&self, vhost: &VhostName) -> Result<Performed, BrokerError> {
        let delete = Request::delete(path("vhosts", &[vhost.as_str()]));
        self.retrying_when(BrokerError::is_unprocessed, || self.delete_once(&delete)).await
    }
}
