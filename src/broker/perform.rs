//! Carries out one action: sends its request, and says whether there was anything left to do.

use super::connection::Broker;
use super::error::BrokerError;
use crate::model::{ObjectId, VhostName};
use crate::plan::Action;
use crate::plan::request::{Request, path, request};

/// What came of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Performed {
    /// The broker took it. For a declare that proves little: the broker answers 204 also where it ignored a difference.
    Done,
    /// There was nothing to delete.
    AlreadyGone,
}

impl Broker {
    /// Carries out an action.
    ///
    /// Every request can be repeated without harm, so what may go away is tried again. Deleting what is gone is success;
    /// a queue whose node is down is not gone ([`BrokerError::HomeNodeDown`]). The guard of a delete is kept; when it
    /// does not hold, nothing is deleted and the error is [`BrokerError::NotEmpty`], [`BrokerError::MoreThanAllowed`] or
    /// [`BrokerError::EmptinessUnknown`].
    pub async fn perform(&self, vhost: &VhostName, action: &Action) -> Result<Performed, BrokerError> {
        let sent = request(vhost, action);
        if let Action::DeclareQueue { name, .. } = action {
            self.emptiness().forget(vhost, name);
        }
        match action {
            Action::PutVhost { .. }
            | Action::DeclareExchange { .. }
            | Action::PutPolicy { .. }
            | Action::DeclareQueue { .. } => self.send(&sent).await.map(|_| Performed::Done),
            Action::Bind { binding } if binding.breaks_the_list() => {
                Err(BrokerError::Unlistable { binding: Box::new(binding.clone()) })
            }
            Action::Bind { .. } => self.send(&sent).await.map(|_| Performed::Done),
            Action::DeleteExchange { .. } | Action::DeletePolicy { .. } => gone_is_done(self.send(&sent).await),
            Action::Unbind { binding, properties_key } => {
                let performed = gone_is_done(self.send(&sent).await)?;
                // 404 is also the answer, for ever, for the routing keys `null` and `undefined`, which the handler takes
                // for atoms (`rabbit_mgmt_wm_binding`, all versions). So a binding is gone when it is listed no more.
                if performed == Performed::AlreadyGone {
                    let (_, keys) = self.bindings(vhost).await?;
                    if keys.get(binding).is_some_and(|keys| keys.contains(properties_key)) {
                        return Err(BrokerError::Undeletable { binding: Box::new(binding.clone()) });
                    }
                }
                Ok(performed)
            }
            Action::DeleteQueue { name, guard } => {
                let deleted = self.delete_queue(vhost, name, *guard, &sent).await;
                self.emptiness().forget(vhost, name);
                deleted
            }
        }
    }
}

impl Broker {
    /// Whether a queue or an exchange is there, asked of the broker itself: for verifying a deletion, never for reading.
    pub async fn exists(&self, vhost: &VhostName, id: &ObjectId) -> Result<bool, BrokerError> {
        let path = match id {
            ObjectId::Queue(name) => path("queues", &[vhost.as_str(), name.as_str()]),
            ObjectId::Exchange(name) => path("exchanges", &[vhost.as_str(), name.as_str()]),
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) => return Ok(true),
        };
        match self.send(&Request::get(path).with_query("disable_stats=true")).await {
            Ok(_) => Ok(true),
            Err(BrokerError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// A delete of what is not there.
pub(super) fn gone_is_done<T>(result: Result<T, BrokerError>) -> Result<Performed, BrokerError> {
    match result {
        Ok(_) => Ok(Performed::Done),
        Err(BrokerError::NotFound { .. }) => Ok(Performed::AlreadyGone),
        Err(error) => Err(error),
    }
}
