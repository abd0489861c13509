//! Performs one action by sending its request, and returns the result.

use super::connection::Broker;
use super::deletion::Performed;
use super::error::BrokerError;
use super::guard::OnProof;
use crate::model::{RecordKind, VhostName};
use crate::plan::Action;
use crate::plan::request::request;

impl Broker {
    /// Performs an action.
    ///
    /// All requests except deletes are idempotent, so topo retries them after transient errors. After a delete without
    /// a response, topo reads the object instead of retrying. If the object still exists, the result is the error from
    /// the delete, which the broker may have processed ([`BrokerError::may_have_been_processed`]). Deleting a missing
    /// object succeeds with [`Performed::AlreadyGone`].
    ///
    /// # Errors
    /// [`BrokerError::HomeNodeDown`] for a queue whose node is down. If a delete guard is not satisfied, topo deletes
    /// nothing, and the error is [`BrokerError::NotEmpty`], [`BrokerError::MoreThanAllowed`],
    /// [`BrokerError::EmptinessUnknown`] or [`BrokerError::NoMembers`]. For a binding that the management API could not
    /// list or delete, the error is [`BrokerError::Unlistable`] or [`BrokerError::Undeletable`].
    pub async fn perform(&self, vhost: &VhostName, action: &Action) -> Result<Performed, BrokerError> {
        self.perform_observed(vhost, action, &|_| {}).await
    }

    /// Performs an action like [`Self::perform`], and calls `observe` while the proof of a delete guard waits for
    /// ticks.
    pub async fn perform_observed(
        &self,
        vhost: &VhostName,
        action: &Action,
        observe: OnProof<'_>,
    ) -> Result<Performed, BrokerError> {
        // Only `MoveMessages` has no request, because a transport moves the messages.
        let Some(sent) = request(vhost, action) else { return Ok(Performed::AlreadyGone) };
        if let Action::DeclareQueue { name, .. } = action {
            self.emptiness().forget(vhost, name);
        }
        match action {
            Action::DeclareExchange { name, exchange, bindings } if !bindings.is_empty() => {
                // Only administrators may send this request, which imports definitions and does not change an existing
                // exchange. The declaration without bindings creates a missing exchange, and compares an existing
                // exchange with the spec.
                let _ = self.send(&sent).await;
                let alone = Action::declare_exchange(name, exchange);
                Box::pin(self.perform(vhost, &alone)).await
            }
            Action::PutVhost { .. }
            | Action::DeclareExchange { .. }
            | Action::PutPolicy { .. }
            | Action::DeclareQueue { .. }
            | Action::MoveMessages { .. } => self.send(&sent).await.map(|_| Performed::Done),
            Action::Bind { binding } if binding.breaks_bindings_list() => {
                Err(BrokerError::Unlistable { binding: Box::new(binding.clone()) })
            }
            Action::PutTopicPermission { permission } => self.put_topic_permission(vhost, permission, &sent).await,
            Action::PutRecord { record, .. } => match record.id.kind {
                RecordKind::User => self.put_user(&sent).await.map(|()| Performed::Done),
                RecordKind::Shovel | RecordKind::Upstream => {
                    self.put_link(record, &sent).await.map(|()| Performed::Done)
                }
                // The requests for these kinds contain no templates, but a value can look like a template.
                RecordKind::OperatorPolicy
                | RecordKind::VhostLimit
                | RecordKind::UserLimit
                | RecordKind::GlobalParameter
                | RecordKind::Permission
                | RecordKind::TopicPermission
                | RecordKind::UpstreamSet
                | RecordKind::Parameter
                | RecordKind::DeletionProtection => self.send(&sent).await.map(|_| Performed::Done),
            },
            Action::Bind { .. } => self.send(&sent).await.map(|_| Performed::Done),
            Action::DeleteExchange { .. } | Action::DeletePolicy { .. } | Action::DeleteRecord { .. } => {
                self.retrying_when(BrokerError::is_unprocessed, || self.delete_once(&sent)).await
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
