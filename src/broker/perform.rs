//! Performs one action: sends its request, and reports whether there was anything to do.

use super::connection::Broker;
use super::error::BrokerError;
use super::guard::OnProof;
use crate::model::{Binding, ObjectId, VhostName};
use crate::plan::Action;
use crate::plan::request::{Request, path, request};

/// The result of an action.
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
    /// Every request but a delete can be repeated without harm, so what may go away is tried again. A delete whose answer
    /// was lost is looked after instead: when the object is still there, the error leaves doubt. Deleting what is gone is success;
    /// a queue whose node is down is not gone ([`BrokerError::HomeNodeDown`]). The guard of a delete is kept; when it
    /// does not hold, nothing is deleted and the error is [`BrokerError::NotEmpty`], [`BrokerError::MoreThanAllowed`] or
    /// [`BrokerError::EmptinessUnknown`].
    pub async fn perform(&self, vhost: &VhostName, action: &Action) -> Result<Performed, BrokerError> {
        self.perform_observed(vhost, action, &|_| {}).await
    }

    /// [`Self::perform`], which calls `observe` while the proof of a guard waits for ticks.
    pub async fn perform_observed(
        &self,
        vhost: &VhostName,
        action: &Action,
        observe: OnProof<'_>,
    ) -> Result<Performed, BrokerError> {
        // Messages are moved by a transport, not by a request.
        let Some(sent) = request(vhost, action) else { return Ok(Performed::AlreadyGone) };
        if let Action::DeclareQueue { name, .. } = action {
            self.emptiness().forget(vhost, name);
        }
        match action {
            Action::DeclareExchange { name, exchange, bindings } if !bindings.is_empty() => {
                // Refused to all but administrators, and an exchange that is there already is left as it is: a declare of
                // it alone says whether it is what it shall be, and makes it where this did not.
                let _ = self.send(&sent).await;
                let alone = Action::declare_exchange(name, exchange);
                Box::pin(self.perform(vhost, &alone)).await
            }
            Action::PutVhost { .. }
            | Action::DeclareExchange { .. }
            | Action::PutPolicy { .. }
            | Action::DeclareQueue { .. }
            | Action::PutRecord { .. }
            | Action::MoveMessages { .. } => self.send(&sent).await.map(|_| Performed::Done),
            Action::Bind { binding } if binding.breaks_the_list() => {
                Err(BrokerError::Unlistable { binding: Box::new(binding.clone()) })
            }
            Action::PutTopicPermission { permission } => self.put_topic_permission(vhost, permission, &sent).await,
            Action::Bind { .. } => self.send(&sent).await.map(|_| Performed::Done),
            Action::DeleteExchange { .. } | Action::DeletePolicy { .. } | Action::DeleteRecord { .. } => {
                self.retrying_when(BrokerError::is_untouched, || self.delete_once(&sent)).await
            }
            Action::Unbind { binding, properties_key } => self.unbind(vhost, binding, properties_key, &sent).await,
            Action::DeleteQueue { name, guard } => {
                let deleted = self.delete_queue(vhost, name, *guard, &sent, observe).await;
                self.emptiness().forget(vhost, name);
                deleted
            }
        }
    }
}

impl Broker {
    /// Sends a delete once. When its answer is lost, a look tells whether the object is gone; when it is not, nobody can
    /// tell a delete that was never done from one after which somebody made a new object of that name, which is not ours
    /// to delete. Then the error is the lost answer, which leaves doubt.
    pub(super) async fn delete_once(&self, delete: &Request) -> Result<Performed, BrokerError> {
        let lost = match gone_is_done(self.send_once(delete).await) {
            Err(error) if error.leaves_doubt() && !error.is_untouched() => error,
            answer => return answer,
        };
        let path = delete.path.split('?').next().unwrap_or_default();
        match self.send(&Request::get(path).with_query("disable_stats=true")).await {
            Err(BrokerError::NotFound { .. }) => Ok(Performed::Done),
            Ok(_) | Err(_) => Err(lost),
        }
    }

    /// A binding is gone when it is listed no more: 404 is the answer, for ever, for the routing keys `null` and
    /// `undefined`, too, which the handler takes for atoms (`rabbit_mgmt_wm_binding`, all versions).
    async fn unbind(
        &self,
        vhost: &VhostName,
        binding: &Binding,
        key: &str,
        delete: &Request,
    ) -> Result<Performed, BrokerError> {
        let is_listed = async || {
            let (_, keys) = self.bindings(vhost).await?;
            Ok::<_, BrokerError>(keys.get(binding).is_some_and(|keys| keys.iter().any(|listed| listed == key)))
        };
        match gone_is_done(self.retrying_when(BrokerError::is_untouched, || self.send_once(delete)).await) {
            Ok(Performed::AlreadyGone) if is_listed().await? => {
                Err(BrokerError::Undeletable { binding: Box::new(binding.clone()) })
            }
            // As with other deletes: what is there after a lost answer may be somebody's new one.
            Err(lost) if lost.leaves_doubt() && !lost.is_untouched() => match is_listed().await {
                Ok(false) => Ok(Performed::Done),
                Ok(true) | Err(_) => Err(lost),
            },
            performed => performed,
        }
    }

    /// Whether a queue or an exchange is there, asked of the broker itself: for verifying a deletion, never for reading.
    pub async fn exists(&self, vhost: &VhostName, id: &ObjectId) -> Result<bool, BrokerError> {
        let path = match id {
            ObjectId::Queue(name) => path("queues", &[vhost.as_str(), name.as_str()]),
            ObjectId::Exchange(name) => path("exchanges", &[vhost.as_str(), name.as_str()]),
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => return Ok(true),
        };
        match self.send(&Request::get(path).with_query("disable_stats=true")).await {
            Ok(_) => Ok(true),
            Err(BrokerError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Treats the deletion of a missing object as success.
pub(super) fn gone_is_done<T>(result: Result<T, BrokerError>) -> Result<Performed, BrokerError> {
    match result {
        Ok(_) => Ok(Performed::Done),
        Err(BrokerError::NotFound { .. }) => Ok(Performed::AlreadyGone),
        Err(error) => Err(error),
    }
}
