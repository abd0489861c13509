//! Deletes objects, checks whether a delete without a response succeeded, and checks whether an object exists.

use super::connection::Broker;
use super::error::BrokerError;
use crate::model::{Binding, ExchangeName, QueueName, VhostName};
use crate::plan::request::{Request, path};

/// The result of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Performed {
    /// The broker accepted the request. For a declaration, this does not prove that the object matches: the broker also
    /// returns 204 if it ignores a difference.
    Done,
    /// Nothing changed, because the object to delete, or the user of a topic permission to restore, does not exist.
    AlreadyGone,
}

impl Broker {
    /// Sends a delete once. If its response is lost, reads the object to detect a successful delete.
    ///
    /// # Errors
    /// The error from the delete, unless the read proves that the object no longer exists. If the object exists, either
    /// the broker did not process the delete, or another client has since created an object with the same name. topo
    /// must not delete that object.
    pub(super) async fn delete_once(&self, delete: &Request) -> Result<Performed, BrokerError> {
        let lost = match accept_not_found(self.send_once(delete).await) {
            Err(error) if error.may_have_been_processed() && !error.is_unprocessed() => error,
            answer => return answer,
        };
        let path = delete.path.split('?').next().unwrap_or_default();
        match self.send(&Request::get(path).with_query("disable_stats=true")).await {
            Err(BrokerError::NotFound { .. }) => Ok(Performed::Done),
            Ok(_) | Err(_) => Err(lost),
        }
    }

    /// Deletes a binding. `delete` is the request, and `properties_key` is the key in the request. A 404 does not prove
    /// that the binding is missing. The broker also returns 404 for existing bindings with the routing key `null` or
    /// `undefined`, which the handler treats as an atom (`rabbit_mgmt_wm_binding`, all versions). The list of bindings
    /// is reliable.
    pub(super) async fn unbind(
        &self,
        vhost: &VhostName,
        binding: &Binding,
        properties_key: &str,
        delete: &Request,
    ) -> Result<Performed, BrokerError> {
        let is_listed = async || {
            let (_, keys) = self.bindings(vhost).await?;
            Ok::<_, BrokerError>(keys.get(binding).is_some_and(|keys| keys.iter().any(|key| key == properties_key)))
        };
        match accept_not_found(self.retrying_when(BrokerError::is_unprocessed, || self.send_once(delete)).await) {
            Ok(Performed::AlreadyGone) if is_listed().await? => {
                Err(BrokerError::Undeletable { binding: Box::new(binding.clone()) })
            }
            // If the response was lost and the binding is listed, another client may have created it again.
            Err(lost) if lost.may_have_been_processed() && !lost.is_unprocessed() => match is_listed().await {
                Ok(false) => Ok(Performed::Done),
                Ok(true) | Err(_) => Err(lost),
            },
            performed => performed,
        }
    }

    /// Returns true if a queue exists. Sends one request.
    pub async fn queue_exists(&self, vhost: &VhostName, name: &QueueName) -> Result<bool, BrokerError> {
        self.exists_at(path("queues", &[vhost.as_str(), name.as_str()])).await
    }

    /// Returns true if an exchange exists. Sends one request.
    pub async fn exchange_exists(&self, vhost: &VhostName, name: &ExchangeName) -> Result<bool, BrokerError> {
        self.exists_at(path("exchanges", &[vhost.as_str(), name.as_str()])).await
    }

    /// Returns true if the object at this path of the management API exists.
    async fn exists_at(&self, path: String) -> Result<bool, BrokerError> {
        match self.send(&Request::get(path).with_query("disable_stats=true")).await {
            Ok(_) => Ok(true),
            Err(BrokerError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Treats the deletion of a missing object as success.
pub(super) fn accept_not_found<T>(result: Result<T, BrokerError>) -> Result<Performed, BrokerError> {
    match result {
        Ok(_) => Ok(Performed::Done),
        Err(BrokerError::NotFound { .. }) => Ok(Performed::AlreadyGone),
        Err(error) => Err(error),
    }
}
